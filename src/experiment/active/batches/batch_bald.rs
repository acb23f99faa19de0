//! BatchBALD (Kirsch, van Amersfoort & Gal 2019): the batch whose labels together would tell most about which
//! member of the ensemble is right, I(y₁ … y_b; ω) = H(y₁ … y_b) − Σ mean H(y_i|ω). BALD adds up what images tell
//! one by one, and buys the same news many times.
//!
//! Labels are independent given a member, so all that is known after some labels is a weight for each member.
//! What a further image adds is E[H(Σ w q) − Σ w H(q)], over the outcomes of the labels before it: all of
//! them while they are at most [`OUTCOMES`], else so many drawn systematically in proportion to their
//! probability. The weights of the sample stand in both terms, so that what adds nothing is 0 in any sample. The information is submodular: what an image adds only falls as the batch grows (Minoux 1978),
//! so most need not be asked again. Of a sample what it added before is an estimate of the bound: an image for which it
//! was too small is not asked again.
//!
//! M members tell at most ln M nats. A batch that has told them chooses no better than chance from there on.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use rand::{Rng, RngExt};

use crate::parallel;

/// Most outcomes of labels that are followed.
const OUTCOMES: usize = 256;

/// Answers q of M members about N images, [N, M, K].
struct Answers<'a> {
    q: &'a [f64],
    members: usize,
    classes: usize,
    /// H(q) of each member, [N, M], nats.
    entropies: Vec<f64>,
}

/// Outcomes of the labels of a batch.
struct Outcomes {
    /// Their probabilities.
    shares: Vec<f64>,
    /// The weight of each member after each, [C, M].
    weights: Vec<f64>,
}

/// −q ln q, nats.
fn term(q: f64) -> f64 {
    if q > 0.0 { -q * q.ln() } else { 0.0 }
}

impl<'a> Answers<'a> {
    fn new(q: &'a [f64], members: usize, classes: usize) -> Self {
        let entropy = |q: &[f64]| q.iter().map(|q| term(*q)).sum::<f64>();
        Self { q, members, classes, entropies: q.chunks_exact(classes).map(entropy).collect() }
    }

    fn len(&self) -> usize {
        self.entropies.len() / self.members.max(1)
    }

    fn of(&self, image: usize) -> &[f64] {
        let each = self.members * self.classes;
        &self.q[image * each..(image + 1) * each]
    }

    /// The probability of a class of an image, the members weighed.
    fn mixed(&self, image: usize, weights: &[f64], class: usize) -> f64 {
        let q = self.of(image).iter().skip(class).step_by(self.classes);
        q.zip(weights).map(|(q, weight)| q * weight).sum()
    }

    /// What the label of an image would tell beyond the outcomes, nats; not below 0 by rounding.
    fn gain(&self, image: usize, outcomes: &Outcomes) -> f64 {
        let own = &self.entropies[image * self.members..(image + 1) * self.members];
        let told = |weights: &[f64]| {
            let all: f64 = (0..self.classes).map(|k| term(self.mixed(image, weights, k))).sum();
            all - weights.iter().zip(own).map(|(weight, own)| weight * own).sum::<f64>()
        };
        let each = outcomes.weights.chunks_exact(self.members).zip(&outcomes.shares);
        each.map(|(weights, share)| share * told(weights)).sum::<f64>().max(0.0)
    }
}

impl Outcomes {
    /// Before any label all members weigh alike.
    fn none(members: usize) -> Self {
        Self { shares: vec![1.0], weights: vec![1.0 / members as f64; members] }
    }

    /// With the label of one more image.
    fn with(&self, answers: &Answers<'_>, image: usize) -> Self {
        let (mut shares, mut weights) = (Vec::new(), Vec::new());
        for (before, &share) in self.weights.chunks_exact(answers.members).zip(&self.shares) {
            for class in 0..answers.classes {
                let q = answers.mixed(image, before, class);
                if share * q <= 0.0 {
                    continue;
                }
                shares.push(share * q);
                let of = answers.of(image).iter().skip(class).step_by(answers.classes);
                weights.extend(of.zip(before).map(|(of, before)| of * before / q));
            }
        }
        Self { shares, weights }
    }

