//! The window: drains what the engine sent, paints, does what the user asked, and tells the engine what is wanted now.

use crate::provenance::Made;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::{Duration, Instant};

use eframe::egui::{self, CentralPanel, Frame, Panel as Side, ThemePreference, Ui};
use egui_notify::Toasts;
use egui_tiles::Tree;

use super::background::{self, Chosen, Errand};
use super::connect::ConnectDesk;
use super::engine::Engine;
use super::fetch::FetchDesk;
use super::inspector::Inspector;
use super::overlay::{FrameReport, FrameTimes, Phase};
use super::paint::Canvas;
use super::palette::Palette;
use super::panels::{self, Cx, Pane, Panel};
use super::precision::PrecisionPage;
use super::prefs::{History, Prefs};
use super::prompt::Prompt;
use super::runs::RunDesk;
use super::session::Session;
use super::session::log::Level;
use super::session::train::TrainHistory;
use super::theme::{self, Theme};
use super::view::View;
use super::wishes::Wishes;
use super::{command, jobs, top_bar, widgets, world_card};
use crate::device::Candidate;
use crate::flow::Architecture;
use crate::worker::protocol::JobId;

/// Where preferences and layout are kept.
const PREFS: &str = "prefs";
const LAYOUT: &str = "layout";

/// The window.
pub struct App {
    pub(super) engine: Rc<dyn Engine>,
    pub(super) prefs: Prefs,
    pub(super) history: History,
    pub(super) session: Session,
    pub(super) view: View,
    pub(super) panels: Vec<Box<dyn Panel>>,
    pub(super) layout: Tree<Pane>,
    pub(super) wishes: Wishes,
    pub(super) palette: Palette,
    pub(super) prompt: Option<Prompt>,
    pub(super) dialog: Errand<Chosen>,
    pub(super) saving: Errand<Result<String, String>>,
    /// Whether the exactness ledger is open.
    pub(super) ledger: bool,
    /// The page Precision.
    pub(super) precision: PrecisionPage,
    /// The line of the ledger for what is being written.
    pub(super) making: Option<Made>,
    pub(super) runs: RunDesk,
    pub(super) fetching: FetchDesk,
    pub(super) connecting: ConnectDesk,
    pub(super) times: FrameTimes,
    pub(super) commands: Vec<command::Command>,
    inspector: Inspector,
    devices: Vec<Candidate>,
    listing: Errand<Vec<Candidate>>,
    toasts: Toasts,
    pub(super) greeted: bool,
    theme_set: Option<ThemePreference>,
}

impl App {
    /// A window on an engine that was started with the oracle and device of `prefs`.
    pub fn new(ctx: &egui::Context, prefs: Prefs, engine: Rc<dyn Engine>) -> Self {
        theme::install(ctx);
        let panels = panels::registry();
        let layout = panels::default_layout(&panels);
        Self {
            wishes: Wishes::new(&prefs),
            session: Session::opening(&prefs.oracle),
            engine,
            prefs,
            history: History::default(),
            view: View::default(),
            panels,
            layout,
            palette: Palette::default(),
            prompt: None,
            dialog: Errand::default(),
            saving: Errand::default(),
            making: None,
            ledger: false,
            precision: PrecisionPage::default(),
            runs: RunDesk::default(),
            fetching: FetchDesk::default(),
            connecting: ConnectDesk::default(),
            times: FrameTimes::default(),
            commands: Vec::new(),
            inspector: Inspector::default(),
            devices: Vec::new(),
            listing: Errand::default(),
            toasts: Toasts::default().with_margin(egui::vec2(8.0, 36.0)),
            greeted: false,
            theme_set: None,
        }
    }

    /// Takes up the layout of the last time, and has the devices listed.
    pub fn restore(&mut self, ctx: &egui::Context, storage: Option<&dyn eframe::Storage>) {
        let saved = storage.and_then(|storage| eframe::get_value(storage, LAYOUT));
        self.layout = panels::restore_layout(saved, &self.panels);
        self.listing = background::list_devices(ctx);
    }

    /// What is known of the engine goes on in another window: this one's graphics device is lost.
    pub fn retire(&mut self) -> (Session, Wishes) {
        (std::mem::take(&mut self.session), std::mem::replace(&mut self.wishes, Wishes::new(&self.prefs)))
    }

    /// Goes on with what another window knew, if anything, whose graphics device was lost. Pictures that lay there are asked for
    /// anew.
    pub fn succeed(&mut self, known: Option<(Session, Wishes)>, why: &str) {
        let engine = if known.is_some() { "the engine went on" } else { "the engine was started again" };
        if let Some(known) = known {
            (self.session, self.wishes) = known;
            self.session.forget_pictures();
            let classes = self.session.class_names().len();
            if classes > 0 {
                self.prefs.fit(classes);
            }
            self.wishes.forget();
        }
        let text = format!("The graphics device was lost ({why}). The window was opened again, {engine}.");
        self.session.notify(Level::Warning, text);
    }

