//! Progress bars on stderr; nothing where stderr is no terminal.

use std::ops::ControlFlow;
use std::time::Duration;

use indicatif::{HumanDuration, ProgressBar, ProgressState, ProgressStyle};

use crate::bayes::sampling::Standing;
use crate::bayes::{Estimate, HardnessNews, Information};
use crate::events::{Events, Progress};

/// How many of how many, and how long the rest takes, each as soon as it is known.
fn count(state: &ProgressState, out: &mut dyn std::fmt::Write) {
    let Some(len) = state.len() else { return };
    let _ = write!(out, "{}/{len}", state.pos());
    let left = state.eta();
    if !left.is_zero() {
        let _ = write!(out, " · {:#} left", HumanDuration(left));
    }
}

/// A bar that follows [`Progress`].
pub struct Bar(ProgressBar);

impl Bar {
    /// A bar titled `title`.
    pub fn new(title: &str) -> Self {
        let bar = ProgressBar::no_length().with_message(title.to_owned());
        let style = ProgressStyle::with_template("{msg} {wide_bar} {count}");
        Self(bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()).with_key("count", count)))
    }

    /// The same for so many items that are reported one by one.
    pub fn of(self, total: usize) -> Self {
        self.0.set_length(total as u64);
        self
    }

    /// Shows progress with a note about the present step.
    pub fn set(&self, progress: Progress, note: String) {
        self.count(progress);
        self.0.set_message(note);
    }

    /// Shows progress.
    pub fn count(&self, progress: Progress) {
        let (done, total) = (progress.done as u64, progress.total as u64);
        if self.0.length() == Some(total) {
            self.0.set_position(done);
            return;
        }
        // No frame shows one of them beside the other's predecessor, and what was done before is not this sitting's pace.
        self.0.unset_length();
        self.0.update(|bar| bar.set_pos(done));
        self.0.reset_eta();
        self.0.set_length(total);
    }

    /// Prints a line above the bar (and where there is no bar).
    pub fn line(&self, text: &str) {
        self.0.suspend(|| eprintln!("{text}"));
    }
}

impl Events<Progress> for Bar {
    fn emit(&mut self, progress: Progress) -> ControlFlow<()> {
        self.count(progress);
        ControlFlow::Continue(())
    }
}

/// How far sampling has come, and the figure so far.
impl Events<Standing> for Bar {
    fn emit(&mut self, standing: Standing) -> ControlFlow<()> {
        if let Some(figure) = standing.figure {
            let half_width = 0.5 * (figure.interval.1 - figure.interval.0);
            self.0.set_message(format!("{:.4} ± {half_width:.4}", figure.value));
        }
        self.emit(standing.progress)
    }
}

/// Classes come one by one, or all together from draws.
impl Events<HardnessNews> for Bar {
    fn emit(&mut self, news: HardnessNews) -> ControlFlow<()> {
        match news {
            HardnessNews::Drawing(Progress { done, total }) => self.0.set_message(format!("draw {done} of {total}")),
            HardnessNews::Known(_) => self.0.inc(1),
        }
        ControlFlow::Continue(())
    }
}

/// How close a figure is by now, and since when it is computed: the number of points is unknown.
pub struct Refining(ProgressBar, String);

impl Refining {
    /// Of a figure called `title`.
    pub fn new(title: impl Into<String>) -> Self {
        let title = title.into();
        let bar = ProgressBar::new_spinner().with_message(title.clone());
        let style = ProgressStyle::with_template("{spinner} {msg} · {elapsed}");
        let bar = bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
        bar.enable_steady_tick(Duration::from_millis(250));
        Self(bar, title)
    }

    /// Goes on with a figure called `title`.
    pub fn begin(&mut self, title: String) {
        self.0.set_message(title.clone());
        self.0.reset_elapsed();
        self.1 = title;
    }
}

impl Events<Estimate> for Refining {
    fn emit(&mut self, now: Estimate) -> ControlFlow<()> {
        let (value, percents) = (now.figure.value, 100.0 * now.figure.relative_half_width());
        self.0.set_message(format!("{}: {value:.6e} ± {percents:.2} % after {} points", self.1, now.samples));
        ControlFlow::Continue(())
    }
}

impl Events<Information> for Refining {
    fn emit(&mut self, now: Information) -> ControlFlow<()> {
        let (nats, percents) = (now.aleatoric_nats.value, 100.0 * now.aleatoric_nats.relative_half_width());
        self.0.set_message(format!("{}: {nats:.6} nats ± {percents:.2} % after {} points", self.1, now.samples));
        ControlFlow::Continue(())
    }
}

impl Drop for Refining {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
