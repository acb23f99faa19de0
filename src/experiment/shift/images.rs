//! Which images of the pool a cell gets, and what pixel noise makes of them (BLC App. G.2).

use std::ops::Range;

use rand::RngExt;
use rand::distr::{Distribution, StandardUniform};
use rand::seq::SliceRandom;
use rand_distr::StandardNormal;

use crate::error::{Error, Result};
use crate::events::{Events, Progress};
use crate::experiment::images::{Batch, Source};
use crate::experiment::train::CellEvent;
use crate::oracle::posterior::{Prior, draw};
use crate::parallel;
use crate::units::{ClassId, Seed};

/// Images of the pool looked at together.
const LOOK: usize = 512;

/// (n_1 … n_K) ~ Multinomial(n, π) (BLC eq. 6). Similar priors get similar counts: the uniforms are
/// shared.
pub(super) fn counts(prior: &Prior, n: usize, seed: Seed) -> Vec<usize> {
    let mut rng = seed.split("counts").rng(0);
    let mut counts = vec![0; prior.classes()];
    for _ in 0..n {
        counts[draw(prior.probabilities(), StandardUniform.sample(&mut rng))] += 1;
    }
    counts
}

/// Labels of the first `n` images of a source, which are not held in memory for it.
///
/// # Errors
/// As [`Source::take`], or [`Error::Cancelled`].
pub(super) fn labels(pool: &dyn Source, n: usize, events: &mut dyn Events<CellEvent>) -> Result<Vec<ClassId>> {
    let mut labels = Vec::with_capacity(n);
    for first in (0..n).step_by(LOOK) {
        events.report(CellEvent::Drawing(Progress { done: first, total: n }))?;
        labels.extend(pool.take(&(first..n.min(first + LOOK)).collect::<Vec<_>>())?.labels);
    }
    Ok(labels)
}

/// Numbers in the pool of `counts` images of each class, in random order, of which the first `kept` are to be trained on:
/// all different where the pool has enough of a class, otherwise drawn with replacement, as in BLC's implementation. There
/// the images of the class are first shared out, so that none is both trained on and validated on (theirs may be).
///
/// # Errors
/// When a class is asked for that the pool does not hold, or holds once where it is to be on both sides.
pub(super) fn choose(labels: &[ClassId], counts: &[usize], kept: usize, seed: Seed) -> Result<Vec<usize>> {
    let mut chosen = Vec::new();
    // Classes of which the pool runs out: the chance of each, and its images in random order.
    let mut out = Vec::new();
    for (class, &count) in counts.iter().enumerate() {
        let mut members: Vec<usize> = (0..labels.len()).filter(|&i| labels[i] == class).collect();
        if members.is_empty() && count > 0 {
            let pool = labels.len();
            return Err(Error::input(format!(
                "asks for {count} images of class {class}, and the pool of {pool} has none; raise experiment.pool"
            )));
        }
        let mut rng = seed.split("choice").rng(class as u64);
        members.shuffle(&mut rng);
        if count <= members.len() {
            chosen.extend(&members[..count]);
        } else {
            // Which of them is settled when it is known on which side each place comes to lie.
            chosen.extend(std::iter::repeat_n(members[0], count));
            out.push((rng, members));
        }
    }
    chosen.shuffle(&mut seed.split("split").rng(0));
    for (mut rng, members) in out {
        let class = labels[members[0]];
        let places: Vec<usize> = (0..chosen.len()).filter(|&place| labels[chosen[place]] == class).collect();
        let (trained, tested) = places.split_at(places.partition_point(|&place| place < kept));
        let shares = share_out(&members, [trained.len(), tested.len()]).ok_or_else(|| {
            Error::input(format!(
                "trains and validates on class {class}, of which the pool of {} has one image; raise experiment.pool",
                labels.len()
            ))
        })?;
        for (places, members) in [trained, tested].into_iter().zip(shares) {
            for &place in places {
                chosen[place] = members[rng.random_range(0..members.len())];
            }
        }
    }
    Ok(chosen)
}

