//! The window: takes events in, paints, executes commands and tells the engine what is wanted.

use std::path::PathBuf;
use std::rc::Rc;
use std::time::{Duration, Instant};

use eframe::egui::{self, CentralPanel, Frame, Key, Panel as Side, Ui, accesskit};
use egui_notify::{Anchor, Toasts};
use egui_tiles::Tree;

use super::background::{self, Asked, BackgroundTask, Chosen, Saved};
use super::command::{Binding, Reach};
use super::connect::ConnectDialog;
use super::context::Cx;
use super::engine::Engine;
use super::fetch::FetchDialog;
use super::frame_times::{FrameReport, FrameTimes, Phase};
use super::help::Help;
use super::inspector::Inspector;
use super::paint::Canvas;
use super::palette::Palette;
use super::panels::{self, Docked, Pane};
use super::precision::PrecisionPage;
use super::prefs::{self, History, Prefs, SCALES};
use super::prompt::Prompt;
use super::request_tracker::RequestTracker;
use super::runs::RunDialog;
use super::selection::Source;
use super::session::Session;
use super::session::log::Level;
use super::start_page::StartPage;
use super::theme;
use super::tour::Tour;
use super::view::View;
use super::{command, jobs, picture, top_bar, widgets, world_card};
use crate::device::Candidate;
use crate::flow::Architecture;
use crate::task::Task;
use crate::worker::protocol::JobId;

/// Where the layout is kept.
const LAYOUT: &str = "layout";

/// The window.
pub struct App {
    pub(super) engine: Rc<dyn Engine>,
    pub(super) prefs: Prefs,
    pub(super) history: History,
    pub(super) session: Session,
    pub(super) view: View,
    pub(super) panels: Vec<Docked>,
    pub(super) layout: Tree<Pane>,
    pub(super) requests: RequestTracker,
    pub(super) palette: Palette,
    pub(super) prompt: Option<Prompt>,
    pub(super) dialog: BackgroundTask<Chosen>,
    pub(super) saving: Vec<BackgroundTask<Saved>>,
    /// Whether the exactness ledger is open.
    pub(super) ledger: bool,
    pub(super) precision: PrecisionPage,
    /// Whether the page Verify this device is open.
    pub(super) verify: bool,
    pub(super) help: Help,
    pub(super) tour: Tour,
    pub(super) start: StartPage,
    pub(super) runs: RunDialog,
    pub(super) fetching: FetchDialog,
    pub(super) connecting: ConnectDialog,
    pub(super) times: FrameTimes,
    pub(super) commands: Vec<command::Command>,
    inspector: Inspector,
    pub(super) devices: Vec<Candidate>,
    listing: BackgroundTask<Vec<Candidate>>,
    pub(super) toasts: Toasts,
    pub(super) first_selected: bool,
    /// What had the focus in the last frame.
    pub(super) focused: Option<egui::Id>,
}

impl App {
    /// A window on an engine that was started with the oracle and device of `prefs`.
    pub fn new(ctx: &egui::Context, prefs: Prefs, engine: Rc<dyn Engine>) -> Self {
        theme::install(ctx);
        let panels = panels::registry();
        let layout = panels::default_layout(&panels);
        Self {
            requests: RequestTracker::new(&prefs),
            session: Session::opening(&prefs.oracle),
            engine,
            prefs,
            history: History::default(),
            view: View::default(),
            panels,
            layout,
            palette: Palette::default(),
            prompt: None,
            dialog: BackgroundTask::default(),
            saving: Vec::new(),
            ledger: false,
            precision: PrecisionPage::default(),
            verify: false,
            help: Help::default(),
            tour: Tour::default(),
            start: StartPage::default(),
            runs: RunDialog::default(),
            fetching: FetchDialog::default(),
            connecting: ConnectDialog::default(),
            times: FrameTimes::since(Instant::now()),
            commands: Vec::new(),
            inspector: Inspector::default(),
            devices: Vec::new(),
            listing: BackgroundTask::default(),
            // At the top they lay over tabs and the inspector's heading.
            toasts: Toasts::default().with_anchor(Anchor::BottomRight),
            first_selected: false,
            focused: None,
        }
    }

    /// Restores the saved layout and lists the devices.
    pub fn restore(&mut self, ctx: &egui::Context, storage: Option<&dyn eframe::Storage>) {
        let saved = storage.and_then(|storage| eframe::get_value(storage, LAYOUT));
        self.layout = panels::restore_layout(saved, &self.panels);
        self.listing = background::list_devices(ctx);
    }

    /// Counts frame times from `started`.
    pub fn began(&mut self, started: Instant) {
        self.times = FrameTimes::since(started);
    }

    /// Opens these paths as dropped files.
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

