//! Whether a device computes correctly: reference cases, each compared with 64-bit arithmetic on
//! the CPU or with the numbers of another implementation, within the bounds that the tests have for
//! 32 bits.
//!
//! | file | what |
//! |---|---|
//! | `mod` | what is asked for, and the order of the work |
//! | `cases`, `subject` | the list of cases; what is tried: a device, and how weights reach it |
//! | `reference` | flows and classifiers beside numbers of the papers' own code and of torchvision |
//! | `flows` | any flow beside itself in 64 bits: small random ones, and their ways of sampling |
//! | `worlds` | the bundled oracles beside themselves in 64 bits; pictures that stay on the device |
//! | `training` | two steps of training beside the same steps in 64 bits |
//! | `bounds` | what 32 bits may be off by |
//! | `filled`, `small` | weights from a formula; small random flows |
//! | `checks`, `report` | rows and verdicts; the whole, and its file |
//! | `verdicts` | devices that failed, kept for `auto` |
//! | `isolate` | a thread for each case, which may panic or hang |
//! | `task` | all of it as a task of the window |

mod bounds;
mod cases;
mod checks;
pub mod filled;
mod flows;
mod isolate;
mod reference;
mod report;
pub mod small;
mod subject;
mod task;
#[cfg(test)]
mod tests;
mod training;
mod verdicts;
mod worlds;

use std::time::{Duration, Instant};

use crate::device::{DeviceChoice, OpenDevice, choose, explain, guarded, notes};
use crate::error::{Error, Result};
use crate::events::{Events, Progress};
use crate::flow::weights::Weights;
use crate::oracle::provenance::Machine;
use cases::{CASES, Case};
use checks::Checks;
pub use checks::{Row, Verdict};
use isolate::{Trouble, isolated};
pub use report::Report;
use subject::Subject;
pub use task::VerifyDevice;
pub use verdicts::recall;

/// Longest wait for one case: kernels are compiled at their first use, which takes most of it.
const LIMIT: Duration = Duration::from_secs(120);
/// The same where a processor computes what a graphics card would.
const LIMIT_IN_SOFTWARE: Duration = Duration::from_secs(600);
/// Longest wait for a device that was silent to answer at all.
const PATIENCE: Duration = Duration::from_secs(10);
/// The case that tries the device, before all others.
const DEVICE: &str = "device";

/// What is verified.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct VerifySpec {
    /// The device.
    pub device: DeviceChoice,
    /// Names of cases; all of them where empty.
    pub cases: Vec<String>,
}

/// An event. None comes while a case computes, so that its receiver may use the device.
#[derive(Debug, Clone, PartialEq)]
pub enum VerifyEvent {
    /// A case begins; how many are over, of how many.
    Begun(&'static str, Progress),
    /// A comparison of the case that is over.
    Row(Row),
}

/// Names of all cases.
pub fn case_names() -> Vec<&'static str> {
    CASES.iter().map(|case| case.name).collect()
}

/// How cases run.
#[derive(Debug, Clone, Copy)]
struct Terms {
    limit: Duration,
    limit_in_software: Duration,
    weights: fn(Weights) -> Weights,
}

/// As users have them.
const TERMS: Terms = Terms { limit: LIMIT, limit_in_software: LIMIT_IN_SOFTWARE, weights: |weights| weights };

/// Runs every case that is asked for, each on a thread of its own. One that fails, panics or hangs
/// is a row like the others. A device of this machine that fails is avoided by `auto` from then on.
///
/// # Errors
/// When a case is not known, or the caller stops.
pub fn verify(spec: &VerifySpec, events: &mut dyn Events<VerifyEvent>) -> Result<Report> {
    let known = |name: &String| CASES.iter().any(|case| case.name == name);
    if let Some(unknown) = spec.cases.iter().find(|name| !known(name)) {
        return Err(Error::input(format!("no case is called {unknown}; there are {}", case_names().join(", "))));
    }
    let wanted = |case: &&Case| spec.cases.is_empty() || spec.cases.iter().any(|name| name == case.name);
    let cases: Vec<Case> = CASES.iter().filter(wanted).copied().collect();
    let report = run_cases(spec.device, &cases, TERMS, events)?;
    verdicts::remember(&report, spec.cases.is_empty());
    Ok(report)
}

