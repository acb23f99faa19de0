//! The curves of a training run.

use eframe::egui::Ui;

use crate::figure::{Axis, Figure, Point, Records, Series, Style};
use crate::gui::context::Cx;
use crate::gui::plot::{About, Board};
use crate::gui::widgets::heading;
use crate::run::{EpochPoint, TrainHistory};

/// What the plot is called.
const TITLE: &str = "NLL of the training run";

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

/// NLL against epochs, in nats an image or in bits a dimension; each unit keeps its own view.
pub fn show(ui: &mut Ui, cx: &mut Cx, train: &TrainHistory, bits: &mut bool, boards: &mut [Board; 2]) {
    heading(ui, "Negative log-likelihood", None);
    ui.horizontal(|ui| {
        ui.label("Unit");
        ui.selectable_value(bits, false, "nats/image");
        let about = "NLL / (D ln 2), in the space of 8-bit pixels";
        ui.selectable_value(bits, true, "bits/dim").on_hover_text(about);
    });
    let numbers = || csv(train);
    let about = About {
        name: Some(TITLE),
        height: 240.0,
        numbers: Some((TITLE, "training-nll.csv", &numbers)),
        ..About::default()
    };
    boards[usize::from(*bits)].show(ui, cx, &figure(train, *bits), &about);
}

fn figure(train: &TrainHistory, bits: bool) -> Figure {
    let (unit, scale) = if bits { ("bits/dim", train.bits_per_dim(1.0)) } else { ("nats/image", 1.0) };
    let per_epoch = |value: fn(&EpochPoint) -> f64| -> Vec<Point> {
        train.points.iter().map(|point| Point::new(point.epoch as f64, scale * value(point))).collect()
    };
    let held_out = per_epoch(|point| point.held_out.nll_nats);
    let best: Vec<Point> =
        held_out.iter().filter(|point| train.best == Some(point.x as usize)).take(1).cloned().collect();
    let steps = train.steps.iter().map(|[at, nll]| Point::new(*at, scale * nll)).collect();
    let line = |name: &str, colour, points| Series { name: name.into(), colour, points, ..Series::default() };
    Figure {
        id: "training-nll".into(),
        title: TITLE.into(),
        caption: "Negative log-likelihood of the flow in the space of 8-bit pixels, over the epochs of its training."
            .into(),
        provenance: vec![("program".into(), format!("bayescope {}", env!("CARGO_PKG_VERSION")))],
        x: Axis::linear("epoch"),
        y: Axis::linear("NLL of 8-bit pixels").in_unit(unit),
        series: vec![
            line("train, single steps", 5, steps),
            Series { style: Style::LinePoints, ..line("train, epoch mean", 0, per_epoch(|point| point.train_nll)) },
            Series { style: Style::LinePoints, ..line("held out", 1, held_out) },
            Series { style: Style::Points, ..line("best epoch", 6, best) },
        ],
        ..Figure::default()
    }
}