/// Shares out images in the proportion of `places`, at least one to each side that has a place; `None` where there are too
/// few.
fn share_out(members: &[usize], places: [usize; 2]) -> Option<[&[usize]; 2]> {
    let needed = places.map(|places| usize::from(places > 0));
    let most = members.len().checked_sub(needed[1]).filter(|most| *most >= needed[0])?;
    let part = places[0] as f64 / (places[0] + places[1]).max(1) as f64;
    let (first, second) = members.split_at(((members.len() as f64 * part).round() as usize).clamp(needed[0], most));
    Some([first, second])
}

/// x ↦ clip(x + ε), ε ~ N(0, σ²I), D = `dims` (BLC eq. 7), to the range of the world's pixels. An
/// image's noise depends on its place alone and scales with σ.
pub(super) fn add_noise(x: &mut [f32], dims: usize, std: f64, [low, high]: [f32; 2], seed: Seed) {
    parallel::chunks_mut(x, dims, |i, image| {
        let mut rng = seed.split("noise").rng(i as u64);
        for v in image {
            let noise: f64 = StandardNormal.sample(&mut rng);
            *v = ((f64::from(*v) + std * noise) as f32).clamp(low, high);
        }
    });
}

/// Shifted images in memory: those to train on first, then those kept for validation.
pub(super) struct ShiftedImages {
    /// Numbers of an image.
    pub dims: usize,
    /// World-space values, NCHW.
    pub x: Vec<f32>,
    /// Drawn labels.
    pub labels: Vec<ClassId>,
}

impl ShiftedImages {
    /// Values of a range of images.
    pub fn values(&self, range: Range<usize>) -> &[f32] {
        &self.x[range.start * self.dims..range.end * self.dims]
    }
}

