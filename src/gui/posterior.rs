//! The bars of the inspected image's posterior as a table and as a figure.

use eframe::egui::Ui;

use super::context::Cx;
use super::format;
use super::inspected::Inspected;
use super::plot::{self, comments};
use super::session::Session;
use super::table_window;
use crate::figure::{Axis, Figure, Point, Records, Series, Style};
use crate::oracle::posterior::Posterior;

/// What bars, table and files are called.
const TITLE: &str = "posterior p(y|x)";
/// Smallest probability of the logarithmic axis.
const LEAST: f64 = 1e-12;

/// The buttons that show, save and copy them.
pub fn buttons(ui: &mut Ui, cx: &mut Cx, shown: &Inspected<'_>) {
    let (session, log, p) = (cx.session, cx.prefs.log_bars, &shown.tile.posterior);
    let now = cx.prefs.settings();
    let origin = || shown.origin(session, &now);
    table_window::button(ui, cx.view, TITLE, "posterior.csv", || csv(session, p, &origin()));
    plot::buttons(ui, cx, TITLE, || figure(session, p, origin(), log));
}

/// The bars as comma-separated values.
fn csv(session: &Session, p: &Posterior, origin: &[(String, String)]) -> String {
    let lines = Records::of(0..p.probabilities.len())
        .field("class", |class| session.class_name(class))
        .field("posterior", |class| p.probabilities[class])
        .field("log_posterior_nats", |class| p.log_probabilities[class])
        .field("log_likelihood_nats", |class| p.log_likelihood[class]);
    format!("# plot: posterior p(y|x) of the inspected image\n{}{}", comments(origin), lines.text())
}

/// The bars as a figure.
fn figure(session: &Session, p: &Posterior, mut origin: Vec<(String, String)>, log: bool) -> Figure {
    // The program comes last.
    let place = origin.len().saturating_sub(1);
    origin.insert(place, ("log p(x)".to_owned(), format!("{} nats", format::nats(p.log_px))));
    let points = p.probabilities.iter().enumerate().map(|(class, share)| Point::new(class as f64, *share));
    let (y, range) = if log { (Axis::log10(TITLE), [LEAST, 1.0]) } else { (Axis::linear(TITLE), [0.0, 1.0]) };
    Figure {
        id: "posterior".into(),
        title: "Posterior p(y|x) of an image".into(),
        caption: "Exact posterior of the label of the inspected image, under the prior, the temperatures and the label noise that are named below; what is not named is as in the world."
            .into(),
        provenance: origin,
        x: Axis::named("class", (0..p.probabilities.len()).map(|class| session.class_name(class))),
        y: Axis { range: Some(range), ..y },
        series: vec![Series { name: TITLE.into(), style: Style::Bars, points: points.collect(), ..Series::default() }],
        ..Figure::default()
    }
}
