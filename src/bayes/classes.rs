//! K Gaussian classes with one covariance, reduced to the r ≤ K − 1 dimensions that differ.
//!
//! Whitened by Σ^(−½) the classes are N(m_k, τ²I), and only the span of the differences m_k − m_j
//! matters. Its basis and the coordinates in it come from modified Gram-Schmidt with pivoting (a
//! rank-revealing QR, backward stable: distances are right to a rounding of the largest mean). From
//! here on the number of pixels plays no part.

mod law;
mod resolution;

use std::sync::Arc;

use super::memory;
use crate::error::{Error, Result};
use crate::oracle::label_noise::LabelNoise;
use crate::parallel;
use crate::units::{Smoothing, Tau};

/// Length, over the largest centred mean, below which Gram-Schmidt leaves rounding; one class.
const RANK_TOLERANCE: f64 = 1e-13;
/// The same over the largest mean as given: the rounding of its entries in differences.
const INPUT_TOLERANCE: f64 = 4.0 * f64::EPSILON;
/// Largest number of standard deviations in a mean: squares of sums of those are far from the largest double at any τ in use.
const FARTHEST: f64 = 1e100;
/// Elements of work from which Gram-Schmidt is worth a second thread.
const PARALLEL_FROM: usize = 1 << 18;

/// K classes N(m_k, τ²I) in r dimensions with their priors π.
#[derive(Debug, Clone)]
pub struct GaussianClasses {
    dims: usize,
    rank: usize,
    /// m_k at τ = 1, relative to the centre of all means, [K, r].
    coordinates: Vec<f64>,
    /// |m_k − m_j| at τ = 1, [K, K].
    distances: Arc<Vec<f64>>,
    priors: Vec<f64>,
    /// What their labels are drawn by, as T says and then a matrix. The methods know the classes alone: `labels` takes both
    /// into account.
    smoothing: Smoothing,
    label_noise: Option<Arc<LabelNoise>>,
    /// Length below which a difference of means is rounding.
    resolution: f64,
    /// What rounding may have moved a mean by: of 15 problems (two classes near each other, one 10² to 10⁸ from them) it was
    /// about a twentieth of that or less.
    blur: f64,
    /// For every class the first one that has its mean, as they were given.
    alike: Arc<Vec<usize>>,
}

impl GaussianClasses {
    /// From means whitened at τ = 1, [K][D], and priors [K] with sum 1.
    ///
    /// # Errors
    /// When there is no class, a mean is not finite or too far away to be computed with, the priors are no distribution, the
    /// rounding of a far mean hides the difference of two others, or this machine has no memory for the distances of all pairs.
    pub fn new(mut whitened: Vec<Vec<f64>>, priors: Vec<f64>) -> Result<Self> {
        if whitened.is_empty() || whitened.len() != priors.len() {
            return Err(Error::input(format!("{} class means for {} priors", whitened.len(), priors.len())));
        }
        check_priors(&priors)?;
        if !whitened.iter().flatten().all(|x| x.is_finite()) {
            return Err(Error::input("the class means divided by the standard deviations are not finite numbers"));
        }
        check_distance(&whitened)?;
        let dims = whitened[0].len();
        memory::for_distances(whitened.len(), dims)?;
        let longest = |means: &[Vec<f64>]| means.iter().map(|mean| norm(mean)).fold(0.0, f64::max);
        let given = longest(&whitened);
        let alike = Arc::new(resolution::alike(&whitened));
        centre(&mut whitened);
        let centred = longest(&whitened);
        let by_rounding = RANK_TOLERANCE * (priors.len() as f64).sqrt() * centred;
        let resolution = by_rounding.max(INPUT_TOLERANCE * given);
        let (rank, coordinates) = factorise(whitened, resolution);
        let distances = Arc::new(all_distances(priors.len(), rank, &coordinates));
        let (smoothing, label_noise) = (Smoothing::ONE, None);
        let blur = f64::EPSILON * centred;
        let classes =
            Self { dims, rank, coordinates, distances, priors, smoothing, label_noise, resolution, blur, alike };
        classes.check_at(Tau::ONE)?;
        Ok(classes)
    }

