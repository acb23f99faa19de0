//! Figures and tables of what strategies gain.
//!
//! BLC shows its learning curves without numbers (figures 8 and 9), so none are laid over these.
//! What it prints (1.6× and 47.8 % on ImageNet-64, §4.4; 97–98 % at the end on AFHQ, figure 8) is
//! of other worlds and stands in the captions of the tables.

use super::Strategy;
use super::basket::{Basket, ClassBought, KINDS};
use super::comparison::{Curve, Group, Stage, StrategyComparison};
use super::curves::Spread;
use super::drawing::{OVER_IMAGES, OVER_SEEDS, OVER_SEEDS_ALONE, PAIRED, point, series, stated, value};
use super::one_step::OneStep;
use crate::classifier::Labels;
use crate::experiment::output::Findings;
use crate::figure::{Axis, Figure, Rule, Series, Style, Table, Way};
use crate::measure::Estimate;

const PERCENT: f64 = 100.0;
/// Curves over labels, of what a stage may have.
fn over_labels(curves: &[Curve], of: impl Fn(&Stage) -> Option<Spread>) -> Vec<Series> {
    let one = |curve: &Curve| {
        let points = curve.stages.iter().filter_map(|stage| Some(point(stage.labels as f64, of(stage)?, None)));
        series(curve.strategy, Style::LinePoints, points.collect())
    };
    curves.iter().filter_map(one).collect()
}

impl Findings for StrategyComparison {
    fn figures(&self) -> Vec<Figure> {
        self.groups.iter().flat_map(|group| group.figures(self)).collect()
    }

    fn tables(&self) -> Vec<Table> {
        self.groups.iter().flat_map(Group::tables).collect()
    }
}

