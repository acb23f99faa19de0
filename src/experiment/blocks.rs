//! Means of figures over blocks of the test images. Classifiers that are tested on the same images have the error of
//! these images in common: how much of it is left in a difference of two, a few block means of each tell as well as
//! all images (batch means; Asmussen & Glynn 2007, *Stochastic Simulation*, chapter IV.5). They lie in the result of a
//! cell, so that findings need no file of every image (`tested`), and single epochs and calibrations have theirs.

use serde::{Deserialize, Serialize};

use crate::measure::{PerImage, student_mean};
use crate::stats::{count_in_doubt, ends_of_share, unseen};

/// Blocks of the test images; each image is its own block where there are fewer.
const BLOCKS: usize = 40;

/// The mean of a figure over each block of test images, in its unit; image i lies in block i mod 40. Kept in single
/// precision: only their scatter counts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Blocks(Vec<f32>);

impl Blocks {
    /// Of one value an image.
    pub fn of(values: &[f64]) -> Self {
        let blocks = BLOCKS.min(values.len());
        let mean = |first: usize| {
            let mine = values.iter().skip(first).step_by(blocks);
            (mine.clone().sum::<f64>() / mine.count() as f64) as f32
        };
        Self((0..blocks).map(mean).collect())
    }

    /// The mean of each block.
    pub(super) fn means(&self) -> Vec<f64> {
        self.0.iter().copied().map(f64::from).collect()
    }
}

/// The figures of a classifier over blocks of its test images.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TestBlocks {
    /// Share of images whose drawn label it finds.
    pub accuracy: Blocks,
    /// mean p(argmax q).
    pub expected_accuracy: Blocks,
    /// mean max p − p(argmax q).
    pub gap: Blocks,
    /// mean KL(p‖q), nats.
    pub epistemic: Blocks,
    /// mean −log q(drawn label), nats.
    pub nll: Blocks,
}

impl TestBlocks {
    /// Of all test images.
    pub fn of(images: &PerImage) -> Self {
        let all = |figure: &dyn Fn(usize) -> f64| Blocks::of(&(0..images.len()).map(figure).collect::<Vec<f64>>());
        Self {
            accuracy: all(&|i| f64::from(u8::from(images.hit(i)))),
            expected_accuracy: all(&|i| images.expected[i]),
            gap: all(&|i| images.best[i] - images.expected[i]),
            epistemic: all(&|i| images.kl[i].max(0.0)),
            nll: all(&|i| images.nll[i]),
        }
    }
}

/// A figure of a classifier on the test images that another one is tested on, too, and the same over blocks of these
/// where they are known.
#[derive(Debug, Clone, Copy)]
pub struct PairedFigure<'a> {
    /// Of all test images.
    pub value: f64,
    /// Of each block.
    pub blocks: Option<&'a Blocks>,
    /// Of a figure that lies in [0, 1] on every image: the number of test images.
    pub images: Option<usize>,
}

/// The difference of a figure between two classifiers that were tested on the same images.
#[derive(Debug, Clone)]
pub struct Difference {
    /// Over all test images.
    pub value: f64,
    /// Over each block; absent where one of the two has none.
    blocks: Option<Vec<f64>>,
    /// As that of both figures; absent of all else than a difference of two.
    images: Option<usize>,
}

impl PairedFigure<'_> {
    /// This figure less the other.
    pub fn less(self, other: PairedFigure<'_>) -> Difference {
        let pairs = |a: &Blocks, b: &Blocks| {
            let less = |(a, b): (&f32, &f32)| f64::from(*a) - f64::from(*b);
            (a.0.len() == b.0.len()).then(|| a.0.iter().zip(&b.0).map(less).collect())
        };
        let blocks = self.blocks.zip(other.blocks).and_then(|(a, b)| pairs(a, b));
        let images = self.images.filter(|_| self.images == other.images);
        Difference { value: self.value - other.value, blocks, images }
    }
}

impl Difference {
    /// Of which no blocks are known.
    pub fn bare(value: f64) -> Self {
        Self { value, blocks: None, images: None }
    }

    /// To nothing: a figure as it is, of which the blocks may be known.
    pub(super) fn to_nothing(figure: PairedFigure<'_>) -> Self {
        Self { value: figure.value, blocks: figure.blocks.map(Blocks::means), images: None }
    }

    /// Of which only the blocks are known: their mean.
    pub(super) fn of_blocks(blocks: Vec<f64>) -> Self {
        let value = blocks.iter().sum::<f64>() / blocks.len().max(1) as f64;
        Self { value, blocks: Some(blocks), images: None }
    }