    /// Returns whether what is in view and the inspected image are as asked for.
    pub fn settled(&self) -> bool {
        let inspected = match (self.view.cursor, self.view.subject(&self.session, &self.prefs)) {
            (Some(_), Some(subject)) => self.session.inspection_of(&subject).is_some(),
            _ => true,
        };
        let Some(gallery) = self.view.gallery(&self.session) else { return false };
        // A few thousand take minutes on a slow machine: then what is in view is enough.
        let slow =
            self.session.oracle.as_ref().is_some_and(|info| matches!(info.architecture, Architecture::TarFlow(_)));
        let full = gallery.complete() || slow || gallery.iter().count() > 1000;
        let of_now = self.view.source == Source::Outside || gallery.asks_for(self.prefs.tau);
        !self.waits_for_disk() && full && of_now && gallery.answers(&self.view.in_view) && inspected
    }

    /// Brings a panel to the front.
    pub fn show_panel(&mut self, id: &'static str) {
        self.commands.push(command::Command::ShowPanel(id));
    }

    /// Follows a task that was submitted elsewhere.
    pub fn watch_task(&mut self, job: JobId, task: impl Task) {
        self.session.tasks.begin(job, task.into());
    }

    /// Sets τ as the slider does.
    pub fn slide(&mut self, tau: f64) {
        self.prefs.tau = tau;
        self.times.slid();
    }

    /// Moves the pen of the panel Draw, shares of width and height, as a hand does.
    pub fn pen(&mut self, at: [f32; 2]) {
        self.view.pen = Some(at);
    }

    /// Every image in view was exact so long after τ had moved last.
    pub fn was_exact(&mut self, after: Duration) {
        self.times.exact(after);
    }

    /// Counts the frames that follow as painted while the engine is at rest, or while it samples.
    pub fn count_frames(&mut self, phase: Phase) {
        self.times.count(phase);
    }

    /// Names and titles of the panels.
    pub fn panel_names(&self) -> Vec<(&'static str, &'static str)> {
        self.panels.iter().map(|panel| (panel.id, panel.title)).collect()
    }

    fn background(&mut self, ctx: &egui::Context) {
        self.poll_run_tasks(ctx);
        self.poll_place(ctx);
        if let Some(devices) = self.listing.poll() {
            self.devices = devices;
        }
        for saved in background::poll_all(&mut self.saving) {
            match saved {
                Ok((done, made)) => {
                    self.session.notify(Level::Info, done);
                    self.session.ledger.add(made);
                }
                Err(why) => self.session.notify(Level::Error, why),
            }
        }
        if let Some((purpose, paths)) = self.dialog.poll() {
            self.take_paths(ctx, purpose, paths, Asked::Desktop);
        }
        self.tell_what_is_late(ctx);
    }

    /// Returns whether a question lies over everything.
    pub(super) fn asks(&self) -> bool {
        self.palette.is_open() || self.prompt.is_some() || self.runs.asks()
    }

    fn keys(&mut self, ctx: &egui::Context) {
        let editing = ctx.text_edit_focused() || self.view.draws;
        let modal = self.asks();
        // The palette takes keys as they are; what would change below a question waits for its answer.
        let asked = self.prompt.is_some() || self.runs.asks();
        let focused = ctx.memory(|memory| memory.focused().is_some());
        let gallery = !(modal || focused || egui::Popup::is_any_open(ctx));
        for Binding { keys, command, reach, .. } in command::bindings() {
            let listens = match reach {
                // Text fields and the canvas have an undo of their own.
                Reach::Everywhere => !(editing && matches!(command, command::Command::Undo | command::Command::Redo)),
                // The start page lies in its place.
                Reach::Gallery => gallery && (!self.start.is_open() || command == command::Command::Escape),
            };
            let waits = asked && !command.is_of_window();
            if listens && !waits && ctx.input_mut(|input| input.consume_shortcut(&keys)) {
                self.commands.push(command);
            }
        }
    }

    /// Brings into view what the Tab key went to: egui leaves it where it is.
    fn follow_focus(&mut self, ctx: &egui::Context) {
        let focused = ctx.memory(|memory| memory.focused());
        let moved = focused != std::mem::replace(&mut self.focused, focused);
        let by_hand = ctx.input(|input| input.pointer.any_down() || input.pointer.any_released());
        let Some(id) = focused.filter(|_| moved && !by_hand) else { return };
        if ctx.read_response(id).is_some_and(|it| !it.interact_rect.expand(1.0).contains_rect(it.rect)) {
            let (action, target_tree) = (accesskit::Action::ScrollIntoView, accesskit::TreeId::ROOT);
            let request = accesskit::ActionRequest { action, target_tree, target_node: id.accesskit_id(), data: None };
            ctx.input_mut(|input| input.events.push(egui::Event::AccessKitActionRequest(request)));
        }
    }

    fn dropped(&mut self, ctx: &egui::Context) {
        let paths: Vec<PathBuf> =
            ctx.input(|input| input.raw.dropped_files.iter().map(|file| file.path().to_owned()).collect());
        self.open(paths);
        if !self.asks() {
            self.commands.extend(picture::pasted(ctx).map(command::Command::Paste));
        }
    }

