//! Base temperatures as the condition of an experiment: a world each.

use super::form::{Field, list, text, words};
use crate::error::{Error, Result};
use crate::units::Tau;

const LABEL: &str = "Temperatures τ";

/// Checks that there are some, all above 0.
///
/// # Errors
/// Says what is wrong.
pub fn check(taus: &[Tau]) -> Result<()> {
    if taus.is_empty() {
        return Err(Error::input("experiment.taus is empty"));
    }
    if taus.iter().any(|tau| tau.get() <= 0.0) {
        return Err(Error::input(
            "experiment.taus must be above 0: nothing can be learned where every sample is the same",
        ));
    }
    Ok(())
}

/// Their field in a form.
pub fn field(taus: &[Tau]) -> Field {
    let meaning = "Base temperatures τ, apart by commas: a world each, from easy to hard.";
    Field::text(LABEL, meaning, list(&taus.iter().map(|tau| tau.get()).collect::<Vec<_>>()))
}

/// What [`field`] says after it was edited.
///
/// # Errors
/// Names the word that is no temperature.
pub fn of_fields(fields: &[Field]) -> Result<Vec<Tau>, String> {
    let tau = |word: &str| {
        let number = word.parse().map_err(|_| format!("{LABEL}: '{word}' is no number."))?;
        Tau::new(number).map_err(|error| error.to_string())
    };
    words(text(fields, LABEL)).map(tau).collect()
}