    /// This one as a share of the other, which is of the same test images and not 0. To first order, a/b less the share ρ
    /// of all images scatters as (a − ρb)/b̄ does.
    pub(super) fn over(&self, other: &Self) -> Self {
        let value = self.value / other.value;
        let blocks = self.plus(-value, other).blocks;
        let shares = |blocks: Vec<f64>| blocks.into_iter().map(|block| value + block / other.value).collect();
        Self { value, blocks: blocks.map(shares), images: None }
    }

    /// This one and `times` the other, which is of the same test images.
    pub fn plus(&self, times: f64, other: &Self) -> Self {
        let sum = |a: &Vec<f64>, b: &Vec<f64>| {
            (a.len() == b.len()).then(|| a.iter().zip(b).map(|(a, b)| a + times * b).collect())
        };
        let blocks = self.blocks.as_ref().zip(other.blocks.as_ref()).and_then(|(a, b)| sum(a, b));
        Self { value: self.value + times * other.value, blocks, images: None }
    }
}

/// Half the width of the 95 % interval over test images of the mean of differences, all on the same images: Student's
/// over blocks of the mean difference. None where blocks are unknown or fewer than two.
pub fn over_images(differences: &[Difference]) -> Option<f64> {
    let each: Vec<&Vec<f64>> = differences.iter().map(|one| one.blocks.as_ref()).collect::<Option<_>>()?;
    let blocks = each.first()?.len();
    if blocks < 2 || each.iter().any(|one| one.len() != blocks) {
        return None;
    }
    let mean = |block: usize| each.iter().map(|one| one[block]).sum::<f64>() / each.len() as f64;
    Some(student_mean(&(0..blocks).map(mean).collect::<Vec<f64>>()).1)
}

/// How far down and up the mean of differences of figures in [0, 1] may lie since two classifiers may differ on images that
/// were not seen: the rule of three. Two that nearly always agree hardly show where they differ, and
/// two that nearly always differ by 1 hardly show where they agree. So blocks are counted whose images
/// add up to more than 0.1 of a difference, and those whose images lack more than that of a difference
/// of 1 each; the fewer of the two were seen. Many small differences in a block may still count as one
/// large one: no more is known than their sum. 0 of other figures, and where blocks are unknown.
pub fn ends_of_unseen(differences: &[Difference]) -> [f64; 2] {
    fn known(one: &Difference) -> Option<(&Vec<f64>, usize)> {
        one.blocks.as_ref().zip(one.images)
    }
    let each: Option<Vec<(&Vec<f64>, usize)>> = differences.iter().map(known).collect();
    let Some((each, &(first, images))) = each.as_ref().and_then(|each| Some((each, each.first()?))) else {
        return [0.0; 2];
    };
    let per_block = images as f64 / first.len().max(1) as f64;
    // Of each block the sum over its images, of the seed where it is largest.
    let blocks_with = |of: fn(f64) -> f64| {
        let sum = |block: usize| {
            let means = each.iter().filter_map(|(blocks, _)| blocks.get(block));
            per_block * means.map(|mean| of(mean.abs())).fold(0.0, f64::max)
        };
        count_in_doubt((0..first.len()).map(sum))
    };
    let seen = blocks_with(|mean| mean).min(blocks_with(|mean| 1.0 - mean));
    let mean = differences.iter().map(|one| one.value).sum::<f64>() / each.len() as f64;
    ends_of_share(mean, unseen(images, seen), [-1.0, 1.0])
}

#[cfg(test)]
mod tests {
    use rand::RngExt;
    use rand_distr::{Distribution, StandardNormal};

    use super::*;
    use crate::experiment::repeats::SeedGain;
    use crate::units::Seed;

    #[test]
    fn blocks_take_every_fortieth_image_and_few_images_each_their_own() {
        let values: Vec<f64> = (0..100).map(f64::from).collect();
        let blocks = Blocks::of(&values);
        assert_eq!((blocks.0.len(), blocks.0[0], blocks.0[39]), (40, 40.0, 59.0));
        assert_eq!(Blocks::of(&values[..3]).0, [0.0, 1.0, 2.0]);
        assert!(Blocks::of(&[]).0.is_empty());
    }

