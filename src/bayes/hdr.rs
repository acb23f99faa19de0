//! The Bayes error as EBO computes it: Holmes-Diaconis-Ross integration over nested polytopes, the
//! nestings from subset simulation, the draws from LIN-ESS (Gessner, Kanjilal, Hennig 2020; code
//! LinConGauss and DataHardness), here in the r ≤ K − 1 dimensions of a [`Scene`] and with priors.
//!
//! For class g draw e ~ N(0, I). Rival h is likelier where its log posterior odds (m_h − m_g)·e −
//! (½d_gh² + ln(w_g/w_h)) are positive (half of what the code of the paper calls −(Ax + b)). Their
//! largest is the lead L of a rival; P_g = P(L ≤ 0) is the product of P(L ≤ γ_t | L ≤ γ_{t−1}) over
//! shifts ∞ = γ_0 > γ_1 > … > γ_T = 0, and E = Σ_g w_g(1 − P_g).
//!
//! The published code takes γ_1 = 0 wherever P_g > ½ ([`Side::Correct`]). There no chain ever runs:
//! the method is 0/1 Monte Carlo, with a relative error of E^(−½) a draw. [`Side::Smaller`]
//! integrates 1 − P_g = P(−L < 0) of such a class instead, a union of half-spaces, by the same
//! nestings.

mod ess;

use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use self::ess::{Chain, Event, Faces};
use super::classes::Scene;
use super::quadrature::Scaled;
use crate::error::{Error, Result};
use crate::parallel;
use crate::stats::{mean_and_error, student_95};
use crate::units::Seed;

/// A P(correct) below this is 0: beside the error w_g of its class it cannot be seen.
const LEAST_CORRECT: f64 = 1e-12;
/// A P(wrong) below this is 0, and the interval says so.
const LEAST_WRONG: f64 = 1e-30;
/// How far subset simulation may have misjudged the probability it gave up at.
const MISJUDGED: f64 = 10.0;
/// No error in n draws: with 97.5 % confidence at most this many expected, −ln 0.025.
const NONE_SEEN: f64 = 3.688_879_454_113_936;

/// Which event of a class is integrated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// That the class wins, always: what EBO publishes.
    #[default]
    Correct,
    /// That it wins or that it loses, whichever subset simulation finds less likely.
    Smaller,
}

/// Settings; EBO's by default (compute_bayes_error.py of DataHardness, all `repetitions` together).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HdrSpec {
    /// Counted draws per nesting and class, all repetitions together.
    pub samples: usize,
    /// Steps of the chain left out between two counted draws.
    pub skip: usize,
    /// Draws per nesting of subset simulation, in each repetition.
    pub shift_samples: usize,
    /// Steps left out between two of those.
    pub shift_skip: usize,
    /// Part of the draws that the next nesting is to hold.
    pub fraction: f64,
    /// Independent repetitions of everything, for the interval.
    pub repetitions: usize,
    /// Which event is integrated.
    pub side: Side,
}

impl Default for HdrSpec {
    fn default() -> Self {
        Self {
            samples: 60_000,
            skip: 9,
            shift_samples: 100,
            shift_skip: 3,
            fraction: 0.5,
            repetitions: 10,
            side: Side::Correct,
        }
    }
}

impl HdrSpec {
    /// Counted draws per nesting and class in one repetition.
    fn draws(&self) -> usize {
        self.samples.div_ceil(self.repetitions)
    }

    /// Refuses what cannot be computed with.
    ///
    /// # Errors
    /// When a number is out of its range; the message names it.
    pub fn check(&self) -> Result<()> {
        if self.repetitions < 2 {
            return Err(Error::input("hdr: an interval needs at least 2 repetitions"));
        }
        if self.samples < self.repetitions || self.shift_samples < 2 {
            return Err(Error::input("hdr: at least 1 sample per repetition and 2 shift samples are needed"));
        }
        if !(self.fraction >= 0.05 && self.fraction <= 0.95) {
            return Err(Error::input(format!("hdr: fraction must be within 0.05 … 0.95, not {}", self.fraction)));
        }
        Ok(())
    }
}

