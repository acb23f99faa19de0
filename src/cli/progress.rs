//! Progress bars on stderr; nothing where stderr is no terminal.

use std::ops::ControlFlow;

use indicatif::{ProgressBar, ProgressStyle};

use crate::events::{Events, Progress};

/// A bar that follows [`Progress`].
pub struct Bar(ProgressBar);

impl Bar {
    /// A bar titled `title`.
    pub fn new(title: &str) -> Self {
        let bar = ProgressBar::new(0).with_message(title.to_owned());
        let style = ProgressStyle::with_template("{msg} {wide_bar} {pos}/{len} · {eta} left");
        Self(bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar())))
    }

    /// Shows how far things are, with a word about the present step.
    pub fn set(&self, progress: Progress, note: String) {
        self.0.set_length(progress.total as u64);
        self.0.set_position(progress.done as u64);
        self.0.set_message(note);
    }

    /// Prints a line above the bar (and where there is no bar).
    pub fn line(&self, text: &str) {
        self.0.suspend(|| eprintln!("{text}"));
    }
}

impl Events<Progress> for Bar {
    fn emit(&mut self, progress: Progress) -> ControlFlow<()> {
        self.0.set_length(progress.total as u64);
        self.0.set_position(progress.done as u64);
        ControlFlow::Continue(())
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

/// A time as people say it: `0.8 s`, `45 s`, `12 min`, `3 h 20 min`, `5 days`.
pub fn duration(seconds: f64) -> String {
    let minutes = (seconds / 60.0).round();
    match seconds {
        s if s < 10.0 => format!("{s:.1} s"),
        s if s < 120.0 => format!("{s:.0} s"),
        s if s < 7200.0 => format!("{minutes:.0} min"),
        s if s < 172_800.0 => format!("{:.0} h {:.0} min", (minutes / 60.0).floor(), minutes % 60.0),
        s => format!("{:.1} days", s / 86_400.0),
    }
}
