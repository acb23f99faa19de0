//! Which way to invert each block on the device at hand: measured, because a graphics card's loop
//! waits for launches and gains from GS-Jacobi where a CPU's loop computes all the time and does
//! not.
//!
//! The metrics are those of Liu & Qin 2025 (arXiv 2505.12849), on samples of the flow itself
//! instead of training images:
//!
//! * IGM of a guess x⁰ (§4.2): ‖E[g(x⁰) − x]‖₂, the distance of the first iterate from the
//!   solution; the smaller guess wins.
//! * CRM (§4.3): ‖E[e^{−a} x]‖₂ ‖W_s‖₂ + ‖W_u‖₂ with W_s, W_u the halves of `proj_out`: large for
//!   the few "tough" blocks, which are cut into modules, small for the others, which are iterated
//!   whole.

use std::time::Instant;

use nalgebra::DMatrix;

use super::engine::Engine;
use super::{Condition, TarFlowConfig, TarFlowOracle};
use crate::error::Result;
use crate::flow::base::latents;
use crate::flow::sampling::{BlockPlan, Guess, Strategy};
use crate::flow::weights::Weights;
use crate::flow::{BlockInversion, Flow};
use crate::units::{ClassId, Seed, Tau};

/// Modules tried for a tough block, and for the others.
const TOUGH_MODULES: [usize; 6] = [1, 2, 4, 6, 8, 16];
const EASY_MODULES: [usize; 3] = [1, 2, 3];
/// Every way that is left is timed so often; the fastest time counts, for what disturbs a run only
/// ever slows it.
const RUNS: usize = 4;
/// A way this many times slower than the fastest is not timed again.
const BEATEN: f64 = 1.3;
/// A block whose share of the sum of all CRM is this many times the average is tough.
const TOUGH_SHARE: f64 = 1.5;
/// Jacobi is chosen where it takes less than this share of the time of the loop. Timings waver; yet
/// the loop, where it stays, is slower by 5 % at most.
const GAIN: f64 = 1.0 / 1.05;

/// Spectral norms of the two halves of a block's `proj_out` (one half in VP: 0 and its norm).
pub fn output_norms(config: &TarFlowConfig, weights: &Weights, block: usize) -> [f64; 2] {
    let Some(weight) = weights.0.get(&format!("blocks.{block}.proj_out.weight")) else { return [0.0; 2] };
    let (rows, columns) = (config.outputs(), config.channels);
    let matrix = DMatrix::from_row_iterator(rows, columns, weight.values.iter().map(|&v| f64::from(v)));
    let shift_rows = config.token_dims();
    let norm = |first: usize, count: usize| spectral_norm(matrix.rows(first, count).into_owned());
    let scale = if config.volume_preserving { 0.0 } else { norm(0, shift_rows) };
    [scale, norm(rows - shift_rows, shift_rows)]
}

/// Largest singular value; infinite where a value is not finite: on those the iteration that finds
/// it would never end.
fn spectral_norm(matrix: DMatrix<f64>) -> f64 {
    if matrix.iter().any(|value| !value.is_finite()) {
        return f64::INFINITY;
    }
    // 30 steps a value is what LAPACK allows; two or three is what they take.
    let steps = 30 * matrix.nrows().min(matrix.ncols()).max(10);
    let found = matrix.try_svd_unordered(false, false, f64::EPSILON, steps);
    found.map_or(f64::INFINITY, |svd| svd.singular_values.max())
}

impl BlockInversion for TarFlowOracle {
    fn strategies(&self) -> Vec<Strategy> {
        self.strategies.borrow().clone()
    }

    fn set_strategies(&self, strategies: Vec<Strategy>) {
        if strategies.len() == self.config().blocks {
            *self.strategies.borrow_mut() = strategies;
        }
    }

    fn measure_strategies(
        &self,
        images: usize,
        tolerance: f64,
        report: &mut dyn FnMut(usize) -> Result<()>,
    ) -> Result<Vec<BlockPlan>> {
        let classes: Vec<ClassId> =
            (0..images).map(|i| if self.maps().len() > 1 { 0 } else { i % self.classes() }).collect();
        let z = self.place(&calibration_noise(images, self.shape().dims()), &classes, Tau::ONE);
        self.measure_at(&z, &classes, tolerance, report)
    }
}

