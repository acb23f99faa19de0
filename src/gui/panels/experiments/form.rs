//! What a new experiment is told.

mod data;
mod grid;
mod kind;
mod world;

use std::path::PathBuf;

use eframe::egui::{self, RichText, TextEdit, Ui};

use super::super::fields::{called, path, preset, spec_file};
use super::super::spec_file::SpecReader;
use crate::error::Result;
use crate::experiment::form::{list, typed_path};
use crate::experiment::{ExperimentSpec, PRESETS};
use crate::gui::background::{Field, Purpose, Takes};
use crate::gui::command::{Command, RunCommand};
use crate::gui::context::Cx;
use crate::gui::failures;
use crate::gui::format;
use crate::gui::prefs::Prefs;
use crate::gui::primary_action::primary_button;
use crate::gui::runs::default_folder;
use crate::gui::session::jobs::Jobs;
use crate::gui::session::tasks::TaskView;
use crate::gui::theme::Theme;
use crate::gui::widgets::hint;
use crate::run::EstimateTime;
use data::DataFields;
use grid::numbers;
use kind::{KindFields, kinds};
use world::WorldFields;

/// The spec file.
const SPEC: Field = Field::new("experiment spec", Takes::Spec);
/// Where it goes.
const FOLDER: Field = Field::new("experiment folder", Takes::Folder);

/// The fields, as they are being edited.
#[derive(Default)]
pub struct Form {
    /// What the fields say; nothing before the first frame.
    spec: Option<ExperimentSpec>,
    start: String,
    file: String,
    reading: SpecReader<ExperimentSpec>,
    sizes: String,
    seeds: String,
    world: WorldFields,
    data: DataFields,
    kind: KindFields,
    /// The folder somebody typed; empty for the usual one.
    folder: String,
    usual: PathBuf,
    complaint: Option<String>,
}

/// A form that can be carried out.
type Ready = std::result::Result<(ExperimentSpec, PathBuf), String>;

impl Form {
    /// Takes a path that came from the desktop's dialog.
    pub fn picked(&mut self, ctx: &egui::Context, picked: &mut Option<(Field, PathBuf)>) {
        let Some((field, path)) = picked.take() else { return };
        match field {
            SPEC => {
                self.file = path.display().to_string();
                self.load_file(ctx);
            }
            FOLDER => self.folder = path.display().to_string(),
            other if self.data.picked(other, &path) => {}
            other => *picked = Some((other, path)),
        }
    }

    /// Fills the fields with those of a run.
    pub fn duplicate(&mut self, spec: &ExperimentSpec, prefs: &Prefs) {
        self.replace(&format!("a copy of {}", spec.name), Ok(spec.clone()));
        self.folder.clear();
        self.usual = default_folder(&spec.name, &prefs.runs);
    }

    /// Fills the fields with those of a preset.
    pub fn take_preset(&mut self, name: &str) {
        if let Some(preset) = PRESETS.iter().find(|preset| preset.name == name) {
            self.replace(preset.name, preset.spec());
        }
    }

    /// Fills the fields, in place of a spec that is being read.
    fn replace(&mut self, start: &str, spec: Result<ExperimentSpec>) {
        self.reading = SpecReader::default();
        self.load(start, spec);
    }

    fn load(&mut self, start: &str, spec: Result<ExperimentSpec>) {
        match spec {
            Ok(spec) => {
                self.sizes = list(&spec.grid.train_sizes);
                self.seeds = list(&spec.grid.seeds);
                self.world = WorldFields::of(&spec.world);
                self.data = DataFields::of(&spec);
                self.kind = KindFields::of(&spec.experiment);
                self.start = start.into();
                self.spec = Some(spec);
                self.complaint = None;
            }
            Err(error) => self.complaint = Some(error.to_string()),
        }
    }

    fn load_file(&mut self, ctx: &egui::Context) {
        self.reading.start(ctx, &self.file, ExperimentSpec::read);
    }

