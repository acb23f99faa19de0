//! What this machine has room for: memory.

use super::source::read_text;
use crate::error::{Error, Result};

/// Taken for the memory available where the system does not tell.
const UNTOLD_MEMORY: u64 = 16 << 30;

/// Refuses a work that needs more memory than this machine has left. `what` needs it; `otherwise` is the way out.
///
/// # Errors
/// Says how much is needed and how much there is.
pub fn memory_for(what: &str, needed: u64, otherwise: &str) -> Result<()> {
    let available = available_memory().unwrap_or(UNTOLD_MEMORY);
    if needed <= available {
        return Ok(());
    }
    Err(Error::input(format!(
        "{what} need {} of memory, and {} are available; {otherwise}",
        in_gib(needed),
        in_gib(available)
    )))
}

/// Bytes of memory that can be taken without swapping, where the system tells (Linux).
fn available_memory() -> Option<u64> {
    let told = read_text("/proc/meminfo").ok()?;
    let line = told.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.split_whitespace().next()?.parse::<u64>().ok().map(|kib| kib << 10)
}

/// A number of bytes in words.
fn in_gib(bytes: u64) -> String {
    format!("{:.1} GiB", bytes as f64 / f64::from(1 << 30))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_machine_has_is_refused() {
        memory_for("a few numbers", 1 << 10, "take fewer").unwrap();
        let said = memory_for("too many numbers", u64::MAX, "take fewer").unwrap_err().to_string();
        assert!(said.contains("too many numbers need 17179869184.0 GiB") && said.contains("take fewer"), "{said}");
        #[cfg(target_os = "linux")]
        assert!(available_memory().is_some_and(|bytes| bytes > 1 << 20));
    }
}
