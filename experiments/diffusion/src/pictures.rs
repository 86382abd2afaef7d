//! Samples as files: a grid to look at, and arrays for evaluators.

use std::io::{Cursor, Write};

use anyhow::{Context, Result, bail};
use image::{ImageFormat, RgbImage, imageops};
use npyz::WriterBuilder;

/// Bytes of pictures in -1..1, each value `127.5 x + 128` cut to 0..255: DiT's rule. `[n, channels, height, width]` becomes
/// `[n, height, width, 3]`; of one channel all three colours are made.
///
/// # Errors
/// If there are neither 1 nor 3 channels.
pub fn to_bytes(values: &[f32], [channels, height, width]: [usize; 3]) -> Result<Vec<u8>> {
    if channels != 1 && channels != 3 {
        bail!("images of {channels} channels cannot be shown: they are latents, and need their decoder");
    }
    let plane = height * width;
    let mut bytes = Vec::with_capacity(values.len() / channels * 3);
    for image in values.chunks_exact(channels * plane) {
        for point in 0..plane {
            for colour in 0..3 {
                // A cast from float keeps within 0..=255.
                bytes.push((127.5 * image[colour.min(channels - 1) * plane + point] + 128.0) as u8);
            }
        }
    }
    Ok(bytes)
}

/// A grid of pictures as a PNG file: `columns` a row, enlarged by a whole number so that small ones can be seen.
///
/// # Errors
/// If they are latents, or the grid is too large for an image.
pub fn grid(values: &[f32], shape: [usize; 3], columns: usize) -> Result<Vec<u8>> {
    let bytes = to_bytes(values, shape)?;
    let side = shape[1];
    let scale = (48 / side).clamp(1, 8);
    let (cell, gap) = (side * scale, 4);
    let pictures: Vec<&[u8]> = bytes.chunks_exact(side * side * 3).collect();
    let columns = columns.clamp(1, pictures.len().max(1));
    let size = |count: usize| -> Result<u32> {
        u32::try_from(count * (cell + gap) + gap)
            .ok()
            .filter(|size| *size < 1 << 15)
            .context("too many pictures for one grid")
    };
    let mut canvas =
        RgbImage::from_pixel(size(columns)?, size(pictures.len().div_ceil(columns))?, image::Rgb([255; 3]));
    for (i, picture) in pictures.into_iter().enumerate() {
        let Some(picture) = RgbImage::from_raw(side as u32, side as u32, picture.to_vec()) else { continue };
        let large = imageops::resize(&picture, cell as u32, cell as u32, imageops::FilterType::Nearest);
        let at = |place: usize| (place * (cell + gap) + gap) as i64;
        imageops::replace(&mut canvas, &large, at(i % columns), at(i / columns));
    }
    let mut file = Cursor::new(Vec::new());
    canvas.write_to(&mut file, ImageFormat::Png)?;
    Ok(file.into_inner())
}

/// One picture as a PNG file, in its own size.
///
/// # Errors
/// If it is a latent.
pub fn png(values: &[f32], shape: [usize; 3]) -> Result<Vec<u8>> {
    let bytes = to_bytes(values, shape)?;
    let picture = RgbImage::from_raw(shape[2] as u32, shape[1] as u32, bytes).context("one picture, whole")?;
    let mut file = Cursor::new(Vec::new());
    picture.write_to(&mut file, ImageFormat::Png)?;
    Ok(file.into_inner())
}

/// Pictures as the `.npz` that ADM's evaluator reads: `arr_0`, bytes of `[n, height, width, 3]`; `arr_1` has the labels.
///
/// # Errors
/// If they are latents.
pub fn npz(values: &[f32], shape: [usize; 3], labels: &[u32]) -> Result<Vec<u8>> {
    let bytes = to_bytes(values, shape)?;
    let mut file = Cursor::new(Vec::new());
    let mut archive = npyz::npz::NpzWriter::new(&mut file);
    let sizes = [labels.len() as u64, shape[1] as u64, shape[2] as u64, 3];
    let mut array = archive.array::<u8>("arr_0", Default::default())?.default_dtype().shape(&sizes).begin_nd()?;
    array.extend(bytes)?;
    array.finish()?;
    let mut array = archive.array::<i64>("arr_1", Default::default())?.default_dtype().shape(&sizes[..1]).begin_nd()?;
    array.extend(labels.iter().map(|&label| i64::from(label)))?;
    array.finish()?;
    archive.zip_writer().finish()?;
    drop(archive);
    file.flush()?;
    Ok(file.into_inner())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_become_bytes_by_dits_rule() {
        assert_eq!(
            to_bytes(&[-1.0, 0.0, 1.0, -9.0], [1, 2, 2]).unwrap()[..],
            [0, 0, 0, 128, 128, 128, 255, 255, 255, 0, 0, 0]
        );
        assert!(to_bytes(&[0.0; 4], [4, 1, 1]).unwrap_err().to_string().contains("decoder"));
    }

    #[test]
    fn the_npz_holds_pictures_and_labels_as_numpy_reads_them() {
        let values: Vec<f32> = (0..2 * 3 * 4).map(|i| i as f32 / 12.0 - 1.0).collect();
        let file = npz(&values, [3, 2, 2], &[7, 8]).unwrap();
        let mut archive = npyz::npz::NpzArchive::new(Cursor::new(file)).unwrap();
        let array = archive.by_name("arr_0").unwrap().unwrap();
        assert_eq!(array.shape(), [2, 2, 2, 3]);
        assert_eq!(array.into_vec::<u8>().unwrap(), to_bytes(&values, [3, 2, 2]).unwrap());
        assert_eq!(archive.by_name("arr_1").unwrap().unwrap().into_vec::<i64>().unwrap(), [7, 8]);
    }

    #[test]
    fn a_grid_has_a_cell_for_each_picture() {
        let grid = image::load_from_memory(&grid(&[1.0; 64 * 5], [1, 8, 8], 3).unwrap()).unwrap();
        assert_eq!((grid.width(), grid.height()), (3 * 52 + 4, 2 * 52 + 4));
    }
}