impl Source for ShiftedImages {
    fn take(&self, indices: &[usize]) -> Result<Batch> {
        Ok(Batch {
            x: indices.iter().flat_map(|&i| self.values(i..i + 1)).copied().collect(),
            labels: indices.iter().map(|&i| self.labels[i]).collect(),
            posterior: Vec::new(),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;

    use super::super::paper;
    use super::*;
    use crate::events::silent;
    use crate::experiment::shift::spec::kl;
    use crate::measure::student_mean;

    #[test]
    fn frequencies_are_as_far_from_uniform_as_table_7_says() {
        const N: usize = 5000;
        for row in &paper::ROWS {
            let prior = Prior::new(&row.prior).unwrap();
            let found: Vec<f64> = (0..3)
                .map(|seed| {
                    let counts = counts(&prior, N, Seed(seed));
                    assert_eq!(counts.iter().sum::<usize>(), N);
                    let shares: Vec<f64> = counts.iter().map(|&n| n as f64 / N as f64).collect();
                    kl(&shares, Prior::uniform(3).probabilities())
                })
                .collect();
            // The mean of three against the mean of the paper's three: each has the paper's spread
            // over √3.
            let (mean, _) = student_mean(&found);
            let (value, std) = row.kl_y;
            assert!((mean - value).abs() < 4.0 * std * (2.0f64 / 3.0).sqrt(), "{}: {found:?}", row.name);
        }
    }

    #[test]
    fn counts_are_multinomial() {
        let prior = Prior::new(&[0.7, 0.2, 0.1]).unwrap();
        let (n, draws) = (1000, 400);
        let all: Vec<Vec<usize>> = (0..draws).map(|seed| counts(&prior, n, Seed(seed))).collect();
        for (class, p) in prior.probabilities().iter().enumerate() {
            let values: Vec<f64> = all.iter().map(|counts| counts[class] as f64).collect();
            let mean = values.iter().sum::<f64>() / draws as f64;
            let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (draws - 1) as f64;
            let expected = n as f64 * p * (1.0 - p);
            assert!((mean - n as f64 * p).abs() < 4.0 * (expected / draws as f64).sqrt(), "{mean}");
            // Standard error of a variance: σ²·√(2/(n − 1)).
            assert!((variance / expected - 1.0).abs() < 4.0 * (2.0 / (draws - 1) as f64).sqrt(), "{variance}");
        }
    }

    #[test]
    fn a_class_is_repeated_only_where_the_pool_runs_out_of_it() {
        let pool: Vec<ClassId> = (0..30).map(|i| usize::from(i % 3 == 0)).collect();
        let chosen = choose(&pool, &[20, 25], 36, Seed(4)).unwrap();
        let of = |class: usize| chosen.iter().copied().filter(|&i| pool[i] == class).collect::<Vec<_>>();
        let (mut whole, mut repeated) = (of(0), of(1));
        assert_eq!((whole.len(), repeated.len()), (20, 25));
        whole.sort_unstable();
        whole.dedup();
        assert_eq!(whole.len(), 20, "the class has 20 images and every one is taken once");
        repeated.sort_unstable();
        repeated.dedup();
        assert!(repeated.len() <= 10 && repeated.len() > 4, "{repeated:?}");
        // In random order: the classes do not come one after the other.
        let first = chosen[..15].iter().filter(|&&i| pool[i] == 1).count();
        assert!((1..15).contains(&first), "{chosen:?}");
        assert_eq!(choose(&pool, &[20, 25], 36, Seed(4)).unwrap(), chosen);
        assert_ne!(choose(&pool, &[20, 25], 36, Seed(5)).unwrap(), chosen);
        let why = choose(&pool, &[1, 1, 2], 3, Seed(4)).unwrap_err().to_string();
        assert!(why.contains("class 2") && why.contains("experiment.pool"), "{why}");
        assert!(choose(&pool, &[1, 1, 0], 1, Seed(4)).is_ok());
    }

    #[test]
    fn no_image_is_both_trained_on_and_validated_on() {
        let pool: Vec<ClassId> = (0..30).map(|i| usize::from(i % 3 == 0)).collect();
        for seed in 0..50 {
            let chosen = choose(&pool, &[20, 25], 36, Seed(seed)).unwrap();
            let (trained, tested) = chosen.split_at(36);
            assert!(tested.iter().all(|image| !trained.contains(image)), "{seed}: {chosen:?}");
            assert_eq!(chosen.iter().filter(|&&i| pool[i] == 1).count(), 25);
        }
        // A class of one image cannot be on both sides, but on either.
        let single = [0, 0, 0, 1];
        let why = choose(&single, &[0, 20], 10, Seed(0)).unwrap_err().to_string();
        assert!(why.contains("class 1") && why.contains("one image"), "{why}");
        assert_eq!(choose(&single, &[0, 20], 20, Seed(0)).unwrap(), [3; 20]);
    }

    #[test]
    fn looking_at_the_labels_of_a_pool_is_told_and_can_be_stopped() {
        let pool = ShiftedImages { dims: 1, x: vec![0.0; 2000], labels: vec![1; 2000] };
        let mut told = Vec::new();
        let mut tell = |event: CellEvent| {
            let CellEvent::Drawing(progress) = event else { panic!("{event:?}") };
            told.push((progress.done, progress.total));
            if progress.done > 600 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        assert!(matches!(labels(&pool, 2000, &mut tell), Err(Error::Cancelled)));
        assert_eq!(told, [(0, 2000), (512, 2000), (1024, 2000)]);
        assert_eq!(labels(&pool, 2000, &mut silent()).unwrap(), [1; 2000]);
    }

    #[test]
    fn noise_has_its_deviation_and_is_clipped() {
        let mut x = vec![0.0f32; 40_000];
        add_noise(&mut x, 100, 0.15, [-1.0, 1.0], Seed(1));
        let variance = x.iter().map(|&v| f64::from(v).powi(2)).sum::<f64>() / 4e4;
        assert!((variance.sqrt() / 0.15 - 1.0).abs() < 0.02, "{variance}");
        let mut weak = vec![0.0f32; 40_000];
        add_noise(&mut weak, 100, 0.05, [-1.0, 1.0], Seed(1));
        assert!(x.iter().zip(&weak).all(|(a, b)| (a - 3.0 * b).abs() < 1e-6), "the same noise at every σ");
        let mut edges = vec![-0.2f32, 0.0, 1.0, 1.3, 0.5, 0.5];
        add_noise(&mut edges, 6, 0.1, [0.0, 1.0], Seed(2));
        assert!(edges.iter().all(|v| (0.0..=1.0).contains(v)) && edges[0] == 0.0 && edges[3] == 1.0, "{edges:?}");
    }
}
