//! The trainings in a form: a row each.

use super::{AxesSpec, NamedTraining};
use crate::experiment::form::{Cell, Field, Input, Rows, rows};

const ROW: &str = "training";
const STARTS: &[&str] = &["as the spec says", "from scratch"];

/// The field of a spec.
pub(super) fn field(spec: &AxesSpec) -> Field {
    Field::Rows(Rows {
        row: ROW,
        titles: vec!["training", "changes", "start"],
        rows: spec.trainings.iter().map(row).collect(),
        new: row(&NamedTraining::default()),
        hint: "Changes are keys of [training] with their values: epochs = 40, learning_rate = 1e-3. Those that differ in epochs or steps alone \
               are compared, the longest with the shortest.",
    })
}

fn row(named: &NamedTraining) -> Vec<Cell> {
    let changes: Vec<String> = named.change.iter().map(|(key, value)| format!("{key} = {value}")).collect();
    let changed = "What differs from the training below: epochs or steps, batch, learning_rate, weight_decay and so on, apart by commas";
    let start = "From the weights that [pretrained] names for a network, where it names some, or at random";
    let cell = |name, meaning, input| Cell { name, meaning, word: "", only: &[], input };
    vec![
        cell("Name", "", Input::Text(named.name.clone(), 180.0)),
        cell("Changes", changed, Input::Text(changes.join(", "), 240.0)),
        cell("Start", start, Input::Choice(usize::from(named.from_scratch), STARTS)),
    ]
}

/// What the rows say.
///
/// # Errors
/// Names the training whose changes cannot be read.
pub(super) fn read(fields: &[Field]) -> Result<AxesSpec, String> {
    Ok(AxesSpec { trainings: rows(fields, ROW).iter().map(|row| named(row)).collect::<Result<_, _>>()? })
}

fn named(row: &[Cell]) -> Result<NamedTraining, String> {
    let [name, changes, start] = row else { return Err("a training lacks a field".into()) };
    let text = |cell: &Cell| match &cell.input {
        Input::Text(text, _) => text.clone(),
        _ => String::new(),
    };
    let (name, changes) = (text(name), text(changes));
    let unread = || format!("{name}: '{changes}' are no changes: write epochs = 40, learning_rate = 1e-3.");
    let table: toml::Table = toml::from_str(&format!("change = {{ {changes} }}")).map_err(|_| unread())?;
    let change = match table.get("change") {
        Some(toml::Value::Table(change)) if table.len() == 1 => change.clone(),
        _ => return Err(unread()),
    };
    let from_scratch = matches!(start.input, Input::Choice(1, _));
    Ok(NamedTraining { name, change, from_scratch })
}
