//! A run of any kind, followed on stderr.

use std::io::IsTerminal;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::progress::Bar;
use crate::amounts::duration;
use crate::events::{Events, Progress};
use crate::experiment::hardness::CorpusResult;
use crate::experiment::{CellEvent, CellResult};
use crate::oracle::train::TrainEvent;
use crate::run::hardness::{HardnessEvent, RankCorpora};
use crate::run::{Planned, RunEvent, RunExperiment};
use crate::task::{News, TaskHost};

/// Where nobody watches a bar, a line about the progress is written this often.
const LINES: Duration = Duration::from_secs(30);

/// Follows a run of any kind on stderr.
pub struct Follower {
    bar: Bar,
    told: Option<Instant>,
    /// Cells that ended, and all of this share.
    cells: (usize, usize),
    stop: Arc<AtomicBool>,
}

impl Follower {
    /// Of a run of this name; `stop` is raised to end it.
    pub fn new(name: &str, stop: &Arc<AtomicBool>) -> Self {
        Self { bar: Bar::new(name), told: None, cells: (0, 0), stop: Arc::clone(stop) }
    }

    /// Tells how many cells there are; `what` they are.
    fn planned(&mut self, cells: usize, finished: usize, what: &str) {
        self.cells = (finished, cells);
        self.bar.line(&format!("{cells} {what}, {finished} of them finished"));
    }

    /// Shows the present step of a cell: on the bar, or in a line now and then where there is no
    /// bar.
    fn step(&mut self, progress: Progress, note: &str, eta_secs: Option<f64>) {
        let left = eta_secs.map_or(String::new(), |secs| format!(", {} left", duration(secs)));
        let note = format!("{note}{left}");
        if !std::io::stderr().is_terminal() && self.told.is_none_or(|told| told.elapsed() > LINES) {
            self.told = Some(Instant::now());
            self.bar.line(&note);
        }
        self.bar.set(progress, note);
    }

    /// The same among the cells that are finished.
    fn within(&mut self, note: &str, eta_secs: Option<f64>) {
        let (done, total) = self.cells;
        self.step(Progress { done, total }, note, eta_secs);
    }

    /// Tells that another process works on a cell, which is left to it, or waited for.
    fn elsewhere(&mut self, what: &str, by: &str, waiting: bool) {
        match waiting {
            true => self.within(&format!("waiting for {what}, on which {by} is at work"), None),
            false => self.bar.line(&format!("  {what} is left to {by}, which is at work on it")),
        }
    }

    /// Tells how a cell ended.
    fn ended(&mut self, how: &str) {
        self.cells.0 += 1;
        self.bar.line(&format!("  {how}"));
    }

