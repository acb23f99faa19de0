//! The law of KL over the number of training images of the external runs in sight, below their courses.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use eframe::egui::Ui;

use crate::figure::Figure;
use crate::gui::background::BackgroundTask;
use crate::gui::context::Cx;
use crate::gui::panels::experiments::law::exponent;
use crate::gui::plot::{About, Board};
use crate::gui::session::runs::RunView;
use crate::gui::theme::Badge;
use crate::gui::widgets::{heading, hint};
use crate::run::external::{ExternalSpec, LawRun, RunLaw, StepFigures};
use crate::run::monitor::{Steps, Track};

/// Different N that a law needs.
const SIZES: usize = 3;

/// The law, and what it was made of.
#[derive(Default)]
pub struct LawPlot {
    made_of: Option<(Vec<(PathBuf, u64)>, String)>,
    points: Vec<Given>,
    /// Runs that do not say their N, while others do.
    lacking: Vec<String>,
    work: BackgroundTask<Result<Fitted, String>>,
    fitted: Option<Result<Fitted, String>>,
    board: Board,
}

/// A run that has an N and a step.
type Given = (PathBuf, ExternalSpec, StepFigures);

/// The law as it is shown.
struct Fitted {
    figure: Arc<Figure>,
    sentence: String,
}

impl LawPlot {
    /// Shows the law of those of `runs` that are external, match the filter and say their N; nothing where these are of fewer
    /// than three different N.
    pub fn show<'a>(&mut self, ui: &mut Ui, cx: &mut Cx, runs: impl Iterator<Item = &'a RunView>, filter: &str) {
        self.refresh(ui, &runs.collect::<Vec<_>>(), filter);
        if let Some(fitted) = self.work.poll() {
            self.fitted = Some(fitted);
        }
        if self.fitted.is_some() || self.work.waiting() {
            let about = "Each run at its step with the smallest KL; the band is the 95 % interval of the fitted curve";
            heading(ui, "KL over the number of training images", Some((Badge::Estimated, about)));
        }
        match &self.fitted {
            Some(Ok(Fitted { figure, sentence })) => {
                let about =
                    About { name: Some("KL over the number of training images"), height: 300.0, ..About::default() };
                self.board.show_shared(ui, cx, figure, &about);
                drop(ui.label(sentence));
                hint(ui, figure.caption.clone());
            }
            Some(Err(why)) => hint(ui, format!("No law: {why}")),
            None if self.work.waiting() => hint(ui, "The law is being fitted…"),
            None => {}
        }
        if !self.lacking.is_empty() {
            let names = self.lacking.join(", ");
            hint(ui, format!("Not in the law over N, for their run.toml has no external.train_images: {names}"));
        }
    }

    /// Fits again, on a thread of its own, where a best step has changed.
    fn refresh(&mut self, ui: &Ui, runs: &[&RunView], filter: &str) {
        let made_of = (runs.iter().map(|run| (run.folder.clone(), run.revision)).collect(), filter.to_owned());
        if self.made_of.as_ref() == Some(&made_of) {
            return;
        }
        self.made_of = Some(made_of);
        let (points, lacking) = given(runs, filter);
        self.lacking = if points.is_empty() { Vec::new() } else { lacking };
        if points == self.points {
            return;
        }
        self.points.clone_from(&points);
        (self.work, self.fitted) = (BackgroundTask::default(), None);
        let sizes: BTreeSet<Option<u64>> = points.iter().map(|(_, spec, _)| spec.external.train_images).collect();
        if sizes.len() >= SIZES {
            self.work = BackgroundTask::start(ui.ctx(), "law over N", move || fit(&points));
        }
    }
}

/// External runs that match and have a step: those with an N, and the names of those without.
fn given(runs: &[&RunView], filter: &str) -> (Vec<Given>, Vec<String>) {
    let (mut points, mut lacking) = (Vec::new(), Vec::new());
    for run in runs {
        let Some(found) = run.external() else { continue };
        let steps = Steps::Watched(Vec::new());
        let mut track = Track { name: run.name(), fields: BTreeMap::new(), steps, finished: false };
        track.describe(&found.spec);
        if !track.matches(filter) {
            continue;
        }
        match found.spec.external.train_images {
            // There may be thousands of steps: they are looked through only where there is an N.
            Some(_) => {
                let best = StepFigures::best(found.course.steps());
                points.extend(best.map(|best| (run.folder.clone(), found.spec.clone(), *best)));
            }
            None => lacking.push(track.name),
        }
    }
    (points, lacking)
}

fn fit(points: &[Given]) -> Result<Fitted, String> {
    let runs = points.iter().map(|(folder, spec, best)| LawRun { folder, spec, best: Some(best) });
    let runs: Vec<LawRun<'_>> = runs.collect();
    let law = RunLaw::of(&runs, None).map_err(|error| error.to_string())?;
    let sentence = format!("{}. {}", exponent(law.fits.law()), law.fits.sentence);
    Ok(Fitted { figure: Arc::new(law.figure()), sentence })
}
