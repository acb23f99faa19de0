//! The inspector: everything about the image under the cursor.

use eframe::egui::{self, Image, Rect, RichText, Sense, Ui, vec2};

use super::command::Command;
use super::context::Cx;
use super::evidence::EvidenceSection;
use super::exactness;
use super::format;
use super::guidance;
use super::inspected::{Inspected, inspected, name};
use super::landmarks::Landmark;
use super::paint::Sheet;
use super::picture::PictureSection;
use super::pins;
use super::posterior;
use super::running::RunningSection;
use super::selection::Source;
use super::session::Session;
use super::theme::{BAR_HEIGHT, Badge, Theme};
use super::typicality;
use super::verdict;
use super::widgets::{badge, class_cell, fact, facts, grid_head, heading, hint, list, names_width};
use crate::device::ImageSource;
use crate::flow::Architecture;
use crate::oracle::posterior::Posterior;
use crate::oracle::rounding::ROUNDING_TOLERANCE;
use crate::units::{Seed, Tau};
use crate::worker::protocol::{Asked, Inspection, Tile};

/// Temperatures at which the same latent is shown.
pub const MORPH: [f64; 5] = [0.25, 0.5, 1.0, 1.5, 2.0];
/// Why a picture of a float image is illustrative.
const EYE: &str = "Clipped and rounded to 8 bits for the eye; the figures are of the float image.";
/// Smallest probability a logarithmic bar shows.
const LOG_FLOOR: f64 = -12.0;

/// The inspected image, by generation, source and number; its picture, and that of its look.
type Large = ((u64, Source, usize), Sheet, Option<Sheet>);

/// The textures of the inspected image.
#[derive(Default)]
pub struct Inspector {
    large: Option<Large>,
    morph: Option<((u64, usize), Vec<Sheet>)>,
    evidence: EvidenceSection,
    picture: PictureSection,
    running: RunningSection,
    /// How high the evidence map and the same latent at other τ were when last they were there.
    heights: [f32; 2],
}

/// What stands in the place of an answer that has not come.
pub fn waiting(session: &Session, asked: Asked, working: &str) -> String {
    session.unanswered.get(&asked).map_or_else(|| working.to_owned(), |why| format!("{why}. Move a knob to try again."))
}

/// Shows a section, as high as it was before while what it is for is on its way (`show` returns that): what was scrolled to
/// stays in view while images are gone through.
fn held(ui: &mut Ui, height: &mut f32, show: impl FnOnce(&mut Ui) -> bool) {
    let section = ui.scope(|ui| {
        let coming = show(ui);
        if coming {
            ui.expand_to_include_rect(Rect::from_min_size(ui.min_rect().min, vec2(0.0, *height)));
        }
        coming
    });
    if !section.inner {
        *height = section.response.rect.height();
    }
}

fn cannot_be_made(cx: &Cx, index: usize) -> bool {
    cx.view.source == Source::World && cx.session.gallery.cannot_be_made(index)
}

/// Returns whether a sample shown is of older knobs. Fast worlds answer before it can be read.
fn is_stale(cx: &Cx, shown: &Inspected<'_>) -> bool {
    let slow = matches!(cx.session.oracle.as_ref().map(|info| &info.architecture), Some(Architecture::TarFlow(_)));
    slow && cx.view.source == Source::World && !shown.is_of(&cx.prefs.settings(), Seed(cx.prefs.seed))
}