    /// A difference of two classifiers on each of 2,000 test images: what every seed has in common there, and what it has not.
    #[test]
    fn the_interval_of_a_gain_holds_the_truth_although_all_seeds_are_tested_on_the_same_images() {
        const RUNS: u64 = 400;
        let normal = |rng: &mut rand_chacha::ChaCha8Rng| -> f64 { StandardNormal.sample(rng) };
        for seeds in [3, 10] {
            let (mut covered, mut without) = (0, 0);
            for run in 0..RUNS {
                let mut rng = Seed(run).rng(0);
                let common: Vec<f64> = (0..2000).map(|_| 0.2 * normal(&mut rng)).collect();
                let one = |rng: &mut rand_chacha::ChaCha8Rng| {
                    let shift = 0.002 * normal(rng);
                    let base: Vec<f64> = (0..2000).map(|_| rng.random()).collect();
                    let more: Vec<f64> =
                        base.iter().zip(&common).map(|(b, c)| b + c + shift + 0.1 * normal(rng)).collect();
                    let mean = |values: &[f64]| values.iter().sum::<f64>() / 2000.0;
                    let (a, b) = (Blocks::of(&more), Blocks::of(&base));
                    let of = |values: &[f64], blocks| PairedFigure { value: mean(values), blocks, images: None };
                    of(&more, Some(&a)).less(of(&base, Some(&b)))
                };
                let differences: Vec<Difference> = (0..seeds).map(|_| one(&mut rng)).collect();
                let holds = |gain: SeedGain| u64::from(gain.interval.unwrap().contains(0.0));
                covered += holds(SeedGain::paired(&differences).unwrap());
                let values: Vec<f64> = differences.iter().map(|one| one.value).collect();
                without += holds(SeedGain::of(&values).unwrap());
            }
            assert!(covered * 100 >= 92 * RUNS, "{seeds} seeds: {covered} of {RUNS}");
            assert!(without * 100 < 85 * RUNS, "{seeds} seeds, over seeds alone: {without} of {RUNS}");
        }
    }

    #[test]
    fn without_blocks_on_one_side_there_is_no_error_over_images() {
        let blocks = Blocks::of(&[1.0, 2.0, 4.0]);
        let with = PairedFigure { value: 2.0, blocks: Some(&blocks), images: None };
        let without = PairedFigure { value: 1.0, blocks: None, images: None };
        assert!(over_images(&[with.less(with)]).unwrap().abs() < 1e-12);
        assert!(over_images(&[with.less(without)]).is_none() && over_images(&[]).is_none());
        assert!(over_images(&[with.less(with), without.less(with)]).is_none());
    }

    #[test]
    fn networks_that_agree_on_all_images_may_differ_on_some_that_were_not_seen() {
        let gain = |other: &[f64], images: Option<usize>| {
            let (mine, theirs) = (Blocks::of(&[1.0; 200]), Blocks::of(other));
            let of = |blocks| PairedFigure { value: 1.0, blocks: Some(blocks), images };
            let both: Vec<Difference> = (0..2).map(|_| of(&mine).less(of(&theirs))).collect();
            let interval = SeedGain::paired(&both).unwrap().interval.unwrap();
            [interval.low, interval.high]
        };
        // 3 of 200 images; nothing of figures without a bound, such as KL.
        let [low, high] = gain(&[1.0; 200], Some(200));
        assert!((low + 0.015).abs() < 1e-12 && (high - 0.015).abs() < 1e-12, "{low} to {high}");
        assert_eq!(gain(&[1.0; 200], None), [0.0; 2]);
        // Half of the images in every block show their own scatter.
        let half: Vec<f64> = (0..200).map(|i| f64::from(u8::from(i % 80 < 40))).collect();
        assert_eq!(gain(&half, Some(200)), gain(&half, None));
    }

    /// Of two networks one is right where the other is wrong, but for one image in 400.
    fn nearly_always(at: f64, _: f64) -> f64 {
        if at < 0.0025 { 0.0 } else { 1.0 }
    }

    /// They differ by up to 0.004 on 40 % of the images, and by 0.9 on one in 400.
    fn hardly_ever(at: f64, small: f64) -> f64 {
        match at {
            0.0..0.0025 => 0.9,
            0.0025..0.4 => 0.004 * small,
            _ => 0.0,
        }
    }

    #[test]
    fn neither_blocks_that_all_differ_nor_tiny_differences_show_images_of_another_kind() {
        const RUNS: u64 = 200;
        let none = Blocks::of(&[0.0; 400]);
        type Kind = fn(f64, f64) -> f64;
        for (of, truth) in [(nearly_always as Kind, 0.9975), (hardly_ever, 0.9 * 0.0025 + 0.3975 * 0.002)] {
            let covers = |run: &u64| {
                let mut rng = Seed(*run).rng(0);
                let values: Vec<f64> = (0..400).map(|_| of(rng.random(), rng.random())).collect();
                let blocks = Blocks::of(&values);
                let figure = |value, blocks| PairedFigure { value, blocks: Some(blocks), images: Some(400) };
                let difference = figure(student_mean(&values).0, &blocks).less(figure(0.0, &none));
                SeedGain::paired(&[difference.clone(), difference]).unwrap().interval.unwrap().contains(truth)
            };
            let covered = (0..RUNS).filter(covers).count();
            // Where blocks counted that are not 0: 62 % of both kinds in a simulation.
            assert!(covered * 100 >= 92 * RUNS as usize, "{truth}: {covered} of {RUNS}");
        }
    }
}
