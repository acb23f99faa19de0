//! Errors of the engine as exceptions of Python, with their messages.

use std::io::ErrorKind;

use bayescope::error::{Error, shown};
use pyo3::PyErr;
use pyo3::exceptions::{
    PyArithmeticError, PyFileNotFoundError, PyKeyboardInterrupt, PyMemoryError, PyOSError, PyPermissionError,
    PyRuntimeError, PyValueError,
};

/// The exception whose message is what the command line prints. Of jobs the cause is known already ([`engine`](crate::engine)):
/// here nobody may wait, for the GIL is held.
pub fn raised(error: Error) -> PyErr {
    let message = shown(&error.to_string()).to_string();
    match error {
        Error::Io { source, .. } => match source.kind() {
            ErrorKind::NotFound => PyFileNotFoundError::new_err(message),
            ErrorKind::PermissionDenied => PyPermissionError::new_err(message),
            ErrorKind::OutOfMemory => PyMemoryError::new_err(message),
            _ => PyOSError::new_err(message),
        },
        Error::File { .. } | Error::Input(_) => PyValueError::new_err(message),
        Error::OutOfMemory { .. } => PyMemoryError::new_err(message),
        error if error.is_numeric() => PyArithmeticError::new_err(message),
        Error::Cancelled => PyKeyboardInterrupt::new_err(message),
        // Device, DeviceLost, Stopped, and what later versions add.
        _ => PyRuntimeError::new_err(message),
    }
}