impl Inspector {
    pub fn show(&mut self, ui: &mut Ui, cx: &mut Cx) {
        ui.add_space(8.0);
        let session = cx.session;
        if let Some(running) = cx.view.subject(cx.session, cx.prefs).and_then(|subject| session.running_of(&subject)) {
            self.running.show(ui, cx, running);
            return;
        }
        let Some(shown) = inspected(session, cx.prefs, cx.view) else {
            ui.add_space(24.0);
            let draft = cx.view.cursor.and_then(|index| Some((index, cx.view.gallery(session)?.draft(index)?)));
            match draft {
                Some((index, draft)) => hint(
                    ui,
                    format!("Sample {index} is being made: block {} of {}…", draft.blocks.done, draft.blocks.total),
                ),
                None if cx.view.cursor.is_some_and(|index| cannot_be_made(cx, index)) => {
                    hint(ui, "This sample cannot be made at this τ: it leaves the finite numbers.");
                }
                None if cx.view.cursor.is_some() => hint(ui, waiting(session, Asked::Inspection, "Being made…")),
                None => hint(ui, "Click an image in the gallery, or walk there with the arrow keys."),
            }
            ui.take_available_space();
            return;
        };
        let Inspected { index, tile, .. } = shown;
        egui::ScrollArea::vertical().auto_shrink([false, false]).show(ui, |ui| {
            ui.horizontal(|ui| {
                ui.label(RichText::new(name(session, cx.view.source, index)).size(15.0).strong());
                if is_stale(cx, &shown) {
                    hint(ui, "of the knobs before");
                }
            });
            self.summary(ui, cx, &shown);
            self.picture.show(ui, cx, index, shown.stamp);
            if let Some(verdict) = verdict::of(session, cx.view.source, index) {
                verdict::show(ui, session, verdict);
            }
            let section = ui.scope(|ui| posterior_bars(ui, cx, &shown)).response;
            cx.view.landmarks.mark(ui, Landmark::Posterior, section.rect);
            held(ui, &mut self.heights[0], |ui| self.evidence.show(ui, cx, &tile.posterior));
            if cx.view.source == Source::World {
                let mut height = self.heights[1];
                held(ui, &mut height, |ui| self.morph(ui, cx, tile));
                self.heights[1] = height;
            }
            ui.add_space(8.0);
            ui.horizontal_wrapped(|ui| {
                if ui.button("Copy values").on_hover_text("As tab-separated text").clicked() {
                    cx.commands.push(Command::CopyValues);
                }
                pins::button(ui, cx, "Pin image");
                if ui.button("Copy as command").on_hover_text("The same on the command line").clicked() {
                    cx.commands.push(Command::CopyCommandLine);
                }
            });
        });
    }

    fn summary(&mut self, ui: &mut Ui, cx: &Cx, shown: &Inspected<'_>) {
        let Inspected { index, stamp, shape, tile, .. } = *shown;
        let key = (stamp, cx.view.source, index);
        if self.large.as_ref().is_none_or(|(shown, ..)| *shown != key) {
            let load = |source: &ImageSource| Sheet::of(ui.ctx(), "inspected", shape, source);
            self.large = Some((key, load(&tile.pixels), tile.look.as_ref().map(|looked| load(&looked.pixels))));
        }
        let look = guidance::options(cx.session, cx.prefs).filter(|_| cx.view.source == Source::World);
        ui.horizontal_top(|ui| {
            ui.vertical(|ui| {
                if let Some((_, texture, looked)) = &self.large {
                    let side = (ui.available_width() * 0.42).clamp(96.0, 192.0);
                    let size = vec2(side, side * shape.height as f32 / shape.width as f32);
                    let title = name(cx.session, cx.view.source, index);
                    ui.add(Image::new((texture.id(), size)).alt_text(&title));
                    badge(ui, Badge::Illustrative, EYE);
                    if let Some(look) = look {
                        ui.add_space(4.0);
                        match looked {
                            Some(looked) => {
                                let about = format!("{title} with the look: {}", guidance::describe(&look));
                                ui.add(Image::new((looked.id(), size)).alt_text(&about)).on_hover_text(about);
                            }
                            None => hint(ui, "No picture with this look yet."),
                        }
                        ui.scope(|ui| {
                            ui.set_max_width(side);
                            hint(ui, guidance::describe(&look));
                        });
                        badge(ui, Badge::Illustrative, guidance::WHY);
                    }
                }
            });
            figures(ui, cx, shown);
        });
        let inspection = cx.view.subject(cx.session, cx.prefs).and_then(|subject| cx.session.inspection_of(&subject));
        if let Some(moved) = inspection.and_then(|one| one.rounding).filter(|moved| *moved > ROUNDING_TOLERANCE) {
            let text = format!("Rounding x to 32 bits moves this posterior by {}", format::sig4(moved));
            let why = "The figures are of the image before rounding. Its pixels saturate: a file of 32-bit numbers cannot carry \
                       what the posterior depends on, and computing it again from such a file gives another.";
            ui.colored_label(Theme::of(ui).warning(), text).on_hover_text(why);
        }
        if tile.label != tile.posterior.decision && labelled(cx) {
            let class = |class| cx.session.class_name(class);
            let text = format!("label {} ≠ Bayes decision {}", class(tile.label), class(tile.posterior.decision));
            ui.colored_label(Theme::of(ui).mismatch(), text);
        }
    }

