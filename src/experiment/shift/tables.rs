//! Tables 7 and 8 of BLC with the paper's columns beside ours.

use super::effects::{Group, ShiftEffect, ShiftEffects};
use super::fit::Spread;
use super::paper::{Row, row_of};
use crate::figure::{Table, Value, fixed};

/// The tables of a group.
pub(super) fn of(effects: &ShiftEffects, group: &Group) -> Vec<Table> {
    vec![sizes(effects, group), costs(effects, group)]
}

/// Mean with Student's interval, times `factor`.
fn within(spread: Option<Spread>, factor: f64) -> Value {
    match spread {
        Some(Spread { mean, interval: Some(interval), .. }) => {
            Value::within(factor * mean, factor * interval.low, factor * interval.high)
        }
        Some(Spread { mean, .. }) => (factor * mean).into(),
        None => Value::Nothing,
    }
}

fn std(spread: Option<Spread>, factor: f64) -> Value {
    spread.and_then(|spread| spread.std).map(|std| factor * std).into()
}

/// Mean ± standard deviation, as the paper prints it.
fn printed((mean, std): (f64, f64), decimals: usize) -> Value {
    Value::Text(format!("{} ± {}", fixed(mean, decimals), fixed(std, decimals)))
}

fn among(group: &Group) -> String {
    let Group { architecture, train_size, labels, .. } = group;
    format!("{} on {train_size} images with {}", architecture.label(), labels.label())
}

/// The settings of a group, each with its row in the paper.
fn settings(group: &Group) -> impl Iterator<Item = (&ShiftEffect, Option<&'static Row>)> {
    group.effects.iter().map(|effect| (effect, row_of(&effect.name, &effect.prior, effect.noise)))
}

fn sizes(effects: &ShiftEffects, group: &Group) -> Table {
    let caption = format!(
        "{}. KL_y: of the class frequencies from the world's prior (BLC eq. 8), its target and as drawn, mean over seeds with \
         Student's 95 % interval; BLC's columns are table 7. Eq. 8 gives 0.0181 and 0.2968 where table 7 prints 0.017 and 0.296. \
         Joint KL: the exact KL(p'(x, y) || p(x, y)), not known under pixel noise. Likelihood lost: E log p(x|y) − E log p(x'|y) in \
         the world under pixel noise and clipping; it is no KL.",
        among(group)
    );
    let exact = |(mean, std): (f64, f64)| printed((mean, std), if mean < 1e-3 { 6 } else { 3 });
    Table::of(settings(group))
        .words("Setting", |(effect, _)| effect.name.as_str())
        .words("Shifted", |(effect, _)| effect.kind.label())
        .column("σ", "units of x", 2, |(effect, _)| effect.noise)
        .column("KL_y, target", "nats", 4, |(effect, _)| effect.target_kl_y)
        .column("KL_y, target, BLC", "nats", 4, |(_, paper)| paper.map(|row| row.target_kl))
        .column("KL_y", "nats", 4, |(effect, _)| within(effect.kl_y, 1.0))
        .column("KL_y, std", "nats", 4, |(effect, _)| std(effect.kl_y, 1.0))
        .column("KL_y, BLC", "nats", 4, |(_, paper)| paper.map(|row| exact(row.kl_y)))
        .column("joint KL", "nats", 4, |(effect, _)| effect.joint_kl)
        .column("likelihood lost", "nats an image", 1, |(effect, _)| within(effect.log_likelihood_drop, 1.0))
        .named(format!("shift-sizes{}", effects.suffix(group)), "How large the shifts are", caption)
}

fn costs(effects: &ShiftEffects, group: &Group) -> Table {
    let caption = format!(
        "{}, all measured on the same {} test images, which are not shifted; the validation images are. Means over seeds with \
         95 % intervals over seeds (Student) and over the test images, in quadrature; Δ is paired by seed with the first setting. Accuracy and error are expected \
         ones, the sum of p(y|x) at the decisions; those of the validation images count drawn labels, because the posterior of shifted \
         images is another. Unavoidable loss: what the Bayes classifier of the shifted world loses on the unshifted images, with its \
         interval over them (not known under pixel noise); excess: the drop less that. BLC's columns are table 8 (AFHQ, pretrained \
         ResNet-50, N = 5,000), mean ± standard deviation over seeds.",
        among(group),
        effects.test_images
    );
    Table::of(settings(group))
        .words("Setting", |(effect, _)| effect.name.as_str())
        .column("accuracy", "%", 2, |(effect, _)| within(effect.accuracy, 100.0))
        .column("accuracy, std", "%", 2, |(effect, _)| std(effect.accuracy, 100.0))
        .column("accuracy, BLC", "%", 2, |(_, paper)| paper.map(|row| printed(row.accuracy, 2)))
        .column("Δ accuracy", "pp", 2, |(effect, _)| within(effect.change, 1.0))
        .column("Δ accuracy, BLC", "pp", 2, |(_, paper)| paper.map(|row| row.change))
        .column("unavoidable loss", "pp", 2, |(effect, _)| Value::of_any(effect.unavoidable_loss, 1.0))
        .column("excess loss", "pp", 2, |(effect, _)| within(effect.excess_loss, 1.0))
        .column("error", "%", 2, |(effect, _)| within(effect.error, 100.0))
        .column("validation accuracy", "%", 2, |(effect, _)| within(effect.validation, 100.0))
        .column("validation accuracy, std", "%", 2, |(effect, _)| std(effect.validation, 100.0))
        .column("validation accuracy, BLC", "%", 2, |(_, paper)| paper.map(|row| printed(row.validation, 2)))
        .column("epistemic KL", "nats", 4, |(effect, _)| within(effect.epistemic, 1.0))
        .words("seeds", |(effect, _)| effect.runs.len())
        .named(format!("shift-costs{}", effects.suffix(group)), "What the shifts cost", caption)
}
