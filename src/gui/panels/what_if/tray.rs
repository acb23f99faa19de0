//! The tray of pinned images: each with its posterior, and what the first has more of in evidence.

use eframe::egui::{self, Image, RichText, ScrollArea, Ui, vec2};

use super::mosaic::most_probable;
use super::moved_since;
use crate::data::ImageShape;
use crate::figure::Records;
use crate::flow::Evidence;
use crate::gui::context::Cx;
use crate::gui::evidence::{class_pair, signed};
use crate::gui::exactness;
use crate::gui::format;
use crate::gui::inspector::bar;
use crate::gui::paint::{HeatMap, Ramp, Sheet};
use crate::gui::pins;
use crate::gui::plot::{comments, of_world};
use crate::gui::session::Session;
use crate::gui::session::tasks::TaskView;
use crate::gui::table_window;
use crate::gui::theme::{Badge, Theme};
use crate::gui::widgets::{class_label, heading, hint, standing};
use crate::oracle::world::Settings;
use crate::units::ClassId;
use crate::worker::protocol::JobId;
use crate::worker::what_if::{Beside, CompareImages, MOST_PINS, Pin, SideBySide};

/// Width of a pinned image, and of the column it stands in, which has room for a class, its bar and its probability; points.
const PICTURE: f32 = 120.0;
const WIDTH: f32 = 164.0;
/// Classes with a bar, the most probable ones.
const CLASSES: usize = 3;

/// The textures of one comparison, in one theme.
#[derive(Default)]
pub struct Tray {
    of: Option<(JobId, Theme)>,
    columns: Vec<Textures>,
}

/// Picture, evidence map and map of the difference of one image.
struct Textures {
    picture: Sheet,
    evidence: Option<Sheet>,
    difference: Option<Sheet>,
}

/// What the user wants of the tray.
enum Wish {
    Unpin(usize),
    First(usize),
}

impl Tray {
    pub fn show(&mut self, ui: &mut Ui, cx: &mut Cx, shape: ImageShape) {
        let view = pins::compared(cx);
        let now = cx.prefs.settings();
        let settings = view.as_ref().map_or(&now, |view| &view.task.settings);
        let why = exactness::of_image(cx.session, settings.label_noise.as_ref());
        heading(ui, "Pinned images", Some((Badge::Exact, &why)));
        let before = cx.view.pins(cx.session).len();
        ui.horizontal_wrapped(|ui| {
            pins::button(ui, cx, "Pin the selected image");
            let pins = cx.view.pins(cx.session);
            let clear = ui.add_enabled(!pins.is_empty(), egui::Button::new("Unpin all"));
            if clear.on_disabled_hover_text("Nothing is pinned.").clicked() {
                pins.clear();
            }
            hint(ui, format!("{} of at most {MOST_PINS}; they stay what they were when they were pinned", pins.len()));
        });
        let pins = cx.view.pins(cx.session).clone();
        if pins.is_empty() {
            return hint(ui, "Select images in the gallery and pin them here, or by the inspector's button Pin image.");
        }
        // Pinned in this very frame: what was found is of others.
        if pins.len() != before {
            return;
        }
        let Some(view) = view else {
            if cx.prefs.tau == 0.0 {
                return hint(ui, "At τ = 0 no image has a density: set τ above 0.");
            }
            let pair = pins::pair(cx);
            return pins::compare(cx, pair);
        };
        standing(ui, cx.session, &view, "Posteriors and evidence of all pinned images.", "It was stopped.");
        let wish = match view.report.clone() {
            Some(report) => self.compared(ui, cx, shape, (&view, &*report, pins.as_slice())),
            None => columns(ui, &pins, |ui, i| name(ui, &pins, i)),
        };
        let pins = cx.view.pins(cx.session);
        match wish {
            Some(Wish::Unpin(i)) if i < pins.len() => drop(pins.remove(i)),
            Some(Wish::First(i)) if i < pins.len() => pins[..=i].rotate_right(1),
            _ => {}
        }
    }