    /// Shows the fields and the buttons; whether an experiment was started.
    pub fn show(&mut self, ui: &mut Ui, cx: &mut Cx) -> bool {
        if self.spec.is_none()
            && let Some(preset) = PRESETS.first()
        {
            self.load(preset.name, preset.spec());
        }
        if let Some(preset) = self.spec.as_ref().and_then(|spec| kinds(ui, &spec.experiment)) {
            self.replace(preset.name, preset.spec());
        }
        self.source(ui, cx);
        if let Some(spec) = &mut self.spec {
            self.world.show(ui, cx, spec);
            if spec.experiment.takes_data() {
                self.data.show(ui, cx, spec);
            }
            self.kind.show(ui);
            grid::show(ui, spec, &mut self.sizes, &mut self.seeds);
        }
        self.place(ui, cx);
        let started = self.buttons(ui, cx);
        if let Some(complaint) = &self.complaint {
            ui.colored_label(Theme::of(ui).error(), complaint);
        }
        started
    }

    /// Where the numbers come from at first.
    fn source(&mut self, ui: &mut Ui, cx: &mut Cx) {
        ui.horizontal_wrapped(|ui| {
            let of_kind = self.spec.as_ref().map_or(&[][..], |spec| spec.experiment.about().presets);
            let chosen = preset(ui, "Preset", &self.start, of_kind.iter(), |preset| preset.name);
            if let Some(preset) = chosen {
                self.replace(preset.name, preset.spec());
            }
            if let Some(spec) = &mut self.spec {
                called(ui, "Name of the run", &mut spec.name);
            }
        });
        if let Some(description) = self.spec.as_ref().and_then(|spec| spec.description.clone()) {
            hint(ui, description);
        }
        if spec_file(ui, cx, "Experiment file (.toml)", &mut self.file, SPEC, "Load experiment") {
            self.load_file(ui.ctx());
        }
        if let Some((file, spec)) = self.reading.show(ui) {
            self.load(&file, spec);
        }
    }

    fn place(&mut self, ui: &mut Ui, cx: &mut Cx) {
        let name = self.spec.as_ref().map_or("run", |spec| spec.name.trim());
        // The usual folder follows the name until somebody types another.
        if self.folder.trim().is_empty() {
            self.usual = default_folder(name, &cx.prefs.runs);
        }
        ui.horizontal_wrapped(|ui| {
            let label = ui.label("Folder of the experiment");
            let width = (ui.available_size_before_wrap().x - 110.0).clamp(120.0, 420.0);
            let usual = self.usual.display().to_string();
            let field = TextEdit::singleline(&mut self.folder).desired_width(width).hint_text(usual.as_str());
            ui.add(field).labelled_by(label.id).on_hover_text(format!("Where the run goes; {usual} if left empty"));
            if ui.button("Browse…").accessible_name("Browse for: Folder of the experiment").clicked() {
                cx.commands.push(Command::Browse(Purpose::Field(FOLDER)));
            }
        });
    }

    /// The spec of the fields and its folder, or what is wrong with them.
    fn ready(&self) -> Ready {
        let mut spec = self.spec.clone().ok_or("Choose a preset or load a file first.")?;
        spec.grid.train_sizes = numbers(&self.sizes, "Training images N")?;
        spec.grid.seeds = numbers(&self.seeds, "Seeds")?;
        if spec.name.trim().is_empty() {
            return Err("Give the run a name.".into());
        }
        spec.world = self.world.ready(&spec.world)?;
        spec.experiment = self.kind.ready(&spec.experiment)?;
        spec.data = spec.data.map(|_| self.data.ready()).transpose()?;
        spec.validate().map_err(|error| error.to_string())?;
        let (usual, usual_folder) = (self.folder.trim().is_empty(), self.usual.display().to_string());
        Ok((spec, typed_path(if usual { &usual_folder } else { &self.folder })?))
    }

