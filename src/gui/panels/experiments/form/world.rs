//! Which world, at which τ or of which Bayes error.

use eframe::egui::{self, DragValue, TextEdit, Ui};

use crate::experiment::{ExperimentSpec, WorldSpec};
use crate::gui::bayes_error_view::parse_target;
use crate::gui::context::Cx;
use crate::gui::format;
use crate::gui::kept_path;
use crate::gui::panels::fields::together;
use crate::gui::widgets::hint;
use crate::oracle::library;
use crate::units::Tau;

/// What is typed rather than set.
#[derive(Default)]
pub struct WorldFields {
    /// The Bayes error that the world is to have; empty where τ is given.
    pub target: String,
}

impl WorldFields {
    /// Those of a spec.
    pub fn of(world: &WorldSpec) -> Self {
        Self { target: world.target.map(words).unwrap_or_default() }
    }

    /// The world of the fields, or what is wrong with them.
    pub fn ready(&self, world: &WorldSpec) -> Result<WorldSpec, String> {
        // What was found belongs to the world of a run that was planned, and this one may be another.
        let mut world = WorldSpec { target: None, found: None, ..world.clone() };
        if world.oracle.starts_with("~/") {
            world.oracle = kept_path::typed(&world.oracle).display().to_string();
        }
        match self.target.trim() {
            "" => Ok(world),
            text => {
                let target = parse_target(text).map_err(|why| format!("Target Bayes error: {why}"))?;
                Ok(WorldSpec { target: Some(target), tau: Tau::ONE, ..world })
            }
        }
    }

    /// Paints the fields.
    pub fn show(&mut self, ui: &mut Ui, cx: &Cx, spec: &mut ExperimentSpec) {
        ui.horizontal_wrapped(|ui| {
            oracle(ui, &mut spec.world);
            together(ui, 140.0);
            tau(ui, &mut spec.world, self.target.trim().is_empty());
            together(ui, 240.0);
            // Some experiments compare temperatures: their world has no single Bayes error.
            self.target(ui, spec.experiment.tau(0).is_none() || !self.target.is_empty());
            let here = ui.add_enabled(cx.session.oracle.is_some(), egui::Button::new("As in the window"));
            let about = "Takes oracle, τ, T, the class prior and label noise from the world card";
            if here.on_hover_text(about).on_disabled_hover_text("No oracle is open.").clicked() {
                let settings = cx.prefs.settings();
                spec.world.oracle.clone_from(&cx.session.oracle_name);
                (spec.world.tau, spec.world.smoothing) = (settings.tau, settings.smoothing);
                spec.world.prior = if cx.prefs.prior_is_uniform() { Vec::new() } else { cx.prefs.prior.clone() };
                spec.world.label_noise = settings.label_noise;
                self.target.clear();
            }
        });
        let world = &spec.world;
        if !self.target.trim().is_empty() {
            hint(ui, "τ is found when the run is planned, and recorded with its interval.");
        }
        if !world.prior.is_empty() || world.smoothing.get() != 1.0 || world.label_noise.is_some() {
            let prior = if world.prior.is_empty() { "" } else { ", a class prior that is not uniform" };
            let noise = world.label_noise.as_ref();
            let noise = noise.map_or_else(String::new, |noise| format!(", label noise {}", noise.describe()));
            hint(ui, format!("Also: T = {}{prior}{noise}.", format::sig4(world.smoothing.get())));
        }
    }

    fn target(&mut self, ui: &mut Ui, able: bool) {
        let meaning = "The Bayes error that the images are to have, in place of τ: 5 % or 0.05. Empty: τ is given.";
        let refused = "This experiment has temperatures of its own.";
        let label = ui.label("Target Bayes error").on_hover_text(meaning);
        let field = TextEdit::singleline(&mut self.target).desired_width(90.0).hint_text("5 % or 0.05");
        let field = ui.add_enabled(able, field).labelled_by(label.id);
        let field = field.on_hover_text(meaning).on_disabled_hover_text(refused);
        field.accessible_name("Target Bayes error of the experiment");
    }
}

/// A share in per cent, as exactly as it is known.
fn words(share: f64) -> String {
    let percent = format!("{} %", format::digits(100.0 * share));
    match parse_target(&percent) {
        Ok(same) if same == share => percent,
        _ => share.to_string(),
    }
}

fn oracle(ui: &mut Ui, world: &mut WorldSpec) {
    let label = ui.label("World").on_hover_text("A bundled oracle, an oracle folder or a checkpoint.");
    let field = TextEdit::singleline(&mut world.oracle).desired_width(150.0);
    ui.add(field).labelled_by(label.id);
    ui.menu_button("Bundled", |ui| {
        for name in library::names() {
            if ui.button(name).accessible_name(format!("Experiment on {name}")).clicked() {
                world.oracle = name.into();
            }
        }
    });
}

fn tau(ui: &mut Ui, world: &mut WorldSpec, able: bool) {
    let meaning = "Base temperature τ of the images: the larger, the more the classes overlap.";
    let refused = "It is found for the target Bayes error.";
    let label = ui.label("τ").on_hover_text(meaning);
    let mut tau = world.tau.get();
    let field = DragValue::new(&mut tau).range(0.01..=10.0).speed(0.01).max_decimals(3).suffix(" × std");
    let field = ui.add_enabled(able, field.clamp_existing_to_range(false).update_while_editing(false));
    let field = field.labelled_by(label.id).on_disabled_hover_text(refused);
    if field.on_hover_text(meaning).accessible_name("Base temperature τ of the experiment").changed()
        && let Ok(tau) = Tau::new(tau)
    {
        world.tau = tau;
    }
}
