//! Draw: an image made by hand, and what the world says of it while the pen moves.
//!
//! | file | what |
//! |---|---|
//! | `brush` | ink, strokes and their undoing: numbers alone |
//! | `canvas` | pointer and keys become strokes |
//! | `answer` | posterior, typicality and evidence of the drawing |

mod answer;
mod brush;
mod canvas;

use std::sync::Arc;
use std::time::Instant;

use eframe::egui::{self, Button, Slider, Ui};

use crate::data::ImageShape;
use crate::device::ImageSource;
use crate::gui::command::Command;
use crate::gui::context::{Cx, Panel};
use crate::gui::inspected::name;
use crate::gui::paint::Sheet;
use crate::gui::session::Session;
use crate::gui::theme::UNTINTED;
use crate::gui::view::Drawing;
use crate::gui::widgets::{heading, hint, no_world};
use crate::worker::protocol::{Asked, Ground, Sketch};
use answer::Heat;
use brush::{Ink, Tool};
use canvas::{Brush, KeyPen};

pub const ID: &str = "draw";

/// Level of an empty image of colours; one of grey is black.
const MIDDLE: u8 = 128;
/// Widths of the brush, pixels.
const WIDTHS: std::ops::RangeInclusive<f32> = 1.0..=16.0;
/// Side of the canvas, points.
const SIDES: std::ops::RangeInclusive<f32> = 160.0..=420.0;
/// Least width at which canvas and figures stand side by side, points.
const SIDE_BY_SIDE: f32 = 540.0;

/// What is drawn, on which image.
struct Page {
    /// The world it is of (`OracleInfo::world_id`).
    world: String,
    shape: ImageShape,
    ink: Ink,
    /// The image under it, and what that is called.
    ground: Option<(Ground, String)>,
    /// Its picture, once the engine has told it.
    picture: Option<Arc<Vec<u8>>>,
}

/// The panel's tools, its page, and the drawing as it was asked about last.
pub struct DrawPanel {
    page: Option<Page>,
    colour: [u8; 3],
    width: f32,
    eraser: bool,
    evidence: bool,
    pen: KeyPen,
    /// Running number of pages and their states.
    count: u64,
    /// The drawing, and what of the page it is of.
    drawing: Option<((u64, bool), Drawing)>,
    /// Its picture: of which revision, how many pixels.
    texture: Option<(u64, [usize; 2], Sheet)>,
    heat: Heat,
}

impl Default for DrawPanel {
    fn default() -> Self {
        Self {
            page: None,
            colour: [255; 3],
            width: 2.5,
            eraser: false,
            evidence: false,
            pen: KeyPen::default(),
            count: 0,
            drawing: None,
            texture: None,
            heat: Heat::default(),
        }
    }
}

impl Page {
    fn empty(world: &str, shape: ImageShape, ground: Option<(Ground, String)>) -> Self {
        Self { world: world.to_owned(), shape, ink: Ink::new([shape.width, shape.height]), ground, picture: None }
    }

    /// What the ink lies on, 8-bit CHW; none as long as it is not known.
    fn below(&self) -> Option<Vec<u8>> {
        match &self.ground {
            Some(_) => self.picture.as_ref().map(|picture| picture.as_ref().clone()),
            None => Some(vec![if self.shape.channels < 3 { 0 } else { MIDDLE }; self.shape.dims()]),
        }
    }

    /// The drawing as the engine is asked about it.
    fn sketch(&self, revision: u64) -> Sketch {
        let layer = self.ink.layer();
        let levels = self.below().map_or_else(|| vec![0; self.shape.dims()], |below| layer.over(&below));
        let ground = self.ground.as_ref().map(|(ground, _)| ground.clone());
        Sketch { revision, ground, levels, inked: layer.inked() }
    }
}

