//! BLC figure 3, and the same size of shift with other things shifted. The paper's numbers are
//! those of tables 8 and 9; its figure 3 has none.

use super::effects::{Group, ShiftEffect, ShiftEffects};
use super::fit::{Fit, Spread};
use super::paper::{ROWS, Row, row_of};
use super::shift_kind::ShiftKind;
use crate::figure::{Axis, Figure, Point, Rule, Series, Style, Way};

/// How far the KL of a base shift may be from that of a prior shift to stand beside it.
const EQUAL: f64 = 0.05;

/// The figures of a group.
pub(super) fn of(effects: &ShiftEffects, group: &Group) -> Vec<Figure> {
    let make = Make { effects, group };
    vec![make.by_size(), make.by_setting(), make.by_noise(), make.at_equal_size(), make.fitted()]
}

struct Make<'a> {
    effects: &'a ShiftEffects,
    group: &'a Group,
}

/// What captions say of a difference.
const WITHIN: &str = "mean over seeds with its 95 % interval over seeds (Student) and test images (block means), in quadrature; over seeds alone \
     where cells were finished by a version before 2026-11-26";

/// The mean over seeds, times `factor`, with Student's interval.
fn point(x: f64, spread: &Spread, factor: f64, label: &str) -> Point {
    let point = named(Point::new(x, factor * spread.mean), label);
    match spread.interval.map(|interval| [factor * interval.low, factor * interval.high]) {
        // A negative factor turns the interval round.
        Some([a, b]) => point.within(a.min(b), a.max(b)),
        None => point,
    }
}

fn series(kind: ShiftKind, style: Style, points: Vec<Point>) -> Series {
    Series { name: kind.label().into(), style, colour: kind.colour(), points, ..Series::default() }
}

fn of_paper(name: &str, kind: ShiftKind, points: Vec<Point>) -> Series {
    Series { name: name.into(), faint: true, ..series(kind, Style::Points, points) }
}

fn baseline() -> Rule {
    Rule { way: Way::Horizontal, at: 0.0, low: None, high: None, label: "baseline".into() }
}

fn named(point: Point, label: &str) -> Point {
    Point { label: Some(label.to_owned()), ..point }
}