impl TarFlowOracle {
    /// [`BlockInversion::measure_strategies`] at base-space tokens `z` [N, T, P], by the map of the
    /// first class.
    pub(super) fn measure_at(
        &self,
        z: &[f64],
        classes: &[ClassId],
        tolerance: f64,
        report: &mut dyn FnMut(usize) -> Result<()>,
    ) -> Result<Vec<BlockPlan>> {
        let (map, _) = self.map_of(0);
        let conditions: Vec<Condition> = classes.iter().map(|&class| self.map_of(class).1).collect();
        measure(map.engine.as_ref(), self.config(), &map.output_norms, z, &conditions, tolerance, report)
    }
}

/// Latents of the samples that ways are measured on, NCHW.
pub(super) fn calibration_noise(images: usize, dims: usize) -> Vec<f32> {
    latents(Seed(0).split("strategies"), 0, images, dims)
}

/// One block's input and output for the calibration samples, and how it is computed.
struct Calibration<'a> {
    engine: &'a dyn Engine,
    config: &'a TarFlowConfig,
    block: usize,
    z: Vec<f64>,
    x: Vec<f64>,
    conditions: &'a [Condition],
}

impl Calibration<'_> {
    /// x and rounds.
    fn solve(&self, strategy: Strategy) -> Result<(Vec<f64>, usize)> {
        let solved = self.engine.invert(self.block, &self.z, self.conditions, strategy, None, &mut |_| Ok(()))?;
        Ok((solved.x, solved.rounds))
    }

    /// Spectral norm of the mean over images of `values` [N, T, P]; infinite where that is not finite.
    fn norm_of_mean(&self, values: &[f64]) -> f64 {
        let (t, p) = (self.config.tokens(), self.config.token_dims());
        let n = (values.len() / (t * p)) as f64;
        let mut mean = DMatrix::<f64>::zeros(t, p);
        for image in values.chunks(t * p) {
            mean += DMatrix::from_row_slice(t, p, image) / n;
        }
        spectral_norm(mean)
    }

    /// ‖E[e^{−a} x]‖₂ ‖W_s‖₂ + ‖W_u‖₂; infinite where it leaves the finite numbers.
    fn crm(&self, [scale, shift]: [f64; 2]) -> Result<f64> {
        // VP: no scale, whatever x is.
        if scale == 0.0 {
            return Ok(shift);
        }
        let a = self.engine.log_scales(self.block, &self.x, self.conditions)?;
        let scaled: Vec<f64> = self.x.iter().zip(&a).map(|(x, a)| (-a).exp() * x).collect();
        Ok(self.norm_of_mean(&scaled) * scale + shift)
    }

    /// ‖E[g(x⁰) − x]‖₂ after one round from a guess; infinite where that round leaves the finite
    /// numbers.
    fn igm(&self, guess: Guess) -> Result<f64> {
        // A tolerance no change exceeds: one round, then it stops. Only a NaN goes on, to the exact
        // x, which says nothing about the guess.
        let once = Strategy::Jacobi { modules: 1, guess, tolerance: f64::INFINITY };
        let (x, rounds) = self.solve(once)?;
        if rounds > 1 {
            return Ok(f64::INFINITY);
        }
        let error: Vec<f64> = x.iter().zip(&self.x).map(|(a, b)| a - b).collect();
        Ok(self.norm_of_mean(&error))
    }
}

