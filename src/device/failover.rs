//! Failover: work whose device was lost runs again, from its last checkpoint, on a new device of
//! the same adapter, otherwise on the next that works, in the end on the CPU.

use super::avoid::after_loss;
use super::choice::{DeviceChoice, OpenDevice};
use super::choose::{candidates, choose};
use super::faults::note;
use super::guard::guarded;
use crate::error::{Error, Result};

/// Losses of a device in one piece of work after which it is given up.
const MOST: usize = 4;
/// New devices of one adapter that are tried in one piece of work.
const OF_ONE_ADAPTER: usize = 1;

/// Devices lost in one piece of work.
#[derive(Debug, Default)]
pub struct DeviceFailures(Vec<DeviceChoice>);

/// The device that takes over.
#[derive(Debug, Clone)]
pub struct Replacement {
    /// The device.
    pub chosen: OpenDevice,
    /// What was lost and what is used now, in words.
    pub sentence: String,
}

impl DeviceFailures {
    /// The device after a lost one. One on which `bayescope verify` found something wrong takes over only
    /// what was asked of it by name.
    ///
    /// # Errors
    /// The loss itself, where too many devices were lost.
    pub fn replace(&mut self, lost: &OpenDevice, loss: Error) -> Result<Replacement> {
        self.0.push(lost.report.used.choice);
        if self.0.len() >= MOST {
            return Err(loss);
        }
        let (mut chosen, wrong) = self.next(lost)?;
        let again = chosen.report.used.choice == lost.report.used.choice;
        let place = match again {
            true => format!("a new device of {}", chosen.report.used.name),
            false => chosen.report.used.name.clone(),
        };
        let why = if again || wrong.is_empty() { String::new() } else { format!(" ({})", wrong.join("; ")) };
        let sentence = format!("{loss}. Going on with {place}, from the last checkpoint{why}");
        chosen.report.asked = lost.report.asked;
        chosen.report.reason = format!("{} was lost", lost.report.used.name);
        Ok(Replacement { chosen, sentence })
    }

    fn lost(&self, choice: DeviceChoice) -> usize {
        self.0.iter().filter(|lost| **lost == choice).count()
    }

    /// The next device that works, and what verification found wrong on others.
    fn next(&self, lost: &OpenDevice) -> Result<(OpenDevice, Vec<String>)> {
        let (order, wrong) = after_loss(&lost.report, candidates());
        for choice in order.into_iter().filter(|choice| self.lost(*choice) <= OF_ONE_ADAPTER) {
            match choose(choice) {
                Ok(chosen) => return Ok((chosen, wrong)),
                Err(error) => tracing::warn!("{error}"),
            }
        }
        Ok((choose(DeviceChoice::Cpu)?, wrong))
    }
}

/// Runs `work`, and again from its start whenever its device was lost; `moved` takes over the new
/// device. Work that keeps checkpoints resumes there.
///
/// # Errors
/// Those of `work` and `moved`; the last loss, after several.
pub fn retry_on_next_device<S, T>(
    state: &mut S,
    chosen: impl Fn(&S) -> &OpenDevice,
    mut work: impl FnMut(&mut S) -> Result<T>,
    mut moved: impl FnMut(&mut S, Replacement) -> Result<()>,
) -> Result<T> {
    let mut losses = DeviceFailures::default();
    loop {
        let device = chosen(state).device.clone();
        match guarded(&device, || work(state)) {
            Err(loss @ Error::DeviceLost { .. }) => {
                let next = losses.replace(chosen(state), loss)?;
                note(next.sentence.clone());
                moved(state, next)?;
            }
            done => return done,
        }
    }
}

/// [`retry_on_next_device`] for work that needs nothing but the device.
///
/// # Errors
/// As [`retry_on_next_device`].
pub fn on_device<T>(mut chosen: OpenDevice, mut work: impl FnMut(&OpenDevice) -> Result<T>) -> Result<T> {
    retry_on_next_device(
        &mut chosen,
        |chosen| chosen,
        |chosen| work(chosen),
        |chosen, moved| {
            *chosen = moved.chosen;
            Ok(())
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loss() -> Error {
        Error::DeviceLost { device: "a card".into(), why: "it went away".into() }
    }

    #[test]
    fn work_is_begun_again_and_given_up_in_the_end() {
        let mut attempts = 0;
        let done = on_device(choose(DeviceChoice::Cpu).unwrap(), |chosen| {
            attempts += 1;
            if attempts < 3 { Err(loss()) } else { Ok(chosen.report.reason.clone()) }
        });
        assert!(done.unwrap().contains("was lost"));
        let told = super::super::faults::notes();
        assert_eq!(told.len(), 2);
        assert!(told.iter().all(|told| told.contains("a card was lost (it went away)")), "{told:?}");
        let mut attempts = 0;
        let given_up: Result<()> = on_device(choose(DeviceChoice::Cpu).unwrap(), |_| {
            attempts += 1;
            Err(loss())
        });
        assert!(matches!(given_up, Err(Error::DeviceLost { .. })));
        assert_eq!(attempts, MOST);
    }
}
