//! Devices that `auto` passes over, because verification found that they compute wrongly.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

use super::choice::{Candidate, DeviceChoice, DeviceReport};

/// Why, by [`Candidate::key`]; what an older program found, by [`Candidate::label`].
static AVOIDED: Mutex<BTreeMap<String, String>> = Mutex::new(BTreeMap::new());
/// Devices of which users were warned that asked for them by name.
static WARNED: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// From now on `auto`, `all` and work whose device was lost avoid exactly these devices: why, by
/// [`Candidate::key`]. A label without a place means every device of that name and driver. A device that
/// is asked for by name is used all the same.
pub fn avoid(devices: BTreeMap<String, String>) {
    *AVOIDED.lock().unwrap_or_else(PoisonError::into_inner) = devices;
}

/// What verification found wrong on a device, if it did, as a sentence without its full stop.
pub fn found_wrong(candidate: &Candidate) -> Option<String> {
    let avoided = AVOIDED.lock().unwrap_or_else(PoisonError::into_inner);
    let check = avoided.get(&candidate.key()).or_else(|| avoided.get(&candidate.label()))?;
    Some(format!("{} failed `bayescope verify` ({check})", candidate.name))
}

/// Why a device is taken only when it is asked for by name.
pub fn passed_over(candidate: &Candidate) -> Option<String> {
    if candidate.software {
        return Some(format!("{} is a software rasteriser, the CPU computes faster directly", candidate.name));
    }
    found_wrong(candidate)
}

/// Warns, once in a process, that a device that was asked for by name was found wrong.
pub fn warn_of(candidate: &Candidate) {
    let Some(wrong) = found_wrong(candidate) else { return };
    if WARNED.lock().unwrap_or_else(PoisonError::into_inner).insert(candidate.key()) {
        let choice = candidate.choice;
        tracing::warn!("{wrong}: {choice} is used because it was asked for, do not trust figures computed there");
    }
}

/// Those of `candidates` that need not be asked for by name, in their order, and what verification found
/// wrong on others.
pub fn sound(candidates: impl IntoIterator<Item = Candidate>) -> (Vec<DeviceChoice>, Vec<String>) {
    let (mut sound, mut wrong) = (Vec::new(), Vec::new());
    for candidate in candidates.into_iter().filter(|candidate| !candidate.software) {
        match found_wrong(&candidate) {
            Some(why) => wrong.push(why),
            None => sound.push(candidate.choice),
        }
    }
    (sound, wrong)
}

/// Devices to go on with after a lost one, in their order, and what verification found wrong on others. A
/// new device of the same adapter comes first; one that was asked for by name whatever was found there.
pub fn after_loss(lost: &DeviceReport, candidates: Vec<Candidate>) -> (Vec<DeviceChoice>, Vec<String>) {
    let same = &lost.used;
    let named = match lost.asked {
        DeviceChoice::Wgpu(None) => matches!(same.choice, DeviceChoice::Wgpu(_)),
        asked => asked == same.choice,
    };
    let (mut order, mut wrong) = sound(candidates.into_iter().filter(|other| other.choice != same.choice));
    match found_wrong(same).filter(|_| !named) {
        Some(why) => wrong.insert(0, why),
        None => order.insert(0, same.choice),
    }
    (order, wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn card(number: usize, driver: &str, place: &str) -> Candidate {
        Candidate {
            choice: DeviceChoice::Wgpu(Some(number)),
            name: "a card of this test".into(),
            driver: driver.into(),
            software: false,
            place: Some(place.into()),
        }
    }

    /// One test: what is avoided is of the whole process.
    #[test]
    fn only_the_card_that_failed_verification_is_left_out_unless_it_is_asked_for() {
        let [bad, good] = [card(0, "1.0", "0000:01:00.0"), card(1, "1.0", "0000:02:00.0")];
        let (both, of) = (vec![bad.clone(), good.clone()], |candidate: &Candidate| candidate.choice);
        assert_eq!(sound(both.clone()), (vec![of(&bad), of(&good)], vec![]));
        avoid([(bad.key(), "glow, z".to_owned())].into());
        let why = passed_over(&bad).unwrap();
        assert!(why.contains("a card of this test") && why.contains("verify") && why.contains("glow, z"), "{why}");
        // Its twin is another card, and another driver makes another device of it.
        assert_eq!((passed_over(&good), passed_over(&card(0, "1.1", "0000:01:00.0"))), (None, None));
        assert_eq!(sound(both.clone()), (vec![of(&good)], vec![why.clone()]));
        // Work that loses the good one does not go to the bad one; nor does what `auto` lost while it was found wrong.
        let lost = |asked, used: &Candidate| DeviceReport { asked, used: used.clone(), reason: String::new() };
        let auto = DeviceChoice::Auto;
        assert_eq!(after_loss(&lost(auto, &good), both.clone()), (vec![of(&good)], vec![why.clone()]));
        assert_eq!(after_loss(&lost(auto, &bad), both.clone()), (vec![of(&good)], vec![why]));
        // Who asks for it gets it again.
        for asked in [of(&bad), DeviceChoice::Wgpu(None)] {
            assert_eq!(after_loss(&lost(asked, &bad), both.clone()), (vec![of(&bad), of(&good)], vec![]));
        }
        // What an older program found is of every card of that name and driver.
        avoid([(good.label(), "glow, z".to_owned())].into());
        assert!(sound(both).0.is_empty());
        avoid(BTreeMap::new());
    }
}
