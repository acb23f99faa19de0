//! What a classifier says of an image from a run or a judged dataset, beside the truth.

use eframe::egui::{Align2, FontId, Grid, Rect, RichText, Ui, vec2};

use super::format;
use super::glossary;
use super::inspector::bar;
use super::selection::Source;
use super::session::Session;
use super::theme::{Badge, Theme};
use super::widgets::{class_label, grid_head, heading, hint};
use crate::experiment::WorstImage;

/// Classes named of an image, at most.
const CLASSES: usize = 5;
/// Classes named in a tooltip, at most.
const FEW: usize = 3;
/// Thumbnails narrower than this have no room for a unit.
const NARROW: f32 = 48.0;

/// What a classifier says of an image on show, if one was asked.
pub fn of(session: &Session, source: Source, index: usize) -> Option<&WorstImage> {
    let external = session.external.as_ref().filter(|_| source == Source::Outside)?;
    external.verdicts.get(index)
}

/// KL, p and q in words.
pub fn words(session: &Session, verdict: &WorstImage) -> Vec<String> {
    let belief = |class: usize| {
        let (name, [p, q]) = (session.class_name(class), [verdict.p[class], verdict.q[class]].map(format::sig4));
        format!("exact p({name}) = {p}, classifier q({name}) = {q}")
    };
    let kl = format!("KL(p || q) = {} nats", format::sig4(verdict.kl));
    std::iter::once(kl).chain(verdict.leading(FEW).into_iter().map(belief)).collect()
}

/// The KL on a thumbnail.
pub fn caption(ui: &Ui, rect: Rect, verdict: &WorstImage) {
    let (theme, painter) = (Theme::of(ui), ui.painter());
    let number = format!("{:.2}", verdict.kl);
    let text = if rect.width() < NARROW { number } else { format!("KL {number}") };
    let galley = painter.layout_no_wrap(text, FontId::proportional(10.0), theme.on_unfinished());
    let place = Align2::LEFT_TOP.anchor_size(rect.min + vec2(3.0, 2.0), galley.size());
    painter.rect_filled(place.expand2(vec2(2.0, 1.0)), 2.0, theme.unfinished_label());
    painter.galley(place.min, galley, theme.on_unfinished());
}

/// The section of the inspector.
pub fn show(ui: &mut Ui, session: &Session, verdict: &WorstImage) {
    let about = "What the classifier answered when it was measured, and the exact posterior at the knobs its images were drawn at.";
    heading(ui, "The classifier and the truth", Some((Badge::Exact, about)));
    let name = session.external.as_ref().map_or("", |external| external.name.as_str());
    hint(ui, name.split_once(':').map_or(name, |(classifier, _)| classifier));
    glossary::label(ui, RichText::new(format!("KL(p || q) = {} nats", format::sig4(verdict.kl))).strong());
    let (theme, classes) = (Theme::of(ui), verdict.p.len());
    let width = ((ui.available_width() - 200.0) / 2.0).clamp(30.0, 120.0);
    Grid::new("classifier and truth").num_columns(5).striped(true).spacing(vec2(6.0, 2.0)).show(ui, |ui| {
        grid_head(ui, &["class", "exact p(y|x)", "", "classifier q(y|x)", ""]);
        for class in verdict.leading(CLASSES) {
            let colour = theme.class(class, classes);
            class_label(ui, session, class);
            for share in [verdict.p[class], verdict.q[class]] {
                bar(ui, width, share.clamp(0.0, 1.0) as f32, theme, colour);
                ui.label(RichText::new(format::sig4(share)).monospace());
            }
            ui.end_row();
        }
    });
}
