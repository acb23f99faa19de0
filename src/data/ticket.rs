//! The ticket of a folder: the request it was created for, compared with a later one.

use std::path::Path;

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;

use super::json::{read_json, read_replaced, write_json};
use super::write::write_atomically;
use crate::error::{Error, Result};

/// What the pieces of a work depend on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ticket<S> {
    /// SHA-256 of the oracle's weights.
    pub weights_sha256: String,
    /// What was asked for.
    pub spec: S,
}

/// Writes a ticket where there is none. `refusal` returns what is wrong with an existing one.
///
/// # Errors
/// The refusal; names a file that is no such ticket, or cannot be read or written.
pub fn claim_ticket<T: Serialize + DeserializeOwned>(
    path: &Path,
    ticket: &T,
    refusal: impl FnOnce(&T) -> Option<Error>,
) -> Result<()> {
    match read_json(path) {
        Ok(Some(found)) => refusal(&found).map_or(Ok(()), Err),
        Ok(None) => write_json(path, ticket),
        Err(Error::File { cause, .. }) => Err(Error::file(path, format!("{cause}; choose another folder"))),
        Err(error) => Err(error),
    }
}

/// [`claim_ticket`] for a ticket that is no JSON: one that is there must be the same text.
///
/// # Errors
/// `refused` where it is not; names a file that cannot be read or written.
pub fn claim_text(path: &Path, text: &str, refused: &str) -> Result<()> {
    match read_replaced(path) {
        Ok(found) if found == text.as_bytes() => Ok(()),
        Ok(_) => Err(Error::file(path, refused)),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
            write_atomically(path, |file| file.write_all(text.as_bytes()))
        }
        Err(e) => Err(Error::io(path, e)),
    }
}

/// Refuses another `work` than the one whose ticket lies at `path`, naming the differences; `None`
/// where only the dotted paths `names` differ.
pub fn ticket_conflict<T: Serialize>(
    path: &Path,
    work: &str,
    (found, asked): (&T, &T),
    names: &[&str],
) -> Option<Error> {
    let (found, asked) = (fields(found, names), fields(asked, names));
    let value = |fields: &[(String, String)], name: &str| {
        let found = fields.iter().find(|(field, _)| field == name);
        found.map_or_else(|| "nothing".to_owned(), |(_, value)| short(value))
    };
    let mut differing: Vec<&String> = found
        .iter()
        .filter(|field| !asked.contains(field))
        .chain(asked.iter().filter(|field| !found.contains(field)))
        .map(|(name, _)| name)
        .collect();
    differing.sort();
    differing.dedup();
    let tell = |name: &String| format!("{name} is {} there, {} here", value(&found, name), value(&asked, name));
    let what: Vec<String> = differing.into_iter().map(tell).collect();
    let what = (!what.is_empty()).then(|| what.join("; "))?;
    let why = format!("this folder holds another {work} ({what}): choose another folder, or ask for the same again");
    Some(Error::file(path, why))
}

/// Every field of a struct by its dotted path, sorted, without some.
pub fn fields(of: &impl Serialize, without: &[&str]) -> Vec<(String, String)> {
    let mut fields = Vec::new();
    // A struct of numbers, strings and lists always has a JSON form.
    flatten("", &serde_json::to_value(of).unwrap_or_default(), &mut fields);
    fields.retain(|(name, _)| !without.contains(&name.as_str()));
    fields.sort();
    fields
}

/// Objects become dotted paths; everything else, lists too, one value.
fn flatten(prefix: &str, value: &Value, fields: &mut Vec<(String, String)>) {
    match value {
        Value::Object(entries) => {
            for (name, value) in entries {
                let path = if prefix.is_empty() { name.clone() } else { format!("{prefix}.{name}") };
                flatten(&path, value, fields);
            }
        }
        value => fields.push((prefix.to_owned(), value.to_string())),
    }
}

fn short(text: &str) -> String {
    const SHOWN: usize = 40;
    if text.chars().count() <= SHOWN { text.to_owned() } else { text.chars().take(SHOWN).chain(['…']).collect() }
}