/// Measures every block on base-space tokens `z` [N, T, P] and chooses. A strategy counts only if
/// its x is within `tolerance` of the loop's everywhere. `report` is told after every block, the
/// last first; an error from it stops the measurement.
///
/// # Errors
/// When the device fails, or what `report` returns.
fn measure(
    engine: &dyn Engine,
    config: &TarFlowConfig,
    norms: &[[f64; 2]],
    z: &[f64],
    conditions: &[Condition],
    tolerance: f64,
    report: &mut dyn FnMut(usize) -> Result<()>,
) -> Result<Vec<BlockPlan>> {
    let mut calibrations = Vec::with_capacity(config.blocks);
    let mut z = z.to_vec();
    for block in (0..config.blocks).rev() {
        let mut calibration = Calibration { engine, config, block, z, x: Vec::new(), conditions };
        let (x, _) = calibration.solve(Strategy::Loop)?;
        z = x.clone();
        calibration.x = x;
        let crm = calibration.crm(norms.get(block).copied().unwrap_or_default())?;
        let igm = [calibration.igm(Guess::Z)?, calibration.igm(Guess::Zero)?];
        calibrations.push((calibration, crm, igm));
    }
    let average = calibrations.iter().map(|c| c.1).sum::<f64>() / config.blocks as f64;
    let mut plans = Vec::with_capacity(config.blocks);
    for (calibration, crm, igm) in &calibrations {
        // A guess that diverges at once has no metric; then the other one is taken.
        let guess = if igm[1] < igm[0] || !igm[0].is_finite() { Guess::Zero } else { Guess::Z };
        let modules: &[usize] = if *crm > TOUGH_SHARE * average { &TOUGH_MODULES } else { &EASY_MODULES };
        let mut ways = vec![Way { strategy: Strategy::Loop, rounds: 0, ms: f64::INFINITY }];
        ways.extend(exact_jacobis(calibration, guess, modules, tolerance)?);
        race(calibration, &mut ways)?;
        let loop_ms = ways[0].ms;
        let jacobi = ways[1..].iter().min_by(|a, b| a.ms.total_cmp(&b.ms));
        plans.push(BlockPlan {
            strategy: jacobi.filter(|way| way.ms < GAIN * loop_ms).map_or(Strategy::Loop, |way| way.strategy),
            crm: *crm,
            igm: *igm,
            loop_ms,
            jacobi: jacobi.map(|way| way.strategy),
            jacobi_ms: jacobi.map(|way| way.ms),
            rounds: jacobi.map(|way| way.rounds),
        });
        report(plans.len())?;
    }
    plans.reverse();
    Ok(plans)
}

/// A way to invert a block.
struct Way {
    strategy: Strategy,
    rounds: usize,
    /// Milliseconds of its fastest run.
    ms: f64,
}

/// GS-Jacobi with each number of modules, its x within `tolerance` of the loop's; none where that
/// is not finite. Not timed yet.
fn exact_jacobis(calibration: &Calibration<'_>, guess: Guess, modules: &[usize], tolerance: f64) -> Result<Vec<Way>> {
    let most = calibration.config.tokens() - 1;
    let mut ways = Vec::new();
    if calibration.x.iter().any(|x| !x.is_finite()) {
        return Ok(ways);
    }
    for &modules in modules.iter().filter(|&&modules| modules <= most) {
        // The last change is not the error: where it promises too much, ask for less of it.
        for stop in [tolerance, 0.1 * tolerance, 0.01 * tolerance] {
            let strategy = Strategy::Jacobi { modules, guess, tolerance: stop };
            let (x, rounds) = calibration.solve(strategy)?;
            // Written so that a NaN is too far off.
            if x.iter().zip(&calibration.x).all(|(a, b)| (a - b).abs() <= tolerance) {
                ways.push(Way { strategy, rounds, ms: f64::INFINITY });
                break;
            }
        }
    }
    Ok(ways)
}

