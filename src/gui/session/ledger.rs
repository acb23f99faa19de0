//! The exactness ledger: everything this session gave away or worked out, with its badge and the chain behind it.

use std::path::Path;

use super::Session;
use crate::gui::prefs::Prefs;
use crate::judge::Report;
use crate::provenance::{Badge, Made, Provenance, markdown};
use crate::units::Smoothing;
use crate::validate::{Pairs, Validation};
use crate::worker::protocol::JobId;

/// What was made, oldest first.
#[derive(Debug, Default)]
pub struct Ledger(Vec<Made>);

impl Ledger {
    /// One more line. The same file written again takes the place of the old one.
    pub fn add(&mut self, made: Made) {
        self.0.retain(|old| old.place.is_none() || old.place != made.place || old.what != made.what);
        self.0.push(made);
    }

    /// Oldest first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Made> + ExactSizeIterator {
        self.0.iter()
    }
}

/// A line about something with the provenance of a figure.
pub fn of_figure(what: impl Into<String>, place: Option<&Path>, said: &[(String, String)]) -> Made {
    let place = place.map(|place| place.display().to_string());
    Made { what: what.into(), place, provenance: Provenance::of_lines(said) }
}

/// What the window shows now, at the present knobs.
pub fn on_show(session: &Session, prefs: &Prefs) -> Vec<Made> {
    let Some(info) = &session.oracle else { return Vec::new() };
    let settings = prefs.settings();
    let line = |what: &str, provenance| Made { what: what.into(), place: None, provenance };
    let device = session.device.as_ref().map_or_else(String::new, |report| report.used.name.clone());
    let precision = match &session.precision {
        Some(report) => report.to_string(),
        None => "32-bit passes, sums over dimensions in 64 bits; not yet compared with 64-bit passes".into(),
    };
    let exact = info.provenance(Badge::Exact, &settings);
    let posteriors =
        exact.clone().with("seed", prefs.seed.to_string()).with("device", device).with("precision", precision);
    let mut shown = vec![line("Posteriors of the gallery and the inspector", posteriors.clone())];
    let pictures = posteriors.for_the_eye("clipped and rounded to 8 bits for the screen");
    shown.push(line("Pictures of the gallery", pictures));
    // The Bayes error is that of the sampling process.
    let sampling = crate::oracle::world::Settings { smoothing: Smoothing::ONE, ..settings };
    let of_world = |badge| info.provenance(badge, &sampling);
    let readout = session.bayes.readout.get().filter(|_| session.bayes.readout.current());
    if let Some(Ok(estimate)) = readout.map(|readout| readout.outcome.as_ref()) {
        let (low, high) = estimate.figure.interval;
        let provenance = of_world(estimate.badge)
            .with("value", format!("{} [{low}, {high}] (fraction)", estimate.figure.value))
            .with("method", format!("{} ({})", estimate.method.name(), estimate.why))
            .with("points", estimate.samples.to_string());
        shown.push(line("Bayes error", provenance));
    }
    if let Some((_, found)) = session.bayes.information.get().filter(|_| session.bayes.information.current()) {
        let (low, high) = found.aleatoric_nats.interval;
        let value = format!("{} nats [{low}, {high}]", found.aleatoric_nats.value);
        shown.push(line("Aleatoric uncertainty and mutual information", of_world(found.badge).with("A", value)));
    }
    shown
}

/// The whole ledger as a Markdown page.
pub fn page(session: &Session, prefs: &Prefs) -> String {
    format!(
        "# Exactness ledger\n\n## On show\n\n{}\n## Made in this session\n\n{}",
        markdown(&on_show(session, prefs)),
        markdown(session.ledger.iter())
    )
}

impl Session {
    /// The oracle was compared with real images.
    pub(super) fn validated(&mut self, id: JobId, found: (Validation, Option<Pairs>)) {
        self.exchange.validated(id, found);
        let view = self.exchange.validate.as_ref().filter(|view| view.job == id);
        if let Some((figure, view)) = view.and_then(|view| Some((view.figures.first()?, view))) {
            self.ledger.add(of_figure("validation", Some(&view.folder), &figure.provenance));
        }
    }

    /// Classifiers were judged.
    pub(super) fn judged(&mut self, id: JobId, report: Box<Report>) {
        self.exchange.judged(id, report);
        let figures = self.exchange.judge.as_ref().filter(|view| view.job == id).map(|view| &view.figures);
        if let Some(figure) = figures.and_then(|figures| figures.first()) {
            self.ledger.add(of_figure("judgement of classifiers", None, &figure.provenance));
        }
    }
}