    fn appearance(&mut self, ctx: &egui::Context) {
        let zoom = f32::from(self.prefs.scale.clamp(*SCALES.start(), *SCALES.end())) / 100.0;
        if (ctx.zoom_factor() - zoom).abs() > 1e-3 {
            ctx.set_zoom_factor(zoom);
        }
        let wanted = theme::preference(self.prefs.theme);
        if ctx.options(|options| options.theme_preference) != wanted {
            ctx.set_theme(wanted);
        }
    }

    fn paint(&mut self, ui: &mut Ui) {
        let names = self.panel_names();
        self.view.evidence_wanted = None;
        (self.view.drawing, self.view.draws) = (None, false);
        self.view.landmarks.forget();
        let Self { session, prefs, view, devices, commands, inspector, layout, panels, history, tour, start, .. } =
            self;
        let cx = &mut Cx { session, prefs, view, devices, commands };
        let ground = Frame::new().fill(Canvas::ground(ui));
        let edge = Frame::side_top_panel(ui.style()).fill(ground.fill);
        Side::top("top bar").frame(edge).show(ui, |ui| top_bar::show(ui, cx, &names, history));
        Side::bottom("status").frame(edge).show(ui, |ui| jobs::status(ui, cx));
        let any = session.jobs.iter().next();
        let list = any.map(|_| Side::bottom("jobs").frame(edge).show(ui, |ui| jobs::show(ui, cx)).response.rect);
        cx.view.jobs_height = list.map_or(0.0, |list| list.height());
        if start.is_open() {
            start.show(ui, cx);
            return self.end_press();
        }
        tour.dock(ui, cx);
        let [card, inspects] = cx.view.sides(cx.prefs, ui.ctx().content_rect().width());
        if !card && cx.view.narrow() && cx.prefs.world_card && cx.session.oracle.is_some() {
            Side::top("knob rail").frame(edge).show(ui, |ui| world_card::rail(ui, cx));
        }
        if card {
            let side = Side::left("world card").frame(edge).default_size(296.0).size_range(260.0..=420.0);
            side.show(ui, |ui| widgets::as_wide_as_it_is(ui, |ui| world_card::show(ui, cx)));
        }
        if inspects {
            let side = Side::right("inspector").frame(edge).default_size(352.0).size_range(310.0..=560.0);
            side.show(ui, |ui| widgets::as_wide_as_it_is(ui, |ui| inspector.show(ui, cx)));
        }
        CentralPanel::default().frame(ground).show(ui, |ui| panels::show(ui, layout, panels, cx));
        self.end_press();
    }

    /// Says why Ctrl+Enter did nothing, where it did not.
    fn end_press(&mut self) {
        if let Some(why) = self.view.primary.end() {
            self.session.notify(Level::Warning, why);
        }
    }

    /// Sends the engine the requests that have changed.
    fn ask(&mut self, ctx: &egui::Context) {
        let quiet = !ctx.input(|input| input.pointer.any_down());
        let Self { requests, engine, session, prefs, view, .. } = self;
        requests.sync(engine.as_ref(), session, prefs, view, quiet);
        if let Some(due) = requests.due() {
            ctx.request_repaint_after(due);
        }
    }
}

impl eframe::App for App {
    fn logic(&mut self, ctx: &egui::Context, _: &mut eframe::Frame) {
        // egui lays a frame out twice where a table is shown for the first time, and throws the first pass away. News between the
        // two would bring tables whose sizes no further pass could learn: their rows would lie on each other for a frame.
        if ctx.current_pass_index() > 0 {
            return;
        }
        Canvas::of(ctx).sweep();
        self.drain(ctx);
        self.background(ctx);
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
        let began = self.times.begin();
        let ctx = ui.ctx().clone();
        self.appearance(&ctx);
        self.keys(&ctx);
        self.dropped(&ctx);
        self.execute_commands(&ctx);
        self.follow_focus(&ctx);
        self.paint(ui);
        self.overlays(ui);
        if self.execute_commands(&ctx) {
            ctx.request_repaint();
        }
        // A held arrow key moves a slider as a hand does: one step when it is let go.
        let arrows = [Key::ArrowLeft, Key::ArrowRight, Key::ArrowUp, Key::ArrowDown];
        if !ctx.input(|input| input.pointer.any_down() || arrows.iter().any(|key| input.key_down(*key))) {
            self.history.settle(&self.prefs);
        }
        self.ask(&ctx);
        Canvas::of(&ctx).fill(&ctx);
        self.times.painted(frame.info().cpu_usage);
        self.times.viewed(self.view.viewed.take(), began);
        self.times.frame(began);
    }

    fn clear_color(&self, visuals: &egui::Visuals) -> [f32; 4] {
        visuals.panel_fill.to_normalized_gamma_f32()
    }

    fn save(&mut self, storage: &mut dyn eframe::Storage) {
        prefs::save(storage, &self.prefs);
        eframe::set_value(storage, LAYOUT, &self.layout);
    }
}
