//! The panel *Monitor*: the courses of all runs of this window in one plot, grouped and filtered by their specs.

mod law;

use std::path::PathBuf;
use std::sync::Arc;

use eframe::egui::{self, ComboBox, RichText, Slider, TextEdit, Ui};

use crate::figure::Figure;
use crate::gui::command::Command;
use crate::gui::context::{Cx, Panel};
use crate::gui::plot::{About, Board};
use crate::gui::session::Session;
use crate::gui::session::runs::RunView;
use crate::gui::theme::Theme;
use crate::gui::widgets::{empty_state, heading_with, hint};
use crate::run::monitor::{Choice, Over, Quantity, Seen, Track, alarms, differing, picture};

/// The panel's name in saved layouts.
pub const ID: &str = "monitor";
/// Room for a name in a field, points.
const FIELD: f32 = 190.0;

/// What is drawn, and the runs that are not.
#[derive(Default)]
pub struct MonitorPanel {
    choice: Choice,
    left_out: Vec<PathBuf>,
    board: Board,
    law: law::LawPlot,
    kept: Option<Kept>,
}

/// Courses and their figure, and what they were made of.
struct Kept {
    runs: Vec<(PathBuf, u64)>,
    choice: Choice,
    tracks: Vec<Track>,
    fields: Vec<String>,
    /// What is odd about them.
    warnings: Vec<String>,
    figure: Arc<Figure>,
}

impl Panel for MonitorPanel {
    fn ui(&mut self, ui: &mut Ui, cx: &mut Cx) {
        egui::ScrollArea::vertical().auto_shrink([false, false]).show(ui, |ui| {
            if cx.session.runs.iter().next().is_none() {
                empty_state(
                    ui,
                    "No run yet",
                    "Start an experiment, or open the folder of a run, also of one that another program logs\nor another machine works \
                     on: its course appears here beside those of all others.",
                );
                return drop(ui.vertical_centered(|ui| open(ui, cx)));
            }
            self.refresh(cx.session);
            heading_with(ui, "Courses of all runs", |ui| open(ui, cx));
            self.controls(ui);
            let Some(kept) = &self.kept else { return };
            if kept.figure.series.is_empty() {
                hint(ui, "No run in sight says this yet: choose another figure, another axis, or more runs below.");
            } else {
                let about = About { name: Some("Courses of all runs"), height: 340.0, ..About::default() };
                self.board.show_shared(ui, cx, &kept.figure, &about);
                hint(ui, kept.figure.caption.clone());
            }
            for text in &kept.warnings {
                ui.add(egui::Label::new(RichText::new(text).color(Theme::of(ui).warning())).wrap());
            }
            let session = cx.session;
            let shown = session.runs.iter().filter(|run| !self.left_out.contains(&run.folder));
            self.law.show(ui, cx, shown, &self.choice.filter);
            self.list(ui, cx.session);
            ui.add_space(12.0);
        });
    }
}

impl MonitorPanel {
    /// Makes the figure again where a run or the choice has changed.
    fn refresh(&mut self, session: &Session) {
        let shown: Vec<&RunView> = session.runs.iter().filter(|run| !self.left_out.contains(&run.folder)).collect();
        let runs: Vec<(PathBuf, u64)> = shown.iter().map(|run| (run.folder.clone(), run.revision)).collect();
        if self.kept.as_ref().is_some_and(|kept| kept.runs == runs && kept.choice == self.choice) {
            return;
        }
        let tracks = match self.kept.take().filter(|kept| kept.runs == runs) {
            Some(kept) => kept.tracks,
            None => shown.into_iter().filter_map(track).collect(),
        };
        let (fields, choice) = (differing(&tracks), self.choice.clone());
        let said = |track: &Track| -> Vec<String> {
            alarms(track).iter().map(|alarm| format!("{}: {}", track.name, alarm.sentence())).collect()
        };
        let warnings = tracks.iter().filter(|track| track.matches(&choice.filter)).flat_map(said).collect();
        let figure = Arc::new(picture(&tracks, &choice));
        self.kept = Some(Kept { runs, choice, tracks, fields, warnings, figure });
    }