impl Group {
    /// What a caption adds where the look-ahead is among the strategies.
    fn of_look_ahead(&self) -> &'static str {
        match self.curves.iter().any(|curve| curve.strategy == Strategy::LookAhead) {
            true => " The look-ahead chose its batches by these very test images: on others its KL would be larger.",
            false => "",
        }
    }

    /// Stem of its files.
    fn id(&self, what: &str) -> String {
        let told = if self.labels == Labels::Drawn { String::new() } else { format!("-{}", self.labels.name()) };
        format!("active-{what}-{}-{}{told}", self.architecture.name(), self.budget)
    }

    fn title(&self, what: &str) -> String {
        let told = if self.labels == Labels::Drawn { String::new() } else { format!(", {}", self.labels.label()) };
        format!("{what} ({}, {} labels{told})", self.architecture.label(), self.budget)
    }

    fn figures(&self, run: &StrategyComparison) -> Vec<Figure> {
        let mut figures =
            vec![self.accuracy(run), self.epistemic(run), self.lead(run), self.purchases(run), self.noise(run)];
        if self.curves.iter().any(|curve| curve.basket.is_some()) {
            figures.extend([self.classes(run), self.ambiguity(run)]);
        }
        if !self.one_step.is_empty() {
            figures.push(self.falls(run));
        }
        figures
    }

    fn tables(&self) -> Vec<Table> {
        let mut tables = vec![self.strategies(), self.pairs()];
        if self.curves.iter().any(|curve| curve.basket.is_some()) {
            tables.extend([self.baskets(), self.by_class()]);
        }
        if !self.one_step.is_empty() {
            tables.push(self.steps());
        }
        tables
    }

    fn figure(&self, run: &StrategyComparison, (id, title, caption): (&str, &str, String), axes: [Axis; 2]) -> Figure {
        let mut seeds: Vec<u64> = self.curves.iter().flat_map(|curve| curve.seeds.iter().copied()).collect();
        seeds.sort_unstable();
        seeds.dedup();
        let seeds = seeds.iter().map(u64::to_string).collect::<Vec<_>>().join(", ");
        let provenance = [
            ("run", run.run.clone()),
            ("oracle", run.oracle.clone()),
            ("τ", run.tau.to_string()),
            ("network", self.architecture.label().to_owned()),
            ("labels", format!("{} + {} a round, up to {}", run.initial, run.batch, self.budget)),
            ("told", self.labels.label().to_owned()),
            ("pool", run.pool.to_string()),
            ("seeds", seeds),
            ("test images", run.test_images.to_string()),
        ];
        let [x, y] = axes;
        Figure {
            id: self.id(id),
            title: self.title(title),
            caption,
            provenance: provenance.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
            x,
            y,
            ..Figure::default()
        }
    }

    /// A line at the Bayes accuracy of the test images, or at `of` it, in per cent.
    fn bayes(&self, label: &str, of: fn(f64) -> f64) -> Rule {
        let Estimate { value, interval } = self.bayes_accuracy;
        let [at, one, other] = [value, interval.low, interval.high].map(|accuracy| PERCENT * of(accuracy));
        Rule {
            way: Way::Horizontal,
            at,
            low: Some(one.min(other)),
            high: Some(one.max(other)),
            label: label.to_owned(),
        }
    }

    fn accuracy(&self, run: &StrategyComparison) -> Figure {
        let caption = format!(
            "Expected accuracy on {} test images, Σ p(argmax q)/n, against labels bought (BLC figures 8a and 9). All strategies under a \
             seed share the pool, the first labels and the first classifier. Points: means over finished seeds; bands: {OVER_IMAGES}. \
             Line: the Bayes accuracy of the same test images, its 95 % interval over them.",
            run.test_images
        ) + self.of_look_ahead();
        let axes = [Axis::linear("labels bought"), Axis::linear("expected accuracy").in_unit("%")];
        Figure {
            series: over_labels(&self.curves, |stage| Some(stage.accuracy.scaled(PERCENT))),
            rules: vec![self.bayes("Bayes accuracy", |accuracy| accuracy)],
            ..self.figure(run, ("accuracy", "Accuracy against labels bought", caption), axes)
        }
    }

    fn epistemic(&self, run: &StrategyComparison) -> Figure {
        let caption = format!(
            "Epistemic part of the test cross-entropy, mean exact KL(p || q), against labels bought (BLC figure 8b). Points: means over \
             finished seeds; bands: {OVER_IMAGES}."
        ) + self.of_look_ahead();
        let axes = [Axis::linear("labels bought"), Axis::linear("epistemic KL(p || q)").in_unit("nats")];
        Figure {
            series: over_labels(&self.curves, |stage| Some(stage.epistemic)),
            ..self.figure(run, ("epistemic", "Epistemic KL against labels bought", caption), axes)
        }
    }

    fn lead(&self, run: &StrategyComparison) -> Figure {
        let caption = format!(
            "Expected accuracy less that of random choice under the same seed: same pool, same start, same test images. Points: means \
             over the seeds that both have finished; bands of these paired differences: {PAIRED}."
        );
        let axes = [Axis::linear("labels bought"), Axis::linear("lead over random").in_unit("pp")];
        let zero = Rule { way: Way::Horizontal, at: 0.0, low: None, high: None, label: "random".into() };
        Figure {
            series: over_labels(&self.curves, |stage| Some(stage.lead?.accuracy.scaled(PERCENT))),
            rules: vec![zero],
            ..self.figure(run, ("lead", "Lead over random choice", caption), axes)
        }
    }

    fn purchases(&self, run: &StrategyComparison) -> Figure {
        let caption = format!(
            "What each strategy bought: a point a round after the start. Across: how undecided the truth is about the images bought, mean \
             H(p); up: how far the classifier was from the truth when it bought them, mean KL(p || q). Means over finished seeds; bars, of \
             KL: {OVER_SEEDS}."
        );
        let axes = [
            Axis::linear("mean H(p) of images bought").in_unit("nats"),
            Axis::linear("mean KL(p || q) at purchase").in_unit("nats"),
        ];
        let one = |curve: &Curve| {
            let of = |(round, stage): (usize, &Stage)| {
                Some(point(stage.bought_aleatoric.value, stage.bought_epistemic?, Some(format!("round {round}"))))
            };
            series(curve.strategy, Style::Points, curve.stages.iter().enumerate().filter_map(of).collect())
        };
        Figure {
            series: self.curves.iter().filter_map(one).collect(),
            ..self.figure(run, ("bought", "What was bought", caption), axes)
        }
    }

    fn noise(&self, run: &StrategyComparison) -> Figure {
        let caption = format!(
            "Label noise bought: share of a round's drawn labels that are not the Bayes decision argmax p(y|x). Points: means over \
             finished seeds; bands: {OVER_SEEDS}. Line: what images chosen at random have, 1 − the Bayes accuracy of the test images, its interval over them."
        );
        let axes = [Axis::linear("labels bought"), Axis::linear("labels that are not the Bayes decision").in_unit("%")];
        Figure {
            series: over_labels(&self.curves, |stage| Some(stage.bought_noise.scaled(PERCENT))),
            rules: vec![self.bayes("Bayes error", |accuracy| 1.0 - accuracy)],
            ..self.figure(run, ("noise", "Label noise bought", caption), axes)
        }
    }

    /// A series for each strategy with a basket, of numbers at 0, 1, …
    fn of_baskets(&self, of: impl Fn(&Basket) -> Vec<Spread>) -> Vec<Series> {
        let one = |curve: &Curve| {
            let numbers = of(curve.basket.as_ref()?).into_iter().enumerate();
            let points = numbers.map(|(at, spread)| point(at as f64, spread.scaled(PERCENT), None));
            series(curve.strategy, Style::Points, points.collect())
        };
        self.curves.iter().filter_map(one).collect()
    }

    fn classes(&self, run: &StrategyComparison) -> Figure {
        let caption = format!(
            "Share of the labels bought after the start that are of each class. Random choice buys as the world draws. Means over \
             finished seeds; bars: {OVER_SEEDS}."
        );
        let classes = self.curves.iter().filter_map(|curve| curve.basket.as_ref()).map(|basket| basket.classes.len());
        let names = (0..classes.max().unwrap_or(0)).map(|class| class.to_string());
        let axes = [Axis::named("class", names), Axis::linear("share of labels bought").in_unit("%")];
        Figure {
            series: self.of_baskets(|basket| basket.classes.iter().map(|class| class.share).collect()),
            ..self.figure(run, ("classes", "Classes bought", caption), axes)
        }
    }

    fn ambiguity(&self, run: &StrategyComparison) -> Figure {
        let caption = format!(
            "Share of the labels bought after the start by how ambiguous their images are: the image's own Bayes error, 1 − max p(y|x). \
             Random choice buys as the world draws. Means over finished seeds; bars: {OVER_SEEDS}."
        );
        let axes =
            [Axis::named("the image's own Bayes error", KINDS), Axis::linear("share of labels bought").in_unit("%")];
        Figure {
            series: self.of_baskets(|basket| basket.ambiguity.to_vec()),
            ..self.figure(run, ("ambiguity", "Ambiguity bought", caption), axes)
        }
    }

    fn falls(&self, run: &StrategyComparison) -> Figure {
        let caption = format!(
            "How much the exact KL(p || q) of the test images falls by one purchase, had the strategy bought in the place of the look-ahead: \
             the same labels and classifier before, the same training after. The look-ahead buys the best of all batches it tried, so \
             none of these gains more; it is chosen by the test images themselves. Means over purchases and finished seeds; bars: {OVER_SEEDS_ALONE}."
        );
        let names = self.one_step.iter().map(|one| one.strategy.label());
        let axes = [Axis::named("strategy", names), Axis::linear("fall of KL(p || q) by a purchase").in_unit("nats")];
        let one = |(at, step): (usize, &OneStep)| {
            series(step.strategy, Style::Points, vec![point(at as f64, step.fall, None)])
        };
        Figure {
            series: self.one_step.iter().enumerate().filter_map(one).collect(),
            ..self.figure(run, ("one-step", "What one step gains", caption), axes)
        }
    }

    /// What every strategy bought.
    fn baskets(&self) -> Table {
        let caption = format!(
            "Labels bought after the start. Balance: entropy of the classes' shares by ln K, 1 where all are bought as often. Own Bayes \
             error of an image: 1 − max p(y|x). In brackets: {OVER_SEEDS}."
        );
        let percent = |spread: Spread| value(spread.scaled(PERCENT));
        let rows = self.curves.iter().filter_map(|curve| Some((curve.strategy, curve.basket.as_ref()?)));
        let mut table = Table::of(rows)
            .words("strategy", |(strategy, _)| strategy.label())
            .column("balance of classes", "", 3, |(_, basket)| value(basket.balance))
            .column("own Bayes error, mean", "%", 2, |(_, basket)| percent(basket.own_error));
        for (i, kind) in KINDS.into_iter().enumerate() {
            table = table.column(kind, "%", 1, move |(_, basket): (_, &Basket)| percent(basket.ambiguity[i]));
        }
        table.named(self.id("baskets"), self.title("What was bought"), caption)
    }

    /// The same by class.
    fn by_class(&self) -> Table {
        let caption = format!(
            "Labels bought after the start, by class: share in all labels, and mean own Bayes error 1 − max p(y|x) of their images. In \
             brackets: {OVER_SEEDS}."
        );
        let rows = self.curves.iter().filter_map(|curve| Some((curve.strategy, &curve.basket.as_ref()?.classes)));
        let rows = rows.flat_map(|(strategy, classes)| {
            classes.iter().enumerate().map(move |(class, bought): (usize, &ClassBought)| (strategy, class, bought))
        });
        let percent = |spread: Spread| value(spread.scaled(PERCENT));
        Table::of(rows)
            .words("strategy", |(strategy, ..)| strategy.label())
            .words("class", |(_, class, _)| class)
            .column("share of labels", "%", 1, |(.., bought)| percent(bought.share))
            .column("own Bayes error, mean", "%", 2, |(.., bought)| bought.own_error.map(percent))
            .named(self.id("by-class"), self.title("Classes bought"), caption)
    }

    /// What one step gains.
    fn steps(&self) -> Table {
        let caption = format!(
            "Mean fall of the exact KL(p || q) of the test images by one purchase, all strategies tried in the place of the look-ahead: same \
             labels and classifier before, same training after. Share: of what the look-ahead gains, with Fieller's interval paired by \
             seed. The look-ahead buys the best of the batches tried, judged by the test images themselves. In brackets: {OVER_SEEDS_ALONE}."
        );
        Table::of(&self.one_step)
            .words("strategy", |step| step.strategy.label())
            .column("fall of KL", "nats", 4, |step| value(step.fall))
            .column("share of the look-ahead's", "%", 1, |step| stated(&step.share, PERCENT))
            .named(self.id("falls"), self.title("What one step gains"), caption)
    }

    /// What every strategy came to.
    fn strategies(&self) -> Table {
        let caption = format!(
            "Expected accuracy and epistemic KL before and after all purchases. KL reduction: share of the KL at the start that is gone at \
             the budget. Label noise: drawn labels after the start that are not the Bayes decision. Lead: paired by seed. In brackets: \
             {OVER_IMAGES}; of gain and lead over seeds alone where cells were finished by an older version, of KL reduction and label noise \
             always. Bayes accuracy {:.2} %. BLC figure 8 has about 97–98 % at the end for all strategies, on AFHQ: another world.",
            PERCENT * self.bayes_accuracy.value
        ) + self.of_look_ahead();
        let percent = |spread: Spread| value(spread.scaled(PERCENT));
        let ends =
            |curve| -> Option<(&Curve, &Stage, &Stage)> { Some((curve, curve.stages.first()?, curve.stages.last()?)) };
        Table::of(self.curves.iter().filter_map(ends))
            .words("strategy", |(curve, ..)| curve.strategy.label())
            .words("seeds", |(curve, ..)| curve.seeds.len())
            .column("accuracy at the start", "%", 2, |(_, first, _)| percent(first.accuracy))
            .column("at the budget", "%", 2, |(.., last)| percent(last.accuracy))
            .column("gain", "pp", 2, |(curve, ..)| percent(curve.gain))
            .column("lead over random", "pp", 2, |(.., last)| last.lead.map(|lead| percent(lead.accuracy)))
            .column("KL at the start", "nats", 4, |(_, first, _)| value(first.epistemic))
            .column("at the budget", "nats", 4, |(.., last)| value(last.epistemic))
            .column("KL reduction", "%", 1, |(curve, ..)| curve.reduction_share.map(percent))
            .column("label noise bought", "%", 1, |(curve, ..)| curve.noise.map(percent))
            .named(self.id("strategies"), self.title("Strategies"), caption)
    }

    /// Max epistemic beside each other strategy.
    fn pairs(&self) -> Table {
        let caption = "Gain ratio: mean accuracy gain of max epistemic from the common start to the budget, over that of the other; in \
                       brackets Fieller's 95 % interval, paired by seed, over seeds and test images, bounded only where the other's gain is surely not 0. Queries \
                       saved: the other's mean curve half way between start and budget sets the accuracy; the share of the labels it \
                       bought after the start that max epistemic's mean curve does not need to be there first, linear between rounds; in \
                       brackets its 95 % interval, over seeds and test images, from where max epistemic's mean curve is not told \
                       from that accuracy; an end at −100 % is the budget, beyond which it may be there as well. Lead and KL \
                       difference: paired by seed, 95 % intervals over seeds (Student) and test images (block means) in quadrature. All intervals over seeds alone where cells were finished by an older version. BLC \
                       §4.4 reports a 1.6× larger gain than max entropy and 47.8 % fewer queries in the middle regime on ImageNet-64, and \
                       says how neither is computed: other worlds, perhaps other definitions.".to_owned()
            + self.of_look_ahead();
        Table::of(&self.pairs)
            .words("max epistemic against", |pair| pair.against.label())
            .words("seeds", |pair| pair.seeds.len())
            .column("gain ratio", "×", 2, |pair| stated(&pair.gain_ratio, 1.0))
            .column("queries saved", "%", 1, |pair| pair.saving.as_ref().map(|saving| stated(&saving.saved, PERCENT)))
            .column("at accuracy", "%", 2, |pair| pair.saving.as_ref().map(|saving| PERCENT * saving.target))
            .column("max epistemic is there at", "labels", 0, |pair| {
                pair.saving.as_ref().and_then(|saving| saving.reached)
            })
            .column("the other at", "labels", 0, |pair| pair.saving.as_ref().map(|saving| saving.middle))
            .column("lead at the budget", "pp", 2, |pair| value(pair.lead.accuracy.scaled(PERCENT)))
            .column("KL difference", "nats", 4, |pair| value(pair.lead.epistemic))
            .named(self.id("duels"), self.title("What the truth is worth"), caption)
    }
}
