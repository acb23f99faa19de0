//! What a judgement says first: three numbers and one bar of the error, and the loss taken apart.

use eframe::egui::{self, Color32, Rect, RichText, Sense, Stroke, Ui, pos2, vec2};

use crate::gui::theme::Theme;
use crate::judge::Verdict;
use crate::measure::Estimate;

/// Height of a bar and its greatest width, points.
const HEIGHT: f32 = 16.0;
const WIDEST: f32 = 520.0;

/// Shares of the error, in percent.
struct Shares {
    /// 1 − mean max p: nobody avoids it.
    unavoidable: f64,
    /// mean max p − p(decision): what a better classifier could gain.
    to_win: f64,
    /// What the noise of the drawn labels adds to the expectation; may be negative.
    sampling: f64,
    /// The error against the drawn labels.
    error: f64,
}

impl Shares {
    fn of(model: &Verdict) -> Self {
        let measured = &model.measured;
        let expected = 1.0 - measured.expected_accuracy.value;
        Self {
            unavoidable: 100.0 * model.bayes_error.value,
            to_win: 100.0 * measured.gap.value,
            sampling: 100.0 * (measured.error.value - expected),
            error: 100.0 * measured.error.value,
        }
    }

    fn sentence(&self) -> String {
        let Self { unavoidable, to_win, sampling, error } = self;
        let sign = if *sampling < 0.0 { '−' } else { '+' };
        let sampling = sampling.abs();
        format!(
            "{error:.2} % error = {unavoidable:.2} % unavoidable + {to_win:.2} pp to win {sign} {sampling:.2} pp by the \
             draw of the labels"
        )
    }
}

/// The headline of a model.
pub fn show(ui: &mut Ui, model: &Verdict) {
    let (theme, shares) = (Theme::of(ui), Shares::of(model));
    ui.add_space(6.0);
    ui.label(RichText::new(&model.name).strong());
    ui.horizontal_wrapped(|ui| {
        let measured = &model.measured;
        let one = |ui: &mut Ui, name: &str, unit: &str, of: Estimate, about: &str| {
            number(ui, (name, unit), [of.value, of.interval.low, of.interval.high].map(|value| 100.0 * value), about);
        };
        one(ui, "error", "%", measured.error, "Decisions that miss the drawn label");
        one(ui, "Bayes error", "%", model.bayes_error, "1 − mean max p of these images: no classifier errs less");
        one(ui, "to win", "pp", measured.gap, "mean max p − p(decision): what a better classifier could gain");
    });
    bar(ui, &shares, &model.name);
    ui.add(egui::Label::new(RichText::new(shares.sentence()).color(theme.weak())).wrap());
    let [loss, floor, rest] =
        [model.measured.cross_entropy, model.measured.aleatoric, model.measured.epistemic].map(|of| of.value);
    let text =
        format!("cross-entropy {loss:.4} nats: {floor:.4} aleatoric (unavoidable), {rest:.4} epistemic KL (to learn)");
    ui.add(egui::Label::new(RichText::new(text).color(theme.weak())).wrap());
}

/// A large number with its name; the interval on hover.
fn number(ui: &mut Ui, (name, unit): (&str, &str), [value, low, high]: [f64; 3], about: &str) {
    let text = format!("{value:.2} {unit} {name}");
    let label = ui.label(RichText::new(text).size(19.0).strong());
    label.on_hover_text(format!("{about}\n95 %: {low:.2} to {high:.2} {unit}"));
    ui.add_space(14.0);
}

/// The error as one bar: unavoidable, to win, and a mark where the drawn labels put it.
fn bar(ui: &mut Ui, shares: &Shares, name: &str) {
    let theme = Theme::of(ui);
    let (rect, response) = ui.allocate_exact_size(vec2(ui.available_width().min(WIDEST), HEIGHT), Sense::hover());
    let whole = (shares.unavoidable + shares.to_win).max(shares.error).max(f64::MIN_POSITIVE);
    let at = |percent: f64| rect.left() + rect.width() * (percent / whole) as f32;
    let part = |from: f64, to: f64, colour: Color32| {
        let area = Rect::from_min_max(pos2(at(from), rect.top()), pos2(at(to), rect.bottom()));
        ui.painter().rect_filled(area, 2.0, colour);
    };
    part(0.0, whole, theme.trough());
    part(0.0, shares.unavoidable, theme.weak());
    part(shares.unavoidable, shares.unavoidable + shares.to_win, theme.accent());
    let line = rect.y_range();
    ui.painter().vline(at(shares.error).min(rect.right() - 1.0), line, Stroke::new(2.0, ui.visuals().text_color()));
    let said = format!("{name}: {}", shares.sentence());
    response.widget_info(|| egui::WidgetInfo::labeled(egui::Role::Image, true, said.clone()));
    response.on_hover_text("Grey: unavoidable. Coloured: to win. Line: the error against the drawn labels.");
}
