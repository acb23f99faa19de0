//! Tables 7 and 8 of BLC with the paper's columns beside ours.

use super::damage::{Damage, Group, Harm};
use super::fit::Spread;
use super::paper::{Row, row_of};
use crate::figure::{Column, Table, Value, fixed};

/// The tables of a group.
pub(super) fn of(damage: &Damage, group: &Group) -> Vec<Table> {
    vec![sizes(damage, group), costs(damage, group)]
}

fn row(harm: &Harm) -> Option<&'static Row> {
    row_of(&harm.name, &harm.prior, harm.noise)
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

fn sizes(damage: &Damage, group: &Group) -> Table {
    let line = |harm: &Harm| {
        let paper = row(harm);
        vec![
            harm.name.as_str().into(),
            harm.kind.label().into(),
            harm.noise.into(),
            harm.target_kl_y.into(),
            paper.map(|row| row.target_kl).into(),
            within(harm.kl_y, 1.0),
            std(harm.kl_y, 1.0),
            paper.map_or(Value::Nothing, |row| printed(row.kl_y, if row.kl_y.0 < 1e-3 { 6 } else { 3 })),
            harm.joint_kl.into(),
            within(harm.log_likelihood_drop, 1.0),
        ]
    };
    Table {
        id: format!("shift-sizes{}", damage.suffix(group)),
        title: "How large the shifts are".into(),
        caption: format!(
            "{}. KL_y: of the class frequencies from the world's prior (BLC eq. 8), its target and as drawn, mean over seeds with \
             Student's 95 % interval; BLC's columns are table 7. Eq. 8 gives 0.0181 and 0.2968 where table 7 prints 0.017 and 0.296. \
             Joint KL: the exact KL(p'(x, y) || p(x, y)), not known under pixel noise. Likelihood lost: E log p(x|y) − E log p(x'|y) in \
             the world under pixel noise and clipping; it is no KL.",
            among(group)
        ),
        columns: vec![
            Column::new("Setting", 0),
            Column::new("Shifted", 0),
            Column::of("σ", "units of x", 2),
            Column::of("KL_y, target", "nats", 4),
            Column::of("KL_y, target, BLC", "nats", 4),
            Column::of("KL_y", "nats", 4),
            Column::of("KL_y, std", "nats", 4),
            Column::of("KL_y, BLC", "nats", 4),
            Column::of("joint KL", "nats", 4),
            Column::of("likelihood lost", "nats an image", 1),
        ],
        rows: group.harms.iter().map(line).collect(),
    }
}

fn costs(damage: &Damage, group: &Group) -> Table {
    let line = |harm: &Harm| {
        let paper = row(harm);
        let of_paper = |value: fn(&Row) -> (f64, f64)| paper.map_or(Value::Nothing, |row| printed(value(row), 2));
        vec![
            harm.name.as_str().into(),
            within(harm.accuracy, 100.0),
            std(harm.accuracy, 100.0),
            of_paper(|row| row.accuracy),
            within(harm.change, 1.0),
            paper.map(|row| row.change).into(),
            harm.unavoidable_loss
                .map_or(Value::Nothing, |loss| Value::within(loss.value, loss.interval.low, loss.interval.high)),
            within(harm.excess_loss, 1.0),
            within(harm.error, 100.0),
            within(harm.validation, 100.0),
            std(harm.validation, 100.0),
            of_paper(|row| row.validation),
            within(harm.epistemic, 1.0),
            (harm.runs.len() as f64).into(),
        ]
    };
    Table {
        id: format!("shift-costs{}", damage.suffix(group)),
        title: "What the shifts cost".into(),
        caption: format!(
            "{}, all measured on the same {} test images, which are not shifted; the validation images are. Means over seeds with \
             Student's 95 % interval; Δ is paired by seed with the first setting. Accuracy and error are expected \
             ones, the sum of p(y|x) at the decisions; those of the validation images count drawn labels, because the posterior of shifted \
             images is another. Unavoidable loss: what the Bayes classifier of the shifted world loses on the unshifted images, with its \
             interval over them (not known under pixel noise); excess: the drop less that. BLC's columns are table 8 (AFHQ, pretrained \
             ResNet-50, N = 5,000), mean ± standard deviation over seeds.",
            among(group),
            damage.test_images
        ),
        columns: vec![
            Column::new("Setting", 0),
            Column::of("accuracy", "%", 2),
            Column::of("accuracy, std", "%", 2),
            Column::of("accuracy, BLC", "%", 2),
            Column::of("Δ accuracy", "pp", 2),
            Column::of("Δ accuracy, BLC", "pp", 2),
            Column::of("unavoidable loss", "pp", 2),
            Column::of("excess loss", "pp", 2),
            Column::of("error", "%", 2),
            Column::of("validation accuracy", "%", 2),
            Column::of("validation accuracy, std", "%", 2),
            Column::of("validation accuracy, BLC", "%", 2),
            Column::of("epistemic KL", "nats", 4),
            Column::new("seeds", 0),
        ],
        rows: group.harms.iter().map(line).collect(),
    }
}