    /// The same classes with other priors.
    ///
    /// # Errors
    /// When there are not K of them, or they are no distribution.
    pub fn with_priors(&self, priors: &[f64]) -> Result<Self> {
        if priors.len() != self.classes() {
            return Err(Error::input(format!("{} priors for {} classes", priors.len(), self.classes())));
        }
        check_priors(priors)?;
        Ok(Self { priors: priors.to_vec(), ..self.clone() })
    }

    /// Number of classes K.
    pub fn classes(&self) -> usize {
        self.priors.len()
    }

    /// Number of dimensions D of the problem as it was given.
    pub fn dims(&self) -> usize {
        self.dims
    }

    /// Dimensions r of the span of all differences of means.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// Priors π, [K].
    pub fn priors(&self) -> &[f64] {
        &self.priors
    }

    /// m_k at τ = 1, [r].
    pub fn mean(&self, class: usize) -> &[f64] {
        &self.coordinates[class * self.rank..(class + 1) * self.rank]
    }

    /// Mahalanobis distance of two means at τ = 1.
    pub fn distance(&self, a: usize, b: usize) -> f64 {
        self.distances[a * self.classes() + b]
    }

    /// The distinct classes of positive prior at base temperature τ.
    pub(super) fn scene(&self, tau: Tau, merge: Merge) -> Scene {
        let scale = 1.0 / tau.get();
        let members = self.groups(merge);
        let priors = |group: &Vec<usize>| -> Vec<f64> { group.iter().map(|&k| self.priors[k]).collect() };
        let weights: Vec<f64> = members
            .iter()
            .map(|group| match merge {
                Merge::Best => priors(group).into_iter().fold(0.0, f64::max),
                Merge::Sum | Merge::Apart => priors(group).iter().sum(),
            })
            .collect();
        let hidden = members.iter().zip(&weights).map(|(group, &weight)| {
            let priors = priors(group);
            match merge {
                Merge::Best => priors.iter().sum::<f64>() - weight,
                Merge::Sum | Merge::Apart => priors.iter().map(|p| p * (weight / p).ln()).sum(),
            }
        });
        let hidden = hidden.sum();
        let first = || members.iter().map(|group| group[0]);
        // Classes left out may take directions with them.
        let (rank, coordinates) = if members.len() == self.classes() {
            (self.rank, first().flat_map(|k| self.mean(k).to_vec()).collect())
        } else {
            let mut left: Vec<Vec<f64>> = first().map(|k| self.mean(k).to_vec()).collect();
            centre(&mut left);
            factorise(left, self.resolution)
        };
        let means: Vec<f64> = coordinates.iter().map(|x| x * scale).collect();
        let distances = first().flat_map(|g| first().map(move |h| scale * self.distance(g, h))).collect();
        let log_weights = weights.iter().map(|w| w.ln()).collect();
        Scene { rank, means, weights, log_weights, hidden, members, distances, blur: scale * self.blur }
    }

    /// Classes of positive prior, coincident ones together where asked for.
    fn groups(&self, merge: Merge) -> Vec<Vec<usize>> {
        let mut members: Vec<Vec<usize>> = Vec::new();
        for k in (0..self.classes()).filter(|&k| self.priors[k] > 0.0) {
            let same = |group: &&mut Vec<usize>| merge != Merge::Apart && self.distance(group[0], k) <= self.resolution;
            match members.iter_mut().find(same) {
                Some(group) => group.push(k),
                None => members.push(vec![k]),
            }
        }
        members
    }
}

/// How coincident classes become one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Merge {
    /// The likeliest wins; the priors of the others are errors. For the Bayes error.
    Best,
    /// One class of the summed prior; which member it is stays unknown in any case. For entropies.
    Sum,
    /// They stay apart. For one class against the rest.
    Apart,
}

