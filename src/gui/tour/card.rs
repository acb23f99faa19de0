//! How the tour looks: a card beside its target, or a bar at the bottom of a narrow window.

use eframe::egui::text::LayoutJob;
use eframe::egui::{
    self, Align, Align2, FontSelection, Frame, Label, Layout, Margin, Order, Panel, Pos2, Rect, Response, RichText,
    Stroke, StrokeKind, Ui, accesskit, vec2,
};

use super::{State, Step, Tour, perform};
use crate::gui::command::{Command, Page};
use crate::gui::context::Cx;
use crate::gui::landmarks::Landmark;
use crate::gui::paint::Canvas;
use crate::gui::panels;
use crate::gui::theme::Theme;
use crate::gui::widgets::hint;

/// Width of the card, points.
const WIDTH: f32 = 330.0;
/// Room between the card and what it points at, points.
const APART: f32 = 14.0;
/// Height of the title, which keeps it apart from the text, points.
const TITLE: f32 = 30.0;
/// In windows narrower than this a card would cover most of the gallery, points.
const ROOM_FOR_A_CARD: f32 = 1180.0;

/// Returns whether it lies below everything.
fn docked(ctx: &egui::Context) -> bool {
    ctx.content_rect().width() < ROOM_FOR_A_CARD
}

impl Tour {
    /// Shows it below everything, if it is under way and there is no room for a card.
    pub fn dock(&mut self, ui: &mut Ui, cx: &mut Cx) {
        let Some(step) = self.step.filter(|_| docked(ui.ctx())) else { return };
        let theme = Theme::of(ui);
        let frame = Frame::side_top_panel(ui.style()).fill(Canvas::ground(ui)).inner_margin(Margin::symmetric(12, 8));
        Panel::bottom("tour").frame(frame).show(ui, |ui| {
            let edge = ui.max_rect().expand2(vec2(12.0, 8.0));
            ui.painter().hline(edge.x_range(), edge.top() + 1.0, Stroke::new(2.0, theme.accent()));
            named(ui);
            ui.with_layout(Layout::right_to_left(Align::TOP), |ui| {
                skip(ui, cx);
                ui.with_layout(Layout::top_down(Align::LEFT), |ui| words(ui, step, ".  "));
            });
            ui.horizontal_wrapped(|ui| self.controls(ui, cx, step));
        });
    }

    /// Shows what it points at, and the card where there is room for one; if it is under way.
    pub fn show(&mut self, ctx: &egui::Context, cx: &mut Cx) {
        let Some(step) = self.step else { return };
        let target = step.text().landmark.and_then(|landmark| cx.view.landmarks.place(landmark));
        let theme = Theme::of_window(ctx);
        // On the panels and below every window.
        if let Some(rect) = target {
            let ring = ctx.layer_painter(egui::LayerId::background());
            ring.rect_stroke(
                rect.expand(3.0),
                5.0,
                Stroke::new(6.0, theme.accent().gamma_multiply(0.25)),
                StrokeKind::Outside,
            );
            ring.rect_stroke(rect.expand(2.0), 4.0, Stroke::new(2.0, theme.accent()), StrokeKind::Outside);
        }
        if docked(ctx) {
            return;
        }
        let (pivot, at) = stand(step, target, ctx.content_rect());
        let area = egui::Area::new(egui::Id::unique("tour")).order(Order::Middle).constrain(true).movable(false);
        let frame = Frame::popup(&ctx.global_style()).stroke(Stroke::new(1.5, theme.accent())).inner_margin(14.0);
        let area = area.pivot(pivot).fixed_pos(at);
        area.show(ctx, |ui| frame.show(ui, |ui| self.card(ui, cx, step)));
    }

    fn card(&mut self, ui: &mut Ui, cx: &mut Cx, step: Step) {
        ui.set_width(WIDTH);
        named(ui);
        ui.horizontal(|ui| {
            ui.label(RichText::new(step.number()).small().color(Theme::of(ui).weak()));
            ui.with_layout(Layout::right_to_left(Align::Center), |ui| skip(ui, cx));
        });
        words(ui, step, "\n");
        ui.add_space(4.0);
        self.controls(ui, cx, step);
    }

    /// What the step waits for or what came of it, and its buttons.
    fn controls(&mut self, ui: &mut Ui, cx: &mut Cx, step: Step) {
        let state = self.state(cx, step);
        if ui.layout().is_horizontal() {
            // First, so that they stay where they are whatever is said.
            self.buttons(ui, cx, step, &state);
            self.said(ui, cx, step, &state);
        } else {
            self.said(ui, cx, step, &state);
            ui.add_space(4.0);
            ui.horizontal(|ui| self.buttons(ui, cx, step, &state));
        }
        if step == Step::Posterior {
            on_from_here(ui, cx);
        }
    }

