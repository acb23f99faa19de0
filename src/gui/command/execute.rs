//! What each command does.

use crate::device::DeviceChoice;
use std::sync::Arc;

use eframe::egui::{self, ViewportCommand};

use crate::gui::app::App;
use crate::gui::background::{Asked, Purpose};

use super::{Command, bayes_error_command, posterior_command, sample_command, tau_command};
use crate::gui::prompt::Prompt;
use crate::gui::request_tracker::{cancel, submit};
use crate::gui::runs::cell_images_command;
use crate::gui::selection::{Side, Source};
use crate::gui::session::log::Level;
use crate::gui::{bayes_error_view, inspected, kept_path, panels};
use crate::run::JudgeModels;
use crate::worker::judged_images::{JudgedImagesRequest, WorstBy};
use crate::worker::protocol::Job;
use crate::worker::sampling::FindTau;
use crate::worker::walk::{WalkToBoundary, Walked};

impl App {
    /// Executes the queued commands. Returns whether there were any.
    pub(in crate::gui) fn execute_commands(&mut self, ctx: &egui::Context) -> bool {
        let commands = std::mem::take(&mut self.commands);
        let any = !commands.is_empty();
        for command in commands {
            self.execute(ctx, command);
        }
        any
    }

    /// Whether Escape led out of something: a window, the start page, the tour, or the control that had the focus.
    fn escaped(&mut self) -> bool {
        self.close_window() || self.leave_start() || self.leave_tour() || self.focused.is_some()
    }

    fn execute(&mut self, ctx: &egui::Context, command: Command) {
        match command {
            Command::Palette => self.palette.toggle(),
            Command::Open => self.prompt = Some(Prompt::new(Purpose::Open)),
            Command::Save => self.ask_where_to_save(),
            Command::Browse(purpose) => self.browse(ctx, purpose),
            Command::Overlay => self.times.toggle(),
            Command::Ledger => self.ledger = !self.ledger,
            Command::Fullscreen => {
                let now = ctx.input(|input| input.viewport().fullscreen.unwrap_or(false));
                ctx.send_viewport_cmd(ViewportCommand::Fullscreen(!now));
            }
            Command::Quit => ctx.send_viewport_cmd(ViewportCommand::Close),
            Command::Escape if self.escaped() => {}
            Command::Escape | Command::SelectNone => self.view.selection.clear(),
            Command::Walk(step, extend) => self.view.walk(step, extend),
            Command::SelectAll => self.view.select_all(),
            Command::Inspect => (self.prefs.inspector, self.view.front) = (true, Side::Inspector),
            // What lies over a panel is to be answered first.
            Command::Start if self.asks() => {}
            Command::Start => self.view.primary.ask(ctx),
            Command::ShowPanel(id) => self.bring(id),
            Command::EnterPanel if self.start.is_open() || self.asks() => {}
            Command::EnterPanel => self.view.primary.enter_by_keys(),
            Command::ShowSource(source) => self.show_source(source),
            Command::ResetLayout => {
                self.layout = panels::default_layout(&self.panels);
                (self.prefs.world_card, self.prefs.inspector) = (true, true);
            }
            Command::ClearJobs => self.session.jobs.clear_ended(),
            Command::OpenPaths(paths) => self.open_paths(ctx, paths),
            Command::CopyText(text) => self.copy_line(ctx, text),
            Command::ShowJudged(model, by) => self.show_judged(model, by),
            Command::ShowFetch(name) => self.fetching.show_corpus(name),
            Command::ShowConnect => {
                let last = Some(self.prefs.device).filter(|choice| matches!(choice, DeviceChoice::Remote(_)));
                self.connecting.show_machine(last.or(self.prefs.machines.first().copied()));
            }
            Command::Fetch(request) => {
                let id = self.engine.fetch(request.clone());
                self.session.asks_corpus(id, request);
            }
            Command::TrainOn(folder) => {
                self.fetching.close();
                self.view.picked = Some((panels::training::DATA, folder));
                self.bring(panels::training::ID);
            }
            Command::Submit(job) => self.submit(*job),
            Command::TakePaths(purpose, paths) => self.take_paths(ctx, purpose, paths, Asked::Nobody),
            Command::Replace(purpose, path) => self.take_paths(ctx, purpose, vec![path], Asked::Here),
            Command::CopyCommandLine => self.copy_command(ctx),
            Command::Run(command) => self.run_command(ctx, command),
            Command::CopyBayesError
            | Command::CopyBayesCommandLine
            | Command::CopyTauCommandLine
            | Command::CopyCurve => self.copy_bayes(ctx, &command),
            Command::CopyValues => match inspected::values(&self.session, &self.prefs, &self.view) {
                Some(text) => self.copy(ctx, text, "Values copied"),
                None => self.session.notify(Level::Warning, "Nothing is inspected: click an image first."),
            },
            other => self.change(other),
        }
    }