    /// At most [`OUTCOMES`] of them, drawn systematically (all by one number between 0 and 1): each is kept as
    /// often as its probability says, within one.
    fn thinned(self, members: usize, at: f64) -> Self {
        if self.shares.len() <= OUTCOMES {
            return self;
        }
        let step = self.shares.iter().sum::<f64>() / OUTCOMES as f64;
        let mut weights = Vec::with_capacity(OUTCOMES * members);
        let (mut reached, mut next) = (0.0, at * step);
        for (share, of) in self.shares.iter().zip(self.weights.chunks_exact(members)) {
            reached += share;
            while next < reached {
                weights.extend(of);
                next += step;
            }
        }
        let kept = weights.len() / members;
        Self { shares: vec![1.0 / kept as f64; kept], weights }
    }
}

/// An image with what its label would tell: known for a batch of so many, an upper bound for larger ones while all outcomes are followed.
#[derive(Debug, PartialEq)]
struct Bound {
    gain: f64,
    image: Reverse<usize>,
    batch: usize,
}

impl Eq for Bound {}

impl Ord for Bound {
    /// By gain; of equals the first image is the greatest.
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.gain.total_cmp(&other.gain).then(self.image.cmp(&other.image))
    }
}

impl PartialOrd for Bound {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

/// Returns `count` places and what each added, nats, from log q of each member, [M][N, K].
pub(in super::super) fn batch_bald(
    log_q: &[Vec<f64>],
    classes: usize,
    count: usize,
    rng: &mut impl Rng,
) -> Vec<(usize, f64)> {
    let (members, images) = (log_q.len(), log_q.first().map_or(0, |first| first.len() / classes.max(1)));
    let of = |image: usize| log_q.iter().flat_map(move |log_q| &log_q[image * classes..(image + 1) * classes]);
    let q: Vec<f64> = (0..images).flat_map(of).map(|log_q| log_q.exp()).collect();
    let answers = Answers::new(&q, members, classes);
    let mut outcomes = Outcomes::none(members);
    let bound =
        |image, outcomes: &Outcomes, batch| Bound { gain: answers.gain(image, outcomes), image: Reverse(image), batch };
    let mut heap: BinaryHeap<Bound> = parallel::map(answers.len(), |image| bound(image, &outcomes, 0)).into();
    let mut chosen = Vec::with_capacity(count);
    while chosen.len() < count {
        let Some(Bound { gain, image: Reverse(image), batch }) = heap.pop() else { break };
        if batch < chosen.len() {
            heap.push(bound(image, &outcomes, chosen.len()));
            continue;
        }
        chosen.push((image, gain));
        outcomes = outcomes.with(&answers, image).thinned(members, rng.random());
    }
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Seed;

    fn logs(q: &[f64]) -> Vec<f64> {
        q.iter().map(|q| q.ln()).collect()
    }

    /// Answers of members drawn at random, [M][N, K].
    fn random(seed: u64, members: usize, images: usize, classes: usize) -> Vec<Vec<f64>> {
        let mut rng = Seed(seed).rng(0);
        let mut row = || {
            let weights: Vec<f64> = (0..classes).map(|_| rng.random::<f64>().powi(3) + 1e-3).collect();
            let sum: f64 = weights.iter().sum();
            weights.into_iter().map(move |weight| (weight / sum).ln()).collect::<Vec<f64>>()
        };
        (0..members).map(|_| (0..images).flat_map(|_| row()).collect()).collect()
    }

    /// I(y_1 … y_b; ω) from the whole table of the joint distribution.
    fn information(log_q: &[Vec<f64>], classes: usize, batch: &[usize]) -> f64 {
        let members = log_q.len();
        let q = |member: usize, image: usize, class: usize| log_q[member][image * classes + class].exp();
        let mut joint = 0.0;
        for outcome in 0..classes.pow(batch.len() as u32) {
            let label = |i: usize| outcome / classes.pow(i as u32) % classes;
            let of =
                |member: usize| batch.iter().enumerate().map(|(i, &image)| q(member, image, label(i))).product::<f64>();
            joint += term((0..members).map(of).sum::<f64>() / members as f64);
        }
        let apart = |member: usize| {
            batch.iter().map(|&image| (0..classes).map(|k| term(q(member, image, k))).sum::<f64>()).sum::<f64>()
        };
        joint - (0..members).map(apart).sum::<f64>() / members as f64
    }

    #[test]
    fn a_batch_of_one_is_bald_and_gains_are_those_of_the_joint_entropy() {
        for seed in 0..20 {
            let log_q = random(seed, 4, 9, 3);
            let chosen = batch_bald(&log_q, 3, 4, &mut Seed(0).rng(0));
            let bald = |image: usize| {
                let rows: Vec<&[f64]> = log_q.iter().map(|log_q| &log_q[3 * image..3 * image + 3]).collect();
                super::super::super::scores::disagreement(&rows)
            };
            let best = (0..9).max_by(|&a, &b| bald(a).total_cmp(&bald(b))).unwrap();
            assert_eq!(chosen[0].0, best);
            assert!((chosen[0].1 - bald(best)).abs() < 1e-12);
            // 81 outcomes: exact to the fourth image. Greedy by the whole table chooses the same.
            let mut batch = Vec::new();
            for (image, gain) in chosen {
                let with = |image: usize| information(&log_q, 3, &[&batch[..], &[image]].concat());
                let free = (0..9).filter(|image| !batch.contains(image));
                let best = free.max_by(|&a, &b| with(a).total_cmp(&with(b))).unwrap();
                assert_eq!(image, best, "seed {seed}, after {batch:?}");
                let before = information(&log_q, 3, &batch);
                assert!((gain - (with(image) - before)).abs() < 1e-12, "{gain}");
                batch.push(image);
            }
        }
    }

    #[test]
    fn the_same_news_is_not_bought_twice() {
        // Kirsch et al., figure 1: BALD takes two alike. The first two images are copies on which two of the
        // four members are sure of the opposite; the third parts the members otherwise, and less clearly.
        let (yes, no, rather, hardly) = ([0.99, 0.01], [0.01, 0.99], [0.9, 0.1], [0.1, 0.9]);
        let member = |twice: [f64; 2], other: [f64; 2]| logs(&[twice, twice, other].concat());
        let log_q = [member(yes, rather), member(yes, hardly), member(no, rather), member(no, hardly)];
        let chosen = batch_bald(&log_q, 2, 2, &mut Seed(0).rng(0));
        assert_eq!(chosen.iter().map(|one| one.0).collect::<Vec<_>>(), [0, 2]);
        // What both tell is independent here: the sum of what each tells.
        assert!((chosen[0].1 + chosen[1].1 - information(&log_q, 2, &[0, 2])).abs() < 1e-12);
    }

    #[test]
    fn many_outcomes_are_sampled_near_the_exact_sum_and_members_tell_no_more_than_their_logarithm() {
        let log_q = random(7, 5, 40, 4);
        let chosen = batch_bald(&log_q, 4, 7, &mut Seed(1).rng(0));
        let batch: Vec<usize> = chosen.iter().map(|one| one.0).collect();
        let (told, exact) = (chosen.iter().map(|one| one.1).sum::<f64>(), information(&log_q, 4, &batch));
        // 16,384 outcomes, 256 of them followed.
        assert!((told - exact).abs() < 0.03, "{told} {exact}");
        let all: f64 = batch_bald(&log_q, 4, 40, &mut Seed(1).rng(0)).iter().map(|one| one.1).sum();
        assert!(all < 5f64.ln() + 0.01 && all > exact - 0.03, "{all}");
        // Long after all is told nothing is made up by chance.
        let log_q = random(3, 3, 500, 10);
        let gains: Vec<f64> = batch_bald(&log_q, 10, 60, &mut Seed(0).rng(0)).iter().map(|one| one.1).collect();
        assert!((gains.iter().sum::<f64>() - 3f64.ln()).abs() < 0.03 && gains[59] < 1e-6, "{gains:?}");
    }
}
