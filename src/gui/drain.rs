//! Taking in what the engine sent.

use std::time::{Duration, Instant};

use eframe::egui;

use super::app::App;
use super::prefs::{MAX_TAU, Sort};
use super::selection::{Click, Source};
use super::session::Effect;
use super::{format, panels};
use crate::device::MatmulPrecision;
use crate::oracle::world::Settings;

/// Longest time spent on the engine's events before a frame is painted.
const DRAIN: Duration = Duration::from_millis(4);

impl App {
    /// Takes in the waiting events and answers.
    pub(super) fn drain(&mut self, ctx: &egui::Context) {
        let began = Instant::now();
        // Before the events: with a new device those of the old one are forgotten.
        if let Some(keys) = self.engine.take_keys() {
            self.session.keys.take(keys, self.prefs.tau, &self.view.in_view);
        }
        while let Some(event) = self.engine.poll() {
            let effect = self.session.take(event, began);
            self.react(effect);
            if began.elapsed() > DRAIN {
                ctx.request_repaint();
                break;
            }
        }
        if let Some(update) = self.engine.take_gallery() {
            self.session.take_gallery(update);
            self.select_first_sample();
        }
        if let Some(inspection) = self.engine.take_inspection() {
            self.session.take_inspection(inspection);
        }
        if let Some(running) = self.engine.take_running() {
            self.session.take_running(running);
        }
        if let Some(map) = self.engine.take_evidence() {
            self.session.take_evidence(map);
        }
        if let Some(answer) = self.engine.take_sketch() {
            self.times.pen(answer.request.moved.elapsed());
            self.session.take_sketch(answer);
        }
    }

    fn react(&mut self, effect: Effect) {
        match effect {
            Effect::None => {}
            Effect::AskAgain => self.ask_again(),
            // Whoever has gone back to the world's samples stays there.
            Effect::Outside { opened: false, .. } if self.view.source == Source::World => {}
            Effect::Outside { same: true, .. } if self.view.source == Source::Outside => {}
            Effect::Outside { knobs, .. } => {
                let prefs = &self.prefs;
                self.view.order.get_or_insert((prefs.sort, prefs.descending, prefs.class_filter));
                if let Some(knobs) = knobs {
                    self.take_knobs(&knobs);
                }
                self.view.show(Source::Outside);
                self.view.forget_selection();
                self.view.click(0, Click::Only);
                self.prefs.class_filter = None;
                self.bring(panels::gallery::ID);
            }
            Effect::SetTau(tau) if tau <= MAX_TAU => self.prefs.tau = tau,
            Effect::SetTau(tau) => self.session.bayes.refuse_target(format!(
                "This Bayes error needs τ = {}; the window goes up to τ = {MAX_TAU}.",
                format::sig4(tau)
            )),
            Effect::OracleAdopted => {
                self.prefs.oracle.clone_from(&self.session.oracle_name);
                self.requests.accept(&self.prefs);
            }
            Effect::OracleRefused => {
                self.runs.cell_images_next = None;
                self.prefs.oracle.clone_from(&self.session.oracle_name);
                self.requests.accept(&self.prefs);
            }
            Effect::DeviceRefused => {
                if let Some(report) = &self.session.device {
                    self.prefs.device = report.asked;
                }
                self.requests.accept(&self.prefs);
            }
        }
    }

    /// Another world or device is open, or the engine began anew: all that is shown is asked for again.
    fn ask_again(&mut self) {
        if let Some(report) = &self.session.device {
            self.prefs.remember_machine(report.used.choice);
        }
        if self.session.oracle.is_some() {
            // Also where another one was asked for last, and its opening was cancelled or lost.
            if !self.session.is_opening() {
                self.prefs.oracle.clone_from(&self.session.oracle_name);
                self.requests.accept(&self.prefs);
            }
            self.prefs.enter(&self.session.oracle_name);
            self.prefs.remember_oracle(&self.session.oracle_name);
        }
        self.view.enter(&self.session);
        // Brings back its own label filter, which must fit this world too.
        let looked_outside = self.view.source == Source::Outside && self.session.external.is_none();
        if looked_outside {
            self.show_source(Source::World);
        }
        let classes = self.session.class_names().len();
        if classes > 0 {
            self.prefs.fit(classes);
        }
        if !self.session.formats.contains(&self.prefs.products) {
            self.prefs.products = MatmulPrecision::F32;
        }
        self.requests.forget();
        // The picture that was looked at is shown to this world too; what waited for a world has one now.
        let open = self.session.oracle.is_some();
        if looked_outside || (open && std::mem::take(&mut self.session.outside.awaits)) {
            self.read_outside();
        }
        self.open_cell_images_next();
    }

    /// Shows the world's samples in the order and with the filter they had, or images from outside.
    pub(super) fn show_source(&mut self, source: Source) {
        self.view.show(source);
        if source == Source::Outside {
            self.read_outside();
        }
        if let Some((sort, descending, filter)) = self.view.order.take_if(|_| source == Source::World) {
            (self.prefs.sort, self.prefs.descending, self.prefs.class_filter) = (sort, descending, filter);
        }
    }

    /// Has images from outside read for this world, where another one had them.
    fn read_outside(&mut self) {
        if !self.session.lacks_outside() {
            return;
        }
        if let Some(job) = self.session.read_outside_again(self.prefs.settings()) {
            self.submit(job);
            self.session.outside.asked = true;
        }
    }

    /// Sets the knobs at which images were drawn, in their own order; undo takes both back.
    fn take_knobs(&mut self, knobs: &Settings) {
        let prefs = &mut self.prefs;
        prefs.tau = knobs.tau.get().min(MAX_TAU);
        prefs.smoothing = knobs.smoothing.get();
        prefs.prior = knobs.prior.probabilities().to_vec();
        prefs.label_noise.clone_from(&knobs.label_noise);
        (prefs.sort, prefs.descending) = (Sort::Index, false);
    }

    /// Selects the first sample of the session, so that the inspector is not empty.
    fn select_first_sample(&mut self) {
        if !self.first_selected && self.session.gallery.get(0).is_some() && self.view.source == Source::World {
            self.first_selected = true;
            if self.view.cursor.is_none() {
                self.view.click(0, Click::Only);
            }
        }
    }
}
