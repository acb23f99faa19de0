//! Training an oracle: a spec, a folder, and how the run goes.

use std::path::Path;
use std::time::Instant;

use eframe::egui::{self, ColorImage, TextEdit, TextureHandle, Ui};
use egui_plot::{Legend, Line, LineStyle, Plot, PlotPoints, Points};

use super::{Cx, Panel};
use crate::gui::atlas::{NEAREST, picture};
use crate::gui::background::Purpose;
use crate::gui::command::Command;
use crate::gui::format;
use crate::gui::session::train::{FixedSamples, TrainHistory};
use crate::gui::theme::{self, Theme};
use crate::gui::widgets::{fact, facts, heading, hint};
use crate::oracle::train::TrainSpec;

const EXAMPLE: &str = "name = \"my-mnist\"\n\n[data]\npath = \"/path/to/mnist\"   # IDX, CIFAR, npz or a folder of images\npad_to = 32\nheld_out = 500\n\n[model]\nhidden = 64\nlevels = 3\nsteps = 8\n\n[training]\nepochs = 30\n";

/// The fields of the form and the texture of the newest samples.
#[derive(Default)]
pub struct TrainingPanel {
    spec: String,
    folder: String,
    complaint: Option<String>,
    samples: Option<(usize, TextureHandle)>,
}

impl Panel for TrainingPanel {
    fn id(&self) -> &'static str {
        "training"
    }

    fn title(&self) -> &'static str {
        "Oracle training"
    }

    fn ui(&mut self, ui: &mut Ui, cx: &mut Cx) {
        match &cx.view.picked {
            Some((Purpose::TrainSpec, path)) => self.spec = path.display().to_string(),
            Some((Purpose::TrainFolder, path)) => self.folder = path.display().to_string(),
            _ => {}
        }
        if cx.view.picked.as_ref().is_some_and(|(p, _)| matches!(p, Purpose::TrainSpec | Purpose::TrainFolder)) {
            cx.view.picked = None;
        }
        egui::ScrollArea::vertical().auto_shrink([false, false]).show(ui, |ui| {
            self.form(ui, cx);
            if cx.session.train.job.is_none() {
                introduction(ui, cx);
                return;
            }
            figures(ui, cx);
            curves(ui, &cx.session.train);
            if let Some(samples) = &cx.session.train.samples {
                self.pictures(ui, samples);
            }
        });
    }
}

impl TrainingPanel {
    fn form(&mut self, ui: &mut Ui, cx: &mut Cx) {
        let mut path = |ui: &mut Ui, name: &str, value: &mut String, purpose| {
            ui.label(name);
            ui.horizontal(|ui| {
                let width = (ui.available_width() - 90.0).clamp(120.0, 560.0);
                ui.add(TextEdit::singleline(value).desired_width(width)).accessible_name(name);
                if ui.button("Browse…").accessible_name(format!("Browse for: {name}")).clicked() {
                    cx.commands.push(Command::Browse(purpose));
                }
            });
        };
        path(ui, "Training spec (.toml)", &mut self.spec, Purpose::TrainSpec);
        path(
            ui,
            "Folder of the run (the oracle comes in its subfolder oracle)",
            &mut self.folder,
            Purpose::TrainFolder,
        );
        let running = cx.session.train.job.is_some_and(|job| cx.session.jobs.active().any(|active| active.id == job));
        let ready = !running && !self.spec.trim().is_empty() && !self.folder.trim().is_empty();
        let start = ui.add_enabled(ready, egui::Button::new("Start training"));
        let why = if running { "A run is going on: see the jobs below." } else { "Give a spec and a folder first." };
        if start.on_disabled_hover_text(why).clicked() {
            match TrainSpec::read(Path::new(self.spec.trim())) {
                Ok(spec) => {
                    self.complaint = None;
                    cx.commands.push(Command::Train(Box::new(spec), self.folder.trim().into()));
                }
                Err(error) => self.complaint = Some(error.to_string()),
            }
        }
        if let Some(complaint) = &self.complaint {
            ui.colored_label(Theme::of(ui).error(), complaint);
        }
    }

    fn pictures(&mut self, ui: &mut Ui, samples: &FixedSamples) {
        heading(ui, &format!("Samples after epoch {}", samples.epoch), None);
        hint(ui, "The same latents after every epoch, class after class.");
        if self.samples.as_ref().is_none_or(|(epoch, _)| *epoch != samples.epoch) {
            let texture = ui.ctx().load_texture("training samples", sheet(samples), NEAREST);
            self.samples = Some((samples.epoch, texture));
        }
        if let Some((_, texture)) = &self.samples {
            let scale = (ui.available_width() / texture.size_vec2().x).clamp(0.5, 2.0);
            let image = egui::Image::new((texture.id(), texture.size_vec2() * scale));
            ui.add(image.alt_text("Samples of fixed latents"));
        }
    }
}