    /// What a step waits for or what came of it, in words, and the button that does it.
    fn said(&mut self, ui: &mut Ui, cx: &mut Cx, step: Step, state: &State) {
        let theme = Theme::of(ui);
        match state {
            State::Free => {}
            State::Waiting(text) => {
                ui.horizontal(|ui| {
                    ui.spinner();
                    let label = Label::new(RichText::new(text).color(theme.weak()).small()).wrap().selectable(false);
                    announce(&ui.add(label), text);
                });
            }
            State::Asking(text) => {
                let button = ui.button(*text);
                self.focus(&button);
                if button.clicked() {
                    self.follow = button.has_focus();
                    perform(cx, step);
                }
            }
            State::Done(text) => {
                let label = Label::new(RichText::new(text).color(theme.good())).wrap();
                announce(&ui.add(label.selectable(false)), text);
            }
        }
    }

    fn buttons(&mut self, ui: &mut Ui, cx: &mut Cx, step: Step, state: &State) {
        if let Some(before) = step.before() {
            let back = ui.button("Back");
            if back.clicked() {
                self.follow = back.has_focus();
                self.enter(cx, before);
            }
        }
        let ready = matches!(state, State::Free | State::Done(_));
        let (text, next) = match (step, step.after()) {
            (Step::World, after) => ("Begin", after),
            (_, Some(after)) => ("Next", Some(after)),
            (_, None) => ("Finish", None),
        };
        let why = "Once the step is done: do it where the ring is, or press the button beside this one.";
        let button = ui.add_enabled(ready, egui::Button::new(text)).on_disabled_hover_text(why);
        if ready {
            self.focus(&button);
        }
        if button.clicked() {
            self.follow = button.has_focus();
            match next {
                Some(next) => self.enter(cx, next),
                None => cx.commands.push(Command::LeaveTour),
            }
        }
    }

    /// Moves the focus here, if it was on a button that has gone.
    fn focus(&mut self, button: &Response) {
        if std::mem::take(&mut self.follow) {
            button.request_focus();
        }
    }
}

/// Names the tour to a screen reader.
fn named(ui: &Ui) {
    ui.ctx().accesskit_node_builder(ui.unique_id(), |node| {
        node.set_role(accesskit::Role::Dialog);
        node.set_label("Tour");
    });
}

/// Has a screen reader announce a change. A selectable label would be announced twice.
fn announce(label: &Response, text: &str) {
    label.ctx.accesskit_node_builder(label.id, |node| {
        node.set_live(accesskit::Live::Polite);
        node.set_value(text);
    });
}

/// Title and text: one label, so that one sentence is announced.
fn words(ui: &mut Ui, step: Step, between: &str) {
    let mut job = LayoutJob::default();
    let mut write = |text: RichText| {
        text.append_to(&mut job, ui.style(), FontSelection::Default, Align::Center);
    };
    if between == "\n" {
        write(RichText::new(step.text().title).heading().line_height(Some(TITLE)));
    } else {
        write(RichText::new(format!("{}  ", step.number())).small().color(Theme::of(ui).weak()));
        write(RichText::new(step.text().title).strong().color(Theme::of(ui).accent()));
    }
    write(RichText::new(format!("{between}{}", step.text().about)));
    let label = ui.add(Label::new(job).wrap().selectable(false));
    announce(&label, &format!("{}. {}. {}", step.number(), step.text().title, step.text().about));
}

fn skip(ui: &mut Ui, cx: &mut Cx) {
    let skip = ui.small_button("Skip the tour").on_hover_text("Escape. The menu Help has it again.");
    if skip.clicked() {
        cx.commands.push(Command::LeaveTour);
    }
}

/// Where to go when the tour is over.
fn on_from_here(ui: &mut Ui, cx: &mut Cx) {
    let bar = ui.layout().is_horizontal();
    if bar {
        ui.end_row();
    } else {
        ui.separator();
    }
    hint(ui, "From here:");
    if bar { places(ui, cx) } else { ui.horizontal_wrapped(|ui| places(ui, cx)).inner }
}

fn places(ui: &mut Ui, cx: &mut Cx) {
    for (text, about, command) in [
        ("Make a dataset", "Images with their exact posteriors", Command::ShowPanel(panels::export::ID)),
        ("Judge my classifier", "Against the exact posteriors", Command::ShowPanel(panels::judge::ID)),
        ("Glossary", "Every word with its formula", Command::Help(Page::Glossary)),
        ("Shortcuts", "Every key", Command::Help(Page::Shortcuts)),
    ] {
        if ui.small_button(text).on_hover_text(about).clicked() {
            cx.commands.push(command);
        }
    }
}

/// Which corner of the card stands where: beside what it points at, on the side with room.
fn stand(step: Step, target: Option<Rect>, window: Rect) -> (Align2, Pos2) {
    let Some(rect) = target else { return (Align2::CENTER_CENTER, window.center()) };
    match step.text().landmark {
        // The gallery fills the middle: in its corner the card covers least.
        Some(Landmark::Gallery) | None => (Align2::RIGHT_BOTTOM, rect.right_bottom() - vec2(APART + 12.0, APART)),
        Some(Landmark::Tau | Landmark::Posterior) if window.right() - rect.right() > WIDTH + 4.0 * APART => {
            (Align2::LEFT_TOP, rect.right_top() + vec2(APART, 0.0))
        }
        Some(_) => (Align2::RIGHT_TOP, rect.left_top() - vec2(APART, 0.0)),
    }
}
