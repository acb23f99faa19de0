//! Plain Monte Carlo, stratified by class: E = Σ_g w_g E_{x~g}[1 − max p(·|x)].

use rand_distr::{Distribution, StandardNormal};

use super::classes::Scene;
use super::quadrature::Scaled;
use crate::parallel;
use crate::stats::{DOUBT, Z95, unseen};
use crate::units::Seed;

/// Samples of one class that one thread takes at a time.
const PIECE: usize = 1024;
/// Samples of each class before the first report.
pub(super) const FIRST: usize = PIECE;

/// Moments of 1 − max p in one class.
#[derive(Clone, Copy, Default)]
struct Moments {
    n: f64,
    sum: f64,
    squares: f64,
    /// Samples with more than [`DOUBT`].
    doubtful: f64,
}

impl Moments {
    fn add(self, other: Self) -> Self {
        Self {
            n: self.n + other.n,
            sum: self.sum + other.sum,
            squares: self.squares + other.squares,
            doubtful: self.doubtful + other.doubtful,
        }
    }
}

/// A Monte Carlo estimate under refinement.
pub(super) struct MonteCarlo<'a> {
    scene: &'a Scene,
    seed: Seed,
    pieces: usize,
    moments: Vec<Moments>,
}

impl<'a> MonteCarlo<'a> {
    /// Nothing sampled yet.
    pub fn new(scene: &'a Scene, seed: Seed) -> Self {
        Self { scene, seed: seed.split("monte carlo"), pieces: 0, moments: vec![Moments::default(); scene.count()] }
    }

    /// Samples up to about 2^`level` points of every class.
    pub fn refine(&mut self, level: u32) {
        let wanted = (1usize << level).div_ceil(PIECE);
        let count = self.scene.count();
        let work: Vec<(usize, usize)> =
            (0..count).flat_map(|g| (self.pieces..wanted).map(move |piece| (g, piece))).collect();
        let this = &*self;
        let done = parallel::map(work.len(), |at| this.piece(work[at].0, work[at].1));
        for (&(g, _), moments) in work.iter().zip(done) {
            self.moments[g] = self.moments[g].add(moments);
        }
        self.pieces = self.pieces.max(wanted);
    }

    fn piece(&self, g: usize, piece: usize) -> Moments {
        let scene = self.scene;
        let mut rng = self.seed.rng((piece * scene.count() + g) as u64);
        let mut z = vec![0.0; scene.rank];
        let mut moments = Moments::default();
        for _ in 0..PIECE {
            z.iter_mut().zip(scene.mean(g)).for_each(|(z, m)| {
                let e: f64 = StandardNormal.sample(&mut rng);
                *z = m + e;
            });
            let joint = |i: usize| {
                let squared: f64 = scene.mean(i).iter().zip(&z).map(|(m, z)| (z - m) * (z - m)).sum();
                scene.log_weights[i] - 0.5 * squared
            };
            let logs = (0..scene.count()).map(joint);
            let (largest, total) = logs.fold((f64::NEG_INFINITY, 0.0f64), |(largest, total), log| {
                if log > largest {
                    (log, total * (largest - log).exp() + 1.0)
                } else {
                    (largest, total + (log - largest).exp())
                }
            });
            debug_assert!(largest.is_finite());
            let doubt = (total - 1.0) / total;
            moments = moments.add(Moments {
                n: 1.0,
                sum: doubt,
                squares: doubt * doubt,
                doubtful: f64::from(u8::from(doubt > DOUBT)),
            });
        }
        moments
    }

    /// Points spent.
    pub fn samples(&self) -> u64 {
        self.moments.iter().map(|m| m.n as u64).sum()
    }

    /// The estimate so far. Classes hardly ever in doubt widen the interval by the rule of three,
    /// taken together: with none in n_g samples each, Σ w_g p_g is at most 3 max w_g/n_g. Doubt
    /// seen in other classes says nothing of them.
    pub fn sum(&self) -> Scaled {
        let (mut value, mut variance, mut not_seen) = (0.0, 0.0, 0.0);
        for (weight, m) in self.scene.weights.iter().zip(&self.moments) {
            let mean = m.sum / m.n;
            value += weight * mean;
            variance += weight * weight * (m.squares / m.n - mean * mean).max(0.0) / (m.n - 1.0);
            not_seen = f64::max(not_seen, weight * unseen(m.n as usize, m.doubtful as usize));
        }
        Scaled { log_scale: 0.0, value, half_width: Z95 * variance.sqrt() + not_seen }
    }
}
