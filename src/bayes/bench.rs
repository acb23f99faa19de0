//! Times a Bayes error to a given precision on one thread, and the share of unavoidable work: one Φ
//! and one Φ⁻¹ for each variable drawn.

use std::ops::ControlFlow;
use std::time::Instant;

use serde::Serialize;

use super::classes::GaussianClasses;
use super::compute::{Spec, bayes_error};
use super::inverse::tau_of_error;
use super::normal::{cdf_with, quantile_near};
use super::simd::{Arithmetic, BLOCK, Block, Kernel, vectorise};
use crate::error::{Error, Result};
use crate::kernels::instructions;
use crate::oracle::bench::Timing;
use crate::stats::Z95;
use crate::units::{Seed, Tau};

/// All figures of one machine.
#[derive(Debug, Serialize)]
pub struct BayesReport {
    /// Instruction set in use, one thread.
    pub device: String,
    /// Variables (Φ and Φ⁻¹) a second, at best.
    pub variables_per_second: f64,
    /// The figures.
    pub benches: Vec<BayesBench>,
}

/// One problem to one precision, every run with another seed.
#[derive(Debug, Serialize)]
pub struct BayesBench {
    /// How long it took.
    #[serde(flatten)]
    pub timing: Timing,
    /// Least time of Φ and Φ⁻¹ of the variables drawn, over the time spent; null without any.
    pub roofline_share: Option<f64>,
    /// What the share is of.
    pub roofline: &'static str,
    /// What this house aims at, on AVX2.
    pub aim: f64,
    /// Largest relative standard error (Student t included) that a run claimed.
    pub claimed: f64,
    /// Largest relative difference between a run and the reference value.
    pub off: f64,
}

/// One problem of the bench.
struct Case {
    name: &'static str,
    classes: GaussianClasses,
    tau: f64,
    /// Bayes error, and relative standard error asked for; of an inverse, the target and that of τ.
    goal: (f64, f64),
    inverse: bool,
    aim_ms: f64,
}

/// U(seed, i) of the reference table: SplitMix64 in counter mode.
fn uniform(seed: u64, index: u64) -> f64 {
    let z = (seed << 32).wrapping_add(index).wrapping_add(0x9E37_79B9_7F4A_7C15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    ((z ^ (z >> 31)) >> 11) as f64 * 2f64.powi(-53)
}

/// The reference table's random means over its `splitmix_diag` variances: K classes in D
/// dimensions, in groups of `group` classes that share a part (`splitmix_tree`), or none
/// (`splitmix_iid`).
fn random(
    classes: usize,
    dims: usize,
    scale: f64,
    seed: u64,
    tree: Option<(usize, f64, f64)>,
) -> Result<GaussianClasses> {
    let centred = |index: usize| (2.0 * uniform(seed, index as u64) - 1.0) * 3f64.sqrt();
    let entry = |k: usize, i: usize| {
        let own = centred(k * dims + i);
        let mean = match tree {
            None => own,
            Some((group, own_part, grow)) => {
                centred(1_000_000 + k / group * dims + i) + own_part * (1.0 + grow * k as f64) * own
            }
        };
        scale * mean / (0.5 + 1.5 * uniform(seed + 500, i as u64)).sqrt()
    };
    let means = (0..classes).map(|k| (0..dims).map(|i| entry(k, i)).collect()).collect();
    GaussianClasses::new(means, vec![1.0 / classes as f64; classes])
}

fn cases() -> Result<Vec<Case>> {
    let case = |name, classes, goal, aim_ms| Case { name, classes, tau: 1.0, goal, inverse: false, aim_ms };
    let ring = (0..16).map(|k| f64::from(k) * std::f64::consts::TAU / 16.0);
    let ring = ring.map(|angle| vec![5.0 * angle.cos(), 5.0 * angle.sin()]).collect();
    let ring = GaussianClasses::new(ring, vec![1.0 / 16.0; 16])?;
    let ten = random(10, 3072, 0.06924, 102, None)?;
    Ok(vec![
        case("K=16 in a plane", ring, (f64::NAN, 1e-12), 1.0),
        // What LinConGauss reaches in 112 CPU-seconds; a hundred thousandth of that.
        case("K=10, D=3072", ten.clone(), (f64::NAN, 1.2e-2), 1.1),
        case("K=10, D=3072", ten.clone(), (f64::NAN, 1e-4), 3.0),
        case("K=10, D=3072", ten.clone(), (f64::NAN, 1e-5), 20.0),
        case("K=10, D=3072", ten.clone(), (f64::NAN, 1e-6), 250.0),
        Case { inverse: true, ..case("τ of 5 %, K=10, D=3072", ten, (0.05, 1e-6), 100.0) },
        case("K=26, D=784 (tree)", random(26, 784, 0.1223, 107, Some((4, 0.7, 0.03)))?, (f64::NAN, 1e-5), 100.0),
        case("K=100, D=3072 (tree)", random(100, 3072, 0.06086, 109, Some((5, 0.7, 0.0)))?, (f64::NAN, 2e-5), 4000.0),
        case("K=1000, D=1024", random(1000, 1024, 0.17, 111, None)?, (f64::NAN, 1e-2), 300.0),
    ])
}

/// Times all problems on one thread, without the reduction, which a world needs once.
///
/// # Errors
/// When the system gives no thread.
pub fn run(runs: usize) -> Result<BayesReport> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build();
    let pool = pool.map_err(|error| Error::Device(format!("no thread to measure on: {error}")))?;
    pool.install(|| {
        let variables_per_second = variables_per_second();
        let benches =
            cases()?.iter().map(|case| measure(case, runs.max(1), variables_per_second)).collect::<Result<_>>()?;
        Ok(BayesReport { device: format!("CPU, {}, one thread", instructions()), variables_per_second, benches })
    })
}

