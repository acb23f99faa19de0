//! Where a walk begins, where it goes, in how many steps.

use eframe::egui::{self, Button, ComboBox, DragValue, RichText, Ui};

use crate::gui::command::Command;
use crate::gui::context::Cx;
use crate::gui::inspected::called;
use crate::gui::prefs::MAX_SAMPLES;
use crate::gui::primary_action::primary_button;
use crate::gui::selection::Source;
use crate::gui::session::Session;
use crate::gui::session::gallery::Slot;
use crate::gui::session::jobs::JobView;
use crate::gui::widgets::{complain, hint};
use crate::oracle::evidence::leaders;
use crate::oracle::posterior::Posterior;
use crate::units::ClassId;
use crate::worker::protocol::{JobId, Subject};
use crate::worker::walk::{Destination, WalkToBoundary};

/// Steps of a walk at most: every point is kept with its picture.
const MAX_STEPS: usize = 256;

/// What the user has chosen.
pub struct Form {
    /// The start that was pinned; the selected image where none was.
    pinned: Option<Subject>,
    towards_class: bool,
    /// The goal; `None` for the runner-up at the start.
    class: Option<ClassId>,
    sample: usize,
    steps: usize,
}

impl Default for Form {
    fn default() -> Self {
        Self { pinned: None, towards_class: true, class: None, sample: 1, steps: 32 }
    }
}

/// The posterior of an image, where the window has it at the present knobs.
fn posterior<'a>(cx: &Cx<'a>, subject: &Subject) -> Option<&'a Posterior> {
    let session: &'a Session = cx.session;
    let slot: Option<&Slot> = match subject {
        Subject::Sample { spec, index } if spec.seed == cx.prefs.spec().seed => session.gallery.get(*index),
        Subject::Sample { .. } => None,
        Subject::External(image) => session.among(*image).and_then(|external| external.gallery.get(image.index)),
    };
    slot.map(|slot| &*slot.tile.posterior)
}

impl Form {
    pub fn show(&mut self, ui: &mut Ui, cx: &mut Cx) {
        self.tidy(cx);
        let from = self.pinned.clone().or_else(|| cx.view.subject(cx.session, cx.prefs));
        let about = from.as_ref().and_then(|from| posterior(cx, from));
        row(ui, "From", |ui| self.from(ui, cx, from.as_ref(), about));
        row(ui, "To", |ui| self.to(ui, cx, about));
        row(ui, "In", |ui| self.go(ui, cx, from, about));
    }

    /// Forgets what another oracle or other images from outside have made meaningless.
    fn tidy(&mut self, cx: &Cx) {
        let classes = cx.session.class_names().len();
        self.class = self.class.filter(|class| *class < classes);
        self.pinned.take_if(|pinned| !pinned.is_open(cx.session.open_set()));
    }

    fn from(&mut self, ui: &mut Ui, cx: &Cx, from: Option<&Subject>, about: Option<&Posterior>) {
        let text = match (from, about) {
            (None, _) => "nothing: select an image in the gallery first".into(),
            (Some(from), None) => called(cx.session, from),
            (Some(from), Some(p)) => {
                format!("{}, decided as {}", called(cx.session, from), cx.session.class_name(p.decision))
            }
        };
        ui.label(RichText::new(text).strong());
        let selected = cx.view.subject(cx.session, cx.prefs);
        let here = ui.add_enabled(selected.is_some() && selected != self.pinned, Button::new("Start here"));
        let here = here.on_hover_text("Keeps the image selected in the gallery as the start while you select others");
        let why = match selected {
            None => "Select an image in the gallery first.",
            Some(_) => "The selected image is the start already.",
        };
        if here.on_disabled_hover_text(why).clicked() {
            self.pinned = selected;
        }
        if self.pinned.is_some() {
            let follow = ui.button("Start at the selection").on_hover_text("The start follows the gallery again");
            if follow.clicked() {
                self.pinned = None;
            }
        } else {
            hint(ui, "follows the gallery's selection");
        }
    }

