//! The Bayes error in words and fields: in the world card, in its panel, on the clipboard.

use std::time::Instant;

use eframe::egui::{self, Key, RichText, TextEdit, Ui};

use super::command::{Command, bayes_error_command};
use super::context::Cx;
use super::format;
use super::prefs::Prefs;
use super::sampled_error;
use super::session::Session;
use super::session::bayes::Readout;
use super::theme::{Badge, Theme};
use super::widgets::{badge, complain, fact, facts, hint};
use crate::bayes::{Estimate, Figure, Information, Method};
use crate::oracle::world::{LabelLaw, Settings};
use crate::provenance::Provenance;
use crate::stats::Z95;
use crate::units::parse_fraction;
use crate::worker::sampling::SEED;

/// Half the width of a 95 % interval.
pub fn half_width(figure: &Figure) -> f64 {
    Z95 * figure.std_error
}

/// A Bayes error in per cent, with its 95 % interval where that is not next to nothing; also below the smallest floating-point number.
pub fn percent(estimate: &Estimate) -> String {
    let figure = &estimate.figure;
    if figure.value < 1e-290 && estimate.log_value.is_finite() {
        return format!("{} %", format::exp_sig4(estimate.log_value + 100f64.ln()));
    }
    share(figure)
}

/// A share in per cent, likewise.
pub fn share(figure: &Figure) -> String {
    let (low, high) = figure.interval;
    format::brief_estimate(100.0 * figure.value, (100.0 * low, 100.0 * high), "%")
}

/// A share in per cent with its 95 % interval, however narrow that is.
pub fn full_share(figure: &Figure) -> String {
    let (low, high) = figure.interval;
    format::estimate(100.0 * figure.value, (100.0 * low, 100.0 * high), "%")
}

/// Returns the provenance of an estimate in words.
pub fn provenance(estimate: &Estimate) -> String {
    let Estimate { figure: Figure { interval: (low, high), .. }, method, why, samples, seconds, .. } = estimate;
    let interval = match estimate.badge {
        Badge::Exact => "Exact to rounding".to_owned(),
        Badge::Bounded => {
            format!("Within {} to {} %", format::digits(100.0 * low), format::digits(100.0 * high))
        }
        Badge::Estimated | Badge::Illustrative => {
            format!("95 % interval {} to {} %", format::digits(100.0 * low), format::digits(100.0 * high))
        }
    };
    let count = format::count(usize::try_from(*samples).unwrap_or(usize::MAX));
    let time = format::short_time(*seconds);
    format!("{interval}.\nMethod: {} ({why}).\n{count} points, {time}.", method.name())
}

/// The readout beside the slider: value, mark, A and I.
pub fn show(ui: &mut Ui, cx: &Cx) {
    let figures = &cx.session.bayes;
    let now = Instant::now();
    // Wrapped: a long figure must not widen the card.
    ui.horizontal_wrapped(|ui| {
        ui.label("Bayes error").on_hover_text(FORMULA);
        value(ui, cx);
    });
    if let Some((_, information)) = figures.information.get() {
        entropies(ui, information, figures.information.stale(now));
    }
    // Whether it is out of date is seen when nothing else happens, too.
    for left in [figures.readout.stale_in(now), figures.information.stale_in(now)].into_iter().flatten() {
        ui.ctx().request_repaint_after(left);
    }
}

/// Shows the Bayes error with its badge. An old value stays, greyed after a while.
pub fn value(ui: &mut Ui, cx: &Cx) {
    if cx.session.bayes.must_be_sampled() == Some(true) {
        return sampled_error::value(ui, cx);
    }
    let readout = &cx.session.bayes.readout;
    let theme = Theme::of(ui);
    match readout.get() {
        Some(Readout { outcome: Ok(estimate), .. }) => {
            let figure = &estimate.figure;
            let full = full_share(figure);
            let about = format!("{FORMULA}\n\nE = {full}. {}", provenance(estimate));
            let shown = percent(estimate);
            let text = RichText::new(&shown).strong();
            let text = if readout.stale(Instant::now()) { text.color(theme.weak()) } else { text };
            ui.label(text).on_hover_text(&about);
            widths_badge(ui, estimate.badge, (&shown, half_width(figure)), &about);
        }
        Some(Readout { outcome: Err(why), .. }) => {
            ui.colored_label(theme.error(), why);
        }
        None => hint(ui, "computing…"),
    }
}

/// A badge that says how wide the 95 % interval of a share is: estimated to 1e-8 is not estimated to
/// a point. Nothing more where the text beside it has its interval.
pub fn widths_badge(ui: &mut Ui, kind: Badge, (shown, half_width): (&str, f64), about: &str) {
    badge(ui, kind, about);
    let estimated = matches!(kind, Badge::Estimated) && !shown.contains(['±', '[']);
    if let Some(width) = format::width(100.0 * half_width).filter(|_| estimated) {
        ui.label(RichText::new(format!("{width} pp")).small().color(Theme::of(ui).weak())).on_hover_text(about);
    }
}

