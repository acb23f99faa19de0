//! What the world says of the drawing.

use std::time::Duration;

use eframe::egui::{Grid, Rect, RichText, Ui, vec2};

use super::canvas;
use crate::gui::context::Cx;
use crate::gui::exactness;
use crate::gui::format;
use crate::gui::inspector::bar;
use crate::gui::moved;
use crate::gui::paint::{HeatMap, Ramp, Sheet};
use crate::gui::theme::{Theme, UNTINTED};
use crate::gui::typicality;
use crate::gui::widgets::{class_cell, complain, fact, facts, grid_head, hint, list, names_width};
use crate::worker::protocol::{Asked, SketchAnswer};

/// An answer that has not come so long after the pen moved is late.
const LATE: Duration = Duration::from_millis(300);
/// Classes with a bar, the most probable ones, in the order of their names.
const CLASSES: usize = 12;

/// What is painted: number of the answer, theme and strength, columns and rows, the picture.
type Drawn = (u64, (Theme, f32), [usize; 2], Sheet);

/// The evidence map on the canvas.
#[derive(Default)]
pub struct Heat {
    drawn: Option<Drawn>,
}

impl Heat {
    /// Paints the map of an answer over the canvas, where it has one.
    pub fn paint(&mut self, ui: &Ui, answer: &SketchAnswer, place: Rect, strength: f32) {
        let Some((_, map)) = &answer.evidence else { return };
        let (theme, generation, size) = (Theme::of(ui), answer.request.generation, [map.columns, map.rows]);
        let style = (theme, strength);
        if self.drawn.as_ref().is_none_or(|(of, how, ..)| *of != generation || *how != style) {
            let kept = self.drawn.take().filter(|(.., of, _)| *of == size).map(|(.., sheet)| sheet);
            let mut sheet = kept.unwrap_or_else(|| Sheet::new(ui.ctx(), "evidence of the drawing", size));
            let ramp = Ramp::new(|share| theme.veil(share, strength));
            sheet.heat(&HeatMap { size, values: &map.cells, in_place: None, extent: map.extent(), ramp });
            self.drawn = Some((generation, style, size, sheet));
        }
        if let Some((.., sheet)) = &self.drawn {
            ui.painter().image(sheet.id(), place, canvas::whole(), UNTINTED);
        }
    }
}

/// What is said of an answer that is not of the present drawing or knobs; none of one that is. An answer that comes while the pen moves
/// is not yet old.
pub fn old(cx: &Cx, answer: &SketchAnswer) -> Option<String> {
    let revision = answer.request.sketch.revision;
    let drawn =
        cx.view.drawing.as_ref().is_some_and(|now| now.sketch.revision != revision && now.moved.elapsed() > LATE);
    if drawn {
        return Some("Of the drawing before; that of this one is being computed…".into());
    }
    moved::since(&answer.request.settings, &cx.prefs.settings()).map(|since| format!("Computed {since}"))
}

/// Posterior, figures and typicality of the newest drawing that was answered.
pub fn show(ui: &mut Ui, cx: &Cx) {
    let session = cx.session;
    if cx.prefs.tau == 0.0 {
        return hint(ui, "At τ = 0 there is no density, and a drawing has no posterior: set τ above 0.");
    }
    let unanswered = session.unanswered.get(&Asked::Sketch);
    if let Some(why) = unanswered {
        complain(ui, why);
    }
    let Some(answer) = &session.sketch else {
        if unanswered.is_none() {
            hint(ui, "Being computed…");
        }
        return;
    };
    let (p, settings) = (&answer.posterior, &answer.request.settings);
    let held = session.references.at(settings);
    let place = typicality::place(held, p.log_px);
    let why = exactness::of_image(session, settings.label_noise.as_ref());
    typicality::posterior_heading(ui, "Posterior of the drawing", &why, place.as_ref());
    facts(ui, "drawing facts", |ui| {
        fact(ui, "Decision", session.class_name(p.decision), "The most probable class.");
        let best = format::exp_sig4(p.log_probabilities[p.decision]);
        fact(ui, "p(decision)", best, "Posterior probability of the decision.");
        fact(ui, "Entropy", format!("{} nats", format::sig4(p.entropy_nats)), "H(p(y|x)).");
        typicality::rows(ui, session, Some(held), p);
        if let Some(([a, b], map)) = &answer.evidence {
            let [a, b] = [*a, *b].map(|class| session.class_name(class));
            let about = "log p(x|a) - log p(x|b): the sum over the places of the map. Orange speaks for the first class, blue for the second.";
            fact(ui, "Evidence", format!("{} nats for {a} against {b}", format::sig4(map.total)), about);
        }
    });
    bars(ui, cx, answer);
    match old(cx, answer) {
        Some(words) => complain(ui, &words),
        None => hint(ui, format!("Computed in {}.", format::short_time(answer.took.as_secs_f64()))),
    }
    if cx.view.drawing.as_ref().is_some_and(|now| now.sketch.revision != answer.request.sketch.revision) {
        ui.ctx().request_repaint_after(LATE);
    }
}

fn bars(ui: &mut Ui, cx: &Cx, answer: &SketchAnswer) {
    let p = &answer.posterior;
    let classes = p.probabilities.len();
    let mut shown: Vec<usize> = (0..classes).collect();
    shown.sort_by(|a, b| p.log_probabilities[*b].total_cmp(&p.log_probabilities[*a]));
    shown.truncate(CLASSES);
    // Bars that change their places cannot be followed.
    shown.sort_unstable();
    let theme = Theme::of(ui);
    let names = names_width(ui, cx.session);
    let width = (ui.available_width() - names - 110.0).clamp(40.0, 240.0);
    list(320.0).id_salt("posterior of the drawing").show(ui, |ui| {
        Grid::new("posterior of the drawing").num_columns(3).striped(true).spacing(vec2(8.0, 2.0)).show(ui, |ui| {
            grid_head(ui, &["class", "", "p(y|x)"]);
            for class in shown {
                class_cell(ui, cx.session, class, names);
                bar(ui, width, p.probabilities[class].clamp(0.0, 1.0) as f32, theme, theme.class(class, classes));
                let number = RichText::new(format::exp_sig4(p.log_probabilities[class])).monospace();
                ui.label(if class == p.decision { number.strong() } else { number });
                ui.end_row();
            }
        });
    });
    if classes > CLASSES {
        hint(ui, format!("The {CLASSES} most probable of {classes} classes."));
    }
}
