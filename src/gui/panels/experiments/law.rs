//! What the finished cells say about more data: the fitted laws in words, beside their plot.

use eframe::egui::{self, RichText, Ui};

use super::csv;
use super::law_plot::{self, Drawing, Series, Shown};
use crate::classifier::Labels;
use crate::experiment::Law;
use crate::gui::command::Command;
use crate::gui::command::RunCommand;
use crate::gui::context::Cx;
use crate::gui::glossary;
use crate::gui::plot::Board;
use crate::gui::session::runs::RunView;
use crate::gui::theme::{Badge, Theme};
use crate::gui::widgets::{heading, hint, swatch};
use crate::measure::{Estimate, Forecast, PowerLaw, Verdict};
use crate::worker::cell_images::CellImages;

/// The plot and the sentences, of the run that is shown and those compared with it.
pub fn show(ui: &mut Ui, cx: &mut Cx, run: &RunView, shown: &mut Shown, board: &mut Board) {
    let about = "A, L and KL are means over the test images with 95 % intervals; bands are 95 % intervals of the fitted curve, over runs and the test images that all runs share.";
    heading(ui, "Scaling with the number of training images", Some((Badge::Estimated, about)));
    let compared = |other: &&RunView| cx.view.compared.contains(&other.folder) && other.folder != run.folder;
    let runs: Vec<&RunView> = std::iter::once(run).chain(cx.session.runs.iter().filter(compared)).collect();
    let series = series(&runs);
    if series.iter().all(|one| one.cells.is_empty()) {
        hint(
            ui,
            "No cell has finished yet: points appear here one by one, and a law once three numbers of training images are done.",
        );
        return;
    }
    let held_out = series.iter().any(|one| one.law.hold_out.is_some());
    ui.horizontal_wrapped(|ui| shown.choose(ui, held_out));
    keys(ui, &series);
    let numbers = || csv::law(&runs, &series, *shown);
    let (floors, provenance) = (floors(&runs), csv::origin(&runs));
    let drawing = Drawing { series: &series, floors: &floors, shown: *shown, provenance, numbers: &numbers };
    let clicked = law_plot::show(ui, cx, drawing, board);
    ui.horizontal(|ui| {
        if csv::button(ui, "Save the scaling plot as CSV") {
            let text = csv::law(&runs, &series, *shown);
            cx.commands.push(Command::Run(RunCommand::SavePoints(text, "scaling.csv")));
        }
        hint(ui, "Click a point to see the test images on which that classifier is farthest from the truth.");
    });
    for one in &series {
        sentences(ui, one);
    }
    if let Some((folder, cell)) = clicked {
        if folder != run.folder {
            // A point of a run drawn beside: it is shown, and this one beside it.
            cx.view.compared.insert(run.folder.clone());
            cx.view.run = Some(folder.clone());
        }
        cx.view.cells.only(&cell);
        cx.commands.push(Command::Run(RunCommand::ShowCell(CellImages::Worst, folder, cell)));
    }
}

/// One for every run, architecture and kind of labels.
fn series<'a>(runs: &[&'a RunView]) -> Vec<Series<'a>> {
    let mut all = Vec::new();
    for run in runs {
        let Some(found) = run.found() else { continue };
        let results = &found.results;
        for law in &results.summary.laws {
            let told = if law.labels == Labels::Drawn { String::new() } else { format!(", {}", law.labels.label()) };
            let of = if runs.len() > 1 { format!(" ({})", run.name()) } else { String::new() };
            let same = |a, l| a == law.architecture && l == law.labels;
            let cells = results.summary.cells.iter().filter(|r| same(r.cell.architecture, r.cell.labels)).collect();
            all.push(Series {
                folder: &run.folder,
                name: format!("{}{told}{of}", law.architecture.label()),
                colour: all.len(),
                law,
                curve: results.curves.iter().find(|curve| same(curve.architecture, curve.labels)),
                cells,
            });
        }
    }
    all
}

/// The aleatoric part of each run's test images, by its name.
fn floors(runs: &[&RunView]) -> Vec<(String, Estimate)> {
    let floor = |run: &&RunView| {
        let aleatoric = run.found()?.results.summary.aleatoric?;
        let of = if runs.len() > 1 { format!(" of {}", run.name()) } else { String::new() };
        Some((of, aleatoric))
    };
    runs.iter().filter_map(floor).collect()
}

/// A key to the colours, with the exponents.
fn keys(ui: &mut Ui, series: &[Series<'_>]) {
    for one in series {
        ui.horizontal_wrapped(|ui| {
            swatch(ui, Theme::of(ui).curve(one.colour));
            ui.label(RichText::new(&one.name).strong());
            match &one.law.fits {
                Some(fits) => drop(glossary::explain(ui.label(exponent(fits.law())), "α")),
                None => hint(ui, one.law.why_not.clone().unwrap_or_else(|| "too little is finished".into())),
            }
        });
    }
}

/// The law's exponent, its floor and how well it fits.
pub fn exponent(law: &PowerLaw) -> String {
    let alpha = law.alpha;
    let floor = law.floor.filter(|floor| floor.value > 0.0);
    let floor = floor.map_or(String::new(), |c| {
        format!(", floor {:.2e} [{:.2e}, {:.2e}] nats", c.value, c.interval.low, c.interval.high)
    });
    let (low, high) = (alpha.interval.low, alpha.interval.high);
    format!("α = {:.3} [{low:.3}, {high:.3}]{floor}, R² = {:.3}", alpha.value, law.r_squared)
}

fn sentences(ui: &mut Ui, one: &Series<'_>) {
    let Law { fits: Some(fits), forecast, distance, training, hold_out, .. } = one.law else { return };
    ui.add_space(4.0);
    ui.horizontal_top(|ui| {
        swatch(ui, Theme::of(ui).curve(one.colour));
        ui.vertical(|ui| {
            let trained = training.as_ref().map_or(String::new(), |length| format!(" Trained for {length}."));
            ui.add(egui::Label::new(format!("{}: {}{trained}", one.name, fits.sentence)).wrap());
            // Where no law is fixed, the sentence above says so; once is enough.
            let fixed = fits.verdict != Verdict::NotIdentifiable;
            if let Some(Forecast::Reachable { sentence, .. } | Forecast::Unreachable { sentence, .. }) = forecast {
                ui.add(egui::Label::new(format!("To KL ≤ {distance} nats: {sentence}")).wrap());
            }
            if let Some(held) = hold_out {
                ui.add(egui::Label::new(&held.sentence).wrap());
            }
            if let Some(caveat) = fits.law().caveat.as_ref().filter(|_| fixed) {
                ui.add(egui::Label::new(RichText::new(caveat).color(Theme::of(ui).warning())).wrap());
            }
        });
    });
}
