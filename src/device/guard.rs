//! Work on a device whose failures become errors.

use burn::tensor::Device;

use super::choice::DeviceChoice;
use super::faults::{POISONED, is_loss, is_memory};
use super::read::{failure, lost, whole};
use super::{registry, remote};
use crate::error::{Error, Result, catch};

/// Runs `work` on a device. A panic of burn that comes from the device becomes an error; any other
/// panic goes on.
///
/// # Errors
/// Those of `work`; [`Error::OutOfMemory`] and [`Error::DeviceLost`] for a panic.
pub fn guarded<T>(device: &Device, work: impl FnOnce() -> Result<T>) -> Result<T> {
    let panic = match catch(work) {
        Ok(done) => return done,
        Err(panic) => panic,
    };
    let said = panic.message();
    let known = registry::of(device).filter(|_| *device != Device::flex());
    if known.is_some() && (is_loss(&said) || is_memory(&said) || lost(device).is_some()) {
        let why = lost(device).map_or(said, |why| format!("{POISONED}: {why}"));
        return Err(failure(device, &why));
    }
    match (whole(device), remote::gone_of(device)) {
        (Err(error), _) | (Ok(()), Some(error)) => Err(error),
        (Ok(()), None) => panic.resume(),
    }
}

/// Returns the failure with its cause where the connection to another machine's device is gone: to
/// `on`, or to any that was opened.
pub fn explain(error: Error, on: Option<DeviceChoice>) -> Error {
    let on = match on {
        Some(DeviceChoice::Remote(address)) => Some(address),
        Some(_) => return error,
        None => None,
    };
    match error {
        Error::Device(_) => remote::gone(on).unwrap_or(error),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::caught;

    #[test]
    fn a_panic_that_is_not_the_devices_stays_a_panic() {
        let own = caught(|| guarded(&Device::flex(), || -> Result<()> { panic!("an index of ours") }));
        assert_eq!(own.unwrap_err(), "an index of ours");
    }
}
