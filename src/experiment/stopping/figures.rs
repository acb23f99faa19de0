//! Figures and tables of when to stop, a pair of figures for each world and N.

use super::regret::{Regret, StoppingRegrets, StoppingRule};
use crate::experiment::output::Findings;
use crate::experiment::repeats::{distinct, only};
use crate::figure::{Axis, Figure, Series, Table};
use crate::units::Tau;

/// What captions say of intervals.
const OVER_SEEDS: &str = "Means over seeds with Student's 95 % interval over seeds, each with training and held-out images of its own; no interval \
     where a single seed is finished.";

/// What they say of a difference beside others.
const IMAGES: &str = "The best epoch is found on one half of the test images and measured on the other, each half in turn: a regret may be a little below 0 \
     and is on average no more than the true one. Regrets and least KL have the error of the test images in their intervals, too (block means), \
     those of regrets up to the most that any epoch looked at may be better by; all others are given these images. Cells of a version before \
     2026-11-26 know no halves: least KL is too low there, regret too high, and intervals are over seeds alone.";

impl Findings for StoppingRegrets {
    fn figures(&self) -> Vec<Figure> {
        let places = distinct(self.regrets.iter().map(|one| (one.tau, one.train_size)));
        places.iter().map(|&place| self.regret(place)).chain(places.iter().map(|&place| self.course(place))).collect()
    }

    fn tables(&self) -> Vec<Table> {
        if self.regrets.is_empty() { Vec::new() } else { vec![self.table()] }
    }
}

impl StoppingRegrets {
    /// Regret over the number of labels; the last epoch asks for none and is the same for all.
    fn regret(&self, place: (Tau, usize)) -> Figure {
        let here = || self.regrets.iter().filter(|one| (one.tau, one.train_size) == place);
        let sizes = distinct(here().filter(|one| one.n > 0).map(|one| one.n as f64));
        let mut series = Vec::new();
        for who in distinct(here().map(Regret::who)) {
            for rule in StoppingRule::ALL {
                let of = here().filter(|one| one.who() == who && one.rule == rule);
                let points = of.flat_map(|one| {
                    let at = if one.n == 0 { sizes.clone() } else { vec![one.n as f64] };
                    at.into_iter().map(move |n| one.regret.point(n, 1.0))
                });
                let name = format!("{}, {}", who.name(), rule.label());
                let dashed = rule == StoppingRule::Last;
                let colour = who.colour(&self.architectures) * StoppingRule::ALL.len() + rule as usize;
                series.push(Series { dashed, ..Series::markers_joined(name, colour, points) });
            }
        }
        let caption = format!(
            "Exact KL(p || q) of the test images at the epoch that n held-out labels choose, less that at the best of the epochs looked at: the \
             first ten, then about ten a decade, and the last. {OVER_SEEDS} {IMAGES}"
        );
        let (x, y) = (Axis::log10("held-out labels n"), Axis::linear("regret").in_unit("nats"));
        Figure { x, y, series, ..self.figure("stopping-regret", "what the chosen epoch gives away", caption, place) }
    }

    /// KL over epochs.
    fn course(&self, place: (Tau, usize)) -> Figure {
        let here = self.courses.iter().filter(|one| (one.tau, one.train_size) == place);
        let series = here.map(|one| {
            let points = one.epochs.iter().map(|(epoch, kl)| kl.point(*epoch as f64, 1.0));
            Series::markers_joined(one.who().name(), one.who().colour(&self.architectures), points)
        });
        let caption = format!(
            "Exact KL(p || q) of the test images in the course of the training. {OVER_SEEDS} In quadrature they hold what the test images, which \
             all seeds share, have too much or too little (block means); not of cells of a version before 2026-11-26."
        );
        let (x, y) = (Axis::log10("epochs"), Axis::linear("KL(p || q)").in_unit("nats"));
        let series = series.collect();
        Figure { x, y, series, ..self.figure("stopping-course", "KL over epochs", caption, place) }
    }

    fn figure(&self, id: &str, what: &str, caption: String, (tau, n): (Tau, usize)) -> Figure {
        let provenance = only(&only(&self.provenance, "N", n.to_string()), "τ", tau.get().to_string());
        Figure {
            id: format!("{id}-tau-{}-n{n}", tau.get()),
            title: format!("When to stop: {what}, τ = {}, N = {n}", tau.get()),
            caption,
            provenance,
            ..Figure::default()
        }
    }

    fn table(&self) -> Table {
        let caption = format!(
            "Exact KL at the chosen epoch less KL at the best one of those looked at. The column 'best epoch' is that of all test images. \
             {OVER_SEEDS} {IMAGES}"
        );
        Table::of(&self.regrets)
            .words("classifier", |one| one.who().name())
            .column("τ", "", 2, |one| one.tau.get())
            .words("N", |one| one.train_size)
            .words("rule", |one| one.rule.label())
            .words("labels n", |one| (one.n > 0).then_some(one.n))
            .column("epoch", "", 1, |one| one.epoch.cell(1.0))
            .column("best epoch", "", 1, |one| one.best_epoch.cell(1.0))
            .column("least KL", "nats", 4, |one| one.best.cell(1.0))
            .column("regret", "nats", 4, |one| one.regret.cell(1.0))
            .column("of least KL", "%", 1, |one| one.relative.map(|relative| relative.cell(100.0)))
            .named("stopping", "When to stop", caption)
    }
}
