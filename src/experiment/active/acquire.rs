//! What strategies get of a pool: the images are looked at once, and a strategy chooses among them.

use super::batches::{Rows, badge, batch_bald, core_set, typiclust};
use super::scores::{divergence, entropy};
use super::{Purchase, Strategy};
use crate::error::{Error, Result};
use crate::experiment::images::Source;
use crate::measure::argmax;
use crate::units::{ClassId, Seed};

/// Images about which classifiers are asked at once.
const ASKED: usize = 256;

/// log q(y|x) of images x (NCHW, world space), [N, K].
pub(super) type Answers<'a> = dyn Fn(Vec<f32>) -> Result<Vec<f64>> + 'a;

/// What the last layer reads of images x, [N, D].
pub(super) type Reading<'a> = dyn Fn(Vec<f32>) -> Result<Vec<f32>> + 'a;

/// Where labels are bought.
pub(super) struct Offer<'a> {
    /// The pool.
    pub pool: &'a dyn Source,
    /// Number of classes K.
    pub classes: usize,
    /// The measured classifier, then the other members of an ensemble. Empty before the start.
    pub classifiers: Vec<Box<Answers<'a>>>,
    /// What the last layer of the measured classifier reads; absent before the start.
    pub reading: Option<Box<Reading<'a>>>,
    /// Images whose labels are bought.
    pub owned: &'a [usize],
    /// Of what is left to chance in this round.
    pub seed: Seed,
}

/// What is known of an image when its label may be bought.
#[derive(Clone, Copy)]
pub(super) struct Known {
    image: usize,
    pub label: ClassId,
    /// H(p), KL(p‖q) and H(q), nats; the latter two 0 where no classifier is there.
    figures: [f64; 3],
    /// p of the Bayes decision.
    certainty: f64,
    noisy: bool,
}

/// Images whose labels may be bought.
#[derive(Default)]
pub(super) struct Looked {
    /// Each of them.
    pub known: Vec<Known>,
    /// How much the strategy that looked wants each.
    scores: Vec<f64>,
    /// log q of each classifier, [M][N, K], where the strategy weighs batches.
    pub log_q: Vec<Vec<f64>>,
    /// What the last layer reads, [N, D], likewise.
    pub read: Vec<f32>,
}

impl Strategy {
    /// Whether it needs all answers at once, or what the last layer reads.
    fn needs(self) -> [bool; 2] {
        match self {
            Self::BatchBald => [true, false],
            Self::CoreSet | Self::TypiClust => [false, true],
            Self::Badge | Self::LookAhead => [true, true],
            Self::Random | Self::MaxEntropy | Self::MaxEpistemic | Self::Margin | Self::Bald | Self::MaxAleatoric => {
                [false, false]
            }
        }
    }
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
        let looked = self.look(strategy, asked, tick)?;
        let chosen = self.choose(strategy, &looked, count)?;
        Ok(self.purchase(&looked, &chosen))
    }

    /// Looks at candidates as a strategy needs it.
    pub(super) fn look(
        &self,
        strategy: Strategy,
        candidates: &[usize],
        tick: &mut dyn FnMut() -> Result<()>,
    ) -> Result<Looked> {
        let [keeps, reads] = strategy.needs();
        let mut looked =
            Looked { log_q: vec![Vec::new(); if keeps { self.classifiers.len() } else { 0 }], ..Looked::default() };
        for piece in candidates.chunks(ASKED) {
            let batch = self.pool.take(piece)?;
            if let (true, Some(reading)) = (reads, &self.reading) {
                looked.read.extend(reading(batch.x.clone())?);
            }
            let answers = self.classifiers.iter().map(|answer| answer(batch.x.clone())).collect::<Result<Vec<_>>>()?;
            for (i, &image) in piece.iter().enumerate() {
                let row = i * self.classes..(i + 1) * self.classes;
                let log_q: Vec<&[f64]> = answers.iter().map(|log_q| &log_q[row.clone()]).collect();
                let (known, score) = known(strategy, image, batch.labels[i], &batch.posterior[row], &log_q)?;
                looked.known.push(known);
                looked.scores.push(score);
            }
            looked.log_q.iter_mut().zip(answers).for_each(|(all, piece)| all.extend(piece));
            tick()?;
        }
        match looked.read.iter().position(|value| !value.is_finite()) {
            Some(at) => {
                let image = candidates[at / (looked.read.len() / candidates.len())];
                Err(Error::Numeric(format!("image {image} of the pool: what the last layer reads is no finite number")))
            }
            None => Ok(looked),
        }
    }

    /// The places, among those looked at, of the `count` images that a strategy wants most.
    ///
    /// # Errors
    /// When the labelled images cannot be read.
    pub(super) fn choose(&self, strategy: Strategy, looked: &Looked, count: usize) -> Result<Vec<usize>> {
        let n = looked.known.len();
        let count = count.min(n);
        let mut rng = self.seed.split(strategy.label()).rng(0);
        let read = || Rows::new(&looked.read, looked.read.len() / n.max(1));
        Ok(match strategy {
            Strategy::BatchBald => {
                let chosen = batch_bald(&looked.log_q, self.classes, count, &mut rng);
                chosen.into_iter().map(|(place, _)| place).collect()
            }
            Strategy::CoreSet => {
                let labelled = self.read_of(self.owned)?;
                core_set(read(), Rows::new(&labelled, read().dim()), count)
            }
            Strategy::Badge => badge(&looked.log_q[0], self.classes, read(), count, &mut rng),
            Strategy::TypiClust => {
                let mut all = self.read_of(self.owned)?;
                all.extend(&looked.read);
                let labelled = self.owned.len();
                let chosen = typiclust(Rows::new(&all, read().dim()), labelled, count, &mut rng);
                chosen.into_iter().map(|row| row - labelled).collect()
            }
            _ => {
                let scores = looked.scores_of(strategy, self.classes);
                let mut order: Vec<usize> = (0..n).collect();
                order.sort_by(|&a, &b| scores[b].total_cmp(&scores[a]));
                order.truncate(count);
                order
            }
        })
    }

    /// What the last layer reads of some images, [N, D].
    fn read_of(&self, images: &[usize]) -> Result<Vec<f32>> {
        let Some(reading) = &self.reading else { return Ok(Vec::new()) };
        let mut all = Vec::new();
        for piece in images.chunks(ASKED) {
            all.extend(reading(self.pool.take(piece)?.x)?);
        }
        Ok(all)
    }

    /// Of the images at some places.
    pub(super) fn purchase(&self, looked: &Looked, places: &[usize]) -> Purchase {
        let bought: Vec<&Known> = places.iter().map(|&place| &looked.known[place]).collect();
        let n = bought.len().max(1) as f64;
        let mean = |of: fn(&Known) -> f64| bought.iter().map(|known| of(known)).sum::<f64>() / n;
        let answered = !self.classifiers.is_empty();
        Purchase {
            images: bought.iter().map(|known| known.image).collect(),
            drawn: bought.iter().map(|known| known.label).collect(),
            certainty: bought.iter().map(|known| known.certainty).collect(),
            aleatoric: mean(|known| known.figures[0]),
            epistemic: answered.then(|| mean(|known| known.figures[1])),
            entropy: answered.then(|| mean(|known| known.figures[2])),
            noise: mean(|known| f64::from(u8::from(known.noisy))),
            tried: Vec::new(),
        }
    }
}

