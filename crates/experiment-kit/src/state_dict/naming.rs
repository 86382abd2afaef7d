//! How a model's parameters are stored.

use super::StoredTensor;

/// The names and the arrangement of a model's parameters in the files of the authors' code, but for the connections.
///
/// A name of the module is that of [`training::parameters`]: fields and indices joined by dots.
pub trait Naming {
    /// What stands before `shortcut_params` and `softmax_temp`: `model.ancre.` or `ancre.`, with its dot.
    fn connections_prefix(&self) -> &str;

    /// What the buffers that [`module_name`](Self::module_name) leaves out are called in a message, such as
    /// "rotary buffers".
    fn buffers(&self) -> &str {
        "buffers"
    }

    /// The stored name of a module's parameter.
    fn stored_name(&self, name: &str) -> String;

    /// The module's name of a stored tensor; none for a buffer that the model computes itself. What belongs to no
    /// parameter may have any name: it is reported as unexpected.
    fn module_name(&self, stored: &str) -> Option<String>;

    /// A module's tensor in the arrangement of the file; `name` is the module's.
    fn to_file(&self, name: &str, tensor: &StoredTensor) -> StoredTensor;

    /// A stored tensor in the arrangement of the module; `name` is the module's. One whose shape is not as expected comes
    /// back in any shape that is not the parameter's: it is reported as a misfit.
    fn to_module(&self, name: &str, tensor: &StoredTensor) -> StoredTensor;
}
