//! Detects logits, probabilities or log-probabilities, and converts them to log q.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::Note;
use crate::error::Error;
use crate::measure::log_softmax;
use crate::stats::log_sum_exp;

/// How far a row of probabilities may be from adding up to 1, and its log-sum-exp from 0.
const TOLERANCE: f64 = 1e-3;
/// The same of log-probabilities that are called so: in float16 they are off by this much.
const TOLERANCE_CALLED: f64 = 0.05;
/// A deviation that is rounding and not worth a sentence.
const ROUNDING: f64 = 1e-6;
/// How far rows of probabilities that were rounded to few digits may be from adding up to 1.
const FEW_DIGITS: f64 = 0.05;
/// What becomes of a probability of 0.
const SMALLEST: f64 = f32::MIN_POSITIVE as f64;

/// Largest −log q that is taken for a network's: differences of float32 logits stay below it. Sums and squares of larger
/// ones leave float64.
const FARTHEST: f64 = 1e39;

/// What the numbers of a model are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Any numbers, of which the softmax is q.
    Logits,
    /// q itself.
    #[serde(alias = "probs")]
    Probabilities,
    /// log q, natural.
    #[serde(alias = "log_probs")]
    LogProbabilities,
}

impl Kind {
    /// The plural of the numbers it stands for, such as "logits".
    pub fn describe(self) -> &'static str {
        match self {
            Self::Logits => "logits",
            Self::Probabilities => "probabilities",
            Self::LogProbabilities => "log-probabilities",
        }
    }

    /// What an array of this name should hold; `predictions` may be anything.
    fn of_name(name: &str) -> Option<Self> {
        let name = name.to_ascii_lowercase().replace('_', "");
        if name.starts_with("logit") {
            Some(Self::Logits)
        } else if name.starts_with("logp") {
            Some(Self::LogProbabilities)
        } else {
            name.starts_with("prob").then_some(Self::Probabilities)
        }
    }
}

impl FromStr for Kind {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        match text {
            "logits" => Ok(Self::Logits),
            "probabilities" | "probs" => Ok(Self::Probabilities),
            "log-probabilities" | "log-probs" | "log_probs" => Ok(Self::LogProbabilities),
            other => {
                Err(Error::input(format!("{other:?}: predictions are logits, probabilities or log-probabilities")))
            }
        }
    }
}

/// Refuses the first NaN or +∞ in rows of `classes`, and a row of −∞ alone; other −∞ pass, since log-probabilities may
/// be −∞.
pub(super) fn finite(values: &[f64], classes: usize, named: &dyn Fn(usize) -> String) -> Result<(), String> {
    if let Some(at) = values.iter().position(|v| v.is_nan() || *v == f64::INFINITY) {
        return Err(format!(
            "{}: class {} is {}; {} rows hold NaN or infinity. Look at the model's output for these images",
            named(at / classes),
            at % classes,
            values[at],
            values.chunks(classes).filter(|row| row.iter().any(|v| v.is_nan() || *v == f64::INFINITY)).count()
        ));
    }
    match values.chunks(classes).position(|row| row.iter().all(|v| *v == f64::NEG_INFINITY)) {
        Some(row) => Err(format!("{}: every class is −∞", named(row))),
        None => Ok(()),
    }
}

/// Whether `values` [n, K] look like probabilities and not like logits: none is negative, and all rows add up to 1 or to 100,
/// within 5 %, as those that were rounded to few digits do (by bfloat16, say).
pub fn look_like_probabilities(values: &[f64], classes: usize) -> bool {
    let all = |whole: f64| {
        let nearly = |row: &[f64]| (row.iter().sum::<f64>() / whole - 1.0).abs() <= FEW_DIGITS;
        values.chunks(classes).all(nearly)
    };
    values.iter().all(|v| *v >= 0.0) && (all(1.0) || all(100.0))
}

fn probable(row: &[f64]) -> bool {
    row.iter().all(|v| *v >= 0.0) && (row.iter().sum::<f64>() - 1.0).abs() <= TOLERANCE
}

/// Decides what `values` [n, K] are: as told, or by their values, checked against their name.
pub(super) fn decide(
    values: &[f64],
    classes: usize,
    told: Option<Kind>,
    called: Option<&str>,
    named: &dyn Fn(usize) -> String,
    notes: &mut Vec<Note>,
) -> Result<Kind, String> {
    finite(values, classes, named)?;
    let kind = match told {
        Some(kind) => kind,
        None => detect(values, classes, called, named)?,
    };
    notes.push(Note::Taken { kind, called: called.map(str::to_owned), told: told.is_some() });
    Ok(kind)
}

/// What to do about numbers between 0 and 1, `values` [n, K], whose rows do not add up to 1; nothing about others. Nobody is
/// sent to call them logits: the softmax of probabilities is another distribution.
pub(super) fn mended(values: &[f64], classes: usize) -> Option<&'static str> {
    let rounded = |row: &[f64]| (row.iter().sum::<f64>() - 1.0).abs() <= FEW_DIGITS;
    let (within, mut rows) = (values.iter().all(|v| (0.0..=1.0).contains(v)), values.chunks(classes));
    within.then(|| {
        if rows.all(rounded) {
            "if these are probabilities that were rounded, write them with more digits or divide each row by its sum"
        } else if values.chunks(classes).any(probable) {
            "look at what the model gives for this image"
        } else {
            "if each class is scored on its own, as by a sigmoid, they are no distribution: give the numbers before it"
        }
    })
}

