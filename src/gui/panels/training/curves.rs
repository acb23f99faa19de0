//! The curves of a training run.

use eframe::egui::Ui;
use egui_plot::{HoverPosition, Legend, Line, Plot, PlotPoints, Points};

use crate::figure::Records;
use crate::gui::table_window;
use crate::gui::theme::Theme;
use crate::gui::view::View;
use crate::gui::widgets::heading;
use crate::run::{EpochPoint, TrainHistory};

/// The curves as comma-separated values.
fn csv(train: &TrainHistory) -> String {
    let epochs = train.points.iter().flat_map(|point| {
        let epoch = point.epoch as f64;
        [("train, epoch mean", epoch, point.train_nll), ("held out", epoch, point.held_out.nll_nats)]
    });
    let steps = train.steps.iter().map(|[at, nats]| ("train, single steps", *at, *nats));
    let lines = Records::of(epochs.chain(steps))
        .field("series", |(series, ..)| series)
        .field("epoch", |(_, epoch, _)| epoch)
        .field("nats_per_image", |(.., nats)| nats)
        .field("bits_per_dim", |(.., nats)| train.bits_per_dim(nats));
    "# plot: negative log-likelihood, space of 8-bit pixels\n".to_owned() + &lines.text()
}

/// Steps between the lines of the axis of NLL: several lines, however little of the axis is in view.
fn dense(input: egui_plot::GridInput) -> [f64; 3] {
    let (low, high) = input.bounds;
    let step = 10f64.powf(((high - low) / 4.0).max(f64::MIN_POSITIVE).log10().floor());
    [step, 5.0 * step, 10.0 * step]
}

/// NLL against epochs, in nats an image or in bits a dimension.
pub fn show(ui: &mut Ui, view: &mut View, train: &TrainHistory, bits: &mut bool) {
    heading(ui, "Negative log-likelihood", None);
    ui.horizontal(|ui| {
        ui.label("Unit");
        ui.selectable_value(bits, false, "nats/image");
        let about = "NLL / (D ln 2), in the space of 8-bit pixels";
        ui.selectable_value(bits, true, "bits/dim").on_hover_text(about);
        table_window::button(ui, view, "NLL of the training run", "training-nll.csv", || csv(train));
    });
    let unit = if *bits { "bits/dim" } else { "nats/image" };
    let scale = if *bits { train.bits_per_dim(1.0) } else { 1.0 };
    let theme = Theme::of(ui);
    let per_epoch = |value: fn(&EpochPoint) -> f64| -> Vec<[f64; 2]> {
        train.points.iter().map(|point| [point.epoch as f64, scale * value(point)]).collect()
    };
    let held_out = per_epoch(|point| point.held_out.nll_nats);
    let epochs = per_epoch(|point| point.train_nll);
    let steps: Vec<[f64; 2]> = train.steps.iter().map(|[at, nll]| [*at, scale * nll]).collect();
    let best = held_out.iter().find(|point| train.best == Some(point[0] as usize)).copied();
    let digits = if *bits { 3 } else { 1 };
    let label = move |at: &HoverPosition<'_>| match at {
        HoverPosition::NearDataPoint { plot_name, position, .. } => {
            Some(format!("{plot_name}\nepoch {:.2}\n{:.digits$} {unit}", position.x, position.y))
        }
        HoverPosition::Elsewhere { .. } => None,
    };
    // Each unit keeps its own view.
    let plot = Plot::new(("training curves", unit))
        .height(260.0)
        .y_grid_spacer(egui_plot::uniform_grid_spacer(dense))
        .legend(Legend::default())
        .allow_scroll(false);
    let plot = plot.grid_color(theme.grid()).x_axis_label("epoch").y_axis_label(format!("NLL ({unit}, 8-bit pixels)"));
    plot.label_formatter(label).show(ui, |plot| {
        let line = |name: &str, points: Vec<[f64; 2]>| Line::new(format!("{name} ({unit})"), PlotPoints::from(points));
        plot.line(line("train, single steps", steps).color(theme.curve(0).gamma_multiply(0.4)).width(1.0));
        plot.line(line("train, epoch mean", epochs).color(theme.curve(0)).width(2.0));
        plot.line(line("held out", held_out).color(theme.curve(1)).width(2.0));
        if let Some(best) = best {
            plot.points(Points::new("best epoch", PlotPoints::from(vec![best])).color(theme.curve(1)).radius(5.0));
        }
    });
}