impl Looked {
    /// How much a strategy wants each: anew where the answers were kept, because another strategy looked.
    fn scores_of(&self, strategy: Strategy, classes: usize) -> Vec<f64> {
        if self.log_q.is_empty() {
            return self.scores.clone();
        }
        let score = |(i, known): (usize, &Known)| {
            let row = i * classes..(i + 1) * classes;
            let log_q: Vec<&[f64]> = self.log_q.iter().map(|log_q| &log_q[row.clone()]).collect();
            strategy.score(known.figures[0], known.figures[1], &log_q)
        };
        self.known.iter().enumerate().map(score).collect()
    }
}

/// What is known of an image from its posterior p [K] and the answers log q, [M][K]; and how much a strategy wants it.
fn known(strategy: Strategy, image: usize, label: ClassId, p: &[f64], log_q: &[&[f64]]) -> Result<(Known, f64)> {
    let log_p: Vec<f64> = p.iter().map(|p| p.ln()).collect();
    let aleatoric = entropy(&log_p);
    let epistemic = log_q.first().map_or(0.0, |log_q| divergence(&log_p, log_q));
    let of_first = log_q.first().map_or(0.0, |log_q| entropy(log_q));
    let score = strategy.score(aleatoric, epistemic, log_q);
    let figures = [aleatoric, epistemic, of_first];
    let answered = log_q.iter().all(|log_q| log_q.iter().all(|log_q| !log_q.is_nan()));
    if !score.is_finite() || !answered || !figures.iter().all(|figure| figure.is_finite()) {
        let why = format!("image {image} of the pool: H(p), KL(p || q), H(q) are {figures:?} nats, its score {score}");
        return Err(Error::Numeric(why));
    }
    let decision = argmax(p);
    Ok((Known { image, label, figures, certainty: p[decision], noisy: decision != label }, score))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::ImageShape;
    use crate::experiment::{Batch, Images};
    use crate::measure::log_softmax;

    fn near(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-12
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
        let reading: Option<Box<Reading<'_>>> = Some(Box::new(Ok));
        let classifiers: Vec<Box<Answers<'_>>> = vec![Box::new(log_odds), Box::new(opposite)];
        let offer = Offer { pool: images, classes: 2, classifiers, reading, owned: &[], seed: Seed(0) };
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
        // The farthest pixels from what is labelled: nothing is, so the first, then the far end.
        assert_eq!(bought(&images, Strategy::CoreSet, &all, 2).images, [0, 4]);
        // The longest gradient of the loss at the own decision is (1 − q)·|x|·√2.
        assert_eq!(bought(&images, Strategy::Badge, &all, 1).images, [4]);
        assert_eq!(bought(&images, Strategy::BatchBald, &all, 1).images, [0]);
        assert_eq!(bought(&images, Strategy::TypiClust, &all, 5).images.len(), 5);
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
        let certain = |&i: &usize| images.all.posterior[2 * i].max(images.all.posterior[2 * i + 1]);
        assert_eq!(purchase.certainty, order[..300].iter().map(certain).collect::<Vec<_>>());
    }

    #[test]
    fn before_the_start_nobody_answers_and_an_answer_that_is_no_number_is_named() {
        let images = pool(&[(1.0, 0.5, 0), (f32::NAN, 1.0, 0)]);
        let (classifiers, owned) = (Vec::new(), [].as_slice());
        let offer = Offer { pool: &images, classes: 2, classifiers, reading: None, owned, seed: Seed(0) };
        let start = offer.buy(Strategy::Random, &[1, 0], 2, &mut || Ok(())).unwrap();
        assert_eq!((start.images, start.epistemic, start.entropy), (vec![1, 0], None, None));
        assert!(near(start.aleatoric, 2f64.ln() / 2.0));
        let offer = Offer { classifiers: vec![Box::new(log_odds)], ..offer };
        let why = offer.buy(Strategy::MaxEntropy, &[0, 1], 1, &mut || Ok(())).unwrap_err().to_string();
        assert!(why.contains("image 1 of the pool"), "{why}");
    }
}