/// Times the ways in turn, so that what disturbs the machine for a while disturbs them all.
fn race(calibration: &Calibration<'_>, ways: &mut [Way]) -> Result<()> {
    for _ in 0..RUNS {
        let fastest = ways.iter().map(|way| way.ms).fold(f64::INFINITY, f64::min);
        for way in ways.iter_mut().filter(|way| way.ms == f64::INFINITY || way.ms <= BEATEN * fastest) {
            let started = Instant::now();
            calibration.solve(way.strategy)?;
            way.ms = way.ms.min(started.elapsed().as_secs_f64() * 1e3);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use burn::tensor::Device;

    use super::*;
    use crate::data::ImageShape;
    use crate::flow::Precision;
    use crate::flow::preprocess::Preprocessing;

    /// One block over 4 tokens of one value: x_t = z_t e^{a_t}, where `pixel` is the slope of a_t
    /// over x_{t−1} and `place[t − 1]` what it is at 0.
    fn linear(pixel: f32, place: [f32; 4]) -> TarFlowOracle {
        let config = TarFlowConfig {
            shape: ImageShape { channels: 1, height: 2, width: 2 },
            classes: 0,
            patch: 1,
            channels: 64,
            blocks: 1,
            layers: 1,
            volume_preserving: false,
            shared_map: false,
        };
        let mut weights = config.initial_weights(Seed(0));
        for (name, array) in &mut weights.0 {
            if name != "var" {
                array.values.fill(0.0);
            }
            // The first channel holds x_{t−1}, the second is 1 in place t − 1; a is read from both.
            match name.as_str() {
                "blocks.0.proj_in.weight" => array.values[0] = 1.0,
                "blocks.0.pos_embed" => (0..4).for_each(|t| array.values[t * 64 + 1] = place[t]),
                "blocks.0.proj_out.weight" => (array.values[0], array.values[1]) = (pixel, 1.0),
                _ => {}
            }
        }
        let pixels = Preprocessing::Gaussian { std: 0.05 };
        TarFlowOracle::new(&config, weights, pixels, &Device::flex(), Precision::F32).unwrap()
    }

    /// What is measured at the tokens `z` of one image.
    fn measured(flow: &TarFlowOracle, z: [f64; 4]) -> BlockPlan {
        flow.measure_at(&z, &[0], 1e-6, &mut |_| Ok(())).unwrap().remove(0)
    }

    #[test]
    fn a_guess_that_leaves_the_finite_numbers_is_not_preferred() {
        // x₁ = 100 e⁻²⁰ and x₂ = 0 · e^{x₁} = 0; from x⁰ = z the first round has 0 · e^100 = NaN.
        let plan = measured(&linear(1.0, [-20.0, 0.0, 0.0, 0.0]), [1.0, 100.0, 0.0, 0.5]);
        assert!(plan.igm[0] == f64::INFINITY && plan.igm[1].is_finite() && plan.crm.is_finite(), "{plan:?}");
        let guess = plan.jacobi.map(|way| matches!(way, Strategy::Jacobi { guess: Guess::Zero, .. }));
        assert_eq!(guess, Some(true), "{plan:?}");
        // As it is remembered: JSON has no infinity.
        let json = serde_json::to_vec(&plan).unwrap();
        let remembered: BlockPlan = serde_json::from_slice(&json).unwrap();
        assert_eq!((remembered.igm[0], remembered.strategy), (f64::INFINITY, plan.strategy));
    }

    #[test]
    fn a_flow_that_leaves_the_finite_numbers_is_measured_to_its_end() {
        // e^200 is infinite in 32 bits.
        let plan = measured(&linear(0.0, [200.0; 4]), [1.0; 4]);
        assert_eq!((plan.strategy, plan.jacobi, plan.crm), (Strategy::Loop, None, f64::INFINITY));
        assert_eq!(plan.igm, [f64::INFINITY; 2]);
        // x is 0 here, and e^{−a} x = ∞ · 0 in 64 bits.
        assert_eq!(measured(&linear(0.0, [-800.0; 4]), [1.0; 4]).crm, f64::INFINITY);
    }

    #[test]
    fn spectral_norms_are_the_largest_singular_values() {
        let matrix = DMatrix::from_row_slice(2, 3, &[3.0, 0.0, 0.0, 0.0, 0.0, -5.0]);
        assert!((spectral_norm(matrix.clone()) - 5.0).abs() < 1e-12);
        for bad in [f64::NAN, f64::INFINITY] {
            let mut matrix = matrix.clone();
            matrix[(1, 1)] = bad;
            assert_eq!(spectral_norm(matrix), f64::INFINITY);
        }
    }
}