fn introduction(ui: &mut Ui, cx: &mut Cx) {
    heading(ui, "What a spec looks like", None);
    hint(
        ui,
        "Training fits a conditional Glow to a dataset by maximum likelihood. Every epoch is checkpointed; starting \
         again in the same folder goes on where the run stopped.",
    );
    ui.add(egui::Label::new(egui::RichText::new(EXAMPLE).monospace()).selectable(true));
    if ui.button("Copy example").clicked() {
        cx.commands.push(Command::CopyText(EXAMPLE.into()));
    }
}

fn figures(ui: &mut Ui, cx: &Cx) {
    let train = &cx.session.train;
    heading(ui, "Run", None);
    hint(ui, &train.headline);
    facts(ui, "training facts", |ui| {
        let now = train.steps.last().map_or(0.0, |step| step[0]);
        fact(ui, "Epoch", format!("{now:.2} of {}", train.epochs), "Passes over the training images.");
        let job = train.job.and_then(|job| cx.session.jobs.get(job));
        if let Some(left) = job.and_then(|job| job.eta_secs(Instant::now())) {
            fact(ui, "Time left", format::duration(left), "At the pace so far.");
        }
        if let Some(point) = train.points.last() {
            let e = &point.held_out;
            let nll = format::plus_minus(e.nll_nats, e.nll_std_error);
            fact(ui, "Held-out NLL", format!("{nll} nats/image"), "Mean -log p(x|y), 8-bit pixels, ± standard error.");
            fact(ui, "Bits per dimension", format!("{} bits/dim", format::sig4(e.bits_per_dim)), "");
            let accuracy = format::percent_plus_minus(e.accuracy, e.accuracy_std_error);
            fact(ui, "Held-out accuracy", accuracy, "Of the flow's own Bayes decision.");
        }
        if let Some(best) = train.best {
            fact(ui, "Best epoch", best.to_string(), "By held-out NLL; this one is kept.");
        }
        if let Some(rate) = train.learning_rate {
            fact(ui, "Learning rate", format::sig4(rate), "Of the last step.");
        }
        if let Some(scale) = train.rate_scale {
            fact(ui, "Went back", format!("rate × {scale}"), "Training diverged and goes on from a checkpoint.");
        }
        if train.skipped > 0 {
            fact(ui, "Skipped steps", train.skipped.to_string(), "Loss or gradient was not finite.");
        }
    });
}

fn curves(ui: &mut Ui, train: &TrainHistory) {
    heading(ui, "Negative log-likelihood", None);
    let theme = Theme::of(ui);
    let per_epoch = |value: fn(&crate::gui::session::train::EpochPoint) -> f64| -> Vec<[f64; 2]> {
        train.points.iter().map(|point| [point.epoch as f64, value(point)]).collect()
    };
    let held_out = per_epoch(|point| point.held_out.nll_nats);
    let epochs = per_epoch(|point| point.train_nll);
    let best = held_out.iter().find(|point| train.best == Some(point[0] as usize)).copied();
    let plot = Plot::new("training curves")
        .height(260.0)
        .legend(Legend::default())
        .allow_scroll(false)
        .grid_color(theme.grid());
    let plot = plot.x_axis_label("epoch").y_axis_label("NLL (nats/image, 8-bit pixels)");
    let label = |at: &egui_plot::HoverPosition<'_>| match at {
        egui_plot::HoverPosition::NearDataPoint { plot_name, position, .. } => {
            Some(format!("{plot_name}\nepoch {:.2}\n{:.1} nats/image", position.x, position.y))
        }
        egui_plot::HoverPosition::Elsewhere { .. } => None,
    };
    plot.label_formatter(label).show(ui, |plot| {
        let faint = theme.curve(0).gamma_multiply(0.4);
        plot.line(
            Line::new("train, single steps (nats/image)", PlotPoints::from(train.steps.clone()))
                .color(faint)
                .width(1.0),
        );
        plot.line(
            Line::new("train, epoch mean (nats/image)", PlotPoints::from(epochs)).color(theme.curve(0)).width(2.0),
        );
        let line = Line::new("held out (nats/image)", PlotPoints::from(held_out));
        plot.line(line.color(theme.curve(1)).width(2.0).style(LineStyle::Solid));
        if let Some(best) = best {
            plot.points(Points::new("best epoch", PlotPoints::from(vec![best])).color(theme.curve(1)).radius(5.0));
        }
    });
}

/// All pictures on one sheet.
fn sheet(samples: &FixedSamples) -> ColorImage {
    let (w, h) = (samples.shape.width, samples.shape.height);
    let columns = samples.pictures.len().clamp(1, 20);
    let rows = samples.pictures.len().div_ceil(columns);
    let mut sheet = ColorImage::filled([columns * (w + 1), rows * (h + 1)], theme::EMPTY);
    let width = sheet.width();
    for (i, pixels) in samples.pictures.iter().enumerate() {
        let image = picture(samples.shape, pixels);
        let (x, y) = (i % columns * (w + 1), i / columns * (h + 1));
        for row in 0..h {
            let at = (y + row) * width + x;
            sheet.pixels[at..at + w].copy_from_slice(&image.pixels[row * w..(row + 1) * w]);
        }
    }
    sheet
}