/// What the repetitions found.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Outcome {
    /// E of each repetition, without what coincident classes hide; independent and each unbiased.
    pub replicates: Vec<f64>,
    /// Draws, those of subset simulation too.
    pub samples: u64,
    /// Most nestings a repetition needed, per class.
    pub nestings: Vec<usize>,
    /// What replicates cannot show: errors too rare to be drawn, probabilities cut to 0.
    pub floor: f64,
}

impl Outcome {
    /// Mean and half width of its 95 % interval: Student's t, but no less than the floor.
    pub fn sum(&self) -> Scaled {
        let (value, error) = mean_and_error(&self.replicates);
        let half_width = (student_95(self.replicates.len() - 1) * error).max(self.floor);
        Scaled { log_scale: 0.0, value, half_width }
    }
}

/// E of a scene. `report` gets the outcome after every repetition from the second on, and may end
/// it by an error. The same for any number of threads.
pub(super) fn estimate(
    scene: &Scene,
    spec: &HdrSpec,
    seed: Seed,
    mut report: impl FnMut(&Outcome) -> Result<()>,
) -> Result<Outcome> {
    let count = scene.count();
    let seed = seed.split("hdr");
    let mut outcome = Outcome { replicates: Vec::new(), samples: 0, nestings: vec![0; count], floor: 0.0 };
    // Sum of probabilities cut to 0; largest weight of a class with counted errors only.
    let (mut cut, mut plain): (f64, f64) = (0.0, 0.0);
    for repetition in 0..spec.repetitions {
        let one = |g: usize| {
            let mut run = Run { spec, rng: seed.rng((repetition * count + g) as u64), samples: 0 };
            run.part(&Faces::of(scene, g))
        };
        let parts = parallel::map(count, one);
        outcome.replicates.push(parts.iter().zip(&scene.weights).map(|(part, w)| w * part.wrong).sum());
        for (g, (part, w)) in parts.iter().zip(&scene.weights).enumerate() {
            outcome.samples += part.samples;
            outcome.nestings[g] = outcome.nestings[g].max(part.nestings);
            cut += w * part.cut;
            if part.plain {
                plain = plain.max(*w);
            }
        }
        let done = (repetition + 1) as f64;
        outcome.floor = plain * NONE_SEEN / (done * spec.draws() as f64) + cut / done;
        if repetition > 0 {
            report(&outcome)?;
        }
    }
    Ok(outcome)
}

/// One class in one repetition.
struct Part {
    /// 1 − P_g.
    wrong: f64,
    nestings: usize,
    samples: u64,
    /// Whether errors were only counted among unconditional draws.
    plain: bool,
    /// How large a probability may be that was taken for 0.
    cut: f64,
}

/// The computation of one class in one repetition.
struct Run<'a> {
    spec: &'a HdrSpec,
    rng: ChaCha8Rng,
    samples: u64,
}

