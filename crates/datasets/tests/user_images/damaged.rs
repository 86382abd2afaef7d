use proptest::prelude::*;

use crate::{Folder, everything, folders::png, idx, latents, load};

/// One file of each kind, with the path that is opened.
fn files(folder: &Folder) -> Vec<(&'static str, Vec<u8>)> {
    folder.write("idx/train-labels-idx1-ubyte", idx::idx(2049, &[3], &[0, 1, 1]));
    vec![
        ("idx/train-images-idx3-ubyte", idx::idx(2051, &[3, 4, 4], &idx::pictures(3))),
        ("a.npy", latents::npy(&[1, 4, 2, 2], &latents::latents(1))),
        ("a.safetensors", latents::one_tensor(1)),
        ("pictures/a/a.png", png(5, 5, [1, 2, 3])),
    ]
}

fn opened(name: &str) -> &str {
    name.split('/').next().unwrap()
}

proptest! {
    /// Whatever stands in a file, it is read or refused: no panic, no memory for what is not there.
    #[test]
    fn damaged_files_are_read_or_refused(which in 0_usize..4, at: prop::sample::Index, byte: u8, cut: bool) {
        let folder = Folder::new();
        let (name, mut bytes) = files(&folder).swap_remove(which);
        let at = at.index(bytes.len());
        bytes[at] = byte;
        if cut {
            bytes.truncate(at + 1);
        }
        folder.write(name, bytes);
        let _ = load(&folder.path(opened(name)), &everything());
    }
}

/// The header of a NumPy file is a Python expression; a reader that follows it down must come up again.
#[test]
fn deep_headers_are_refused() {
    let folder = Folder::new();
    for open in ["(", "[", "{'descr': ("] {
        let header = open.repeat(1000 / open.len());
        let start = [b"\x93NUMPY\x01\x00", &(header.len() as u16).to_le_bytes()[..]].concat();
        let path = folder.write("a.npy", [&start[..], header.as_bytes()].concat());
        assert!(load(&path, &everything()).is_err());
        let header = r#"{"latents":"#.repeat(100_000);
        let path =
            folder.write("a.safetensors", [&(header.len() as u64).to_le_bytes()[..], header.as_bytes()].concat());
        assert!(load(&path, &everything()).is_err());
    }
}
