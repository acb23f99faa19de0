//! The one error type of the engine. Every message names the file or the cause, and the way out where there is one.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

/// Result of every fallible function of the engine.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What can go wrong, sorted by what a user would do about it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The operating system refused to read or write a file (missing, permission, full disk).
    #[error("{}: {source}{}", path.display(), hint(source))]
    Io {
        /// The file in question.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A file was read but is not what it should be.
    #[error("{}: {cause}", path.display())]
    File {
        /// The file in question.
        path: PathBuf,
        /// What is wrong with it, with offset or entry where that is known.
        cause: String,
    },
    /// A number, name or combination the user gave cannot be used.
    #[error("{0}")]
    Input(String),
    /// The computing device failed or is missing.
    #[error("device: {0}")]
    Device(String),
    /// The device is gone. What is on disk is whole: on another device, or a new one of the same adapter, work goes on.
    #[error("device: {device} was lost ({why})")]
    DeviceLost {
        /// Its name.
        device: String,
        /// What its driver said.
        why: String,
    },
    /// The device had no memory for what it was given at once.
    #[error("device: {device} has not enough memory ({why}); take another one, such as --device cpu")]
    OutOfMemory {
        /// Its name.
        device: String,
        /// For what, and what was said.
        why: String,
    },
    /// A computation left the finite numbers.
    #[error("{0}")]
    Numeric(String),
    /// The user asked to stop.
    #[error("cancelled")]
    Cancelled,
    /// A signal asked to stop, everything is on disk, and the text says how to go on.
    #[error("{0}")]
    Stopped(String),
}

impl Error {
    /// A file that cannot be used, and why.
    pub fn file(path: impl AsRef<Path>, cause: impl Into<String>) -> Self {
        Self::File { path: path.as_ref().to_owned(), cause: cause.into() }
    }

    /// An operating-system error on `path`.
    pub fn io(path: impl AsRef<Path>, source: std::io::Error) -> Self {
        Self::Io { path: path.as_ref().to_owned(), source }
    }

    /// A value the user gave that cannot be used.
    pub fn input(cause: impl Into<String>) -> Self {
        Self::Input(cause.into())
    }
}

/// What a panic said.
pub fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|s| (*s).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".into())
}

/// What a reader of somebody else's makes of a file that is anyone's: some of them panic at what no program would have written.
///
/// # Errors
/// What the panic said.
pub fn caught<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| panic_message(&*panic))
}

/// The way out of the system errors users meet most.
fn hint(source: &std::io::Error) -> &'static str {
    match source.kind() {
        std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => {
            " (free some space and start again: what was finished is kept)"
        }
        std::io::ErrorKind::ReadOnlyFilesystem => " (choose another folder)",
        _ => "",
    }
}
