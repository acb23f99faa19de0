//! What lies on top of the panels: palette, questions, windows, the tour, notices.

use std::time::Duration;

use eframe::egui::{self, Frame, Ui};

use super::app::App;
use super::background::{self, Purpose};
use super::command::{self, Command};
use super::context::Cx;
use super::panels::gallery;
use super::session::log::Level;
use super::theme::Theme;
use super::{failures, ledger, table_window, verify, widgets};

/// What a notice keeps free beside it and below it, where the status line and the list of jobs lie, points.
const BESIDE: f32 = 8.0;
const ABOVE_STATUS: f32 = 36.0;

impl App {
    pub(super) fn overlays(&mut self, ui: &Ui) {
        let ctx = ui.ctx();
        let names = self.panel_names();
        let here = self.devices.iter().map(|candidate| candidate.choice);
        let devices: Vec<_> = here.chain(self.prefs.machines.iter().copied()).collect();
        if let Some(command) = self.palette.show(ctx, || command::palette(&names, &devices)) {
            // Who chose it by name goes on by keyboard; the arrow keys are the gallery's without that.
            let enters = matches!(command, Command::ShowPanel(id) if id != gallery::ID);
            self.commands.push(command);
            self.commands.extend(enters.then_some(Command::EnterPanel));
        }
        self.run_question(ctx);
        self.windows(ctx);
        let waiting = self.dialog.waiting();
        if let Some(prompt) = &mut self.prompt
            && !prompt.show(ctx, waiting, &mut self.prefs.on_paper, &mut self.commands)
        {
            self.prompt = None;
        }
        if ctx.input(|input| !input.raw.hovered_files.is_empty()) {
            let area = egui::Area::new(egui::Id::unique("drop here")).order(egui::Order::Foreground);
            area.anchor(egui::Align2::CENTER_CENTER, egui::Vec2::ZERO).show(ctx, |ui| {
                Frame::popup(ui.style()).inner_margin(24.0).show(ui, |ui| ui.heading("Drop to open"));
            });
        }
        self.times.show(ctx);
        self.notices(ctx);
    }

    /// Opens the desktop's dialog, one at a time: the answer of another would be lost.
    pub(super) fn browse(&mut self, ctx: &egui::Context, purpose: Purpose) {
        if self.dialog.waiting() {
            let why = "The desktop's dialog is open already: answer or close it first.";
            return self.session.notify(Level::Warning, why);
        }
        self.dialog = background::browse(ctx, purpose);
    }

    fn windows(&mut self, ctx: &egui::Context) {
        let asks = self.asks();
        let Self { session, prefs, view, devices, commands, fetching, connecting, .. } = self;
        let (ledger, precision, verifying) = (&mut self.ledger, &mut self.precision, &mut self.verify);
        let (help, tour, start) = (&mut self.help, &mut self.tour, &self.start);
        let cx = &mut Cx { session, prefs, view, devices, commands };
        fetching.show(ctx, cx);
        connecting.show(ctx, cx);
        if *ledger {
            ledger::show(ctx, ledger, cx);
        }
        if precision.open {
            precision.show(ctx, cx);
        }
        if *verifying {
            verify::show(ctx, verifying, cx);
        }
        help.show(ctx);
        table_window::show(ctx, cx);
        // The tour points at what the start page covers.
        if !asks && !start.is_open() {
            tour.show(ctx, cx);
        }
    }

    fn notices(&mut self, ctx: &egui::Context) {
        let theme = Theme::of_window(ctx);
        self.view.told = failures::take_told(ctx);
        for notice in self.session.take_notices() {
            if notice.failed.is_some_and(|job| self.view.told.contains(&job)) {
                continue;
            }
            let (sign, colour, secs) = match notice.level {
                Level::Info => ("i", theme.accent(), 5),
                Level::Warning => ("!", theme.warning(), 8),
                Level::Error => ("!", theme.error(), 9),
            };
            let text = widgets::break_lines(&notice.text, 64);
            let toast = self.toasts.custom(text, sign.into(), colour);
            // Its cross is a glyph the fonts lack; its bar of time hangs out of the box.
            toast.duration(Duration::from_secs(secs)).closable(false).show_progress_bar(false);
        }
        let toasts = std::mem::take(&mut self.toasts);
        self.toasts = toasts.with_margin(egui::vec2(BESIDE, ABOVE_STATUS + self.view.jobs_height));
        self.toasts.show(ctx);
    }
}
