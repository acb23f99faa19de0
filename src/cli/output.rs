//! What commands say on stdout: JSON documents, lines and text.

use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::Args;
use serde::Serialize;

use crate::error::{Error, Result, shown, shown_json};

/// How a command prints its report.
#[derive(Debug, Clone, Copy, Args)]
pub struct Output {
    /// Print one JSON document.
    #[arg(long)]
    pub json: bool,
}

impl Output {
    /// Prints a report: as one JSON document, or by `text`.
    pub fn print<R: Serialize>(self, report: &R, text: impl FnOnce(&R) -> Result<()>) -> Result<()> {
        if self.json { print_json(report) } else { text(report) }
    }
}

/// One JSON document on stdout.
pub fn print_json(value: &impl Serialize) -> Result<()> {
    print(serde_json::to_string_pretty(value))
}

/// One line of JSON on stdout.
pub fn print_json_line(value: &impl Serialize) -> Result<()> {
    print(serde_json::to_string(value))
}

fn print(text: serde_json::Result<String>) -> Result<()> {
    match text {
        Ok(text) => put(&(shown_json(&text) + "\n")),
        Err(error) => Err(Error::io("standard output", error.into())),
    }
}

/// Whether a line could not be written to stdout, other than for want of a reader.
pub static UNSAID: AtomicBool = AtomicBool::new(false);

/// Prints a line on stdout. The first that cannot be written is reported on stderr and makes the
/// command fail at its end.
pub fn say(line: &str) {
    if let Err(error) = print_text(&format!("{line}\n"))
        && !UNSAID.swap(true, Ordering::Relaxed)
    {
        eprintln!("bayescope: {error}");
    }
}

/// Prints a line on stderr. One that cannot be written is left out: no work ends because nobody hears of it.
pub fn note(line: &str) {
    let _ = std::io::stderr().lock().write_all(format!("{line}\n").as_bytes());
}

/// Text on stdout, without signs that would command a terminal: names in it come from files.
pub fn print_text(text: &str) -> Result<()> {
    put(&shown(text))
}

fn put(text: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        // A reader that has seen enough (`| head`) is no failure.
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(Error::io("standard output", error)),
        _ => Ok(()),
    }
}

/// Lists files.
pub fn tell_written(written: &[std::path::PathBuf], json: bool) -> Result<()> {
    match json {
        true => print_json(&written),
        false => print_text(&written.iter().map(|path| format!("{}\n", path.display())).collect::<String>()),
    }
}