impl Run<'_> {
    /// 1 − P_g.
    fn part(&mut self, faces: &Faces) -> Part {
        if faces.rivals() == 0 {
            return Part { wrong: 0.0, nestings: 0, samples: 0, plain: false, cut: 0.0 };
        }
        let (mut event, mut least) = (Event::Correct, LEAST_CORRECT);
        let mut chain = Chain::new(faces, event);
        let mut shifts = self.shifts(&mut chain, least);
        if self.spec.side == Side::Smaller && shifts == [0.0] {
            (event, least) = (Event::Wrong, LEAST_WRONG);
            chain = Chain::new(faces, event);
            shifts = self.shifts(&mut chain, least);
        }
        let reached = shifts.last() == Some(&0.0);
        let probability = if reached { self.probability(&mut chain, &shifts) } else { 0.0 };
        Part {
            wrong: if event == Event::Wrong { probability } else { 1.0 - probability },
            nestings: shifts.len(),
            samples: self.samples,
            plain: event == Event::Correct && shifts == [0.0],
            cut: if reached { 0.0 } else { MISJUDGED * least },
        }
    }

    /// A draw inside {score ≤ `outer`}.
    fn draw(&mut self, chain: &mut Chain, outer: f64, skip: usize) {
        self.samples += 1;
        chain.draw(outer, skip + 1, &mut self.rng);
    }

    /// Subset simulation (Au and Beck 2001; SubsetSimulation of LinConGauss): each shift is the
    /// quantile `fraction` of the score among draws inside the one before, the last is 0. Ends
    /// without the 0 where the event is less likely than `least`.
    fn shifts(&mut self, chain: &mut Chain, least: f64) -> Vec<f64> {
        let HdrSpec { shift_samples: draws, shift_skip, fraction, .. } = *self.spec;
        let inside = ((draws as f64 * fraction) as usize).max(1);
        let most = (least.ln() / fraction.ln()).ceil() as usize;
        let mut shifts = Vec::new();
        let mut drawn = Vec::new();
        let mut scores = Vec::new();
        while shifts.len() < most && shifts.last() != Some(&0.0) {
            let outer = shifts.last().copied().unwrap_or(f64::INFINITY);
            drawn.clear();
            scores.clear();
            for i in 0..draws {
                self.draw(chain, outer, shift_skip);
                drawn.extend_from_slice(chain.at());
                scores.push((chain.score(), i));
            }
            scores.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
            let done = scores.partition_point(|s| s.0 < 0.0);
            let (shift, kept) = if done > inside { (0.0, done) } else { (scores[inside].0, inside) };
            shifts.push(shift);
            let chosen = scores[self.rng.random_range(0..kept)].1 * chain.at().len();
            chain.start(&drawn[chosen..chosen + chain.at().len()]);
        }
        shifts
    }

    /// The product of P(score ≤ γ_t | score ≤ γ_{t−1}), each the part of the draws that is inside
    /// (HDR of LinConGauss). Each chain starts from one of the draws just counted inside, all
    /// equally likely. Then the product is unbiased, however short and dependent the chains: draws
    /// inside γ_t, weighted by the product so far, have the right law in the mean (Del Moral,
    /// Feynman-Kac Formulae, 2004, §7.4). The published code starts from a draw of subset
    /// simulation and counts it.
    fn probability(&mut self, chain: &mut Chain, shifts: &[f64]) -> f64 {
        let draws = self.spec.draws();
        let mut product = 1.0;
        let mut outer = f64::INFINITY;
        let mut survivor = chain.at().to_vec();
        for &shift in shifts {
            let mut inside = 0;
            for _ in 0..draws {
                self.draw(chain, outer, self.spec.skip);
                if chain.score() <= shift {
                    inside += 1;
                    if shift != 0.0 && self.rng.random_range(0..inside) == 0 {
                        survivor.copy_from_slice(chain.at());
                    }
                }
            }
            if inside == 0 {
                return 0.0;
            }
            product *= inside as f64 / draws as f64;
            chain.start(&survivor);
            outer = shift;
        }
        product
    }
}

#[cfg(test)]
mod tests {
    use super::super::classes::{GaussianClasses, Merge};
    use super::super::normal::{cdf, density, tail};
    use super::*;
    use crate::units::Tau;

    fn go(_: &Outcome) -> Result<()> {
        Ok(())
    }

    fn scene(means: Vec<Vec<f64>>, priors: Vec<f64>) -> Scene {
        GaussianClasses::new(means, priors).unwrap().scene(Tau::ONE, Merge::Best)
    }

    /// Means a·e_k and ∫ φ(t − a)(1 − Φ(t)^(K−1)) dt.
    fn equidistant(count: usize, a: f64) -> (Scene, f64) {
        let along = |k: usize| (0..count).map(|i| if i == k { a } else { 0.0 }).collect();
        let step = 1e-2;
        let error = |t: f64| density(t - a) * -((count as f64 - 1.0) * (-tail(t)).ln_1p()).exp_m1() * step;
        let exact = (-1000..2500).map(|i| error(step * f64::from(i))).sum();
        (scene((0..count).map(along).collect(), vec![1.0 / count as f64; count]), exact)
    }