/// Distinct classes N(m_g, I) of weight w_g > 0 at one temperature.
#[derive(Debug, Clone)]
pub(super) struct Scene {
    pub rank: usize,
    /// m_g, [G, r].
    pub means: Vec<f64>,
    /// w_g, [G]; together 1 less what merging took out.
    pub weights: Vec<f64>,
    /// ln w_g.
    pub log_weights: Vec<f64>,
    /// What coincident classes contribute whatever x is: errors, or nats of entropy.
    pub hidden: f64,
    /// The classes of each group.
    pub members: Vec<Vec<usize>>,
    /// |m_g − m_h|, [G, G].
    distances: Vec<f64>,
    /// What rounding may have moved a mean by.
    blur: f64,
}

impl Scene {
    /// From means [G, r], weights [G] and the classes of each group.
    pub fn new(rank: usize, means: Vec<f64>, weights: Vec<f64>, hidden: f64, members: Vec<Vec<usize>>) -> Self {
        let distances = all_distances(weights.len(), rank, &means);
        let log_weights = weights.iter().map(|w| w.ln()).collect();
        Self { rank, means, weights, log_weights, hidden, members, distances, blur: 0.0 }
    }

    /// What the rounding of means leaves open of an error e^`log`, as a share of it. Normal densities apart by δ have a total
    /// variation of at most δ/√(2π); and a boundary that moves by δ takes the share δ·φ(b)/Q(b) of Q(b) ≥ E/K², the largest
    /// term of E, which is at most (1 + b)δ.
    pub fn blurred(&self, log: f64) -> f64 {
        let boundary = (2.0 * (2.0 * (self.count() as f64).ln() - log)).max(0.0).sqrt();
        (0.4 * self.blur * (-log).exp()).min(2.0 * self.blur * (1.0 + boundary))
    }

    /// Number of groups G.
    pub fn count(&self) -> usize {
        self.weights.len()
    }

    /// m_g, [r].
    pub fn mean(&self, g: usize) -> &[f64] {
        &self.means[g * self.rank..(g + 1) * self.rank]
    }

    /// d_gh = |m_g − m_h|.
    pub fn distance(&self, g: usize, h: usize) -> f64 {
        self.distances[g * self.count() + h]
    }

    /// b_gh: how far from m_g, towards m_h, the face lies beyond which h is likelier (theory §3).
    /// Of two coincident classes the lighter always loses, of equally heavy ones the first.
    pub fn boundary(&self, g: usize, h: usize) -> f64 {
        let d = self.distance(g, h);
        if d == 0.0 {
            let loses = (self.log_weights[g], h) < (self.log_weights[h], g);
            return if loses { f64::NEG_INFINITY } else { f64::INFINITY };
        }
        0.5 * d + (self.log_weights[g] - self.log_weights[h]) / d
    }

    /// ln w_g Q(b_gh): class g taken for class h, were they alone.
    pub fn log_pair(&self, g: usize, h: usize) -> f64 {
        self.log_weights[g] + super::normal::log_tail(self.boundary(g, h))
    }

    /// The directions from m_g to the others.
    pub fn directions(&self, g: usize) -> Directions {
        let count = self.count();
        let units: Vec<Vec<f64>> = (0..count)
            .map(|h| {
                let d = self.distance(g, h);
                self.mean(h).iter().zip(self.mean(g)).map(|(to, from)| (to - from) / d).collect()
            })
            .collect();
        let cosines = units.iter().flat_map(|a| units.iter().map(|b| dot(a, b).clamp(-1.0, 1.0))).collect();
        Directions { g, count, cosines }
    }
}

/// The directions from one mean to the others.
pub(super) struct Directions {
    /// From which.
    pub g: usize,
    count: usize,
    /// [G, G]; row and column g mean nothing.
    cosines: Vec<f64>,
}

impl Directions {
    /// Cosine of the directions to h and to i.
    pub fn cosine(&self, h: usize, i: usize) -> f64 {
        self.cosines[h * self.count + i]
    }
}

/// Names a mean of which squares would overflow.
fn check_distance(whitened: &[Vec<f64>]) -> Result<()> {
    let far = whitened.iter().map(|mean| mean.iter().position(|x| x.abs() > FARTHEST));
    match far.enumerate().find_map(|(k, i)| Some((k, i?))) {
        None => Ok(()),
        Some((k, i)) => Err(Error::input(format!(
            "means[{k}][{i}] is {:.1e} standard deviations: beyond {FARTHEST:e} distances cannot be computed. A class so far \
             from all others is never in doubt: leave it out",
            whitened[k][i]
        ))),
    }
}

