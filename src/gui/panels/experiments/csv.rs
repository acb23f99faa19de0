//! The points of the plots as comma-separated values. Comment lines name run, spec and world.

use std::fmt::{Display, Write};

use eframe::egui::Ui;

use super::law_plot::{Series, Shown};
use crate::experiment::CellResult;
use crate::figure::records;
use crate::gui::session::runs::RunView;
use crate::measure::{Estimate, HoldOut};
use crate::run::monitor::CellCourse;

/// The button of a plot; `name` is what it does, in full. Whether it was clicked.
pub fn button(ui: &mut Ui, name: &str) -> bool {
    let button = ui.button("Save CSV…").on_hover_text("Its points with their intervals, to a file");
    button.accessible_name(name).clicked()
}

/// A line of fields.
fn line(text: &mut String, fields: &[&dyn Display]) {
    *text += &records([fields.iter().map(ToString::to_string)]);
}

/// Which program, plot, runs, specs and worlds.
fn provenance(plot: &str, runs: &[&RunView]) -> String {
    let mut text = format!("# bayescope {}\n# plot: {plot}\n", env!("CARGO_PKG_VERSION"));
    for (name, value) in origin(runs) {
        let _ = writeln!(text, "# {name}: {value}");
    }
    text
}

/// Runs, specs and worlds, line by line.
pub fn origin(runs: &[&RunView]) -> Vec<(String, String)> {
    let mut lines = Vec::new();
    let mut add = |name: &str, value: String| lines.push((name.to_owned(), value));
    for run in runs {
        add("run", run.folder.display().to_string());
        let Some(found) = run.found() else { continue };
        let world = &found.spec.world;
        let hash = found.results.world.as_ref().map_or("weights not at hand".into(), |hash| format!("SHA-256 {hash}"));
        let prior = match world.prior.is_empty() {
            true => "uniform".to_owned(),
            false => format!("{:?}", world.prior),
        };
        add("spec", found.spec.name.clone());
        let (tau, smoothing, seed) = (world.tau.get(), world.smoothing.get(), world.seed);
        let noise =
            world.label_noise.as_ref().map_or_else(String::new, |noise| format!(", label noise {}", noise.describe()));
        let knobs = format!("tau {tau}, posterior smoothing {smoothing}, class prior {prior}, seed {seed}{noise}");
        add("world", format!("{} ({hash}), {knobs}", world.oracle));
    }
    lines
}

/// The law plot: cells as shown, laws with bands and forecasts, floors. Nats per image against N.
pub fn law(runs: &[&RunView], series: &[Series<'_>], shown: Shown) -> String {
    let mut text = provenance("loss over the number of training images, nats per image", runs);
    text += "series,part,cell,seed,train_images,nats,low_95,high_95\n";
    for one in series {
        for CellResult { id, cell, measured, .. } in one.cells.iter().copied() {
            let parts = [("KL", shown.epistemic, measured.epistemic), ("L", shown.total, measured.cross_entropy)];
            for (part, _, Estimate { value, interval }) in parts.into_iter().filter(|(_, shown, _)| *shown) {
                let (n, seed, low, high) = (cell.train_size, cell.seed, interval.low, interval.high);
                line(&mut text, &[&one.name, &part, id, &seed, &n, &value, &low, &high]);
            }
        }
        for [n, value, low, high] in one.curve.iter().filter(|_| shown.epistemic).flat_map(|curve| &curve.points) {
            line(&mut text, &[&one.name, &"law of KL", &"", &"", n, value, low, high]);
        }
        if let Some(held) = one.law.hold_out.as_ref().filter(|_| shown.forecasts()) {
            held_out(&mut text, one, held);
        }
    }
    for run in runs.iter().filter(|_| shown.aleatoric) {
        if let Some(Estimate { value, interval }) = run.found().and_then(|found| found.results.summary.aleatoric) {
            line(&mut text, &[&run.name(), &"aleatoric A", &"", &"", &"", &value, &interval.low, &interval.high]);
        }
    }
    text
}

/// The law fitted without the largest N, its forecast there, and what came.
fn held_out(text: &mut String, one: &Series<'_>, held: &HoldOut) {
    for [n, value] in one.curve.iter().flat_map(|curve| &curve.without_largest) {
        line(text, &[&one.name, &"law of KL without the largest N", &"", &"", n, value, &"", &""]);
    }
    let parts = [("forecast of KL at the held-out N", held.forecast), ("KL that came at the held-out N", held.came)];
    for (part, Estimate { value, interval }) in parts {
        line(text, &[&one.name, &part, &"", &"", &held.n, &value, &interval.low, &interval.high]);
    }
}

/// The course of a cell's training, every point of it; single figures have no interval.
pub fn course(run: &RunView, course: &CellCourse) -> String {
    let mut text = provenance("training of one cell, nats per image", &[run]);
    let _ = writeln!(text, "# cell: {}", course.label());
    text += "series,step,nats,low_95,high_95\n";
    for [step, loss] in &course.train {
        line(&mut text, &[&"training cross-entropy", step, loss, &"", &""]);
    }
    for watched in &course.watched {
        let figures = [
            ("test cross-entropy", watched.cross_entropy()),
            ("test KL", watched.epistemic()),
            ("aleatoric A of the watched images", watched.aleatoric()),
        ];
        for (name, (value, interval)) in figures {
            let [low, high] = interval.map_or_else(Default::default, |ends| ends.map(|end| end.to_string()));
            line(&mut text, &[&name, &watched.step, &value, &low, &high]);
        }
    }
    text
}

/// The reliability diagram of a cell.
pub fn reliability(run: &RunView, result: &CellResult) -> String {
    let mut text = provenance("share of right decisions over confidence", &[run]);
    let _ = writeln!(text, "# cell: {} ({}), {} test images", result.id, result.cell.label(), result.measured.n);
    text += "series,confidence,share_right,low_95,high_95,images\n";
    for bin in result.measured.reliability.bins.iter() {
        let (x, Estimate { value, interval }) = (bin.mean_confidence, bin.hit_rate);
        line(&mut text, &[&"drawn labels", &x, &value, &interval.low, &interval.high, &bin.count]);
        line(&mut text, &[&"exact posterior", &x, &bin.exact_rate, &"", &"", &bin.count]);
    }
    text
}

#[cfg(test)]
mod tests {
    #[test]
    fn names_with_commas_stay_one_field() {
        let mut text = String::new();
        super::line(&mut text, &[&"MLP, \"told\" p", &0.1, &""]);
        assert_eq!(text, "\"MLP, \"\"told\"\" p\",0.1,\n");
    }
}
