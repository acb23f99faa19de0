//! The panel *Bayes error*: E(τ) and its inverse, class hardness, pairs, all methods, Figure 1.

mod compare;
mod curve;
mod figure1;
mod hardness;
mod law;
mod pairs;
mod ranking;

use eframe::egui::{self, DragValue, Slider, SliderClamping, Ui};

use crate::gui::bayes_error_view;
use crate::gui::command::Command;
use crate::gui::context::{Cx, Panel};
use crate::gui::plot::Board;
use crate::gui::prefs::{LEAST_CURVE_TAU, MAX_TAU};
use crate::gui::sampled_error;
use crate::gui::theme::Badge;
use crate::gui::widgets::{heading, hint, no_world};

pub const ID: &str = "bayes error";

/// Its two plots.
#[derive(Default)]
pub struct BayesPanel {
    curve: Board,
    figure1: Board,
}

impl Panel for BayesPanel {
    fn ui(&mut self, ui: &mut Ui, cx: &mut Cx) {
        egui::ScrollArea::vertical().auto_shrink([false, false]).show(ui, |ui| {
            if cx.session.oracle.is_none() {
                no_world(ui, cx.session);
                ui.add_space(24.0);
            } else {
                let sampled = cx.session.bayes.must_be_sampled() == Some(true);
                error_over_tau(ui, cx, sampled, &mut self.curve);
                // Of a world that must be sampled there are none before its first draws.
                if !sampled || cx.session.bayes.survey.is_some() {
                    hardness::show(ui, cx);
                    ranking::show(ui, cx);
                    pairs::show(ui, cx);
                }
                if !sampled {
                    compare::show(ui, cx);
                }
            }
            figure1::show(ui, cx, &mut self.figure1);
            ui.add_space(12.0);
        });
    }
}

fn error_over_tau(ui: &mut Ui, cx: &mut Cx, sampled: bool, board: &mut Board) {
    let why = match cx.prefs.smoothing == 1.0 {
        true => "Each value with its 95 % interval. Grows with τ (EBO Prop. 2), from 0 to 1 - max π.",
        false => "Each value with its 95 % interval: 1 less the mean of the largest p_T(y|x). At most 1 - 1/K.",
    };
    heading(ui, "Bayes error E over base temperature τ", Some((Badge::Estimated, why)));
    if sampled {
        sampled_error::survey(ui, cx);
    }
    axes(ui, cx);
    curve::show(ui, cx, board);
    marker(ui, cx);
    bayes_error_view::target(ui, cx, "Target Bayes error, in the panel");
    ui.horizontal_wrapped(|ui| copying(ui, cx));
}

fn axes(ui: &mut Ui, cx: &mut Cx) {
    ui.horizontal_wrapped(|ui| {
        ui.label("Axes");
        ui.checkbox(&mut cx.prefs.log_tau, "log τ").on_hover_text("Base temperatures on a logarithmic axis");
        ui.checkbox(&mut cx.prefs.log_error, "log E").on_hover_text("Bayes errors on a logarithmic axis");
        ui.separator();
        ui.label("τ from");
        let [low, high] = cx.prefs.tau_range;
        let [first, last] = &mut cx.prefs.tau_range;
        ui.add(range_end(first, LEAST_CURVE_TAU..=high * 0.8))
            .accessible_name("Smallest τ of the curve")
            .on_hover_text("Where the curve begins");
        ui.label("to");
        ui.add(range_end(last, low * 1.25..=MAX_TAU))
            .accessible_name("Largest τ of the curve")
            .on_hover_text("Where the curve ends");
        ui.label("× std");
        let curve = &cx.session.bayes.curve;
        let (known, all) = (curve.value.known().count(), curve.value.taus.len());
        if let Some(why) = &curve.trouble {
            ui.colored_label(crate::gui::theme::Theme::of(ui).error(), why);
        } else if curve.running {
            hint(ui, format!("{known} of {all} points"));
        }
    });
}

fn range_end(value: &mut f64, range: std::ops::RangeInclusive<f64>) -> DragValue<'_> {
    DragValue::new(value).range(range).speed(0.01).max_decimals(2).update_while_editing(false)
}

/// The marker for those who do not drag: the world card's τ again.
fn marker(ui: &mut Ui, cx: &mut Cx) {
    ui.horizontal_wrapped(|ui| {
        let label = ui
            .label("Marker τ")
            .on_hover_text("The world's τ. Drag the marker in the plot, or this slider; arrow keys work, too.");
        let [low, high] = cx.prefs.tau_range;
        let slider = Slider::new(&mut cx.prefs.tau, low..=high).clamping(SliderClamping::Never).max_decimals(3);
        ui.spacing_mut().slider_width = 180.0;
        let slider = ui.add(slider.suffix(" × std").update_while_editing(false));
        slider.labelled_by(label.id);
        cx.prefs.tau = cx.prefs.tau.clamp(0.0, MAX_TAU);
        bayes_error_view::value(ui, cx);
    });
}

fn copying(ui: &mut Ui, cx: &mut Cx) {
    let mut button = |ui: &mut Ui, text: &str, about: &str, command: Command| {
        if ui.button(text).on_hover_text(about).clicked() {
            cx.commands.push(command);
        }
    };
    button(ui, "Copy value", "The Bayes error at the marker with its provenance, as text", Command::CopyBayesError);
    button(ui, "Copy bayes-error command", "The same on the command line", Command::CopyBayesCommandLine);
    button(ui, "Copy tau command", "The target on the command line", Command::CopyTauCommandLine);
    button(ui, "Copy CSV", "The curve as comma-separated values", Command::CopyCurve);
    button(ui, "Save CSV…", "The curve to a file", Command::SaveCurve);
}