    fn buttons(&mut self, ui: &mut Ui, cx: &mut Cx) -> bool {
        let ready = self.ready();
        let why = ready.as_ref().err().cloned().unwrap_or_default();
        let estimated = cx.session.tasks.get::<EstimateTime>();
        let waits = estimated.as_ref().is_some_and(|view| view.under_way());
        let mut started = false;
        ui.add_space(4.0);
        ui.horizontal_wrapped(|ui| {
            let button = |ui: &mut Ui, text: &str, about: &str, able: bool| {
                let button = ui.add_enabled(able && why.is_empty(), egui::Button::new(text));
                button.on_hover_text(about).on_disabled_hover_text(&why).clicked()
            };
            let start =
                "Writes spec and plan into the folder and trains cell after cell. Can be paused, cancelled and resumed";
            let estimate = "Times a few steps of every architecture on this device";
            let copy = "The same on the command line; a spec that is no preset is written to the folder first";
            type Make = fn(ExperimentSpec, PathBuf) -> Command;
            let run: Make = |spec, folder| Command::Run(RunCommand::Start(Box::new(spec), folder));
            let time: Make = |spec, folder| Command::task(EstimateTime { spec, folder });
            let copied: Make = |spec, folder| Command::Run(RunCommand::CopyCommand(Box::new(spec), folder));
            let asked: [(bool, Make); 3] = [
                (primary_button(ui, &mut cx.view.primary, "Start experiment", start, &why), run),
                (button(ui, "Estimate time", estimate, !waits), time),
                (button(ui, "Copy experiment command", copy, true), copied),
            ];
            started = asked[0].0 && ready.is_ok();
            if let Ok((spec, folder)) = &ready {
                let asked = asked.into_iter().filter(|(asked, _)| *asked);
                let make = |(_, make): (bool, Make)| make(spec.clone(), folder.clone());
                cx.commands.extend(asked.map(make));
            }
        });
        match &ready {
            Err(why) => drop(ui.colored_label(Theme::of(ui).warning(), why)),
            Ok((spec, _)) => size(ui, spec),
        }
        if let (Some(view), Ok((spec, _))) = (&estimated, &ready) {
            estimate_rows(ui, &cx.session.jobs, view, spec);
        }
        started
    }
}

/// How much there is to do.
fn size(ui: &mut Ui, spec: &ExperimentSpec) {
    let cells = spec.cells();
    let steps: usize = cells.iter().filter_map(|cell| spec.steps(cell).ok()).sum();
    hint(ui, format!("{} cells, {} optimisation steps in all.", format::count(cells.len()), format::count(steps)));
}

