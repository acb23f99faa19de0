//! What strategies want of a pool, and what they get. All scores in f64 from log q.

use super::{Purchase, Strategy};
use crate::error::{Error, Result};
use crate::experiment::images::{Source, largest};
use crate::units::ClassId;

/// Images about which classifiers are asked at once.
const ASKED: usize = 256;

/// log q(y|x) of images x (NCHW, world space), [N, K].
pub(super) type Answers<'a> = dyn Fn(Vec<f32>) -> Result<Vec<f64>> + 'a;

/// Where labels are bought.
pub(super) struct Offer<'a> {
    /// The pool.
    pub pool: &'a dyn Source,
    /// Number of classes K.
    pub classes: usize,
    /// The measured classifier, then the other members of an ensemble. Empty before the start.
    pub classifiers: Vec<Box<Answers<'a>>>,
}

/// What is known of an image when its label may be bought.
struct Known {
    image: usize,
    score: f64,
    label: ClassId,
    /// H(p), KL(p‖q) and H(q), nats; the latter two 0 where no classifier is there.
    figures: [f64; 3],
    noisy: bool,
}

impl Strategy {
    /// Returns how much an image's label is wanted, from its H(p), KL(p‖q) (nats) and the answers
    /// `log_q`, [M][K]. In nats, but [`Self::Margin`] is a difference of probabilities;
    /// [`Self::Random`] wants all alike.
    pub(super) fn score(self, aleatoric: f64, epistemic: f64, log_q: &[&[f64]]) -> f64 {
        match self {
            Self::Random => 0.0,
            Self::MaxEntropy => log_q.first().map_or(0.0, |log_q| entropy(log_q)),
            Self::MaxEpistemic => epistemic,
            Self::Margin => log_q.first().map_or(0.0, |log_q| -margin(log_q)),
            Self::Bald => disagreement(log_q),
            Self::MaxAleatoric => aleatoric,
        }
    }
}

/// H(q), nats.
fn entropy(log_q: &[f64]) -> f64 {
    let term = |&log_q: &f64| if log_q == f64::NEG_INFINITY { 0.0 } else { -log_q.exp() * log_q };
    log_q.iter().map(term).sum()
}

/// KL(p‖q) of log p and log q, nats; not below 0 by rounding.
fn divergence(log_p: &[f64], log_q: &[f64]) -> f64 {
    let term = |(&log_p, &log_q): (&f64, &f64)| match log_p == f64::NEG_INFINITY {
        true => 0.0,
        false => log_p.exp() * (log_p - log_q),
    };
    log_p.iter().zip(log_q).map(term).sum::<f64>().max(0.0)
}

/// q₁ − q₂ of the two most probable classes; of a single class its q.
fn margin(log_q: &[f64]) -> f64 {
    let (mut first, mut second) = (f64::NEG_INFINITY, f64::NEG_INFINITY);
    for &value in log_q {
        if value > first {
            (first, second) = (value, first);
        } else if value > second {
            second = value;
        }
    }
    first.exp() - second.exp()
}

/// H(mean q) − mean H(q), nats: the mutual information of label and member (Houlsby et al. 2011,
/// eq. 2).
fn disagreement(log_q: &[&[f64]]) -> f64 {
    let members = log_q.len().max(1) as f64;
    let classes = log_q.first().map_or(0, |first| first.len());
    let mean = |class: usize| log_q.iter().map(|log_q| log_q[class].exp()).sum::<f64>() / members;
    let of_mean: Vec<f64> = (0..classes).map(|class| mean(class).ln()).collect();
    entropy(&of_mean) - log_q.iter().map(|log_q| entropy(log_q)).sum::<f64>() / members
}