    fn spec(samples: usize, side: Side) -> HdrSpec {
        HdrSpec { samples, side, ..HdrSpec::default() }
    }

    #[test]
    fn estimates_agree_with_closed_forms() {
        let (p, d) = (0.3f64, 1.5);
        let shift = (p / (1.0 - p)).ln() / d;
        let two = p * tail(0.5 * d + shift) + (1.0 - p) * cdf(shift - 0.5 * d);
        let rare = equidistant(5, 8.0);
        assert!(rare.1 < 1e-7);
        let problems = [
            (scene(vec![vec![0.0], vec![d]], vec![p, 1.0 - p]), two, 0.03),
            (rare.0, rare.1, 0.2),
            (equidistant(5, 2.0).0, equidistant(5, 2.0).1, 0.03),
            (equidistant(5, 0.4).0, equidistant(5, 0.4).1, 0.03),
        ];
        for (scene, exact, most) in problems {
            for side in [Side::Correct, Side::Smaller] {
                let outcome = estimate(&scene, &spec(2000, side), Seed(2), go).unwrap();
                let sum = outcome.sum();
                // Twice: of eight intervals of 95 % one may well miss.
                assert!((sum.value - exact).abs() <= 2.0 * sum.half_width, "{side:?} {exact:e} {sum:?}");
                // Counting alone sees nothing of a rare error, and says so.
                let seen = side == Side::Smaller || exact > 1e-3;
                assert!(!seen || sum.half_width < 4.0 * most * exact, "{side:?} {exact:e} {sum:?}");
                assert!(seen || sum.half_width > 1e-4, "{sum:?}");
            }
        }
    }

    #[test]
    fn classes_that_never_win_end() {
        // The middle of three on a line has no region; the other one is 20 sigma away.
        let hopeless = [
            (scene(vec![vec![-0.1], vec![0.0], vec![0.1]], vec![0.45, 0.1, 0.45]), 1),
            (scene(vec![vec![0.0], vec![1.0]], vec![1.0 - 1e-9, 1e-9]), 1),
        ];
        for (scene, class) in hopeless {
            let outcome = estimate(&scene, &spec(200, Side::Smaller), Seed(1), go).unwrap();
            assert_eq!(outcome.nestings[class], 40);
            assert!(outcome.floor < 1e-11 && outcome.replicates.iter().all(|e| *e >= scene.weights[class]));
        }
        let alone = estimate(&scene(vec![vec![0.0]], vec![1.0]), &spec(200, Side::Smaller), Seed(1), go).unwrap();
        assert_eq!(alone.sum(), Scaled { log_scale: 0.0, value: 0.0, half_width: 0.0 });
    }

    #[test]
    fn threads_do_not_matter_and_a_stop_does() {
        let (scene, _) = equidistant(4, 1.0);
        let with = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| estimate(&scene, &spec(500, Side::Smaller), Seed(3), go).unwrap())
        };
        let outcome = with(1);
        assert_eq!(outcome, with(3));
        // 10 repetitions of 4 classes: 50 counted and 100 subset draws a nesting.
        assert!(outcome.samples >= 40 * 150 && outcome.nestings.iter().all(|&n| n >= 2));
        let mut seen = 0;
        let stopped = estimate(&scene, &spec(500, Side::Smaller), Seed(3), |outcome| {
            seen = outcome.replicates.len();
            if seen == 3 { Err(Error::Cancelled) } else { Ok(()) }
        });
        assert!(matches!(stopped, Err(Error::Cancelled)) && seen == 3);
    }

    #[test]
    fn settings_that_cannot_be_are_refused() {
        assert!(HdrSpec::default().check().is_ok());
        for bad in [
            HdrSpec { repetitions: 1, ..HdrSpec::default() },
            HdrSpec { samples: 9, ..HdrSpec::default() },
            HdrSpec { shift_samples: 1, ..HdrSpec::default() },
            HdrSpec { fraction: 1.0, ..HdrSpec::default() },
            HdrSpec { fraction: f64::NAN, ..HdrSpec::default() },
        ] {
            assert!(bad.check().is_err(), "{bad:?}");
        }
    }
}