fn estimate_rows(ui: &mut Ui, jobs: &Jobs, view: &TaskView<'_, EstimateTime>, spec: &ExperimentSpec) {
    if let Some(why) = view.trouble() {
        failures::show(ui, view.job, why);
    }
    let Some(rows) = &view.report else {
        if view.under_way() {
            let waiting = jobs.get(view.job).and_then(|job| jobs.waiting(job));
            hint(ui, waiting.unwrap_or_else(|| "Timing a few steps of every architecture…".into()));
        }
        return;
    };
    if view.task.spec != *spec {
        hint(ui, "The estimate was for other fields: estimate again.");
        return;
    }
    let all: f64 = rows.iter().map(|row| row.seconds).sum();
    let text = format!("About {} on this device, drawing and measuring not counted", format::duration(all));
    ui.label(RichText::new(text).strong());
    egui::Grid::new("estimates").num_columns(5).striped(true).spacing([12.0, 2.0]).show(ui, |ui| {
        for title in ["architecture", "parameters", "open cells", "steps", "time"] {
            ui.label(RichText::new(title).small().color(Theme::of(ui).weak()));
        }
        ui.end_row();
        for row in rows.iter() {
            ui.label(row.architecture.label());
            ui.label(format::count(row.parameters));
            ui.label(format::count(row.cells));
            ui.label(format!("{} of {}", format::count(row.steps), format::short_time(row.step_secs)));
            ui.label(format::duration(row.seconds));
            ui.end_row();
        }
    });
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::bayes::Method;
    use crate::experiment::{DataSpec, FoundTau};
    use crate::units::Tau;

    fn form() -> Form {
        let mut form = Form { usual: "/runs/quick".into(), ..Form::default() };
        form.load("scaling-quick", PRESETS[0].spec());
        form
    }

    #[test]
    fn a_form_as_loaded_is_the_preset_itself() {
        let (spec, folder) = form().ready().unwrap();
        assert_eq!(spec, PRESETS[0].spec().unwrap());
        assert_eq!(folder, Path::new("/runs/quick"));
    }

    #[test]
    fn what_is_missing_or_wrong_is_said() {
        let mut form = form();
        form.sizes = "100, many".into();
        assert!(form.ready().unwrap_err().contains("'many'"));
        form.sizes = "100; 50".into();
        assert_eq!(form.ready().unwrap().0.grid.train_sizes, [100, 50]);
        form.seeds = String::new();
        assert!(form.ready().unwrap_err().contains("seeds"));
        let ctx = egui::Context::default();
        form.picked(&ctx, &mut Some((SPEC, "/nowhere/spec.toml".into())));
        assert!(form.file == "/nowhere/spec.toml" && form.reading.waiting());
        form.picked(&ctx, &mut Some((FOLDER, "/runs/mine".into())));
        form.seeds = "0".into();
        assert_eq!(form.ready().unwrap().1, Path::new("/runs/mine"));
    }

    #[test]
    fn a_dataset_is_part_of_the_form() {
        let mut form = form();
        form.picked(&egui::Context::default(), &mut Some((data::DATA, "/data/digits".into())));
        assert_eq!(form.ready().unwrap().0.data, None, "the world's own images until somebody chooses");
        form.spec.as_mut().unwrap().data = Some(DataSpec::default());
        let spec = form.ready().unwrap().0;
        assert_eq!(spec.data, Some(DataSpec { train: "/data/digits".into(), ..DataSpec::default() }));
        // A run on data is duplicated with them.
        let mut copy = Form::default();
        copy.duplicate(&spec, &Prefs::default());
        assert_eq!(copy.ready().unwrap().0, spec);
        copy.data.train.clear();
        assert!(copy.ready().unwrap_err().contains("Name the dataset"));
    }
    #[test]
    fn a_target_stands_in_place_of_tau_and_a_copy_of_a_run_looks_for_it_anew() {
        let mut form = form();
        form.spec.as_mut().unwrap().world.tau = Tau::new(0.7).unwrap();
        assert_eq!(form.ready().unwrap().0.world.tau.get(), 0.7);
        form.world.target = "5".into();
        assert!(form.ready().unwrap_err().contains("5 %"), "a share or per cent is asked for");
        form.world.target = " 5 % ".into();
        let mut spec = form.ready().unwrap().0;
        assert_eq!((spec.world.target, spec.world.tau, &spec.world.found), (Some(0.05), Tau::ONE, &None));
        // A run has found its τ; a copy shows what was asked for, and may be of another world.
        let found = FoundTau { interval: (1.0, 1.1), method: Method::Sampling, samples: 512 };
        (spec.world.tau, spec.world.found) = (Tau::new(1.06).unwrap(), Some(found));
        let mut copy = Form::default();
        copy.duplicate(&spec, &Prefs::default());
        assert_eq!(copy.world.target, "5 %");
        let copied = copy.ready().unwrap().0.world;
        assert_eq!((copied.target, copied.tau, copied.found), (Some(0.05), Tau::ONE, None));
        copy.world.target.clear();
        let plain = copy.ready().unwrap().0.world;
        assert_eq!((plain.target, plain.tau.get()), (None, 1.06), "what was found stays as a τ that is given");
        // An odd share comes back as it was.
        let third = 1.0 / 3.0;
        copy.world = WorldFields::of(&crate::experiment::WorldSpec { target: Some(third), ..plain });
        assert_eq!(copy.ready().unwrap().0.world.target, Some(third));
    }

    #[test]
    fn an_experiment_with_temperatures_of_its_own_takes_no_target() {
        let of_its_own =
            |preset: &&crate::experiment::Preset| preset.spec().is_ok_and(|spec| spec.experiment.tau(0).is_some());
        let mut form = form();
        form.take_preset(PRESETS.iter().find(of_its_own).unwrap().name);
        assert!(form.ready().is_ok());
        form.world.target = "5 %".into();
        assert!(form.ready().unwrap_err().contains("taus of its own"));
    }
}