impl Panel for DrawPanel {
    fn ui(&mut self, ui: &mut Ui, cx: &mut Cx) {
        let Some(info) = cx.session.oracle.clone() else { return no_world(ui, cx.session) };
        let (world, shape) = (&info.world_id(), info.architecture.shape());
        if self.page.as_ref().is_none_or(|page| page.world != *world || page.shape != shape) {
            self.turn(Page::empty(world, shape, None));
        }
        egui::ScrollArea::vertical().auto_shrink([false, false]).show(ui, |ui| {
            heading(ui, "Draw an image", None);
            self.pages(ui, cx);
            self.tools(ui, shape);
            if ui.available_width() > SIDE_BY_SIDE {
                ui.horizontal_top(|ui| {
                    ui.vertical(|ui| self.draw(ui, cx));
                    ui.vertical(|ui| answer::show(ui, cx));
                });
            } else {
                self.draw(ui, cx);
                answer::show(ui, cx);
            }
        });
    }
}

impl DrawPanel {
    /// Another page in place of the present one.
    fn turn(&mut self, page: Page) {
        self.page = Some(page);
        self.drawing = None;
        self.count += 1;
    }

    /// What to draw on, and where the drawing goes.
    fn pages(&mut self, ui: &mut Ui, cx: &mut Cx) {
        let Some(page) = &self.page else { return };
        let (world, shape) = (page.world.clone(), page.shape);
        let mut turned = None;
        ui.horizontal_wrapped(|ui| {
            let about = "Black in a world of grey images, grey in one of colours. What is drawn is forgotten.";
            if ui.button("Empty image").on_hover_text(about).clicked() {
                turned = Some(None);
            }
            let subject = cx.view.subject(cx.session, cx.prefs).filter(|_| cx.prefs.tau > 0.0);
            let button = ui.add_enabled(subject.is_some(), Button::new("Draw on the inspected image"));
            let about = "Its float values stay wherever there is no ink: without ink the posterior is its own.";
            let button = button.on_hover_text(about).on_disabled_hover_text("Click an image in the gallery first.");
            if let Some(subject) = subject.filter(|_| button.clicked()) {
                let ground = Ground { id: self.count + 1, subject, settings: cx.prefs.settings() };
                turned = Some(cx.view.cursor.map(|index| (ground, name(cx.session, cx.view.source, index))));
            }
            let about = "The 8-bit picture. Opened again, a drawing on an empty image has the same posterior.";
            if ui.button("Save drawing…").on_hover_text(about).clicked() {
                cx.commands.push(Command::SaveSketch);
            }
            let about = "It takes the place of the images from outside: there it can be inspected, and walked from.";
            if ui.button("Send drawing to gallery").on_hover_text(about).clicked() {
                cx.commands.push(Command::SendSketch);
            }
        });
        if let Some(ground) = turned {
            self.turn(Page::empty(&world, shape, ground));
        }
    }

    fn tools(&mut self, ui: &mut Ui, shape: ImageShape) {
        let Some(page) = &mut self.page else { return };
        ui.horizontal_wrapped(|ui| {
            let about = "Leaves ink. The right mouse button erases.";
            ui.selectable_value(&mut self.eraser, false, "Pen").on_hover_text(about);
            ui.selectable_value(&mut self.eraser, true, "Eraser")
                .on_hover_text("Takes ink away: the image under it shows again.");
            if shape.channels >= 3 {
                let picker = ui.color_edit_button_srgb(&mut self.colour).on_hover_text("The colour of the ink");
                picker.accessible_name("Colour of the pen");
            }
            let slider = Slider::new(&mut self.width, WIDTHS).max_decimals(1).suffix(" px");
            let about = "Width of the brush in pixels of the image; its edge fades over one pixel";
            ui.add(slider).on_hover_text(about).accessible_name("Width of the brush");
            let button = |ui: &mut Ui, ready: bool, text: &str, about: &str| {
                ui.add_enabled(ready, Button::new(text)).on_hover_text(about).clicked()
            };
            let about = "Take the last stroke back: Ctrl+Z while the canvas has the focus";
            if button(ui, page.ink.can_undo(), "Undo stroke", about) {
                page.ink.undo();
            }
            let about = "Make the last undone stroke again: Ctrl+Shift+Z while the canvas has the focus";
            if button(ui, page.ink.can_redo(), "Redo stroke", about) {
                page.ink.redo();
            }
            if button(ui, !page.ink.layer().is_empty(), "Clear ink", "Take all ink away; can be undone") {
                page.ink.clear();
            }
            let about = "Show on the drawing which places speak for the decision and against the runner-up";
            ui.checkbox(&mut self.evidence, "Evidence of the drawing").on_hover_text(about);
        });
    }