    /// The program began to open the window at `started`.
    pub fn began(&mut self, started: Instant) {
        self.times = FrameTimes::since(started);
    }

    /// The preferences of the last time.
    pub fn saved_prefs(storage: Option<&dyn eframe::Storage>) -> Prefs {
        storage.and_then(|storage| eframe::get_value(storage, PREFS)).unwrap_or_default()
    }

    /// Opens these as if they had been dropped.
    pub fn open(&mut self, paths: Vec<PathBuf>) {
        if !paths.is_empty() {
            self.commands.push(command::Command::OpenPaths(paths));
        }
    }

    /// What is known of the engine.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// What the user has set.
    pub fn prefs(&self) -> &Prefs {
        &self.prefs
    }

    /// What is looked at.
    pub fn view(&self) -> &View {
        &self.view
    }

    /// Times of the frames so far.
    pub fn frame_report(&self) -> FrameReport {
        self.times.report()
    }

    /// Whether what is in view and the inspected image are as asked for.
    pub fn settled(&self) -> bool {
        let inspected = match (self.view.cursor, self.view.subject(&self.prefs)) {
            (Some(_), Some(subject)) => self.session.inspection_of(&subject).is_some(),
            _ => true,
        };
        let Some(gallery) = self.view.gallery(&self.session) else { return false };
        // A few thousand take minutes on a slow machine: then what is in view is enough.
        let slow =
            self.session.oracle.as_ref().is_some_and(|info| matches!(info.architecture, Architecture::TarFlow(_)));
        let full = gallery.complete() || slow || gallery.iter().count() > 1000;
        full && gallery.answers(&self.view.in_view) && inspected
    }

    /// Brings a panel to the front.
    pub fn show_panel(&mut self, id: &'static str) {
        self.commands.push(command::Command::ShowPanel(id));
    }

    /// Follows a training run of so many epochs in a folder that was submitted elsewhere.
    pub fn watch_training(&mut self, job: JobId, epochs: usize, folder: PathBuf) {
        self.session.train = TrainHistory::begin(job, epochs, folder);
    }

    /// Sets τ as a hand on the slider would.
    pub fn slide(&mut self, tau: f64) {
        self.prefs.tau = tau;
    }

    /// Counts the frames that follow as painted while the engine is at rest, or while it samples.
    pub fn count_frames(&mut self, phase: Phase) {
        self.times.count(phase);
    }

    /// Names and titles of the panels.
    pub fn panel_names(&self) -> Vec<(&'static str, &'static str)> {
        self.panels.iter().map(|panel| (panel.id(), panel.title())).collect()
    }

    fn errands(&mut self, ctx: &egui::Context) {
        self.run_errands(ctx);
        if let Some(devices) = self.listing.poll() {
            self.devices = devices;
        }
        match self.saving.poll() {
            Some(Ok(done)) => {
                self.session.notify(Level::Info, done);
                self.making.take().into_iter().for_each(|made| self.session.ledger.add(made));
            }
            Some(Err(why)) => {
                self.session.notify(Level::Error, why);
                self.making = None;
            }
            None => {}
        }
        if let Some((purpose, paths)) = self.dialog.poll() {
            self.chosen(purpose, paths);
        }
    }

    fn keys(&mut self, ctx: &egui::Context) {
        let editing = ctx.text_edit_focused();
        let modal = self.palette.is_open() || self.prompt.is_some() || self.runs.asks();
        let focused = ctx.memory(|memory| memory.focused().is_some());
        for (keys, command) in command::global_keys() {
            let own_undo = editing && matches!(command, command::Command::Undo | command::Command::Redo);
            if !own_undo && ctx.input_mut(|input| input.consume_shortcut(&keys)) {
                self.commands.push(command);
            }
        }
        if modal || focused || egui::Popup::is_any_open(ctx) {
            return;
        }
        for (keys, command) in command::gallery_keys() {
            if ctx.input_mut(|input| input.consume_shortcut(&keys)) {
                self.commands.push(command);
            }
        }
    }

    fn dropped(&mut self, ctx: &egui::Context) {
        let paths: Vec<PathBuf> =
            ctx.input(|input| input.raw.dropped_files.iter().map(|file| file.path().to_owned()).collect());
        self.open(paths);
    }

    fn look(&mut self, ctx: &egui::Context) {
        let wanted = theme::preference(self.prefs.look);
        if self.theme_set != Some(wanted) || ctx.options(|options| options.theme_preference) != wanted {
            ctx.set_theme(wanted);
            self.theme_set = Some(wanted);
        }
    }