impl Offer<'_> {
    /// Buys the labels of the `count` candidates that a strategy wants most; of equals the first.
    /// `tick` is called after every piece of the pool and may stop.
    pub(super) fn buy(
        &self,
        strategy: Strategy,
        candidates: &[usize],
        count: usize,
        tick: &mut dyn FnMut() -> Result<()>,
    ) -> Result<Purchase> {
        // Who wants all alike need not be asked about all.
        let asked = if strategy == Strategy::Random { &candidates[..count.min(candidates.len())] } else { candidates };
        let mut known = Vec::with_capacity(asked.len());
        for piece in asked.chunks(ASKED) {
            known.extend(self.look(strategy, piece)?);
            tick()?;
        }
        known.sort_by(|a, b| b.score.total_cmp(&a.score));
        known.truncate(count);
        Ok(self.purchase(&known))
    }

    fn look(&self, strategy: Strategy, images: &[usize]) -> Result<Vec<Known>> {
        let (batch, k) = (self.pool.take(images)?, self.classes);
        let answers = self.classifiers.iter().map(|answer| answer(batch.x.clone())).collect::<Result<Vec<_>>>()?;
        let known = |(i, &image): (usize, &usize)| {
            let row = i * k..(i + 1) * k;
            let p = &batch.posterior[row.clone()];
            let log_q: Vec<&[f64]> = answers.iter().map(|log_q| &log_q[row.clone()]).collect();
            let log_p: Vec<f64> = p.iter().map(|p| p.ln()).collect();
            let aleatoric = entropy(&log_p);
            let epistemic = log_q.first().map_or(0.0, |log_q| divergence(&log_p, log_q));
            let of_first = log_q.first().map_or(0.0, |log_q| entropy(log_q));
            let score = strategy.score(aleatoric, epistemic, &log_q);
            let figures = [aleatoric, epistemic, of_first];
            if !score.is_finite() || !figures.iter().all(|figure| figure.is_finite()) {
                let why = format!(
                    "image {image} of the pool: H(p), KL(p || q), H(q) are {figures:?} nats, its score {score}"
                );
                return Err(Error::Numeric(why));
            }
            Ok(Known { image, score, label: batch.labels[i], figures, noisy: largest(p) != batch.labels[i] })
        };
        images.iter().enumerate().map(known).collect()
    }

    fn purchase(&self, bought: &[Known]) -> Purchase {
        let n = bought.len().max(1) as f64;
        let mean = |of: fn(&Known) -> f64| bought.iter().map(of).sum::<f64>() / n;
        let answered = !self.classifiers.is_empty();
        Purchase {
            images: bought.iter().map(|known| known.image).collect(),
            drawn: bought.iter().map(|known| known.label).collect(),
            aleatoric: mean(|known| known.figures[0]),
            epistemic: answered.then(|| mean(|known| known.figures[1])),
            entropy: answered.then(|| mean(|known| known.figures[2])),
            noise: mean(|known| f64::from(u8::from(known.noisy))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::ImageShape;
    use crate::experiment::{Batch, Images};
    use crate::measure::log_softmax;

    fn logs(q: &[f64]) -> Vec<f64> {
        q.iter().map(|q| q.ln()).collect()
    }

    fn near(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-12
    }

    #[test]
    fn scores_by_hand() {
        let (even, sure, split) = (logs(&[0.5, 0.5, 0.0]), logs(&[1.0, 0.0, 0.0]), logs(&[0.25, 0.5, 0.25]));
        let score = |strategy: Strategy, log_q: &[&[f64]]| strategy.score(0.25, 0.75, log_q);
        let ln2 = 2f64.ln();
        assert!(near(score(Strategy::MaxEntropy, &[&even]), ln2) && score(Strategy::MaxEntropy, &[&sure]) == 0.0);
        assert!(near(score(Strategy::MaxEntropy, &[&split]), 1.5 * ln2));
        assert!(near(score(Strategy::Margin, &[&split]), -0.25) && near(score(Strategy::Margin, &[&even]), 0.0));
        assert!(near(score(Strategy::Margin, &[&sure]), -1.0));
        assert_eq!(score(Strategy::MaxEpistemic, &[&even]), 0.75);
        assert_eq!(score(Strategy::MaxAleatoric, &[&even]), 0.25);
        assert_eq!(score(Strategy::Random, &[&even]), 0.0);
        // Two members sure of different classes: all entropy of their mean is disagreement. If they
        // agree: none.
        let other = logs(&[0.0, 1.0, 0.0]);
        assert!(near(score(Strategy::Bald, &[&sure, &other]), ln2));
        assert!(near(score(Strategy::Bald, &[&even, &even]), 0.0));
        // (1/2, 1/2) and (1, 0): the mean is (3/4, 1/4); H = 2 ln 2 − ¾ ln 3, less half of ln 2.
        assert!(near(score(Strategy::Bald, &[&even, &sure]), 1.5 * ln2 - 0.75 * 3f64.ln()));
    }

    #[test]
    fn a_divergence_by_hand() {
        let (p, q) = (logs(&[0.75, 0.25]), logs(&[0.5, 0.5]));
        assert!(near(divergence(&p, &q), 0.75 * 3f64.ln() - 2f64.ln()));
        assert!(near(divergence(&logs(&[1.0, 0.0]), &q), 2f64.ln()) && divergence(&q, &q) == 0.0);
    }

    /// Two-class images of one pixel x with given posteriors; the classifier's log-odds for class 0
    /// are x.
    fn pool(images: &[(f32, f64, usize)]) -> Images {
        let all = Batch {
            x: images.iter().map(|(x, ..)| *x).collect(),
            labels: images.iter().map(|(.., label)| *label).collect(),
            posterior: images.iter().flat_map(|(_, p, _)| [*p, 1.0 - p]).collect(),
        };
        Images { shape: ImageShape { channels: 1, height: 1, width: 1 }, classes: 2, all }
    }

    fn log_odds(x: Vec<f32>) -> Result<Vec<f64>> {
        Ok(log_softmax(&x.iter().flat_map(|x| [*x, 0.0]).collect::<Vec<f32>>(), 2))
    }

    /// The second classifier says the opposite of the first.
    fn bought(images: &Images, strategy: Strategy, candidates: &[usize], count: usize) -> Purchase {
        let opposite = |x: Vec<f32>| log_odds(x.into_iter().map(|x| -x).collect());
        let offer = Offer { pool: images, classes: 2, classifiers: vec![Box::new(log_odds), Box::new(opposite)] };
        offer.buy(strategy, candidates, count, &mut || Ok(())).unwrap()
    }

    #[test]
    fn each_strategy_buys_what_it_wants() {
        // Sure and right; sure and wrong; unsure, truth clear; unsure as the truth; sure, truth
        // unclear.
        let images = pool(&[(4.0, 0.98, 0), (4.0, 0.01, 1), (0.1, 0.99, 0), (0.0, 0.5, 0), (-3.0, 0.6, 1)]);
        let all = [0, 1, 2, 3, 4];
        assert_eq!(bought(&images, Strategy::MaxEpistemic, &all, 2).images, [1, 4]);
        assert_eq!(bought(&images, Strategy::MaxEntropy, &all, 2).images, [3, 2]);
        assert_eq!(bought(&images, Strategy::Margin, &all, 2).images, [3, 2]);
        assert_eq!(bought(&images, Strategy::MaxAleatoric, &all, 2).images, [3, 4]);
        // All the same to them: those that come first.
        assert_eq!(bought(&images, Strategy::Random, &[3, 0, 4], 2).images, [3, 0]);
        // Two that are sure of the opposite; of equals the first.
        assert_eq!(bought(&images, Strategy::Bald, &all, 3).images, [0, 1, 4]);
        // No more than there is, and only what is offered.
        assert_eq!(bought(&images, Strategy::MaxEpistemic, &[0, 2], 5).images, [2, 0]);
    }

    #[test]
    fn the_largest_kl_of_a_pool_is_bought_first_and_what_was_bought_is_described() {
        let images: Vec<(f32, f64, usize)> = (0..600)
            .map(|i| ((i % 41) as f32 / 8.0 - 2.0, f64::from(1 + i * 7 % 97) / 100.0, i as usize % 2))
            .collect();
        let images = pool(&images);
        let all: Vec<usize> = (0..images.len()).collect();
        let log_q = log_odds(images.all.x.clone()).unwrap();
        let kl = |i: usize| -> f64 {
            (2 * i..2 * i + 2).map(|j| images.all.posterior[j] * (images.all.posterior[j].ln() - log_q[j])).sum()
        };
        let mut order = all.clone();
        order.sort_by(|&a, &b| kl(b).total_cmp(&kl(a)).then(a.cmp(&b)));
        let purchase = bought(&images, Strategy::MaxEpistemic, &all, 300);
        assert_eq!(purchase.images, order[..300]);
        let mean = |of: &dyn Fn(usize) -> f64| order[..300].iter().map(|&i| of(i)).sum::<f64>() / 300.0;
        assert!(near(purchase.epistemic.unwrap(), mean(&kl)));
        let decision = |i: usize| usize::from(images.all.posterior[2 * i + 1] > images.all.posterior[2 * i]);
        assert!(near(purchase.noise, mean(&|i| f64::from(u8::from(decision(i) != images.all.labels[i])))));
        assert_eq!(purchase.drawn, order[..300].iter().map(|&i| images.all.labels[i]).collect::<Vec<_>>());
        assert_eq!(purchase.counts(2).iter().sum::<usize>(), 300);
    }

    #[test]
    fn before_the_start_nobody_answers_and_an_answer_that_is_no_number_is_named() {
        let images = pool(&[(1.0, 0.5, 0), (f32::NAN, 1.0, 0)]);
        let offer = Offer { pool: &images, classes: 2, classifiers: Vec::new() };
        let start = offer.buy(Strategy::Random, &[1, 0], 2, &mut || Ok(())).unwrap();
        assert_eq!((start.images, start.epistemic, start.entropy), (vec![1, 0], None, None));
        assert!(near(start.aleatoric, 2f64.ln() / 2.0));
        let offer = Offer { classifiers: vec![Box::new(log_odds)], ..offer };
        let why = offer.buy(Strategy::MaxEntropy, &[0, 1], 1, &mut || Ok(())).unwrap_err().to_string();
        assert!(why.contains("image 1 of the pool"), "{why}");
    }
}