    /// Returns whether it is on its way.
    fn morph(&mut self, ui: &mut Ui, cx: &mut Cx, tile: &Tile) -> bool {
        heading(ui, "The same latent at other τ", None);
        let Some(subject) = cx.view.subject(cx.session, cx.prefs) else { return false };
        let Some(inspection) = cx.session.inspection_of(&subject).filter(|one| one.tile.source == tile.source) else {
            hint(ui, waiting(cx.session, Asked::Inspection, "Computing…"));
            return !cx.session.unanswered.contains_key(&Asked::Inspection);
        };
        self.upload(ui, inspection);
        let Some((_, textures)) = &self.morph else { return false };
        let side = ((ui.available_width() - 4.0 * 6.0) / MORPH.len() as f32).clamp(32.0, 80.0);
        ui.horizontal_top(|ui| {
            ui.spacing_mut().item_spacing.x = 6.0;
            for ((tau, tile), texture) in inspection.morph.iter().zip(textures) {
                ui.vertical(|ui| one_tau(ui, cx, side, *tau, tile, texture));
            }
        });
        match inspection.missing {
            0 => hint(ui, "Click one to set τ."),
            n => hint(ui, format!("Click one to set τ. {n} more to come…")),
        }
        false
    }

    fn upload(&mut self, ui: &Ui, inspection: &Inspection) {
        let key = (inspection.generation, inspection.morph.len());
        if self.morph.as_ref().is_some_and(|(shown, _)| *shown == key) {
            return;
        }
        let load = |(_, tile): &(Tau, Tile)| Sheet::of(ui.ctx(), "morph", inspection.shape, &tile.pixels);
        self.morph = Some((key, inspection.morph.iter().map(load).collect()));
    }
}

fn one_tau(ui: &mut Ui, cx: &mut Cx, side: f32, tau: Tau, tile: &Tile, texture: &Sheet) {
    ui.set_width(side);
    let text = format!("τ = {}", tau.get());
    let decision = cx.session.class_name(tile.posterior.decision);
    let p = format::exp_sig4(tile.posterior.log_probabilities[tile.posterior.decision]);
    let image = Image::new((texture.id(), vec2(side, side))).sense(Sense::click()).alt_text(format!("Set {text}"));
    let response = ui.add(image).on_hover_text(format!("{text}: decision {decision}, p = {p}\nClick to set τ"));
    if response.clicked() {
        cx.prefs.tau = tau.get();
    }
    ui.add(egui::Label::new(RichText::new(text).small()).selectable(false));
    let colour = Theme::of(ui).class(tile.posterior.decision, cx.session.class_names().len());
    ui.add(egui::Label::new(RichText::new(decision).strong().color(colour)).truncate().selectable(false));
}

fn labelled(cx: &Cx) -> bool {
    match cx.view.source {
        Source::World => true,
        Source::Outside => cx.session.external.as_ref().is_some_and(|external| external.labelled),
    }
}

