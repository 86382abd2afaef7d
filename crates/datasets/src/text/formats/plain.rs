//! Plain text: the whole file is one document.

use std::io::Read;

use super::{Contents, open, stream_error, utf8};
use crate::text::{TextError, files::TextFile};

pub(super) fn read(file: &TextFile, contents: &mut Contents) -> Result<(), TextError> {
    let mut bytes = Vec::new();
    open(file)?.read_to_end(&mut bytes).map_err(|source| stream_error(file, source))?;
    let text = utf8(file, &bytes, 0)?;
    contents.push(|| file.path.display().to_string(), text);
    Ok(())
}