    /// Commands that change preferences, show a page about the device or reach the engine.
    fn change(&mut self, command: Command) {
        match command {
            Command::Undo => {
                self.history.undo(&mut self.prefs);
            }
            Command::Redo => {
                self.history.redo(&mut self.prefs);
            }
            Command::NewSamples => self.prefs.seed = self.prefs.seed.wrapping_add(1) % 9_000_000_000_000_000,
            Command::ResetKnobs => self.prefs.reset_knobs(),
            Command::UniformPrior => {
                let uniform = 1.0 / self.prefs.prior.len().max(1) as f64;
                self.prefs.prior.fill(uniform);
            }
            Command::Precision => self.precision.open = !self.precision.open,
            Command::Verify => self.verify = !self.verify,
            Command::ToggleLogBars => self.prefs.log_bars = !self.prefs.log_bars,
            Command::ToggleWorldCard => self.view.toggle(&mut self.prefs, Side::WorldCard),
            Command::ToggleInspector => self.view.toggle(&mut self.prefs, Side::Inspector),
            Command::Theme(look) => self.prefs.theme = look,
            Command::UseDevice(choice) => self.prefs.device = choice,
            Command::Connect(choice) => {
                self.prefs.device = choice;
                self.requests.accept(&self.prefs);
                self.submit(Job::UseDevice(choice));
            }
            Command::OpenOracle(name) => self.open_oracle(name),
            Command::ClearLog => self.session.log.clear(),
            Command::Paste(picture) => self.classify_pasted(picture),
            Command::Fit(index, fit) => self.fit_again(index, fit),
            Command::UseCheckpoint(run) => self.use_checkpoint(&run),
            Command::Target(_) | Command::Survey | Command::CompareMethods | Command::Figure1 => {
                self.ask_bayes(&command)
            }
            Command::SaveCurve => self.ask_where_to_save_curve(),
            Command::SaveWalk | Command::SendWalk => {
                if let Some(walked) = self.finished_walk() {
                    if command == Command::SaveWalk {
                        return self.prompt = Some(Prompt::new(Purpose::SaveWalk));
                    }
                    self.bring(panels::gallery::ID);
                    self.submit(Job::SendWalk { walked, settings: self.prefs.settings() });
                }
            }
            Command::SaveSketch | Command::SendSketch => self.give_sketch(&command),
            Command::Cancel(id) => cancel(self.engine.as_ref(), &mut self.session, |job| job.id == id),
            Command::CancelAll => cancel(self.engine.as_ref(), &mut self.session, |_| true),
            Command::Halt(halted) => self.view.halted = halted,
            Command::SetPaused(id, paused) => {
                self.engine.set_paused(id, paused);
                self.session.jobs.set_paused(id, paused);
            }
            other => self.guide(other),
        }
    }

    pub(super) fn finished_walk(&mut self) -> Option<Arc<Walked>> {
        let walked = self.session.tasks.get::<WalkToBoundary>().and_then(|view| view.report);
        if walked.is_none() {
            self.session.notify(Level::Warning, "There is no finished walk: use the panel Walk first.");
        }
        walked
    }

    pub(in crate::gui) fn submit(&mut self, job: Job) {
        submit(self.engine.as_ref(), &mut self.session, job);
    }

    fn ask_bayes(&mut self, command: &Command) {
        let Self { requests, engine, session, prefs, .. } = self;
        let engine = engine.as_ref();
        match command {
            Command::Figure1 => requests.figure1(engine, session),
            _ if session.oracle.is_none() => {
                session.notify(Level::Warning, "There is no world yet: open an oracle first.")
            }
            Command::Target(error) => requests.target(engine, session, prefs, *error),
            Command::Survey => match session.bayes.must_be_sampled() {
                Some(true) => requests.survey(engine, session, prefs),
                _ => session.notify(Level::Info, "This world has integrals: its Bayes error needs no samples."),
            },
            _ if session.bayes.must_be_sampled() == Some(true) => {
                session.notify(Level::Info, "The methods are of Gaussian classes: this world is sampled.");
            }
            _ => requests.compare(engine, session, prefs),
        }
        if matches!(command, Command::Survey | Command::CompareMethods | Command::Figure1) {
            self.bring(panels::bayes::ID);
        }
    }

