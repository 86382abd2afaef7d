//! Memory: what the process holds, what the machine has, and whether a plan fits.

use std::{
    alloc::{GlobalAlloc, Layout},
    fmt::Write,
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
};

use mimalloc::MiMalloc;

static CURRENT: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

/// mimalloc, counting the bytes that are held.
///
/// mimalloc keeps large buffers for reuse, where the C library's allocator hands them back to the system and takes page
/// faults at the next step; on a small transformer this saves about a quarter of the time. A binary installs it with
///
/// ```
/// #[global_allocator]
/// static ALLOCATOR: training::memory::CountingAllocator = training::memory::CountingAllocator;
///
/// let before = training::memory::current_bytes();
/// let block = vec![0u8; 1 << 20];
/// assert!(training::memory::current_bytes() >= before + block.len());
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct CountingAllocator;

fn grow(bytes: usize) {
    let current = CURRENT.fetch_add(bytes, Relaxed) + bytes;
    // A load is cheaper than a write that almost never changes anything.
    if current > PEAK.load(Relaxed) {
        PEAK.fetch_max(current, Relaxed);
    }
}

// SAFETY: every method passes its arguments on to mimalloc, which fulfils the contract; counting touches no memory.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's contract is the same.
        let pointer = unsafe { MiMalloc.alloc(layout) };
        if !pointer.is_null() {
            grow(layout.size());
        }
        pointer
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's contract is the same.
        let pointer = unsafe { MiMalloc.alloc_zeroed(layout) };
        if !pointer.is_null() {
            grow(layout.size());
        }
        pointer
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's contract is the same.
        unsafe { MiMalloc.dealloc(pointer, layout) };
        CURRENT.fetch_sub(layout.size(), Relaxed);
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        let (old_size, address) = (layout.size(), pointer.addr());
        // SAFETY: the caller's contract is the same.
        let new = unsafe { MiMalloc.realloc(pointer, layout, new_size) };
        // On failure the old block stays as it was.
        if new.is_null() {
            return new;
        }
        if new.addr() != address {
            // The old block was there until its content had been copied.
            grow(new_size);
            CURRENT.fetch_sub(old_size, Relaxed);
        } else if new_size > old_size {
            grow(new_size - old_size);
        } else {
            CURRENT.fetch_sub(old_size - new_size, Relaxed);
        }
        new
    }
}

/// The bytes that the process holds on the heap now; 0 unless the binary has installed [`CountingAllocator`].
pub fn current_bytes() -> usize {
    CURRENT.load(Relaxed)
}

/// The most bytes that were held at once since the start or the last [`reset_peak`].
pub fn peak_bytes() -> usize {
    PEAK.load(Relaxed)
}

/// Starts a new measurement of the peak, from what is held now.
pub fn reset_peak() {
    PEAK.store(CURRENT.load(Relaxed), Relaxed);
}

/// Main memory, in bytes, within the limits of the container that the process runs in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ram {
    /// How much there is.
    pub total: u64,
    /// How much can be taken without swapping.
    pub available: u64,
}

impl Ram {
    /// Asks the system; `None` where it does not tell.
    pub fn now() -> Option<Self> {
        let mut system = sysinfo::System::new().ok()?;
        system.refresh_memory_specifics(sysinfo::MemoryRefreshKind::nothing().with_ram());
        let (total, available) = (system.total_memory(), system.available_memory());
        Some(match system.cgroup_limits() {
            Some(limits) => {
                Self { total: total.min(limits.total_memory), available: available.min(limits.free_memory) }
            }
            None => Self { total, available },
        })
    }
}

/// A plan that needs more memory than there is.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct MemoryError {
    message: String,
}

/// What a run will hold in memory, item by item, so that a run that cannot fit is refused before it starts.
///
/// ```
/// use training::memory::MemoryEstimate;
/// let mut plan = MemoryEstimate::new();
/// plan.add("weights", 4 * 60_000_000).add("AdamW's moments", 8 * 60_000_000);
/// assert!(plan.check(16 << 30, "a smaller --batch-size").is_ok());
/// let message = plan.check(100 << 20, "a smaller --batch-size").unwrap_err().to_string();
/// assert!(message.contains("weights") && message.contains("--batch-size"));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemoryEstimate {
    items: Vec<(String, u64)>,
}

impl MemoryEstimate {
    /// An empty plan.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an item of so many bytes.
    pub fn add(&mut self, name: impl Into<String>, bytes: u64) -> &mut Self {
        self.items.push((name.into(), bytes));
        self
    }

    /// The items, in the order in which they were added.
    pub fn items(&self) -> &[(String, u64)] {
        &self.items
    }

    /// All items together, in bytes.
    pub fn total(&self) -> u64 {
        self.items.iter().fold(0, |sum, (_, bytes)| sum.saturating_add(*bytes))
    }

    /// Whether the plan fits into `available` bytes (see [`Ram::now`]); `remedy` says what the user may change,
    /// as in "a smaller --batch-size".
    ///
    /// # Errors
    /// Lists the items, largest first, and the remedy.
    pub fn check(&self, available: u64, remedy: &str) -> Result<(), MemoryError> {
        let total = self.total();
        if total <= available {
            return Ok(());
        }
        let mut message = format!(
            "this run needs about {} of memory, but only {} are available:",
            human_bytes(total),
            human_bytes(available)
        );
        let mut items: Vec<_> = self.items.iter().collect();
        items.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
        for (name, bytes) in items {
            // Writing to a string cannot fail.
            let _ = write!(message, "\n  {:>10}  {name}", human_bytes(*bytes));
        }
        let _ = write!(message, "\ntry {remedy}");
        Err(MemoryError { message })
    }
}

/// `1.5 GiB` and the like.
pub fn human_bytes(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut value = bytes as f64;
    let mut unit = 0;
    while value >= 1000.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    if unit == 0 { format!("{bytes} B") } else { format!("{value:.1} {}", UNITS[unit]) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_has_memory() {
        let ram = Ram::now().unwrap();
        assert!(ram.available > 0 && ram.available <= ram.total);
    }

    #[test]
    fn a_plan_that_does_not_fit_lists_its_items_largest_first() {
        let mut plan = MemoryEstimate::new();
        plan.add("activations", 3 << 20).add("weights", 1 << 30);
        assert_eq!(plan.total(), (3 << 20) + (1 << 30));
        plan.check(2 << 30, "fewer layers").unwrap();
        let message = plan.check(1 << 30, "fewer layers").unwrap_err().to_string();
        let lines: Vec<_> = message.lines().collect();
        assert!(lines[1].ends_with("1.0 GiB  weights") && lines[2].ends_with("3.0 MiB  activations"), "{message}");
        assert_eq!(lines[3], "try fewer layers");
    }

    #[test]
    fn absurd_plans_do_not_overflow() {
        let mut plan = MemoryEstimate::new();
        plan.add("a", u64::MAX).add("b", u64::MAX);
        assert!(plan.check(1, "less").is_err());
    }

    #[test]
    fn sizes_are_readable() {
        let cases = [(0, "0 B"), (999, "999 B"), (1536, "1.5 KiB"), (1 << 40, "1.0 TiB"), (u64::MAX, "16777216.0 TiB")];
        for (bytes, text) in cases {
            assert_eq!(human_bytes(bytes), text);
        }
    }
}