    fn to(&mut self, ui: &mut Ui, cx: &Cx, about: Option<&Posterior>) {
        let why = "The walk goes to where this class is as probable as that of the start";
        ui.selectable_value(&mut self.towards_class, true, "a class").on_hover_text(why);
        let why = "The walk goes from the start towards this sample, through their latents";
        ui.selectable_value(&mut self.towards_class, false, "a sample").on_hover_text(why);
        if self.towards_class {
            let shown = self.goal_class(about);
            let combo = ComboBox::from_id_salt("goal class").width(110.0).truncate();
            let response = combo.selected_text(cx.session.class_name(shown)).show_ui(ui, |ui| {
                for class in 0..cx.session.class_names().len() {
                    let decided = about.is_some_and(|p| p.decision == class);
                    let chosen = Button::selectable(class == shown, cx.session.class_name(class));
                    if ui.add_enabled(!decided, chosen).clicked() {
                        self.class = Some(class);
                    }
                }
            });
            response.response.accessible_name("Goal class").on_hover_text("The class to walk to");
            if self.class.is_none() {
                hint(ui, "the start's second most probable class");
            }
            return;
        }
        ui.label("number");
        let number = DragValue::new(&mut self.sample).range(0..=MAX_SAMPLES - 1).update_while_editing(false);
        let number = ui.add(number).accessible_name("Goal sample number");
        number.on_hover_text("Which sample to walk to, by its number in the gallery");
        let selected = cx.view.cursor.filter(|_| cx.view.source == Source::World);
        let button = ui.add_enabled(selected.is_some(), Button::new("Goal is the selection"));
        let button =
            button.on_hover_text("Takes the sample selected in the gallery; press 'Start here' on another first");
        let button = button.on_disabled_hover_text("Select a sample of the world in the gallery first.");
        if let Some(selected) = selected.filter(|_| button.clicked()) {
            self.sample = selected;
        }
        hint(ui, "of the start's seed");
    }

    fn goal_class(&self, about: Option<&Posterior>) -> ClassId {
        self.class.or_else(|| about.and_then(leaders).map(|(_, second)| second)).unwrap_or(0)
    }

    fn go(&mut self, ui: &mut Ui, cx: &mut Cx, from: Option<Subject>, about: Option<&Posterior>) {
        let steps = DragValue::new(&mut self.steps).range(1..=MAX_STEPS).speed(0.25).update_while_editing(false);
        let steps = ui.add(steps.suffix(" steps")).accessible_name("Number of steps");
        steps.on_hover_text("From the first point to the last; up a gradient (TarFlow, to a class) at most so many");
        let to = match self.towards_class {
            true => Destination::Class(self.goal_class(about)),
            false => Destination::Sample(self.sample),
        };
        let under_way = cx.session.tasks.get::<WalkToBoundary>().filter(|view| view.under_way());
        let trouble = trouble(cx, from.as_ref(), to, about);
        let why_not = if under_way.is_some() { "A walk is under way." } else { &trouble };
        let about =
            "The path, the exact posterior at every point, and the image at which two classes are equally probable";
        let walk = primary_button(ui, &mut cx.view.primary, "Walk to the boundary", about, why_not);
        if let Some(from) = from.filter(|_| walk) {
            let (samples, settings) = (cx.prefs.spec(), cx.prefs.settings());
            cx.commands.push(Command::task(WalkToBoundary { from, to, steps: self.steps, samples, settings }));
        }
        if let Some(walk) = under_way {
            progress(ui, cx, walk.job);
        } else if !trouble.is_empty() {
            complain(ui, &trouble);
        }
    }
}

/// A line of the form.
fn row(ui: &mut Ui, name: &str, content: impl FnOnce(&mut Ui)) {
    ui.horizontal_wrapped(|ui| {
        let size = egui::vec2(36.0, ui.spacing().interact_size.y);
        ui.allocate_ui_with_layout(size, egui::Layout::left_to_right(egui::Align::Center), |ui| {
            ui.set_min_width(size.x);
            ui.label(name);
        });
        content(ui);
    });
}

fn progress(ui: &mut Ui, cx: &mut Cx, job: JobId) {
    if ui.button("Stop walking").clicked() {
        cx.commands.push(Command::Cancel(job));
    }
    let jobs = &cx.session.jobs;
    let said = |job: &JobView| jobs.waiting(job).unwrap_or_else(|| job.note.clone());
    let note = jobs.get(job).map(said).filter(|note| !note.is_empty());
    hint(ui, note.unwrap_or_else(|| "waiting for the engine".into()));
}

/// Why there can be no walk; empty where there can.
fn trouble(cx: &Cx, from: Option<&Subject>, to: Destination, about: Option<&Posterior>) -> String {
    let same =
        |from: &Subject| matches!((from, to), (Subject::Sample { index, .. }, Destination::Sample(j)) if *index == j);
    match (from, to) {
        (None, _) => "Select an image in the gallery first.".into(),
        _ if cx.prefs.tau == 0.0 => {
            "At τ = 0 images between two class means have no density: choose a larger τ.".into()
        }
        _ if cx.prefs.label_noise.is_some() => {
            "A walk follows the posterior of the class, which label noise mixes: take the label noise out.".into()
        }
        (Some(from), _) if same(from) => "Start and goal are one sample: choose another number.".into(),
        (_, Destination::Class(class)) if about.is_some_and(|p| p.decision == class) => {
            format!("The start is decided as {} already: choose another class.", cx.session.class_name(class))
        }
        _ => String::new(),
    }
}