const FORMULA: &str = "E = 1 - E_x[max_y p(y|x)] of this world at the present τ, T and π: no classifier errs less. p is the \
                       posterior that labels are drawn from: p_T where T is not 1, and the noisy label's under label noise.";

fn entropies(ui: &mut Ui, information: &Information, stale: bool) {
    let Information { aleatoric_nats: a, mutual_information_bits: i, normalised, label_entropy_nats, .. } = information;
    let weak = Theme::of(ui).weak();
    facts(ui, "entropies", |ui| {
        if stale {
            ui.visuals_mut().override_text_color = Some(weak);
        }
        let full = format::estimate(a.value, a.interval, "nats");
        let about = format!(
            "Aleatoric uncertainty A = E_x[H(p(y|x))] over the whole world, by pair importance sampling or quadrature; with T ≠ 1 or label \
             noise by draws of the classes: {full} (95 %)."
        );
        fact(ui, "Aleatoric A", format::brief_estimate(a.value, a.interval, "nats"), &about);
        let full = format::estimate(i.value, i.interval, "bits");
        let i = format!("{}\n{} of H(Y)", format::brief_estimate(i.value, i.interval, "bits"), share(normalised));
        let about = format!(
            "Mutual information I(X;Y) = H(Y) - A: {full} (95 %); H(Y) = {} bits.",
            format::sig4(label_entropy_nats / std::f64::consts::LN_2)
        );
        fact(ui, "I(X;Y)", i, &about);
    });
}

/// The field that asks for the τ of a Bayes error. `name` is its accessible name.
pub fn target(ui: &mut Ui, cx: &mut Cx, name: &str) {
    ui.horizontal(|ui| {
        let about =
            "A Bayes error to set τ by: 5 % or 0.05, then Enter. Inverse of the curve E(τ), at the present T and π.";
        ui.label("Target Bayes error").on_hover_text(about);
        let field = TextEdit::singleline(&mut cx.view.target).desired_width(92.0).hint_text("5 % or 0.05");
        let field = ui.add(field).accessible_name(name).on_hover_text(about);
        if field.changed() {
            cx.view.target_complaint = None;
        }
        if (field.lost_focus() || field.has_focus()) && ui.input(|input| input.key_pressed(Key::Enter)) {
            match parse_target(&cx.view.target) {
                Ok(error) => cx.commands.push(Command::Target(error)),
                Err(why) => cx.view.target_complaint = Some(why),
            }
        }
    });
    let theme = Theme::of(ui);
    if let Some(why) = &cx.view.target_complaint {
        ui.colored_label(theme.error(), why);
        return;
    }
    if cx.session.bayes.must_be_sampled() == Some(true) {
        return sampled_error::target(ui, cx, name);
    }
    let Some(target) = &cx.session.bayes.target else { return };
    match &target.outcome {
        None => hint(ui, format!("Looking for τ with E = {} %…", format::digits(100.0 * target.error))),
        Some(Err(why)) => {
            ui.colored_label(theme.error(), why);
        }
        Some(Ok(found)) => {
            let tau = format::interval(found.tau.value, half_width(&found.tau));
            let text = format!("E = {} % at τ = {tau}", format::digits(100.0 * target.error));
            let about = format!(
                "Root of E(τ) = target with its 95 % interval: {} Bayes errors in {}; dE/dlog τ there is {} %.",
                found.evaluations,
                format::short_time(found.seconds),
                format::sig4(100.0 * found.slope.value)
            );
            ui.add(egui::Label::new(RichText::new(text).color(theme.weak()).small()).wrap()).on_hover_text(about);
        }
    }
    if target.outcome.is_some() && target.law != cx.prefs.settings().label_law() {
        complain(ui, "π, T or the label noise has moved since: press Enter in the field again.");
    }
}

/// A Bayes error as typed: "5 %" or "0.05".
///
/// # Errors
/// What to type instead.
pub fn parse_target(text: &str) -> Result<f64, String> {
    let value = parse_fraction(&text.replace(',', ".")).ok().filter(|value| *value > 0.0 && *value < 1.0);
    value.ok_or_else(|| "Type a share between 0 and 1, or per cent with the sign: 0.05 or 5 %.".to_owned())
}

/// The Bayes error at the present knobs, and how it was found.
struct Known {
    figure: Figure,
    tau: f64,
    how: String,
}

