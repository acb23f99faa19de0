//! `bayescope notes`: what people say of runs, read and written; other commands repeat it.

use std::path::Path;

use serde::Serialize;

use super::args::NotesArgs;
use super::output::print_text;
use crate::error::{Error, Result};
use crate::run::{AnyRun, RunNotes};

#[derive(Serialize)]
struct Said {
    run: String,
    #[serde(flatten)]
    notes: RunNotes,
}

/// Writes what was given, and says what is said of each run.
pub fn run(args: &NotesArgs) -> Result<()> {
    if args.name.as_ref().is_some_and(|name| !name.is_empty()) && args.runs.len() > 1 {
        return Err(Error::input("--name names one run, and several are given"));
    }
    let all: Vec<Said> = args.runs.iter().map(|run| said(run, args)).collect::<Result<_>>()?;
    args.output.print(&all, |all| {
        let one = |Said { run, notes }: &Said| match line(notes) {
            line if line.is_empty() => format!("{run}: nothing is said of it\n"),
            line => format!("{run}: {line}"),
        };
        print_text(&all.iter().map(one).collect::<String>())
    })
}

/// What is said of a run, as it now is.
fn said(run: &Path, args: &NotesArgs) -> Result<Said> {
    // Says what is wrong with a folder that is no run.
    AnyRun::open(run)?;
    let before = RunNotes::read(run)?;
    let tags = before.tags.join(",");
    let new = |given: &Option<String>, before: &str| given.clone().unwrap_or_else(|| before.to_owned());
    let (name, tags, notes) = (new(&args.name, &before.name), new(&args.tags, &tags), new(&args.notes, &before.notes));
    let notes = RunNotes::typed(&name, &tags, &notes);
    if notes != before {
        notes.write(run)?;
    }
    Ok(Said { run: run.display().to_string(), notes })
}

/// What is said of the run in a folder, to stand above what else is told of it; empty where nothing is said. What cannot be read
/// is told on stderr: it changes no figure.
pub fn heading(run: &Path) -> String {
    match RunNotes::read(run) {
        Ok(notes) => line(&notes),
        Err(error) => {
            eprintln!("bayescope: {}", crate::error::shown(&error.to_string()));
            String::new()
        }
    }
}

/// Name, tags in brackets, notes.
fn line(notes: &RunNotes) -> String {
    let tags = if notes.tags.is_empty() { String::new() } else { format!("[{}]", notes.tags.join(", ")) };
    let parts = [&*notes.name, &tags, &notes.notes];
    let said: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    if said.is_empty() { String::new() } else { said.join(" ") + "\n" }
}
