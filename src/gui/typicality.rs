//! Whether an image is of the open world: its log p(x) beside that of samples, in words.

use eframe::egui::{self, RichText, Ui};

use super::format;
use super::session::Session;
use super::session::references::Held;
use super::theme::{Badge, Theme};
use super::widgets::{fact, heading};
use crate::measure::typicality::{Band, NOT_OF_THIS_WORLD, Typicality};
use crate::oracle::posterior::Posterior;
use crate::units::Nats;

/// What it is called.
const NAME: &str = "Typicality";

/// The line of copied values about an image with this log p(x), nats, if there are samples to hold it against.
pub fn copied(held: Option<Held<'_>>, log_px: f64) -> Option<String> {
    let place = place(held?, log_px)?;
    Some(format!("# typicality: {} of {} samples ({})\n", summary(&place), place.samples, place.words()))
}

/// Where an image with this log p(x), nats, stands among samples, if they are there.
pub fn place(held: Held<'_>, log_px: f64) -> Option<Typicality> {
    match held {
        Held::Against(reference, _) => reference.place(log_px),
        Held::Coming | Held::Never(_) => None,
    }
}

/// The rows of a table of facts about log p(x): its value in the convention of densities, the other
/// on hover, and how it stands to the world's samples.
pub fn rows(ui: &mut Ui, session: &Session, held: Option<Held<'_>>, posterior: &Posterior) {
    let log_px = posterior.log_px;
    fact(ui, "log p(x)", format!("{} nats, density", format::nats(log_px)), &conventions(session, log_px));
    let Some(held) = held else { return };
    let (words, about) = match held {
        Held::Against(reference, complete) => match reference.place(log_px) {
            Some(place) => {
                let [low, high] = reference.range().map(format::nats);
                let more = if complete { "" } else { " More are being drawn." };
                let about = format!(
                    "{}.\nlog p(x) of {} samples at this τ and prior: {low} to {high} nats, median {}. Two-sided p-value \
                     (1 + samples beyond)/(1 + samples), doubled: exact for an image that is a sample, too.{more}",
                    capital(place.words()),
                    place.samples,
                    format::nats(reference.median()),
                );
                (summary(&place), about)
            }
            None => ("unknown".into(), "log p(x) of this image is no number.".into()),
        },
        Held::Coming => ("being drawn…".into(), "Samples of this world are drawn to hold log p(x) against.".into()),
        Held::Never(why) => ("unknown".into(), format!("There are no samples to hold it against: {why}.")),
    };
    fact(ui, NAME, words, &about);
}

/// The band and its p-value.
pub fn summary(place: &Typicality) -> String {
    let bound = if place.is_beyond() { "≤" } else { "=" };
    let p = format::sig4(place.p_value);
    // 0.005, not 0.005000.
    let p = if p.contains('.') && !p.contains('e') { p.trim_end_matches('0').trim_end_matches('.') } else { &p };
    format!("{}, p {bound} {p}", place.band.name())
}

/// log p(x) of pixels, beside that of x.
fn conventions(session: &Session, log_px: f64) -> String {
    let density = "log Σ_y π_y p(x|y), total: the density of x in world space.";
    let Some(info) = session.oracle.as_ref() else { return density.into() };
    let dims = info.architecture.shape().dims();
    let nll = info.pixels.nll_of_pixels(Nats(log_px), dims).0;
    let bits = info.pixels.bits_per_dim(Nats(log_px), dims).0;
    if !bits.is_finite() {
        return density.into();
    }
    format!(
        "{density}\nIn the space of 8-bit pixels, as the world card has it: -log p(x) = {} nats/image, {} bits/dim.",
        format::nats(nll),
        format::sig4(bits)
    )
}

fn capital(words: &str) -> String {
    let mut letters = words.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// The heading of a posterior: *exact*, or what that is worth far outside the world.
pub fn posterior_heading(ui: &mut Ui, title: &str, why: &str, place: Option<&Typicality>) {
    let Some(place) = place.filter(|place| place.is_far_outside()) else {
        let outside = place.filter(|place| place.band == Band::Outside);
        let outside = outside.map(|place| format!("\n\n{}: {}.", capital(place.band.name()), place.words()));
        return heading(ui, title, Some((Badge::Exact, &format!("{why}{}", outside.unwrap_or_default()))));
    };
    heading(ui, title, None);
    let colour = Theme::of(ui).badge(Badge::Estimated);
    let frame = egui::Frame::new().stroke(egui::Stroke::new(1.0, colour)).corner_radius(3.0);
    let shown = frame.inner_margin(egui::Margin::symmetric(4, 0)).show(ui, |ui| {
        ui.add(egui::Label::new(RichText::new(NOT_OF_THIS_WORLD).small().color(colour)).selectable(false).wrap());
    });
    shown.response.on_hover_text(format!("{}: {}.\n\n{why}", capital(Band::FarOutside.name()), place.words()));
}
