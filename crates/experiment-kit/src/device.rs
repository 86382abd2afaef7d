//! The backend of a device.

use command_line::Failure;
use training::device::DeviceChoice;

/// Runs an expression with `$backend` standing for the autodiff backend of a
/// [`DeviceChoice`] and `$device` for the device itself. A device that cannot be used
/// ends the surrounding function with [`Failure::Usage`], so that function returns a `Result<_, Failure>`.
///
/// CUDA is built in with this crate's feature `cuda`.
///
/// ```
/// use burn::tensor::{Tensor, backend::AutodiffBackend};
/// use command_line::Failure;
/// use training::device::DeviceChoice;
///
/// fn three<B: AutodiffBackend>(device: B::Device) -> f64 {
///     Tensor::<B, 1>::ones([3], &device).sum().into_data().iter::<f64>().sum()
/// }
///
/// fn run(device: DeviceChoice) -> Result<f64, Failure> {
///     Ok(experiment_kit::on_device!(device, |B, device| three::<B>(device)))
/// }
/// assert!(matches!(run(DeviceChoice::Cpu), Ok(3.0)));
/// ```
#[macro_export]
macro_rules! on_device {
    ($choice:expr, |$backend:ident, $device:ident| $body:expr) => {{
        let choice: $crate::__training::device::DeviceChoice = $choice;
        $crate::device::check(choice)?;
        match choice {
            $crate::__training::device::DeviceChoice::Cpu => {
                type $backend = $crate::__burn::backend::Autodiff<$crate::__burn::backend::Flex>;
                let $device = <$backend as $crate::__burn::tensor::backend::BackendTypes>::Device::default();
                $body
            }
            $crate::__training::device::DeviceChoice::Cuda(index) => {
                $crate::__on_cuda!(index, |$backend, $device| $body)
            }
        }
    }};
}

#[cfg(feature = "cuda")]
#[doc(hidden)]
#[macro_export]
macro_rules! __on_cuda {
    ($index:expr, |$backend:ident, $device:ident| $body:expr) => {{
        type $backend = $crate::__burn::backend::Autodiff<$crate::__burn::backend::Cuda>;
        let $device = $crate::__burn::backend::cuda::CudaDevice::new($index);
        $body
    }};
}

#[cfg(not(feature = "cuda"))]
#[doc(hidden)]
#[macro_export]
macro_rules! __on_cuda {
    ($index:expr, |$backend:ident, $device:ident| $body:expr) => {
        unreachable!("the check above refuses cuda:{}: it was not built in", $index)
    };
}

/// Refuses a device that cannot be used.
///
/// # Errors
/// [`Failure::Usage`], with what is missing.
pub fn check(choice: DeviceChoice) -> Result<(), Failure> {
    choice.check().map_err(|error| Failure::Usage(error.into()))
}