    /// The canvas.
    fn draw(&mut self, ui: &mut Ui, cx: &mut Cx) {
        let Some(page) = &mut self.page else { return };
        let session = cx.session;
        let answer = session.sketch.as_ref().filter(|answer| {
            let id = |ground: Option<&Ground>| ground.map(|ground| ground.id);
            id(answer.request.sketch.ground.as_ref()) == id(page.ground.as_ref().map(|(ground, _)| ground))
        });
        page.picture = page.picture.take().or_else(|| answer?.ground.clone());
        let (size, known) = ([page.shape.width, page.shape.height], page.below().is_some());
        let side = (0.55 * ui.available_width()).clamp(*SIDES.start(), *SIDES.end());
        let tool = if self.eraser { Tool::Eraser } else { Tool::Pen(self.colour) };
        let brush = Brush { tool, radius: 0.5 * self.width };
        if let Some([x, y]) = cx.view.pen.take() {
            page.ink.draw(brush.tool, brush.radius, [x * size[0] as f32, y * size[1] as f32]);
        }
        let (ink, pen) = (&mut page.ink, &mut self.pen);
        let response = ui.add_enabled_ui(known, |ui| canvas::show(ui, ink, (brush, pen), side, size)).inner;
        cx.view.draws = response.has_focus();
        let words = below(session, page);
        self.ask(ui, cx);
        if let Some((.., texture)) = &self.texture {
            ui.painter().image(texture.id(), response.rect, canvas::whole(), UNTINTED);
        }
        if let Some(answer) = answer.filter(|answer| self.evidence && answer::old(cx, answer).is_none()) {
            self.heat.paint(ui, answer, response.rect, cx.prefs.evidence_strength);
        }
        canvas::outline(ui, &response, brush, (&self.pen, size));
        hint(ui, words);
    }

    /// Has the engine asked about the drawing, and its picture painted, where it has changed.
    fn ask(&mut self, ui: &Ui, cx: &mut Cx) {
        let Some(page) = &self.page else { return };
        let state = (page.ink.revision(), page.picture.is_some());
        if self.drawing.as_ref().is_none_or(|(of, _)| *of != state) {
            self.count += 1;
            let sketch = Arc::new(page.sketch(self.count));
            self.drawing = Some((state, Drawing { sketch, evidence: self.evidence, moved: Instant::now() }));
        }
        let Some((_, drawing)) = &mut self.drawing else { return };
        drawing.evidence = self.evidence;
        cx.view.drawing = Some(drawing.clone());
        let (revision, size) = (drawing.sketch.revision, [page.shape.width, page.shape.height]);
        if self.texture.as_ref().is_none_or(|(shown, ..)| *shown != revision) {
            let kept = self.texture.take().filter(|(_, of, _)| *of == size).map(|(.., sheet)| sheet);
            let mut sheet = kept.unwrap_or_else(|| Sheet::new(ui.ctx(), "drawing", size));
            sheet.put(page.shape, &[([0, 0], &ImageSource::from(drawing.sketch.levels.clone()))]);
            self.texture = Some((revision, size, sheet));
        }
    }
}

/// What is drawn on, and how, in words.
fn below(session: &Session, page: &Page) -> String {
    let how = "Arrow keys move the pen, Space draws.";
    match (&page.ground, &page.picture) {
        (None, _) => format!("On an empty image. {how}"),
        (Some((_, name)), Some(_)) => format!("On {name}. {how}"),
        (Some((_, name)), None) => match session.unanswered.get(&Asked::Sketch) {
            Some(why) => why.clone(),
            None => format!("{name} is being fetched…"),
        },
    }
}