    fn paint(&mut self, ui: &mut Ui) {
        let names = self.panel_names();
        self.view.bayes_shown = false;
        self.view.experiments_shown = false;
        self.view.evidence_wanted = None;
        let Self { session, prefs, view, devices, commands, inspector, layout, panels, history, .. } = self;
        let cx = &mut Cx { session, prefs, view, devices, commands };
        Side::top("top bar").show(ui, |ui| top_bar::show(ui, cx, &names, history.available()));
        Side::bottom("status").show(ui, |ui| jobs::status(ui, cx));
        if session.jobs.iter().next().is_some() {
            Side::bottom("jobs").show(ui, |ui| jobs::show(ui, cx));
        }
        if cx.prefs.world_card {
            let side = Side::left("world card").default_size(296.0).size_range(260.0..=420.0);
            side.show(ui, |ui| world_card::show(ui, cx));
        }
        if cx.prefs.inspector {
            let side = Side::right("inspector").default_size(352.0).size_range(310.0..=560.0);
            side.show(ui, |ui| inspector.show(ui, cx));
        }
        let ground = Frame::new().fill(ui.visuals().panel_fill);
        CentralPanel::default().frame(ground).show(ui, |ui| panels::show(ui, layout, panels, cx));
    }

    fn on_top(&mut self, ui: &Ui) {
        let ctx = ui.ctx();
        let names = self.panel_names();
        let here = self.devices.iter().map(|candidate| candidate.choice);
        let devices: Vec<_> = here.chain(self.prefs.machines.iter().copied()).collect();
        if let Some(command) = self.palette.show(ctx, || command::palette(&names, &devices)) {
            self.commands.push(command);
        }
        self.run_question(ctx);
        let Self { session, prefs, view, devices, commands, fetching, connecting, .. } = self;
        let cx = &mut Cx { session, prefs, view, devices, commands };
        fetching.show(ctx, cx);
        connecting.show(ctx, cx);
        let waiting = self.dialog.waiting();
        if let Some(prompt) = &mut self.prompt
            && !prompt.show(ctx, waiting, &mut self.commands)
        {
            self.prompt = None;
        }
        let hovering = ctx.input(|input| !input.raw.hovered_files.is_empty());
        if hovering {
            let area = egui::Area::new(egui::Id::unique("drop here")).order(egui::Order::Foreground);
            area.anchor(egui::Align2::CENTER_CENTER, egui::Vec2::ZERO).show(ctx, |ui| {
                Frame::popup(ui.style()).inner_margin(24.0).show(ui, |ui| ui.heading("Drop to open"));
            });
        }
        self.times.show(ctx);
        if self.ledger {
            let Self { session, prefs, view, devices, commands, ledger, .. } = self;
            super::ledger::show(ctx, ledger, &mut Cx { session, prefs, view, devices, commands });
        }
        if self.precision.open {
            let Self { session, prefs, view, devices, commands, precision, .. } = self;
            precision.show(ctx, &mut Cx { session, prefs, view, devices, commands });
        }
        let dark = Theme::of_window(ctx);
        for notice in self.session.take_notices() {
            let (sign, colour, secs) = match notice.level {
                Level::Info => ("i", dark.accent(), 5),
                Level::Warning => ("!", dark.warning(), 8),
                Level::Error => ("!", dark.error(), 12),
            };
            let text = widgets::break_lines(&notice.text, 64);
            let toast = self.toasts.custom(text, sign.into(), colour);
            // Its cross is a glyph the fonts lack.
            toast.duration(Duration::from_secs(secs)).closable(false);
        }
        self.toasts.show(ctx);
    }

    /// Says what the engine should compute now, if that is not what it was told last.
    fn ask(&mut self, ctx: &egui::Context) {
        let quiet = !ctx.input(|input| input.pointer.any_down());
        let Self { wishes, engine, session, prefs, view, .. } = self;
        wishes.tell(engine.as_ref(), session, prefs, view, quiet);
    }
}

impl eframe::App for App {
    fn logic(&mut self, ctx: &egui::Context, _: &mut eframe::Frame) {
        Canvas::of(ctx).sweep();
        self.drain(ctx);
        self.errands(ctx);
        let rows = self.session.jobs.iter().count();
        if self.session.jobs.tidy(Instant::now()) || self.session.jobs.active().next().is_some() {
            ctx.request_repaint_after(Duration::from_millis(500));
        }
        if self.session.jobs.iter().count() != rows {
            // The list is lower, which the panels around it see a frame later.
            ctx.request_repaint();
        }
        self.ask(ctx);
    }

    fn ui(&mut self, ui: &mut Ui, frame: &mut eframe::Frame) {
        let began = Instant::now();
        let ctx = ui.ctx().clone();
        self.look(&ctx);
        self.keys(&ctx);
        self.dropped(&ctx);
        self.obey(&ctx);
        self.paint(ui);
        self.on_top(ui);
        if self.obey(&ctx) {
            ctx.request_repaint();
        }
        if !ctx.input(|input| input.pointer.any_down()) {
            self.history.settle(&self.prefs);
        }
        self.ask(&ctx);
        self.times.painted(frame.info().cpu_usage);
        self.times.frame(began);
    }

    fn save(&mut self, storage: &mut dyn eframe::Storage) {
        eframe::set_value(storage, PREFS, &self.prefs);
        eframe::set_value(storage, LAYOUT, &self.layout);
    }
}