    /// Whether to go on.
    fn flow(&self) -> ControlFlow<()> {
        if self.stop.load(Ordering::Relaxed) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn cell(&mut self, planned: &Planned, said: &CellEvent, eta_secs: Option<f64>) {
        let label = planned.label();
        match said {
            CellEvent::Started { steps, resumed_at, parameters } => {
                let on = if *resumed_at > 0 { format!(", going on at step {resumed_at}") } else { String::new() };
                let (done, all) = self.cells;
                self.bar.line(&format!("[{}/{all}] {label}: {parameters} parameters, {steps} steps{on}", done + 1));
            }
            CellEvent::Step { step, loss, .. } => {
                self.within(&format!("{label}: step {step}, loss {loss:.4} nats"), eta_secs);
            }
            CellEvent::Measuring { what, progress: of } => {
                self.step(*of, &format!("{label}: measuring {what}, {} of {}", of.done, of.total), None);
            }
            CellEvent::Choosing { .. } => self.within(&format!("{label}: choosing the labels to buy"), None),
            CellEvent::Watched(_) | CellEvent::Checkpoint { .. } | CellEvent::Drawing(_) => {}
        }
    }

    fn take(&mut self, event: &RunEvent) {
        match event {
            RunEvent::Planned { cells, finished } => self.planned(*cells, *finished, "cells"),
            RunEvent::Drawing { what, progress } => self.bar.set(*progress, format!("drawing {what}")),
            RunEvent::Scoring { what, progress } => self.bar.set(*progress, format!("scoring {what}")),
            RunEvent::Cell { planned, said, eta_secs } => self.cell(planned, said, *eta_secs),
            RunEvent::Elsewhere { planned, by, waiting } => self.elsewhere(&planned.label(), by, *waiting),
            RunEvent::FinishedElsewhere { planned } => {
                self.ended(&format!("{} was finished by another process", planned.label()));
            }
            RunEvent::Finished(result) => self.ended(&of_cell(result)),
            RunEvent::Failed { planned, why } => self.ended(&format!("{} failed: {why}", planned.label())),
            RunEvent::Summary(_) => {}
        }
    }

    fn take_of_ranking(&mut self, event: &HardnessEvent) {
        match event {
            HardnessEvent::Planned { corpora, finished } => self.planned(*corpora, *finished, "corpora"),
            HardnessEvent::Reading { corpus } => {
                self.bar.set(Progress { done: 0, total: 1 }, format!("reading {corpus}"))
            }
            HardnessEvent::Training { corpus, said, eta_secs } => self.training(corpus, said, *eta_secs),
            HardnessEvent::Integrating { corpus } => {
                self.bar.set(Progress { done: 0, total: 1 }, format!("Bayes error of {corpus}"));
            }
            HardnessEvent::Elsewhere { corpus, by, waiting } => self.elsewhere(corpus, by, *waiting),
            HardnessEvent::FinishedElsewhere { corpus } => {
                self.ended(&format!("{corpus} was finished by another process"))
            }
            HardnessEvent::Finished(result) => self.ended(&of_corpus(result)),
            HardnessEvent::Failed { corpus, why } => self.ended(&format!("{corpus} failed: {why}")),
            HardnessEvent::Ranking(_) => {}
        }
    }

    fn training(&mut self, corpus: &str, said: &TrainEvent, eta_secs: Option<f64>) {
        if let Some(at) = said.progress() {
            self.step(at.stage, &format!("{corpus}: {}", at.note), eta_secs);
        }
        match said {
            TrainEvent::Started { images, parameters, dims, resumed_at, epochs, .. } => {
                let on = if *resumed_at > 0 { format!(", going on after epoch {resumed_at}") } else { String::new() };
                let (done, all) = (self.cells.0 + 1, self.cells.1);
                let size =
                    format!("{images} images of {dims} dimensions, {parameters} parameters, {epochs} epochs{on}");
                self.bar.line(&format!("[{done}/{all}] {corpus}: {size}"));
            }
            TrainEvent::Unrecorded(missing) => self.bar.line(&format!("  {missing}")),
            TrainEvent::LongWarmUp(long) => self.bar.line(&format!("  {long}")),
            TrainEvent::WidePadding(wide) => self.bar.line(&format!("  {wide}")),
            TrainEvent::AsRead(read) => self.bar.line(&format!("  {read}")),
            TrainEvent::SecondNoise(noise) => self.bar.line(&format!("  {noise}")),
            TrainEvent::Epoch { epoch, epochs, held_out, .. } => self.bar.line(&format!(
                "  epoch {epoch} of {epochs}: held out {:.3} bits/dim, {:.1} % right",
                held_out.bits_per_dim,
                100.0 * held_out.accuracy
            )),
            TrainEvent::RolledBack { epoch, rate_scale } => {
                self.bar.line(&format!("  epoch {epoch} diverged: again with {rate_scale} of the learning rate"));
            }
            _ => {}
        }
    }
}

impl Events<RunEvent> for Follower {
    fn emit(&mut self, event: RunEvent) -> ControlFlow<()> {
        self.take(&event);
        self.flow()
    }
}

impl TaskHost for Follower {
    /// The events tell it.
    fn progress(&mut self, _: Progress, _: String) -> bool {
        true
    }

    fn event(&mut self, news: News) {
        if let Some(event) = news.event::<RunExperiment>() {
            self.take(event);
        }
        if let Some(event) = news.event::<RankCorpora>() {
            self.take_of_ranking(event);
        }
    }

    fn check(&mut self) -> ControlFlow<()> {
        self.flow()
    }
}

fn of_cell(result: &CellResult) -> String {
    let m = &result.measured;
    format!(
        "cross-entropy {:.4} = aleatoric {:.4} + epistemic {:.4} [{:.4}, {:.4}] nats; right {:.2} % of at most {:.2} %",
        m.cross_entropy.value,
        m.aleatoric.value,
        m.epistemic.value,
        m.epistemic.interval.low,
        m.epistemic.interval.high,
        100.0 * m.expected_accuracy.value,
        100.0 * m.bayes_accuracy.value
    )
}

fn of_corpus(result: &CorpusResult) -> String {
    let (error, of) = (result.truth.bayes_error, &result.held_out.evaluation);
    format!(
        "{}: Bayes error {:.4} % [{:.4}, {:.4}], {:.3} bits/dim, {:.2} % right ({})",
        result.name,
        100.0 * error.value,
        100.0 * error.interval.0,
        100.0 * error.interval.1,
        of.bits_per_dim,
        100.0 * of.accuracy,
        result.measured_on()
    )
}