fn figures(ui: &mut Ui, cx: &Cx, shown: &Inspected<'_>) {
    let tile = shown.tile;
    let p = &tile.posterior;
    let class = |class: usize| cx.session.class_name(class).to_owned();
    facts(ui, "inspector facts", |ui| {
        if labelled(cx) {
            fact(
                ui,
                "Label y",
                class(tile.label),
                "Drawn with the image: at T ≠ 1 from p_T(y|x), and under label noise by C from that.",
            );
        }
        if cx.view.source == Source::World {
            fact(ui, "Drawn from y₀", class(tile.source), "The class whose density the image was drawn from.");
        }
        fact(ui, "Decision", class(p.decision), "The most probable class.");
        let best = format::exp_sig4(p.log_probabilities[p.decision]);
        fact(ui, "p(decision)", best, "Posterior probability of the decision.");
        fact(ui, "Entropy", format!("{} nats", format::sig4(p.entropy_nats)), "H(p(y|x)).");
        fact(ui, "Margin", format::sig4(p.margin), "Difference of the two largest probabilities.");
        typicality::rows(ui, cx.session, shown.held(cx.session, &cx.prefs.settings()), p);
    });
}

fn posterior_bars(ui: &mut Ui, cx: &mut Cx, shown: &Inspected<'_>) {
    let p = &shown.tile.posterior;
    let noise = shown.settings.and_then(|settings| settings.label_noise.as_ref());
    let why = exactness::of_image(cx.session, noise);
    let held = shown.held(cx.session, &cx.prefs.settings());
    let place = held.and_then(|held| typicality::place(held, p.log_px));
    typicality::posterior_heading(ui, "Posterior p(y|x)", &why, place.as_ref());
    if cx.view.source == Source::World && guidance::options(cx.session, cx.prefs).is_some() {
        hint(
            ui,
            "Of the sample itself (upper picture). The picture with the look has left the world and has no posterior.",
        );
    }
    ui.horizontal_wrapped(|ui| {
        ui.label("Bars");
        let about = "A bar is as long as its probability";
        ui.selectable_value(&mut cx.prefs.log_bars, false, "linear").on_hover_text(about);
        let about = "A bar is as long as the logarithm of its probability, so that small ones can be compared";
        ui.selectable_value(&mut cx.prefs.log_bars, true, "log").on_hover_text(about);
        hint(ui, if cx.prefs.log_bars { "10^-12 to 1" } else { "0 to 1" });
        posterior::buttons(ui, cx, shown);
    });
    let classes = p.probabilities.len();
    let theme = Theme::of(ui);
    let names = names_width(ui, cx.session);
    let bar_width = (ui.available_width() - names - 186.0).clamp(40.0, 240.0);
    list(320.0).id_salt("posterior").show(ui, |ui| {
        egui::Grid::new("posterior table").num_columns(4).striped(true).spacing(vec2(8.0, 2.0)).show(ui, |ui| {
            grid_head(ui, &["class", "", "p(y|x)", "log p(x|y), nats"]);
            for class in 0..classes {
                class_cell(ui, cx.session, class, names);
                bar(ui, bar_width, share(p, class, cx.prefs.log_bars), theme, theme.class(class, classes));
                let number = RichText::new(format::exp_sig4(p.log_probabilities[class])).monospace();
                ui.label(if class == p.decision { number.strong() } else { number });
                ui.label(RichText::new(format::nats(p.log_likelihood[class])).monospace());
                ui.end_row();
            }
        });
    });
}

/// The length of a bar, 0 to 1.
fn share(p: &Posterior, class: usize, log: bool) -> f32 {
    if !log {
        return p.probabilities[class].clamp(0.0, 1.0) as f32;
    }
    let log10 = p.log_probabilities[class] / std::f64::consts::LN_10;
    (1.0 - log10 / LOG_FLOOR).clamp(0.0, 1.0) as f32
}

/// A bar of so much of its width.
pub fn bar(ui: &mut Ui, width: f32, share: f32, theme: Theme, colour: egui::Color32) {
    let (rect, _) = ui.allocate_exact_size(vec2(width, BAR_HEIGHT), Sense::hover());
    ui.painter().rect_filled(rect, 2.0, theme.trough());
    // A probability that is not 0 is never invisible.
    let filled = if share > 0.0 { (rect.width() * share).max(1.0) } else { 0.0 };
    ui.painter().rect_filled(Rect::from_min_size(rect.min, vec2(filled, rect.height())), 2.0, colour);
}