    fn controls(&mut self, ui: &mut Ui) {
        let fields = self.kept.as_ref().map_or(&[][..], |kept| &kept.fields);
        let choice = &mut self.choice;
        ui.horizontal_wrapped(|ui| {
            let list = ComboBox::from_id_salt("quantity").selected_text(choice.quantity.name()).width(FIELD);
            let shown = list.show_ui(ui, |ui| {
                for quantity in Quantity::ALL {
                    ui.selectable_value(&mut choice.quantity, quantity, quantity.name());
                }
            });
            named(
                shown.response,
                "Figure of the courses",
                "What is drawn, beside its floor: A under losses, the Bayes error under errors",
            );
            ui.label("over");
            let list = ComboBox::from_id_salt("over").selected_text(choice.over.name()).width(FIELD);
            let shown = list.show_ui(ui, |ui| {
                for over in Over::ALL {
                    ui.selectable_value(&mut choice.over, over, over.name());
                }
            });
            named(shown.response, "Axis of the courses", "Images and time are known of runs whose program says them");
            ui.checkbox(&mut choice.log[0], "log x").on_hover_text("Equal ratios of the axis are equal distances");
            ui.checkbox(&mut choice.log[1], "log y").on_hover_text("Equal ratios of the figure are equal distances");
        });
        ui.horizontal_wrapped(|ui| {
            let label = ui.label("Smoothing");
            let smoothing = ui.add(Slider::new(&mut choice.smoothing, 0.0..=0.99).max_decimals(2).update_while_editing(false));
            let about = "Weight of what came before in a running mean; what was logged stays in sight, pale";
            smoothing.labelled_by(label.id).on_hover_text(about);
            let chosen = choice.group.clone().unwrap_or_else(|| "every run by itself".into());
            let shown = ComboBox::from_id_salt("group").selected_text(chosen).width(FIELD).show_ui(ui, |ui| {
                ui.selectable_value(&mut choice.group, None, "every run by itself");
                for field in fields {
                    ui.selectable_value(&mut choice.group, Some(field.clone()), field.as_str());
                }
            });
            named(shown.response, "Group and colour by", "Runs with the same value of this field become one line: their mean with its 95 % interval over the runs, seeds for instance");
            // One after the other, also where the line ends between them.
            ui.horizontal(|ui| {
                let label = ui.label("Filter");
                let filter = TextEdit::singleline(&mut choice.filter).desired_width(FIELD).hint_text("world.tau = 1");
                ui.add(filter).labelled_by(label.id).on_hover_text("Only runs in whose name or fields (name = value) this stands");
            });
        });
    }

    /// The runs, to be left out or taken in.
    fn list(&mut self, ui: &mut Ui, session: &Session) {
        ui.add_space(6.0);
        for run in session.runs.iter() {
            let mut shown = !self.left_out.contains(&run.folder);
            let place = run.folder.display().to_string();
            let check = ui.checkbox(&mut shown, run.name()).on_hover_text(&place);
            if check.changed() {
                match shown {
                    true => self.left_out.retain(|folder| *folder != run.folder),
                    false => self.left_out.push(run.folder.clone()),
                }
            }
        }
    }
}

fn open(ui: &mut Ui, cx: &mut Cx) {
    let button = ui.button("Open a run to watch…").on_hover_text("A run folder, also one that others are working on");
    if button.clicked() {
        cx.commands.push(Command::Open);
    }
}

fn named(response: egui::Response, name: &str, about: &str) {
    drop(response.on_hover_text(about).accessible_name(name));
}

/// The course of a run: all steps of an external one, of a grid the cell that is shown or trained.
fn track(run: &RunView) -> Option<Track> {
    let mut track = Track { name: run.name(), fields: Default::default(), seen: Vec::new(), finished: false };
    if let Some(found) = run.external() {
        track.describe(&found.spec);
        track.seen = found.course.steps().copied().map(Seen::Logged).collect();
        track.finished = found.course.finished;
        return Some(track);
    }
    let (found, course) = (run.found()?, run.course(None)?);
    track.describe(&*found.spec);
    track.describe(&course.cell);
    track.name = format!("{}: {}", track.name, course.label);
    track.seen = course.watched.iter().copied().map(Seen::Watched).collect();
    track.finished = run.job.is_none();
    Some(track)
}
