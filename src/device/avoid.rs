//! Devices that `auto` passes over, because verification found that they compute wrongly.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use super::choice::Candidate;

/// Why, by name and driver ([`Candidate::label`]).
static AVOIDED: Mutex<BTreeMap<String, String>> = Mutex::new(BTreeMap::new());

/// From now on `auto` avoids exactly these devices: why, by name and driver. A device that is asked
/// for by name is used all the same.
pub fn avoid(devices: BTreeMap<String, String>) {
    *AVOIDED.lock().unwrap_or_else(PoisonError::into_inner) = devices;
}

/// Why a device is avoided, if it is.
pub fn why_avoided(candidate: &Candidate) -> Option<String> {
    AVOIDED.lock().unwrap_or_else(PoisonError::into_inner).get(&candidate.label()).cloned()
}
