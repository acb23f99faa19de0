//! The form of a shift experiment: its pool, and a row for each shift.

use super::{BaseShift, ShiftSetting, ShiftSpec};
use crate::experiment::form::{Cell, Field, Input, Number, Rows, count, list, number, rows, words};

const POOL: &str = "Pool";
const VALIDATION: &str = "Validation";
const ROW: &str = "shift";
/// Kinds of base shifts, in words; KL and classes are entered for some of them.
const BASES: &[&str] = &["none", "mean moved", "mean towards", "wider", "narrower"];
const WITH_KL: &[usize] = &[1, 2, 3, 4];
const WITH_CLASSES: &[usize] = &[2];

/// The fields of a spec.
pub(super) fn fields(spec: &ShiftSpec) -> Vec<Field> {
    let meaning = "Images of the world from which training images are chosen.";
    vec![
        Field::count(POOL, meaning, " images", 10.0, spec.pool),
        Field::Number(Number {
            label: VALIDATION,
            meaning: "Share of the training images that is kept for validation.",
            unit: " %",
            speed: 1.0,
            most: 90.0,
            decimals: 1,
            scale: 100.0,
            value: spec.validation,
        }),
        Field::Rows(Rows {
            row: ROW,
            titles: vec!["shift", "class prior π", "noise σ", "", "base shift"],
            rows: spec.settings.iter().map(row).collect(),
            new: row(&ShiftSetting { name: String::new(), prior: Vec::new(), noise: 0.0, base: None }),
            hint: "The first one is the baseline, to which drops are counted. An empty prior is the world's own.",
        }),
    ]
}

fn row(setting: &ShiftSetting) -> Vec<Cell> {
    let (base, [from, to]) = match setting.base {
        None => (0, [0, 1]),
        Some(BaseShift::Mean { .. }) => (1, [0, 1]),
        Some(BaseShift::Towards { from, to, .. }) => (2, [from, to]),
        Some(BaseShift::Wider { .. }) => (3, [0, 1]),
        Some(BaseShift::Narrower { .. }) => (4, [0, 1]),
    };
    let kl = setting.base.map_or(0.1, BaseShift::kl);
    let noise = "Standard deviation of Gaussian noise added to pixels, which are 0 to 1 in a Glow's world and -1 to 1 otherwise";
    let way = "The means move along the line from one class to another: their numbers, from 0";
    let decimal = |value, range, decimals, unit| Input::Number { value, range, speed: 0.005, decimals, unit };
    let class =
        |class: usize| Input::Number { value: class as f64, range: [0.0, 9999.0], speed: 1.0, decimals: 0, unit: "" };
    let cell = |name, meaning, word, only, input| Cell { name, meaning, word, only, input };
    vec![
        cell("Name", "", "", &[], Input::Text(setting.name.clone(), 180.0)),
        cell("Class prior", "", "class prior", &[], Input::Text(list(&setting.prior), 150.0)),
        cell("Noise", noise, "", &[], decimal(setting.noise, [0.0, 2.0], 3, "")),
        cell("Base", "", "base shift", &[], Input::Choice(base, BASES)),
        cell("KL", "How far the base is shifted.", "KL divergence", WITH_KL, decimal(kl, [1e-4, 100.0], 4, " nats")),
        cell("From class", way, "", WITH_CLASSES, class(from)),
        cell("To class", way, "", WITH_CLASSES, class(to)),
    ]
}

/// The spec with what the fields say.
///
/// # Errors
/// Names the shift and the word that is no number.
pub(super) fn read(spec: &ShiftSpec, fields: &[Field]) -> Result<ShiftSpec, String> {
    Ok(ShiftSpec {
        pool: count(fields, POOL),
        validation: number(fields, VALIDATION),
        settings: rows(fields, ROW).iter().map(|row| setting(row)).collect::<Result<_, _>>()?,
        ..spec.clone()
    })
}

fn setting(row: &[Cell]) -> Result<ShiftSetting, String> {
    let [name, prior, noise, base, kl, from, to] = row else { return Err("a shift lacks a field".into()) };
    let text = |cell: &Cell| match &cell.input {
        Input::Text(text, _) => text.clone(),
        _ => String::new(),
    };
    let number = |cell: &Cell| match cell.input {
        Input::Number { value, .. } => value,
        _ => 0.0,
    };
    let (name, prior, noise, kl) = (text(name), text(prior), number(noise), number(kl));
    let [from, to] = [from, to].map(|class| number(class) as usize);
    let weight = |word: &str| word.parse().map_err(|_| format!("{name}: '{word}' is no number."));
    // Weights are written with slashes, too: 40/35/25.
    let prior = words(&prior.replace('/', " ")).map(weight).collect::<Result<_, _>>()?;
    let base = match base.input {
        Input::Choice(1, _) => Some(BaseShift::Mean { kl }),
        Input::Choice(2, _) => Some(BaseShift::Towards { kl, from, to }),
        Input::Choice(3, _) => Some(BaseShift::Wider { kl }),
        Input::Choice(4, _) => Some(BaseShift::Narrower { kl }),
        _ => None,
    };
    Ok(ShiftSetting { name, prior, noise, base })
}
