//! `bayescope evaluate --uncertainty`.

use std::path::Path;

use super::args::EvaluateArgs;
use super::output::{Output, print_text};
use super::progress::Bar;
use crate::error::Result;
use crate::events::Progress;
use crate::judge::{GradedScore, NamedSets, Truth, UncertaintyReport, judge_uncertainty};
use crate::measure::uncertainty::LEVELS;
use crate::measure::{Estimate, Interval};
use crate::units::Seed;

/// Room for the name of a score, where none is longer.
const NAME: usize = 24;

/// Judges the uncertainty in a file.
pub fn run(path: &Path, args: &EvaluateArgs) -> Result<()> {
    let bar = Bar::new("judging");
    let mut events = |progress: Progress| {
        bar.set(progress, "reading the truth".into());
        std::ops::ControlFlow::Continue(())
    };
    let truth = Truth::open(&args.dataset, args.split.into(), &mut events)?;
    let mut events = |progress: Progress| {
        bar.set(progress, "judging scores and sets".into());
        std::ops::ControlFlow::Continue(())
    };
    let report = judge_uncertainty(path, &truth, args.kind.map(Into::into), Seed(args.seed), &mut events)?;
    drop(bar);
    Output { json: args.json }.print(&report, |report| print_text(&text(report)))
}

fn within(Estimate { value, interval }: Estimate, digits: usize) -> String {
    format!("{value:.digits$} [{:.digits$}, {:.digits$}]", interval.low, interval.high)
}

fn text(report: &UncertaintyReport) -> String {
    let mut text = String::new();
    let width = report.scores.iter().map(|score| score.name.chars().count()).fold(NAME, usize::max);
    if let Some(of) = &report.classifier {
        let who = match (&report.predictions, report.members) {
            (Some(name), Some(members)) => format!("{name}, with scores of {members} members,"),
            (None, Some(members)) => format!("{members} members"),
            _ => "a classifier".into(),
        };
        text += &format!(
            "{who} on {} images: aleatoric {}, epistemic {} nats, wrong {} % expected\n\n",
            report.n,
            within(of.aleatoric, 4),
            within(of.epistemic, 4),
            within(Estimate { value: 100.0 * of.expected_error.value, interval: scaled(of.expected_error, 100.0) }, 2)
        );
        text += &format!(
            "{:width$} {:>24} {:>24} {:>24} {:>24} {:>26}\n",
            "score", "Spearman with H(p)", "Spearman with KL", "AUROC, top KL", "AURC above the least", "bias, nats"
        );
    }
    report.scores.iter().for_each(|score| text += &line(score, width));
    report.sets.iter().for_each(|sets| text += &of_sets(sets));
    report.notes.iter().for_each(|note| text += &format!("{note}\n"));
    report.alarms.iter().for_each(|alarm| text += &format!("ALARM: {}\n", alarm.message));
    if !report.ignored.is_empty() {
        text += &format!("arrays that are not read: {}\n", report.ignored.join(", "));
    }
    text
}

fn scaled(Estimate { interval, .. }: Estimate, unit: f64) -> Interval {
    Interval { low: unit * interval.low, high: unit * interval.high }
}

fn line(GradedScore { name, scored, risk }: &GradedScore, width: usize) -> String {
    let or_none = |estimate: Option<Estimate>| estimate.map_or_else(|| "-".into(), |estimate| within(estimate, 3));
    format!(
        "{name:width$} {:>24} {:>24} {:>24} {:>24} {:>26}\n",
        or_none(scored.aleatoric.spearman),
        or_none(scored.epistemic.spearman),
        or_none(scored.auroc),
        within(risk.excess, 4),
        or_none(scored.signed_error)
    )
}

fn of_sets(NamedSets { name, found }: &NamedSets) -> String {
    let quantiles = LEVELS.iter().zip(found.quantiles).map(|(level, q)| format!("{:.0} %: {q:.3}", 100.0 * level));
    let sizes = found.by_size.iter().map(|of| format!("{}: {:.3} ({} images)", of.size, of.exact, of.count));
    format!(
        "\nsets {name}: cover {} of the labels, {} exactly; {} classes\n  exact coverage of single images, least to largest: {}\n  by the \
         size of the set: {}\n",
        within(found.drawn, 4),
        within(found.exact, 4),
        within(found.size, 2),
        quantiles.collect::<Vec<_>>().join(", "),
        sizes.collect::<Vec<_>>().join(", ")
    )
}