fn detect(
    values: &[f64],
    classes: usize,
    called: Option<&str>,
    named: &dyn Fn(usize) -> String,
) -> Result<Kind, String> {
    let say =
        mended(values, classes).unwrap_or("say what they are with --kind logits, probabilities or log-probabilities");
    let claimed = called.and_then(Kind::of_name);
    let sum = |row: &[f64]| row.iter().sum::<f64>();
    let (n, rows) = (values.len() / classes, || values.chunks(classes));
    let probabilities = rows().filter(|row| probable(row)).count();
    if probabilities == n {
        return Ok(Kind::Probabilities);
    }
    let total = |row: &[f64]| log_sum_exp(row.iter().copied());
    let tolerance = if claimed == Some(Kind::LogProbabilities) { TOLERANCE_CALLED } else { TOLERANCE };
    if rows().all(|row| total(row).abs() <= tolerance) {
        return Ok(Kind::LogProbabilities);
    }
    let first = rows().position(|row| !probable(row)).unwrap_or(0);
    let bad_row = &values[first * classes..(first + 1) * classes];
    let within = values.iter().all(|v| (0.0..=1.0).contains(v));
    if let Some(kind @ (Kind::Probabilities | Kind::LogProbabilities)) = claimed {
        let (at, sum) = match kind {
            Kind::Probabilities => (first, sum(bad_row)),
            _ => {
                let at = rows().position(|row| total(row).abs() > tolerance).unwrap_or(0);
                (at, total(&values[at * classes..(at + 1) * classes]).exp())
            }
        };
        let negative = kind == Kind::Probabilities && bad_row.iter().any(|v| *v < 0.0);
        let what =
            if negative { "has a negative probability".into() } else { format!("adds up to {sum:.6}, not to 1") };
        return Err(format!(
            "{}: {} called {}, but the row {what}; {say}",
            named(at),
            kind.describe(),
            called.unwrap_or("")
        ));
    }
    if 2 * probabilities >= n || within {
        let hundred = rows().all(|row| (sum(row) - 100.0).abs() <= 0.1);
        let why = if hundred { " (are they per cent?)" } else { "" };
        return Err(format!(
            "{}: adds up to {:.6}; {probabilities} of {n} rows are probabilities that add up to 1{why}. These are neither probabilities \
             nor, it seems, logits; {say}",
            named(first),
            sum(bad_row)
        ));
    }
    let percent = (1e3 * sum(bad_row)).round() / 1e3;
    if percent > 50.0 && look_like_probabilities(values, classes) {
        return Err(format!("{}: adds up to {percent}: per cent? Divide by 100", named(first)));
    }
    Ok(Kind::Logits)
}

/// Returns normalised log q of `values` [n, K] that are [`finite`], and where −∞ became the smallest normal f32's.
///
/// # Errors
/// Names a row that is not one of this kind, or in which a class is farther off than float32 can say.
pub(super) fn log_probabilities(
    mut values: Vec<f64>,
    classes: usize,
    kind: Kind,
    named: &dyn Fn(usize) -> String,
    notes: &mut Vec<Note>,
) -> Result<(Vec<f64>, Vec<usize>), String> {
    let mut largest: f64 = 0.0;
    for (i, row) in values.chunks_mut(classes).enumerate() {
        if kind == Kind::Probabilities {
            if let Some(class) = row.iter().position(|v| *v < 0.0) {
                return Err(format!("{}: class {class} has the negative probability {}", named(i), row[class]));
            }
            let sum: f64 = row.iter().sum();
            if (sum - 1.0).abs() > TOLERANCE {
                return Err(format!("{}: the probabilities add up to {sum:.6}, not to 1", named(i)));
            }
            largest = largest.max((sum - 1.0).abs());
            row.iter_mut().for_each(|v| *v = v.ln());
        } else if kind == Kind::LogProbabilities {
            let sum = log_sum_exp(row.iter().copied()).exp();
            if (sum - 1.0).abs() > 2.0 * TOLERANCE_CALLED {
                return Err(format!("{}: the probabilities add up to {sum:.6}, not to 1", named(i)));
            }
            largest = largest.max((sum - 1.0).abs());
        }
    }
    if largest > ROUNDING {
        notes.push(Note::Normalised { largest });
    }
    let mut log_q = log_softmax(&values, classes);
    // Finite numbers may be infinitely far apart.
    if let Some(at) = (0..log_q.len()).find(|&at| values[at].is_finite() && log_q[at] < -FARTHEST) {
        return Err(format!(
            "{}: class {} has log q = {:.1e} nats, farther from the others than float32 logits can be. Look at the model's output for \
             this image",
            named(at / classes),
            at % classes,
            log_q[at]
        ));
    }
    let clamped: Vec<usize> = (0..log_q.len()).filter(|&at| log_q[at] == f64::NEG_INFINITY).collect();
    clamped.iter().for_each(|&at| log_q[at] = SMALLEST.ln());
    if !clamped.is_empty() {
        let mut images: Vec<usize> = clamped.iter().map(|at| at / classes).collect();
        images.dedup();
        notes.push(Note::Clamped { zeros: clamped.len(), images: images.len() });
    }
    Ok((log_q, clamped))
}