    fn compared(
        &mut self,
        ui: &mut Ui,
        cx: &mut Cx,
        shape: ImageShape,
        (view, report, pins): (&TaskView<'_, CompareImages>, &SideBySide, &[Pin]),
    ) -> Option<Wish> {
        let session = cx.session;
        if let Some(pair) = report.pair {
            ui.horizontal_wrapped(|ui| {
                ui.label("Evidence");
                if let Some(pair) = class_pair(ui, session, pair, ", of pinned images") {
                    pins::compare(cx, Some(pair));
                }
                let follows = view.task.pair.is_none();
                let button = ui.add_enabled(!follows, egui::Button::new("By the decisions"));
                let about = "For the decision of the first image, against the next decision that differs";
                if button.on_hover_text(about).on_disabled_hover_text("It is so already.").clicked() {
                    pins::compare(cx, None);
                }
            });
        }
        if view.task.settings != cx.prefs.settings() {
            moved_since(ui, cx, &view.task.settings);
            let button = ui.add_enabled(cx.prefs.tau > 0.0, egui::Button::new("Compare at these knobs"));
            let button = button.on_hover_text("The same images, their posteriors anew");
            if button.on_disabled_hover_text("At τ = 0 no image has a density.").clicked() {
                pins::compare(cx, view.task.pair);
            }
        }
        let numbers = || csv(session, report, pins, &view.task.settings);
        table_window::button(ui, cx.view, "pinned images", "pinned.csv", numbers);
        self.follow(ui, view.job, shape, report);
        let wish = columns(ui, pins, |ui, i| {
            let wish = name(ui, pins, i);
            if let (Some(image), Some(textures)) = (report.images.get(i), self.columns.get(i)) {
                column(ui, session, shape, (image, textures, pins[i].name.as_str()), report.pair);
            }
            wish
        });
        let about = "Maps: orange speaks for the first class, blue for the second. The lower map is that of the first image less this \
                     one's: its places add up to how much more the first speaks for the first class.";
        if report.images.len() > 1 && report.pair.is_some() {
            hint(ui, about);
        }
        wish
    }

    /// The textures of this comparison.
    fn follow(&mut self, ui: &Ui, job: JobId, shape: ImageShape, report: &SideBySide) {
        let theme = Theme::of(ui);
        if self.of == Some((job, theme)) {
            return;
        }
        let heat = |map: &Evidence| {
            let size = [map.columns, map.rows];
            let mut sheet = Sheet::new(ui.ctx(), "evidence of a pinned image", size);
            let ramp = Ramp::new(|share| theme.diverging(share));
            sheet.heat(&HeatMap { size, values: &map.cells, in_place: None, extent: map.extent(), ramp });
            sheet
        };
        let textures = |image: &Beside| Textures {
            picture: Sheet::of(ui.ctx(), "pinned image", shape, &image.tile.pixels),
            evidence: image.evidence.as_ref().map(heat),
            difference: image.difference.as_ref().map(heat),
        };
        self.columns = report.images.iter().map(textures).collect();
        self.of = Some((job, theme));
    }
}

/// A column for every pinned image. Returns what one of them asks for.
fn columns(ui: &mut Ui, pins: &[Pin], mut show: impl FnMut(&mut Ui, usize) -> Option<Wish>) -> Option<Wish> {
    let mut wish = None;
    ScrollArea::horizontal().id_salt("tray").auto_shrink([false, true]).show(ui, |ui| {
        ui.horizontal_top(|ui| {
            for i in 0..pins.len() {
                ui.vertical(|ui| {
                    ui.set_width(WIDTH);
                    wish = show(ui, i).or(wish.take());
                });
            }
        });
        ui.add_space(4.0);
    });
    wish
}

/// The name of an image and its buttons.
fn name(ui: &mut Ui, pins: &[Pin], i: usize) -> Option<Wish> {
    let (pin, mut wish) = (&pins[i], None);
    ui.add(egui::Label::new(RichText::new(&pin.name).strong()).truncate());
    ui.horizontal(|ui| {
        if ui.button("Unpin").accessible_name(format!("Unpin {}: {}", i + 1, pin.name)).clicked() {
            wish = Some(Wish::Unpin(i));
        }
        if i > 0 {
            let first = ui.button("First").accessible_name(format!("Make first {}: {}", i + 1, pin.name));
            if first.on_hover_text("The others are held against it, and grids begin at it").clicked() {
                wish = Some(Wish::First(i));
            }
        }
    });
    wish
}

/// Picture, posterior and maps of an image.
fn column(
    ui: &mut Ui,
    session: &Session,
    shape: ImageShape,
    (image, textures, name): (&Beside, &Textures, &str),
    pair: Option<(ClassId, ClassId)>,
) {
    let (p, theme) = (&image.tile.posterior, Theme::of(ui));
    let size = vec2(1.0, shape.height as f32 / shape.width.max(1) as f32) * PICTURE;
    let picture = |ui: &mut Ui, sheet: &Sheet, about: String| {
        ui.add(Image::new((sheet.id(), size)).alt_text(&about)).on_hover_text(about);
    };
    picture(ui, &textures.picture, format!("{name}, pinned"));
    egui::Grid::new(("pinned posterior", image.tile.index)).num_columns(3).spacing(vec2(4.0, 2.0)).show(ui, |ui| {
        for class in most_probable(&image.tile, CLASSES) {
            class_label(ui, session, class);
            let share = p.probabilities[class].clamp(0.0, 1.0) as f32;
            bar(ui, 30.0, share, theme, theme.class(class, p.probabilities.len()));
            ui.label(RichText::new(format::exp_sig4(p.log_probabilities[class])).monospace());
            ui.end_row();
        }
    });
    ui.label(format!("H = {} nats", format::sig4(p.entropy_nats))).on_hover_text("Entropy of the posterior");
    let Some((a, b)) = pair else { return };
    let [a, b] = [a, b].map(|class| session.class_name(class));
    if let (Some(map), Some(sheet)) = (&image.evidence, &textures.evidence) {
        let text = format!("{} nats for {a} against {b}", signed(map.total));
        picture(ui, sheet, format!("Evidence of {name}: {text}"));
        ui.add(egui::Label::new(text).wrap()).on_hover_text("log p(x|a) - log p(x|b), the sum of the map");
    }
    if let (Some(map), Some(sheet)) = (&image.difference, &textures.difference) {
        let than = if map.total < 0.0 { "less" } else { "more" };
        let text = format!("the first has {} nats {than}", format::sig4(map.total.abs()));
        picture(ui, sheet, format!("Evidence of the first less that of {name}: {text}"));
        ui.add(egui::Label::new(text).wrap()).on_hover_text("The first image's total less this one's");
    }
}

/// The images as comma-separated values.
fn csv(session: &Session, report: &SideBySide, pins: &[Pin], settings: &Settings) -> String {
    let pair = report.pair.map(|(a, b)| format!("{} against {}", session.class_name(a), session.class_name(b)));
    let total = |map: &Option<Evidence>| map.as_ref().map_or(String::new(), |map| map.total.to_string());
    let mut lines = Records::of(report.images.iter().zip(pins))
        .field("image", |(_, pin)| pin.name.as_str())
        .field("decision", |(image, _)| session.class_name(image.tile.posterior.decision))
        .field("entropy_nats", |(image, _)| image.tile.posterior.entropy_nats)
        .field("log_px_nats", |(image, _)| image.tile.posterior.log_px)
        .field("evidence_nats", |(image, _)| total(&image.evidence))
        .field("first_less_this_nats", |(image, _)| total(&image.difference));
    for (class, name) in session.class_names().iter().enumerate() {
        lines = lines.field(&format!("p({name})"), |(image, _)| image.tile.posterior.probabilities[class]);
    }
    let origin = comments(&of_world(session, Some(settings), &[]));
    format!("# plot: pinned images, evidence for {}\n{origin}{}", pair.unwrap_or_default(), lines.text())
}