fn check_priors(priors: &[f64]) -> Result<()> {
    let sum: f64 = priors.iter().sum();
    if priors.iter().all(|p| *p >= 0.0) && (sum - 1.0).abs() <= 1e-9 {
        return Ok(());
    }
    Err(Error::input(format!("class priors must be numbers ≥ 0 that sum to 1; these sum to {sum}")))
}

fn centre(means: &mut [Vec<f64>]) {
    let Some(dims) = means.first().map(Vec::len) else { return };
    let count = means.len() as f64;
    let mut middle = vec![0.0; dims];
    for mean in means.iter() {
        middle.iter_mut().zip(mean).for_each(|(c, m)| *c += m / count);
    }
    means.iter_mut().for_each(|mean| mean.iter_mut().zip(&middle).for_each(|(m, c)| *m -= c));
}

/// Coordinates of the rows in a basis of their span: (r, [K, r]). Lengths ≤ `tolerance` are 0.
fn factorise(mut rows: Vec<Vec<f64>>, tolerance: f64) -> (usize, Vec<f64>) {
    let (count, dims) = (rows.len(), rows[0].len());
    let mut coordinates = vec![Vec::new(); count];
    let mut left: Vec<f64> = rows.iter().map(|row| norm(row)).collect();
    while let Some((pivot, &length)) = left.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1)) {
        if length <= tolerance {
            break;
        }
        let direction: Vec<f64> = rows[pivot].iter().map(|x| x / length).collect();
        let project = |row: &mut Vec<f64>, coordinates: &mut Vec<f64>, left: &mut f64| {
            let along = dot(row, &direction);
            coordinates.push(along);
            row.iter_mut().zip(&direction).for_each(|(x, d)| *x -= along * d);
            *left = norm(row);
        };
        let parts = (rows.iter_mut().zip(&mut coordinates)).zip(&mut left);
        if count * dims < PARALLEL_FROM {
            parts.for_each(|((row, coordinates), left)| project(row, coordinates, left));
        } else {
            let mut parts: Vec<_> = parts.collect();
            parallel::each_mut(&mut parts, |_, ((row, coordinates), left)| project(row, coordinates, left));
        }
        // What rounding left of the pivot itself is no direction.
        left[pivot] = 0.0;
        rows[pivot].fill(0.0);
    }
    (coordinates[0].len(), coordinates.concat())
}

/// Σ a_i b_i in eight partial sums, which the compiler can vectorise.
pub(super) fn dot(a: &[f64], b: &[f64]) -> f64 {
    let mut partial = [0.0; 8];
    for (a, b) in a.chunks(8).zip(b.chunks(8)) {
        partial.iter_mut().zip(a.iter().zip(b)).for_each(|(sum, (a, b))| *sum += a * b);
    }
    partial.iter().sum()
}

fn norm(a: &[f64]) -> f64 {
    dot(a, a).sqrt()
}

/// |m_g − m_h| of all pairs of `count` points [count, rank].
fn all_distances(count: usize, rank: usize, means: &[f64]) -> Vec<f64> {
    let mean = |g: usize| &means[g * rank..(g + 1) * rank];
    let row = |g: usize| (0..count).map(move |h| distance(mean(g), mean(h)));
    if count * count * rank < PARALLEL_FROM {
        return (0..count).flat_map(row).collect();
    }
    parallel::flat_map(count, |g| row(g).collect())
}

fn distance(a: &[f64], b: &[f64]) -> f64 {
    let mut partial = [0.0; 8];
    for (a, b) in a.chunks(8).zip(b.chunks(8)) {
        partial.iter_mut().zip(a.iter().zip(b)).for_each(|(sum, (a, b))| *sum += (a - b) * (a - b));
    }
    partial.iter().sum::<f64>().sqrt()
}

#[cfg(test)]
mod tests;
