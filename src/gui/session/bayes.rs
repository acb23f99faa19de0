//! What is known of the Bayes error: readout, target, curve, hardness, rankings, comparison, Figure
//! 1.

use super::newest::Newest;
use crate::bayes::sampling::{SampledHardness, Survey};
use crate::bayes::{ClassHardness, Estimate, Figure, Information, Method, RankingsOverTau, TauEstimate};
use crate::oracle::world::LabelLaw;
use crate::worker::bayes::protocol::{Answer, Figure1Point, Study, WorldProblem};

/// A Bayes error at one temperature.
#[derive(Debug, Clone)]
pub struct Readout {
    /// Base temperature τ.
    pub tau: f64,
    pub tolerance: f64,
    /// The value, or why there is none.
    pub outcome: Result<Estimate, String>,
}

/// A target that was typed, and its τ.
#[derive(Debug, Clone)]
pub struct Target {
    /// The Bayes error, a fraction.
    pub error: f64,
    /// The class prior π, smoothing T and label noise it was asked for.
    pub law: LabelLaw,
    /// Its τ, or why there is none; `None` while it is computed.
    pub outcome: Option<Result<TauEstimate, String>>,
}

/// E(τ).
#[derive(Debug, Clone, Default)]
pub struct Curve {
    pub taus: Vec<f64>,
    /// What is there, by place.
    pub points: Vec<Option<Estimate>>,
    /// The law of labels it belongs to, as all below; none before the first.
    pub law: Option<LabelLaw>,
}

impl Curve {
    /// The points there are: τ and Bayes error.
    pub fn known(&self) -> impl Iterator<Item = (f64, &Estimate)> {
        self.taus.iter().zip(&self.points).filter_map(|(tau, point)| Some((*tau, point.as_ref()?)))
    }

    /// Returns whether its shape can be seen.
    fn enough(&self) -> bool {
        self.known().count() >= 20
    }
}

/// Bayes errors of all pairs of classes alone, [K, K], with what their colours follow: it is found once, not in every frame.
#[derive(Debug, Clone, Default)]
pub struct Pairs {
    /// The errors; NaN where there is none.
    pub errors: Vec<f64>,
    /// log₁₀ of each.
    pub logs: Vec<f64>,
    /// The smallest and the largest of those logarithms that are finite, if there are any.
    pub span: Option<[f64; 2]>,
}

impl Pairs {
    fn new(errors: Vec<f64>) -> Self {
        let logs: Vec<f64> = errors.iter().map(|error| error.log10()).collect();
        let wider = |span: Option<[f64; 2]>, log: &f64| {
            let [low, high] = span.unwrap_or([*log; 2]);
            Some([low.min(*log), high.max(*log)])
        };
        let span = logs.iter().filter(|log| log.is_finite()).fold(None, wider);
        Self { errors, logs, span }
    }
}

/// How hard classes are to tell apart at one temperature.
#[derive(Debug, Clone, Default)]
pub struct Hardness {
    /// Base temperature τ.
    pub tau: f64,
    /// The law of labels; none before the first.
    pub law: Option<LabelLaw>,
    /// Hardest first.
    pub classes: Vec<ClassHardness>,
    /// Bayes errors of pairs.
    pub pairs: Pairs,
    /// Their 95 % intervals; empty where they are exact.
    pub pair_intervals: Vec<Option<(f64, f64)>>,
}

impl Hardness {
    /// As draws have it.
    fn of_draws(found: &SampledHardness, law: &LabelLaw) -> Self {
        let all = || found.pairs.iter().flatten();
        Self {
            tau: found.tau.get(),
            law: Some(law.clone()),
            classes: found.ranking().classes,
            pairs: Pairs::new(all().map(|pair| pair.map_or(f64::NAN, |figure| figure.value)).collect()),
            pair_intervals: all().map(|pair| pair.map(|figure| figure.interval)).collect(),
        }
    }