fn run_cases(
    asked: DeviceChoice,
    cases: &[Case],
    terms: Terms,
    events: &mut dyn Events<VerifyEvent>,
) -> Result<Report> {
    let begun = Instant::now();
    let total = cases.len() + 1;
    events.report(VerifyEvent::Begun(DEVICE, Progress { done: 0, total }))?;
    let (used, mut rows) = tried(asked, terms.limit);
    rows.iter().try_for_each(|row| events.report(VerifyEvent::Row(row.clone())))?;
    let mut told = Vec::new();
    // Why the device is given up.
    let mut given_up: Option<String> = None;
    for (i, case) in cases.iter().enumerate() {
        let Some(chosen) = &used else { break };
        events.report(VerifyEvent::Begun(case.name, Progress { done: i + 1, total }))?;
        let found = match &given_up {
            None => one(chosen, *case, terms, &mut told, &mut given_up),
            Some(why) => {
                let mut checks = Checks::of(case.name);
                checks.fail("all", why.clone());
                checks.rows()
            }
        };
        found.iter().try_for_each(|row| events.report(VerifyEvent::Row(row.clone())))?;
        rows.extend(found);
    }
    let report = Report {
        format: report::FORMAT,
        version: env!("CARGO_PKG_VERSION"),
        system: format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
        instructions: Machine::alone().instructions,
        asked,
        used: used.map(|chosen| chosen.report),
        rows,
        notes: told,
        seconds: begun.elapsed().as_secs_f64(),
        passed: false,
        sentence: String::new(),
    };
    Ok(report.judged())
}

/// The device that is asked for, tried with a computation whose result is known.
fn tried(asked: DeviceChoice, limit: Duration) -> (Option<OpenDevice>, Vec<Row>) {
    const CHECK: &str = "product, sum, exponential, logarithm, gathering";
    let mut checks = Checks::of(DEVICE);
    let chosen = match isolated(limit, move || choose(asked)) {
        Ok(chosen) => {
            checks.done(CHECK);
            Some(chosen)
        }
        Err(trouble) => {
            checks.fail(CHECK, trouble.told(limit));
            None
        }
    };
    (chosen, checks.rows())
}

/// The rows of a case. `told` takes notes about faults, `given_up` why later cases skip the device.
fn one(
    chosen: &OpenDevice,
    case: Case,
    terms: Terms,
    told: &mut Vec<String>,
    given_up: &mut Option<String>,
) -> Vec<Row> {
    let choice = chosen.report.used.choice;
    let limit = if chosen.report.used.software { terms.limit_in_software } else { terms.limit };
    let mut checks = Checks::of(case.name);
    let mut of_case = checks.clone();
    let ended = isolated(limit, move || {
        // Again: a device that was lost in the case before is replaced.
        let chosen = choose(choice)?;
        let device = chosen.device.clone();
        let subject = Subject { chosen, weights: terms.weights };
        let done = guarded(&device, || (case.work)(&subject, &mut of_case));
        done.map(|()| notes()).map_err(|error| explain(error, Some(choice)))
    });
    match ended {
        Ok(notes) => told.extend(notes.into_iter().map(|note| format!("{}: {note}", case.name))),
        Err(trouble) => {
            checks.fail("the rest", trouble.told(limit));
            if trouble == Trouble::Silent && isolated(PATIENCE, move || choose(choice)).is_err() {
                *given_up = Some(format!("not tried: the device has not answered since the case {}", case.name));
            }
        }
    }
    checks.rows()
}
