//! The ticket of a folder: the request it was created for, compared with a later one.

use std::io::{ErrorKind, Write};
use std::path::Path;

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;

use super::json::{json_text, parse_json};
use super::source::read_bytes;
use super::write::{IfPresent, place_file};
use crate::error::{Error, Result};

/// What the pieces of a work depend on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ticket<S> {
    /// The world ([`super::world_id`]).
    #[serde(rename = "weights_sha256")]
    pub world: String,
    /// What was asked for.
    pub spec: S,
}

/// Writes a ticket where there is none. `refusal` returns what is wrong with an existing one. Of several processes that come
/// at once one is first, and the others find its ticket.
///
/// # Errors
/// The refusal; names a file that is no such ticket, or cannot be read or written.
pub fn claim_ticket<T: Serialize + DeserializeOwned>(
    path: &Path,
    ticket: &T,
    refusal: impl FnOnce(&T) -> Option<Error>,
) -> Result<()> {
    let Some(found) = claim(path, &json_text(path, ticket)?)? else { return Ok(()) };
    match parse_json(path, &found) {
        Ok(found) => refusal(&found).map_or(Ok(()), Err),
        Err(Error::File { cause, .. }) => Err(Error::file(path, format!("{cause}; choose another folder"))),
        Err(error) => Err(error),
    }
}

/// [`claim_ticket`] for a ticket that is no JSON: one that is there must be the same text.
///
/// # Errors
/// `refused` where it is not; names a file that cannot be read or written.
pub fn claim_text(path: &Path, text: &str, refused: &str) -> Result<()> {
    match claim(path, text.as_bytes())? {
        None => Ok(()),
        Some(_) => Err(Error::file(path, refused)),
    }
}

/// Writes a file where there is none. Returns what lies there where it is something else. A file system may only know how to
/// replace files: there the last of several writers stays, and those that read its bytes in time are refused.
fn claim(path: &Path, bytes: &[u8]) -> Result<Option<Vec<u8>>> {
    let mut found = read_bytes(path);
    if found.as_ref().is_err_and(|e| e.kind() == ErrorKind::NotFound) {
        place_file(path, IfPresent::Keep, |file| file.write_all(bytes).map_err(|e| Error::io(path, e)))?;
        found = read_bytes(path);
    }
    let found = found.map_err(|e| Error::io(path, e))?;
    Ok((found != bytes).then_some(found))
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

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use super::*;

    #[test]
    fn of_several_processes_with_different_tickets_one_gets_the_folder() {
        const RIVALS: usize = 4;
        // A pool of its own, with a thread for each: all wait for all.
        let pool = rayon::ThreadPoolBuilder::new().num_threads(RIVALS).build().unwrap();
        let place = tempfile::tempdir().unwrap();
        for round in 0..20 {
            let path = |kind: &str| place.path().join(format!("{kind}-{round}"));
            let start = Barrier::new(RIVALS);
            let claim = |rival: usize| {
                start.wait();
                let text = claim_text(&path("text"), &rival.to_string(), "another").is_ok();
                start.wait();
                let refusal = |found: &usize| (*found != rival).then(|| Error::input("another"));
                (rival, [text, claim_ticket(&path("ticket"), &rival, refusal).is_ok()])
            };
            let taken: Vec<(usize, [bool; 2])> = pool.broadcast(|context| claim(context.index()));
            for (i, kind) in ["text", "ticket"].into_iter().enumerate() {
                let winners: Vec<usize> = taken.iter().filter(|(_, won)| won[i]).map(|(rival, _)| *rival).collect();
                assert_eq!(winners.len(), 1, "{kind}: {taken:?}");
                let written = std::fs::read_to_string(path(kind)).unwrap();
                assert_eq!(written.trim_end(), winners[0].to_string());
            }
        }
    }

    #[test]
    fn the_same_is_claimed_again_and_what_is_no_ticket_is_named() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("ticket");
        for _ in 0..2 {
            claim_ticket(&path, &0.1, |_: &f64| Some(Error::input("another"))).unwrap();
        }
        assert!(claim_ticket(&path, &0.2, |_: &f64| Some(Error::input("another"))).is_err());
        assert!(claim_ticket(&path, &0.2, |_: &f64| None).is_ok());
        std::fs::write(&path, "{").unwrap();
        let why = claim_ticket(&path, &0.1, |_: &f64| None).unwrap_err().to_string();
        assert!(why.contains("ticket") && why.contains("choose another folder"), "{why}");
    }
}