    /// Interrupted questions begin again: a class may come twice.
    fn take(&mut self, one: ClassHardness) {
        self.classes.retain(|other| other.class != one.class);
        let harder = |other: &ClassHardness| other.one_vs_rest.value >= one.one_vs_rest.value;
        let place = self.classes.partition_point(harder);
        self.classes.insert(place, one);
    }
}

/// Every method on one problem.
#[derive(Debug, Clone, Default)]
pub struct Comparison {
    /// Base temperature τ.
    pub tau: f64,
    /// The law of labels; none before the first.
    pub law: Option<LabelLaw>,
    /// What each found, or why it does not apply.
    pub rows: Vec<(Method, Result<Estimate, String>)>,
}

/// Something that comes piece by piece.
#[derive(Debug, Clone, Default)]
pub struct Streamed<T> {
    /// What there is of it.
    pub value: T,
    /// The question it answers; 0 before the first.
    generation: u64,
    /// Whether more is to come.
    pub running: bool,
    /// Why it could not be computed.
    pub trouble: Option<String>,
}

impl<T> Streamed<T> {
    /// Asked for, beginning with this.
    pub fn expect(&mut self, generation: u64, value: T) {
        *self = Self { value, generation, running: true, trouble: None };
    }

    pub fn asked(&self) -> bool {
        self.generation > 0
    }

    /// Changes the value by an answer to the question of this number; others are dropped.
    fn update(&mut self, generation: u64, change: impl FnOnce(&mut T)) {
        if self.generation == generation {
            change(&mut self.value);
        }
    }

    fn end(&mut self, generation: u64, trouble: Option<String>) {
        if self.generation == generation {
            self.running = false;
            self.trouble = trouble;
        }
    }
}

/// What is known of the Bayes error.
#[derive(Debug, Default)]
pub struct BayesFigures {
    /// The problem of the open oracle, or why it has none.
    pub world: Option<Result<WorldProblem, String>>,
    /// At the present knobs.
    pub readout: Newest<Readout>,
    /// A and I at the present knobs, with their τ.
    pub information: Newest<(f64, Information)>,
    pub target: Option<Target>,
    target_generation: u64,
    /// E(τ).
    pub curve: Streamed<Curve>,
    /// Of classes and pairs.
    pub hardness: Streamed<Hardness>,
    /// The order of classes over τ.
    pub rankings: Streamed<RankingsOverTau>,
    /// The law of labels they are of; none before the first.
    pub rankings_of: Option<LabelLaw>,
    /// The curve before, shown until the new one has some points.
    pub curve_before: Option<Curve>,
    /// The hardness before, shown while the new one is incomplete.
    pub hardness_before: Option<Hardness>,
    /// Of methods.
    pub comparison: Streamed<Comparison>,
    pub figure1: Streamed<Vec<Figure1Point>>,
    /// Of a world that must be sampled: what curve, hardness and rankings were made of.
    pub survey: Option<Survey>,
    survey_generation: u64,
}

impl BayesFigures {
    /// A τ was asked for.
    pub fn expect_target(&mut self, generation: u64, error: f64, law: LabelLaw) {
        self.target_generation = generation;
        self.target = Some(Target { error, law, outcome: None });
    }

    /// The τ that was found cannot be set.
    pub fn refuse_target(&mut self, why: String) {
        if let Some(target) = &mut self.target {
            target.outcome = Some(Err(why));
        }
    }

    /// Whether the Bayes error of this world must be sampled; `None` until it is known.
    pub fn must_be_sampled(&self) -> Option<bool> {
        self.world.as_ref().map(Result::is_err)
    }

    /// A survey that was kept was asked for.
    pub fn expect_survey(&mut self, generation: u64) {
        self.survey_generation = generation;
    }