/// One answer: (value, relative standard error, variables drawn).
fn answer(case: &Case, seed: u64, standard_error: f64) -> Result<(f64, f64, u64)> {
    let spec = Spec { tolerance: standard_error * Z95, seed: Seed(seed), ..Spec::default() };
    if case.inverse {
        let found = tau_of_error(&case.classes, case.goal.0, &spec, &mut |_| ControlFlow::Continue(()))?;
        return Ok((found.tau.value, found.tau.std_error / found.tau.value, found.achieved.draws));
    }
    let found = bayes_error(&case.classes, Tau::new(case.tau)?, &spec, &mut |_| ControlFlow::Continue(()))?;
    Ok((found.figure.value, found.figure.std_error / found.figure.value, found.draws))
}

fn measure(case: &Case, runs: usize, variables_per_second: f64) -> Result<BayesBench> {
    let wanted = case.goal.1;
    // The reference: another seed, several times as exact, where that takes no minutes.
    let (reference, _, _) = answer(case, 1_000_000, if wanted < 5e-5 { wanted } else { 0.2 * wanted })?;
    let (mut times, mut claimed, mut off) = (Vec::with_capacity(runs), 0.0f64, 0.0f64);
    let mut drawn = 0;
    for seed in 0..=runs as u64 {
        let begun = Instant::now();
        let (value, error, draws) = answer(case, seed, wanted)?;
        let milliseconds = begun.elapsed().as_secs_f64() * 1e3;
        if seed > 0 {
            times.push(milliseconds);
            claimed = claimed.max(error);
            off = off.max((value / reference - 1.0).abs());
            drawn += draws;
        }
    }
    let total: f64 = times.iter().sum();
    let share = (drawn > 0 && !case.inverse).then(|| drawn as f64 / variables_per_second * 1e3 / total);
    let timing = Timing::of(format!("{}: standard error {wanted:e}", case.name), times);
    Ok(BayesBench { timing, roofline_share: share, roofline: "Φ and Φ⁻¹", aim: case.aim_ms, claimed, off })
}

/// Φ and Φ⁻¹ of numbers that stay in the first cache, for a tenth of a second.
fn variables_per_second() -> f64 {
    struct Round<'a>(&'a mut Block);
    impl Kernel for Round<'_> {
        type Output = ();
        #[inline(always)]
        fn run<A: Arithmetic>(self) {
            for x in self.0.iter_mut() {
                *x = cdf_with::<A>(*x);
            }
            for x in self.0.iter_mut() {
                *x = quantile_near::<A>(*x);
            }
        }
    }
    let mut block: Block = std::array::from_fn(|i| -3.0 + 6.0 * i as f64 / BLOCK as f64);
    let (begun, mut rounds) = (Instant::now(), 0u64);
    while begun.elapsed().as_secs_f64() < 0.1 {
        for _ in 0..256 {
            vectorise(Round(&mut block));
        }
        rounds += 256;
    }
    std::hint::black_box(&block);
    (rounds * BLOCK as u64) as f64 / begun.elapsed().as_secs_f64()
}