    fn copy_bayes(&mut self, ctx: &egui::Context, command: &Command) {
        let (session, prefs) = (&self.session, &self.prefs);
        let text = match command {
            Command::CopyBayesError => bayes_error_view::copied(session, prefs),
            Command::CopyCurve => bayes_error_view::curve_csv(session),
            _ if session.oracle.is_none() => None,
            Command::CopyTauCommandLine => {
                let typed = session.bayes.target.as_ref().map(|target| target.error);
                let sampled = || session.tasks.get::<FindTau>().map(|view| view.task.target);
                typed.or_else(sampled).map(|error| tau_command(session, prefs, error))
            }
            _ => Some(bayes_error_command(session, prefs)),
        };
        match (text, command) {
            (Some(text), Command::CopyBayesCommandLine | Command::CopyTauCommandLine) => {
                self.copy_line(ctx, text);
            }
            (Some(text), _) => self.copy(ctx, text, "Copied"),
            (None, Command::CopyTauCommandLine) => {
                self.session.notify(Level::Warning, "Type a target Bayes error first.")
            }
            (None, _) => self.session.notify(Level::Warning, "There is no Bayes error to copy yet."),
        }
    }

    /// Asking again for the open oracle reads it again, and for one that was lost on its way asks anew.
    pub(in crate::gui) fn open_oracle(&mut self, name: String) {
        self.leave_start();
        let name = kept_path::oracle(&name);
        if self.prefs.oracle == name && !self.session.is_opening() {
            self.submit(Job::OpenOracle(name));
        } else {
            self.prefs.oracle = name;
        }
    }

    fn show_judged(&mut self, model: usize, by: WorstBy) {
        let Some(info) = &self.session.oracle else {
            return self.session.notify(Level::Warning, "There is no world yet: open an oracle first.");
        };
        let report = self.session.tasks.get::<JudgeModels>().and_then(|view| view.report);
        let report = report.as_ref().map(|report| &report.found);
        let Some((report, verdict)) = report.and_then(|report| Some((report, report.models.get(model)?))) else {
            return;
        };
        let images = match by {
            WorstBy::Kl => verdict.worst_kl.clone(),
            WorstBy::Gap => verdict.worst_gap.clone(),
        };
        let request = JudgedImagesRequest {
            model: verdict.name.clone(),
            by,
            images,
            tested: verdict.measured.n,
            origin: report.origin.clone(),
            oracle: self.session.oracle_name.clone(),
            info: info.clone(),
        };
        let title = request.title();
        let id = self.engine.open_judged_images(request);
        self.session.asks_judged_images(id, title);
    }

    /// Closes a window that lies on the panels. Returns whether there was one.
    fn close_window(&mut self) -> bool {
        std::mem::take(&mut self.precision.open)
            || std::mem::take(&mut self.ledger)
            || std::mem::take(&mut self.verify)
            || self.help.close()
            || self.view.table.take().is_some()
            || self.connecting.close()
            || self.fetching.close()
    }

    pub(in crate::gui) fn copy(&mut self, ctx: &egui::Context, text: String, done: &str) {
        ctx.copy_text(text);
        self.session.notify(Level::Info, done);
    }

    /// Copies a text, and says which where it is one line.
    pub(in crate::gui) fn copy_line(&mut self, ctx: &egui::Context, text: String) {
        let done = if text.contains('\n') { "Copied".into() } else { format!("Copied: {text}") };
        self.copy(ctx, text, &done);
    }

    fn copy_command(&mut self, ctx: &egui::Context) {
        let outside = self.session.external.as_ref().filter(|_| self.view.source == Source::Outside);
        let of_cell = self.session.runs.cell_images.as_ref();
        let of_cell = of_cell.filter(|images| outside.is_some() && outside.map(|o| &o.name) == images.shown.as_ref());
        if let Some(images) = of_cell {
            let text = cell_images_command(&images.request);
            return self.copy_line(ctx, text);
        }
        if self.view.source == Source::Outside && self.session.external_paths.is_empty() {
            return self.session.notify(Level::Warning, self.why_no_command());
        }
        let text = match self.view.source {
            Source::World => sample_command(&self.session, &self.prefs, self.view.selection.len()),
            Source::Outside => posterior_command(&self.session, &self.prefs),
        };
        self.copy_line(ctx, text);
    }
}