    /// Takes a survey in: the panel shows it as it shows what needs no draws.
    pub fn take_survey(&mut self, survey: &Survey) {
        let (taus, points) = survey.estimates().map(|(tau, estimate)| (tau, Some(estimate))).unzip();
        self.curve.value = Curve { taus, points, law: Some(survey.law.clone()) };
        let hardness = survey.hardness.as_ref().map(|found| Hardness::of_draws(found, &survey.law));
        self.hardness.value = hardness.unwrap_or_default();
        self.rankings.value.clone_from(&survey.rankings);
        self.rankings_of = Some(survey.law.clone());
        self.survey = Some(survey.clone());
    }

    /// Leaves what only a survey answers to that: what was asked for before this was known has no other answer than a refusal.
    fn ask_no_more(&mut self) {
        (self.curve, self.curve_before) = Default::default();
        (self.hardness, self.hardness_before) = Default::default();
        (self.rankings, self.rankings_of) = Default::default();
        if let Some(survey) = self.survey.take() {
            self.take_survey(&survey);
        }
    }

    /// The Bayes error at τ from the survey of this law of labels, with its band.
    pub fn surveyed(&self, tau: f64, law: &LabelLaw) -> Option<Figure> {
        self.survey.as_ref().filter(|survey| survey.law == *law)?.error_at(tau)
    }

    /// The same with the number of draws at each τ.
    pub fn surveyed_with_draws(&self, tau: f64, law: &LabelLaw) -> Option<(Figure, usize)> {
        self.surveyed(tau, law).zip(self.survey.as_ref().map(Survey::samples))
    }

    /// The τ of a Bayes error from the survey of this law of labels, with its interval.
    pub fn surveyed_tau(&self, error: f64, law: &LabelLaw) -> Option<Figure> {
        self.survey.as_ref().filter(|survey| survey.law == *law)?.tau_of(error)
    }

    pub fn expect_curve(&mut self, generation: u64, curve: Curve) {
        let enough = self.curve.value.enough();
        let old = std::mem::take(&mut self.curve.value);
        if enough {
            self.curve_before = Some(old);
        }
        self.curve.expect(generation, curve);
    }

    /// The curve to show: the newest, once it has a shape where the one before is of the same law of labels.
    pub fn curve_shown(&self) -> &Curve {
        self.former_curve().filter(|before| before.law == self.curve.value.law).unwrap_or(&self.curve.value)
    }

    /// The curve before, of another law of labels, until the newest has a shape.
    pub fn curve_of_another_law(&self) -> Option<&Curve> {
        self.former_curve().filter(|before| before.law != self.curve.value.law)
    }

    fn former_curve(&self) -> Option<&Curve> {
        self.curve_before.as_ref().filter(|_| self.curve.running && !self.curve.value.enough())
    }

    /// Class hardness was asked for at τ.
    pub fn expect_hardness(&mut self, generation: u64, tau: f64, law: LabelLaw) {
        let old = std::mem::take(&mut self.hardness.value);
        if !old.pairs.errors.is_empty() && !old.classes.is_empty() {
            self.hardness_before = Some(old);
        }
        self.hardness.expect(generation, Hardness { tau, law: Some(law), ..Hardness::default() });
    }

    /// The order of classes over τ was asked for.
    pub fn expect_rankings(&mut self, generation: u64, law: LabelLaw) {
        self.rankings.expect(generation, RankingsOverTau::default());
        self.rankings_of = Some(law);
    }

    /// Returns the newest class hardness once it is complete, until then the one before of the same law of labels.
    pub fn hardness_shown(&self) -> &Hardness {
        let before = self.hardness_before.as_ref().filter(|_| self.hardness.running);
        before.filter(|before| before.law == self.hardness.value.law).unwrap_or(&self.hardness.value)
    }

    /// Forgets another oracle's figures. Figure 1 stays; the new problem may be known already.
    pub fn forget_world(&mut self) {
        *self = Self {
            world: self.world.take(),
            figure1: std::mem::take(&mut self.figure1),
            readout: self.readout.of_another_world(),
            information: self.information.of_another_world(),
            ..Self::default()
        };
    }

