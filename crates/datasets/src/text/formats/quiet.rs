//! Catching a panic of a library without a panic message on stderr.

use std::{
    cell::Cell,
    panic::{self, AssertUnwindSafe},
    sync::Once,
    thread,
};

thread_local! {
    /// Whether this thread is inside [`catch_unwind`].
    static GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// Calls `read`; `None` if it panics. What `read` changes must not be used in that case.
///
/// The message of a panic comes from a hook of the whole program. The first call puts a hook in front of it that drops
/// the messages of guarded calls, on their own threads, and hands all others on. A program that sets a hook of its own
/// later, and does not hand on, gets the messages of guarded calls too: that is its choice.
pub(super) fn catch_unwind<T>(read: impl FnOnce() -> T) -> Option<T> {
    static INSTALLED: Once = Once::new();
    // A thread that is panicking already may not change the hook; a later call will.
    if !thread::panicking() {
        INSTALLED.call_once(|| {
            let program_hook = panic::take_hook();
            panic::set_hook(Box::new(move |info| {
                // The flag is gone while a thread ends, when no guarded call runs.
                if !GUARDED.try_with(Cell::get).unwrap_or(false) {
                    program_hook(info);
                }
            }));
        });
    }
    let before = GUARDED.replace(true);
    let result = panic::catch_unwind(AssertUnwindSafe(read));
    GUARDED.set(before);
    result.ok()
}
