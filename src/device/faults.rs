//! What a device that fails looks like from here. Burn does not fail at once: a kernel that could not run leaves its results
//! missing, and only their reading says so. So every reading goes through [`to_host`](super::to_host), which asks the device what has befallen it.

use std::cell::RefCell;

use burn::tensor::Device;

use super::read::settled;
use super::table::{self, Refusal};
use crate::error::{Error, Result, catch};

/// Sentences kept for a listener, at most.
const NOTES: usize = 64;

thread_local! {
    static NOTED: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

/// Tells what was done about a fault: in the log, and to whoever asks this thread for its [`notes`].
pub fn note(text: String) {
    tracing::warn!("{text}");
    NOTED.with_borrow_mut(|noted| {
        if noted.len() < NOTES {
            noted.push(text);
        }
    });
}

/// What was done about faults on this thread since the last question.
pub fn notes() -> Vec<String> {
    NOTED.take()
}

/// Whether the device carried out all it was told since the last question.
///
/// # Errors
/// [`Error::OutOfMemory`] and [`Error::DeviceLost`].
pub fn whole(device: &Device) -> Result<()> {
    if *device == Device::flex() {
        return Ok(());
    }
    let Some((name, faults)) = table::of(device) else { return Ok(()) };
    match faults.take_refusal() {
        None => Ok(()),
        Some(Refusal::Memory(why)) => Err(Error::OutOfMemory { device: name, why }),
        Some(Refusal::Other(why)) => {
            faults.lose(&why);
            Err(Error::DeviceLost { device: name, why })
        }
    }
}

/// An error of burn's about a device, as what it is.
pub fn failure(device: &Device, said: &str) -> Error {
    // The CPU is never lost, and another machine's device is its connection's to judge.
    let known = table::of(device).filter(|_| *device != Device::flex());
    let Some((name, faults)) = known else {
        return Error::Device(format!("a result could not be read back: {}", cause(said)));
    };
    let lose = |why: String| {
        faults.lose(&why);
        Error::DeviceLost { device: name.clone(), why }
    };
    match faults.take_refusal() {
        _ if is_loss(said) => lose(cause(said)),
        Some(Refusal::Memory(why)) => Error::OutOfMemory { device: name, why },
        _ if is_memory(said) => Error::OutOfMemory { device: name, why: cause(said) },
        Some(Refusal::Other(why)) => lose(why),
        // What was missing then is missing for good.
        None if faults.spoilt() => lose(format!("it had run out of memory before: {}", cause(said))),
        // What fails first on a device that is going need not say that it goes; and what gives no results is of no use.
        None => lose(lost(device).unwrap_or_else(|| cause(said))),
    }
}

/// Burn's word for a device that its driver has given up.
pub const POISONED: &str = "The device is poisoned";

fn is_loss(said: &str) -> bool {
    said.contains("poisoned")
}

/// What burn says when it is the one to refuse an allocation.
fn is_memory(said: &str) -> bool {
    ["can't allocate buffer of size", "out of device memory", "Can't allocate"].iter().any(|words| said.contains(words))
}

/// The cause in one line: without headings and traces of the stack.
pub fn cause(said: &str) -> String {
    const HEADINGS: [&str; 6] = [
        POISONED,
        "An error happened during execution",
        "failed to materialize bytes",
        "Caused by",
        "No backtrace available",
        "Backtrace",
    ];
    // Some of burn's errors quote others.
    let said = said.replace("\\n", "\n");
    let below = |line: &str| {
        HEADINGS.iter().fold(line.to_owned(), |line, heading| match line.rsplit_once(*heading) {
            Some((_, rest)) => rest.to_owned(),
            None => line,
        })
    };
    let first = said.lines().map(below).find(|line| line.chars().any(char::is_alphanumeric));
    first.unwrap_or_else(|| said.clone()).trim_matches([':', ' ', '"', ')', '(']).to_owned()
}

/// Why a device is lost, if it is. Waits for what it has to do.
pub fn lost(device: &Device) -> Option<String> {
    let (_, faults) = table::of(device)?;
    if let Some(why) = faults.lost() {
        return Some(why);
    }
    let said = settled(device).err()?;
    is_loss(&said).then(|| {
        faults.lose(&cause(&said));
        cause(&said)
    })
}

/// `work` on a device: a panic of burn's that comes from the device becomes the error it should have been, any other goes on.
///
/// # Errors
/// Those of `work`; [`Error::OutOfMemory`] and [`Error::DeviceLost`] for a panic.
pub fn guarded<T>(device: &Device, work: impl FnOnce() -> Result<T>) -> Result<T> {
    let panic = match catch(work) {
        Ok(done) => return done,
        Err(panic) => panic,
    };
    let said = panic.message();
    let known = table::of(device).filter(|_| *device != Device::flex());
    if known.is_some() && (is_loss(&said) || is_memory(&said) || lost(device).is_some()) {
        let why = lost(device).map_or(said, |why| format!("{POISONED}: {why}"));
        return Err(failure(device, &why));
    }
    match (whole(device), super::remote::gone_of(device)) {
        (Err(error), _) | (Ok(()), Some(error)) => Err(error),
        (Ok(()), None) => panic.resume(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::caught;

    #[test]
    fn what_burn_says_is_told_in_one_line() {
        let said =
            "An error happened during execution\nCaused by:\n  can't allocate buffer of size: 4194304\n   0: a::frame";
        assert_eq!(cause(said), "can't allocate buffer of size: 4194304");
        assert!(is_memory(said) && !is_loss(said));
        let said = "Data(StorageAccess(Read(\"The device is poisoned\\nCaused by:\\n  Destroyed: \\nBacktrace:\\nNo backtrace\")))";
        assert_eq!(cause(said), "Destroyed");
        let said = "The device is poisoned\nCaused by:\n  The device is poisoned: Unknown: the GPU was reset";
        assert_eq!(cause(said), "Unknown: the GPU was reset");
        assert!(is_loss(said) && !is_memory(said));
    }

    #[test]
    fn a_panic_that_is_not_the_devices_stays_a_panic() {
        let own = caught(|| guarded(&Device::flex(), || -> Result<()> { panic!("an index of ours") }));
        assert_eq!(own.unwrap_err(), "an index of ours");
    }

    #[test]
    fn notes_are_heard_once() {
        note("fewer at once".into());
        assert_eq!(notes(), ["fewer at once"]);
        assert!(notes().is_empty());
    }
}