impl Make<'_> {
    fn figure(&self, id: &str, title: &str, caption: &str, x: Axis, y: Axis) -> Figure {
        let (ShiftEffects { run, oracle, tau, seeds, test_images, .. }, group) = (self.effects, self.group);
        let seeds = seeds.iter().map(u64::to_string).collect::<Vec<_>>().join(", ");
        let provenance = [
            ("run", run.clone()),
            ("oracle", oracle.clone()),
            ("τ", tau.to_string()),
            ("network", group.architecture.label().to_owned()),
            ("N", format!("{} (validation included)", group.train_size)),
            ("labels", group.labels.label().to_owned()),
            ("seeds", seeds),
            ("test images", test_images.to_string()),
        ];
        Figure {
            id: format!("{id}{}", self.effects.suffix(group)),
            title: title.into(),
            caption: caption.into(),
            provenance: provenance.map(|(name, value)| (name.to_owned(), value)).to_vec(),
            x,
            y,
            ..Figure::default()
        }
    }

    /// A series for every kind of shift, of the points that its settings have.
    fn by_kind(&self, style: Style, point: impl Fn(&ShiftEffect) -> Option<Point>) -> Vec<Series> {
        let of = |kind: ShiftKind| {
            let effects = self.group.effects.iter().filter(|effect| effect.kind == kind);
            series(kind, style, effects.filter_map(&point).collect())
        };
        ShiftKind::all().map(of).filter(|series| !series.points.is_empty()).collect()
    }

    /// Figure 3a: accuracy over KL.
    fn by_size(&self) -> Figure {
        let caption = "Test accuracy over the size of the shift: the exact joint KL. The KL of noised pixels is not known; as in BLC figure \
                       3a they stand at their KL_y, hence marked. Error bars: 95 % intervals over seeds (Student) and test images, in \
                       quadrature.";
        let (x, y) = (Axis::linear("KL of the shift").in_unit("nats"), Axis::linear("test accuracy").in_unit("%"));
        let mut figure = self.figure("shift-accuracy", "Test accuracy by size and kind of shift", caption, x, y);
        figure.series = self.by_kind(Style::Points, |effect| {
            let kl = effect.joint_kl.or(effect.kl_y.map(|kl| kl.mean))?;
            Some(point(kl, &effect.accuracy?, 100.0, &effect.name))
        });
        let noised = [ShiftKind::Noise, ShiftKind::PriorAndNoise];
        for series in figure.series.iter_mut().filter(|series| noised.map(ShiftKind::colour).contains(&series.colour)) {
            series.name += ", at KL_y (its KL is not known)";
        }
        figure
    }

    /// Table 8: Δ of every setting.
    fn by_setting(&self) -> Figure {
        let caption = format!(
            "Expected test accuracy, mean p(argmax q|x), less that of the baseline of the same seed; \
                       {WITHIN}. Pale: BLC \
                       table 8 (AFHQ, pretrained ResNet-50, N = 5,000), which gives no interval of the difference. \
                       Unavoidable: what the Bayes classifier of the shifted world loses, known where the shift has a density; what \
                       lies below it is the learner's own excess."
        );
        let x = Axis::named("setting", self.group.effects.iter().map(|effect| effect.name.as_str()));
        let y = Axis::linear("Δ test accuracy").in_unit("pp");
        let mut figure = self.figure("shift-settings", "What every shift costs", &caption, x, y);
        let points = |of: &dyn Fn(f64, &ShiftEffect) -> Option<Point>| -> Vec<Point> {
            self.group.effects.iter().enumerate().filter_map(|(i, effect)| of(i as f64, effect)).collect()
        };
        let own = points(&|x, effect| Some(point(x, &effect.change?, 1.0, &effect.name)));
        let paper = points(&|x, effect| {
            let row = row_of(&effect.name, &effect.prior, effect.noise)?;
            Some(named(Point::new(x, row.change), row.name))
        });
        let unavoidable = points(&|x, effect| {
            let loss = effect.unavoidable_loss?;
            let point = named(Point::new(x, -loss.value), &effect.name);
            Some(point.within(-loss.interval.high, -loss.interval.low))
        });
        // The places name what is shifted: one series for all kinds.
        figure.series = vec![
            Series { name: self.group.architecture.label().into(), ..series(ShiftKind::Baseline, Style::Bars, own) },
            of_paper("BLC table 8 (AFHQ)", ShiftKind::Baseline, paper),
            Series {
                name: "unavoidable: the Bayes classifier of the shifted world".into(),
                colour: ShiftKind::all().len(),
                ..series(ShiftKind::Baseline, Style::Points, unavoidable)
            },
        ];
        figure.series.retain(|series| !series.points.is_empty());
        figure.rules = vec![baseline()];
        figure
    }

    /// Figure 3d, table 9: the drop over σ.
    fn by_noise(&self) -> Figure {
        let caption = format!(
            "Test accuracy lost over the standard deviation σ of the pixel noise in the training images, against the baseline of \
                       the same seed; {WITHIN}. Pale: BLC table 9, right half (AFHQ)."
        );
        let (x, y) = (
            Axis::linear("σ of pixel noise").in_unit("units of x"),
            Axis::linear("drop in test accuracy").in_unit("pp"),
        );
        let mut figure = self.figure("shift-noise", "What pixel noise costs", &caption, x, y);
        figure.series = self.by_kind(Style::LinePoints, |effect| {
            let shown = matches!(effect.kind, ShiftKind::Noise | ShiftKind::PriorAndNoise);
            shown.then_some(point(effect.noise, &effect.change?, -1.0, &effect.name))
        });
        let known = |effect: &ShiftEffect| {
            effect.kind == ShiftKind::Noise && row_of(&effect.name, &effect.prior, effect.noise).is_some()
        };
        if self.group.effects.iter().any(known) {
            let rows = ROWS.iter().filter(|row| row.noise > 0.0 && row.prior == ROWS[0].prior);
            let point = |row: &Row| named(Point::new(row.noise, -row.change), row.name);
            figure.series.push(of_paper("BLC table 9 (AFHQ)", ShiftKind::Noise, rows.map(point).collect()));
        }
        figure.rules = vec![baseline()];
        figure
    }

    /// Beyond the paper: shifts of the same exact KL side by side.
    fn at_equal_size(&self) -> Figure {
        let levels: Vec<f64> = self
            .group
            .effects
            .iter()
            .filter(|effect| effect.kind == ShiftKind::Prior)
            .filter_map(|effect| effect.joint_kl)
            .collect();
        let caption = format!(
            "Shifts of the same exact joint KL, to 5 %: test accuracy less that of the baseline of the same seed, by what is \
                       shifted; {WITHIN}. The levels are the KLs of the prior shifts. Pixel noise has \
                       no place here: its KL is not known."
        );
        let x = Axis::named("joint KL of the shift", levels.iter().map(|level| format!("{level:.3} nats")));
        let y = Axis::linear("Δ test accuracy").in_unit("pp");
        let mut figure = self.figure("shift-equal-kl", "Equal KL, other shifts", &caption, x, y);
        figure.series = self.by_kind(Style::Bars, |effect| {
            let kl = effect.joint_kl?;
            let level = levels.iter().position(|level| (kl / level - 1.0).abs() <= EQUAL)?;
            Some(point(level as f64, &effect.change?, 1.0, &effect.name))
        });
        figure.rules = vec![baseline()];
        figure
    }

    /// Figure 3f: a line through the drops.
    fn fitted(&self) -> Figure {
        let caption = "Drop in test accuracy of every run over the size of its shift, with the least-squares line, as BLC figure 3f (R² = \
                       0.042 there, over KL_y). KL_y does not see pixel noise; the joint KL is exact, and settings with noise, whose KL is \
                       not known, are left out of it. One point a run, no interval.";
        let (x, y) =
            (Axis::linear("KL of the shift").in_unit("nats"), Axis::linear("drop in test accuracy").in_unit("pp"));
        let mut figure = self.figure("shift-fit", "How much the size of a shift explains", caption, x, y);
        figure.series = self.group.fits.iter().enumerate().flat_map(|(i, fit)| drawn(i, fit)).collect();
        figure
    }
}

/// The runs and the line of a fit.
fn drawn(colour: usize, fit: &Fit) -> [Series; 2] {
    let sizes = || fit.points.iter().map(|p| p[0]);
    let ends = [sizes().fold(f64::INFINITY, f64::min), sizes().fold(f64::NEG_INFINITY, f64::max)];
    let runs = fit.points.iter().map(|p| Point::new(p[0], p[1])).collect();
    let line = ends.map(|x| Point::new(x, fit.intercept + fit.slope * x)).to_vec();
    let of = |name, style, points| Series { name, style, colour, points, ..Series::default() };
    [
        of(format!("runs: {}", fit.over), Style::Points, runs),
        of(format!("R² = {:.3}: {}", fit.r2, fit.over), Style::Line, line),
    ]
}