    /// Takes an answer in; the τ to set, when a target was found.
    pub fn take(&mut self, answer: Answer) -> Option<f64> {
        match answer {
            Answer::World(world) => {
                if world.is_err() {
                    self.ask_no_more();
                }
                self.world = Some(world);
            }
            Answer::Readout { generation, tau, tolerance, outcome } => {
                self.readout.take(generation, Readout { tau, tolerance, outcome });
            }
            Answer::Information { generation, tau, information } => {
                self.information.take(generation, (tau, information))
            }
            Answer::Target { generation, outcome, .. } if generation == self.target_generation => {
                let target = self.target.as_mut()?;
                return target.outcome.insert(outcome).as_ref().ok().map(|found| found.tau.value);
            }
            Answer::Target { .. } => {}
            Answer::Curve { generation, index, estimate } => self.curve.update(generation, |curve| {
                if let Some(point) = curve.points.get_mut(index) {
                    *point = Some(estimate);
                }
            }),
            Answer::Pairs { generation, pairs } => self.hardness.update(generation, |known| {
                (known.pairs, known.pair_intervals) = (Pairs::new(pairs.errors), pairs.intervals);
            }),
            Answer::Hardness { generation, hardness } => self.hardness.update(generation, |known| known.take(hardness)),
            Answer::Ranking { generation, rankings } => self.rankings.update(generation, |known| *known = rankings),
            Answer::Compared { generation, method, outcome } => {
                self.comparison.update(generation, |known| known.rows.push((method, outcome)));
            }
            // What was found since is newer.
            Answer::Kept { generation, survey } => {
                let known = self.survey.as_ref().is_some_and(|known| known.law == survey.law);
                if generation == self.survey_generation && !known {
                    self.take_survey(&survey);
                }
            }
            Answer::Figure1 { generation, point } => self.figure1.update(generation, |points| points.push(point)),
            Answer::Ended { generation, study, trouble } => match study {
                Study::Curve => self.curve.end(generation, trouble),
                Study::Hardness => self.hardness.end(generation, trouble),
                Study::Ranking => self.rankings.end(generation, trouble),
                Study::Compare => self.comparison.end(generation, trouble),
                Study::Figure1 => self.figure1.end(generation, trouble),
            },
            Answer::Lost { reason } => self.lose(&reason),
        }
        None
    }

    fn lose(&mut self, reason: &str) {
        for (running, trouble) in [
            (&mut self.curve.running, &mut self.curve.trouble),
            (&mut self.hardness.running, &mut self.hardness.trouble),
            (&mut self.rankings.running, &mut self.rankings.trouble),
            (&mut self.comparison.running, &mut self.comparison.trouble),
            (&mut self.figure1.running, &mut self.figure1.trouble),
        ] {
            if std::mem::take(running) {
                *trouble = Some(reason.to_owned());
            }
        }
        if let Some(target) = self.target.as_mut().filter(|target| target.outcome.is_none()) {
            target.outcome = Some(Err(reason.to_owned()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oracle::posterior::Prior;

    #[test]
    fn classes_are_sorted_by_hardness_and_come_once() {
        let mut figures = BayesFigures::default();
        figures.expect_hardness(4, 1.0, Prior::uniform(3).into());
        for (class, value) in [(0, 0.1), (1, 0.3), (2, 0.2), (1, 0.3)] {
            let hardness = ClassHardness { class, one_vs_rest: Figure::new(value, 0.001, 0.5) };
            figures.take(Answer::Hardness { generation: 4, hardness });
            figures.take(Answer::Hardness { generation: 3, hardness });
        }
        let order: Vec<usize> = figures.hardness.value.classes.iter().map(|one| one.class).collect();
        assert_eq!(order, [1, 2, 0]);
    }
}