fn known(session: &Session, prefs: &Prefs) -> Option<Known> {
    if session.bayes.must_be_sampled() == Some(true) {
        let (figure, samples) = session.bayes.surveyed_with_draws(prefs.tau, &prefs.settings().label_law())?;
        let lines = [
            format!(
                "method: {}; between two points of the curve over τ where this τ is none of them",
                Method::Sampling.name()
            ),
            format!("badge: {}; seed {}", Badge::Estimated.name(), SEED.0),
            format!("draws: {samples} at each τ"),
        ];
        return Some(Known { figure, tau: prefs.tau, how: lines.join("\n") });
    }
    let readout = session.bayes.readout.fresh()?;
    let estimate = readout.outcome.as_ref().ok()?;
    let lines = [
        format!("log E = {} nats", estimate.log_value),
        format!("method: {} ({})", estimate.method.name(), estimate.why),
        format!("badge: {}; relative tolerance {:e}; seed 0", estimate.badge.name(), readout.tolerance),
        format!("points: {}; time: {} s", estimate.samples, estimate.seconds),
    ];
    Some(Known { figure: estimate.figure, tau: readout.tau, how: lines.join("\n") })
}

/// The Bayes error at the present knobs with everything needed to compute it again, if it is known.
pub fn copied(session: &Session, prefs: &Prefs) -> Option<String> {
    let oracle = session.oracle.as_ref()?;
    let Known { figure, tau, how } = known(session, prefs)?;
    let (low, high) = figure.interval;
    let prior = if prefs.prior_is_uniform() {
        format!("uniform over {} classes", prefs.prior.len())
    } else {
        let shares = prefs.prior.iter().enumerate();
        shares.map(|(class, p)| format!("{}: {p}", session.class_name(class))).collect::<Vec<_>>().join(", ")
    };
    let noise =
        prefs.label_noise.as_ref().map_or_else(String::new, |noise| format!("; label noise {}", noise.describe()));
    let lines = [
        format!("Bayes error E = {} (fraction), 95 % interval {low} to {high}", figure.value),
        format!("oracle: {}, weights SHA-256 {}", oracle.name, oracle.weights_sha256),
        format!("class prior π: {prior}{noise}"),
        format!("base temperature τ = {tau}, posterior smoothing T = {}", prefs.smoothing),
        how,
        format!("bayescope {}: {}", env!("CARGO_PKG_VERSION"), bayes_error_command(session, prefs)),
    ];
    Some(lines.join("\n") + "\n")
}

/// Returns the curve as CSV, if there is one. Comment lines name world, prior and missing points.
pub fn curve_csv(session: &Session) -> Option<String> {
    let curve = &session.bayes.curve.value;
    curve.known().next()?;
    let (oracle, law) = session.oracle.as_ref().zip(curve.law.as_ref())?;
    let smoothing = law.smoothing.get();
    let mut text = format!("# plot: Bayes error over base temperature tau, posterior smoothing {smoothing}\n");
    text += &format!("# world: {} (SHA-256 {})\n", oracle.name, oracle.weights_sha256);
    text += &format!("# class prior: {}\n", law.prior.describe());
    if let Some(noise) = &law.label_noise {
        text += &format!("# label noise: {}\n", noise.describe());
    }
    let (known, asked) = (curve.known().count(), curve.taus.len());
    if known < asked {
        text += &format!("# points: {known} of {asked}\n");
    }
    text += "tau,bayes_error,low_95,high_95,ln_bayes_error,method\n";
    for (tau, estimate) in curve.known() {
        let Figure { value, interval: (low, high), .. } = estimate.figure;
        text += &format!("{tau},{value:e},{low:e},{high:e},{},{}\n", estimate.log_value, estimate.method.name());
    }
    Some(text)
}

/// The curve for a file, and what is behind it: the world and the law of labels it was asked for, whatever the knobs are by
/// now.
///
/// # Errors
/// Why there is nothing to save yet.
pub fn curve_to_save(session: &Session, prefs: &Prefs) -> Result<(String, Provenance), &'static str> {
    let none = "There is no curve to save yet: show the panel Bayes error.";
    let curve = &session.bayes.curve;
    if curve.running {
        return Err("The curve is not complete yet: show the panel Bayes error until it is.");
    }
    let text = curve_csv(session).ok_or(none)?;
    let (oracle, law) = session.oracle.as_ref().zip(curve.value.law.clone()).ok_or(none)?;
    let LabelLaw { prior, smoothing, label_noise } = law;
    let settings = Settings { prior, label_noise, smoothing, ..prefs.settings() };
    let about = "Bayes error over τ, with a 95 % interval and the method for each point";
    // Each point has its own method; the weakest badge stands for the curve.
    Ok((text, oracle.provenance(Badge::Estimated, &settings).with("curve", about)))
}

#[cfg(test)]
mod tests {
    use super::parse_target;

    #[test]
    fn targets_are_shares_or_per_cent() {
        for (text, value) in [("5 %", 0.05), ("5%", 0.05), (" 0.05 ", 0.05), ("0,5 %", 0.005), ("1e-3", 0.001)] {
            assert!((parse_target(text).unwrap() - value).abs() < 1e-15, "{text}");
        }
        for text in ["", "5", "-1 %", "100 %", "0", "five", "NaN", "%"] {
            assert!(parse_target(text).unwrap_err().contains("5 %"), "{text}");
        }
    }
}
