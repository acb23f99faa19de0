//! How fast a world answers on a device, and how far that is from what the device can do.

pub mod sampling;

use std::hint::black_box;
use std::time::Instant;

use burn::tensor::{Device, Tensor, TensorData};
use rayon::prelude::*;
use serde::Serialize;

use crate::device::{OpenDevice, full_precision_matmul, to_host};
use crate::error::{Error, Result};
use crate::events::silent;
use crate::flow::base::latents;
use crate::kernels::{Panels, multiply_adds};
use crate::oracle::folder::Oracle;
use crate::units::{Seed, Tau};

/// Images of one measured pass.
const IMAGES: usize = 64;
/// Side of the matrices whose product stands for the most a device can do.
const SIDE: usize = 1024;
/// The same on devices that are fast.
const LARGE: usize = 4096;
/// Milliseconds that are measured at once on a device, of products one after the other.
const LONG: f64 = 100.0;
/// Most of them.
const MOST: usize = 1024;
/// Bytes that are copied to see how fast memory is.
const COPIED: usize = 128 << 20;

/// All figures of one device.
#[derive(Debug, Serialize)]
pub struct Report {
    /// What computed.
    pub device: String,
    /// What it can do at most.
    #[serde(flatten)]
    pub peak: Peak,
    /// The figures.
    pub benches: Vec<Bench>,
}

/// Repeated timings of one task.
#[derive(Debug, Serialize)]
pub struct Timing {
    /// What was done.
    pub name: String,
    /// Unit of the times.
    pub unit: &'static str,
    /// Median time.
    pub median: f64,
    /// Fastest run.
    pub min: f64,
    /// Slowest run.
    pub max: f64,
    /// Number of timed runs, after one that does not count.
    pub runs: usize,
    /// Mean time that all cores together spent on a run, which other programs disturb less; null
    /// where the system does not tell.
    pub cpu: Option<f64>,
}

impl Timing {
    /// Of at least one time in milliseconds.
    pub fn of(name: String, mut times: Vec<f64>) -> Self {
        times.sort_by(f64::total_cmp);
        let (median, min, max) = (times[times.len() / 2], times[0], times[times.len() - 1]);
        Self { name, unit: "ms", median, min, max, runs: times.len(), cpu: None }
    }

    /// Of `runs` runs, after `warm` that do not count; at least one.
    ///
    /// # Errors
    /// The first of `work`'s.
    pub fn measure(name: String, warm: usize, runs: usize, mut work: impl FnMut() -> Result<()>) -> Result<Self> {
        for _ in 0..warm {
            work()?;
        }
        let (before, mut times) = (cpu_ms(), Vec::with_capacity(runs));
        for _ in 0..runs.max(1) {
            let started = Instant::now();
            work()?;
            times.push(started.elapsed().as_secs_f64() * 1e3);
        }
        let cpu = before.zip(cpu_ms()).map(|(before, after)| (after - before) / times.len() as f64);
        Ok(Self { cpu, ..Self::of(name, times) })
    }
}

/// CPU time of this process, ms, to a hundredth of a second; only on Linux.
fn cpu_ms() -> Option<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The name before the last bracket may hold anything; of what follows, fields 12 and 13 are
    // user and system time in ticks of 1/100 s.
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_whitespace().skip(11).map(str::parse::<f64>);
    Some(10.0 * (fields.next()?.ok()? + fields.next()?.ok()?))
}

/// The most 32-bit arithmetic that was measured on a device, GFLOP/s of median runs.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Peak {
    /// Products of large matrices: burn's, or on the CPU our own kernels' where those are faster.
    pub matmul_gflops: f64,
    /// On the CPU: fused multiply-adds that read no memory, on all cores.
    pub multiply_add_gflops: Option<f64>,
    /// On the CPU: 10⁹ bytes that all cores copy in a second, of an array larger than a core's own
    /// cache. It tells hours apart on a machine whose memory others use, too.
    pub copied_gb_per_second: Option<f64>,
}

impl Peak {
    /// Measures it.
    ///
    /// # Errors
    /// When the device fails or computes wrongly.
    pub fn measure(chosen: &OpenDevice, runs: usize) -> Result<Self> {
        let cpu = chosen.device == Device::flex();
        let multiply_add_gflops = if cpu { Some(multiply_add_gflops(runs)?) } else { None };
        let copied_gb_per_second = if cpu { Some(copied_gb_per_second(runs)?) } else { None };
        let own = if cpu { own_gflops(runs)? } else { 0.0 };
        let matmul_gflops = burn_gflops(chosen, runs)?.max(own);
        Ok(Self { matmul_gflops, multiply_add_gflops, copied_gb_per_second })
    }

    /// What shares are of, GFLOP/s: the larger one, for burn's products may use registers that our
    /// kernels were asked not to.
    pub fn roofline_gflops(self) -> f64 {
        self.multiply_add_gflops.unwrap_or(0.0).max(self.matmul_gflops)
    }

    /// The same in words.
    pub fn roofline(self) -> &'static str {
        let multiply_adds = self.multiply_add_gflops.is_some_and(|most| most >= self.matmul_gflops);
        if multiply_adds { "fused multiply-adds" } else { "matrix products" }
    }
}

impl std::fmt::Display for Peak {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let products = self.matmul_gflops;
        match self.multiply_add_gflops.filter(|most| *most >= products) {
            None => write!(f, "matrix products reach {products:.0} GFLOP/s")?,
            Some(most) => {
                let share = 100.0 * products / most;
                write!(f, "fused multiply-adds reach {most:.0} GFLOP/s, matrix products {products:.0} ({share:.0} %)")?;
            }
        }
        self.copied_gb_per_second
            .map_or(Ok(()), |copied| write!(f, "; {} MiB are copied at {copied:.1} GB/s", COPIED >> 20))
    }
}

/// One task of a world.
#[derive(Debug, Serialize)]
pub struct Bench {
    /// How long it took.
    #[serde(flatten)]
    pub timing: Timing,
    /// Share of the measured peak that the products of the median run reach.
    pub roofline_share: f64,
    /// What the share is of.
    pub roofline: &'static str,
    /// Images × classes a second.
    pub images_times_classes_per_second: f64,
}

/// Times `runs` passes of 64 images: likelihoods under every class, and images of latents.
///
/// # Errors
/// When the device fails.
pub fn run(oracle: &Oracle, chosen: &OpenDevice, runs: usize) -> Result<Report> {
    let peak = Peak::measure(chosen, runs)?;
    Ok(Report { device: chosen.report.used.label(), peak, benches: world(oracle, peak, runs)? })
}

/// The tasks of one world, compared with the peak of its device.
///
/// # Errors
/// When the device fails.
pub fn world(oracle: &Oracle, peak: Peak, runs: usize) -> Result<Vec<Bench>> {
    let flow = oracle.world.flow();
    let dims = flow.shape().dims();
    let noise = latents(Seed(0), 0, IMAGES, dims);
    let labels: Vec<usize> = (0..IMAGES).map(|i| i % flow.classes()).collect();
    let x = flow.decode(&noise, &labels, Tau::ONE, &mut silent())?.x;
    let gflop = IMAGES as f64 * oracle.info.architecture.flop_per_image() / 1e9;
    let classes = flow.classes();
    // A map that depends on the class is passed once for each.
    let passes = if flow.shared_base().is_some() { 1.0 } else { classes as f64 };
    let name = |what: &str| format!("{what} {IMAGES} images of {} ({})", oracle.info.name, flow.shape());
    let bench = |timing: Timing, passes: f64| {
        let seconds = timing.median / 1e3;
        Bench {
            roofline_share: passes * gflop / seconds / peak.roofline_gflops(),
            roofline: peak.roofline(),
            images_times_classes_per_second: (IMAGES * classes) as f64 / seconds,
            timing,
        }
    };
    let posterior = name(&format!("log-likelihoods under {classes} classes of"));
    let posterior = Timing::measure(posterior, 1, runs, || flow.score(&x).map(drop))?;
    let decode = || flow.decode(&noise, &labels, Tau::ONE, &mut silent()).map(drop);
    let sampling = Timing::measure(name("sampling"), 1, runs, decode)?;
    Ok(vec![bench(posterior, passes), bench(sampling, 1.0)])
}

/// Every thread at once.
fn multiply_add_gflops(runs: usize) -> Result<f64> {
    // A whole number of ones, which f32 adds without rounding.
    let rounds = 1 << 23;
    let mut operations = 0.0;
    let timing = Timing::measure(String::new(), 1, runs, || {
        let all = rayon::broadcast(|_| multiply_adds(rounds, black_box(1.0_f32), black_box(1.0)));
        operations = all.iter().map(|(_, operations)| operations).sum();
        let total: f64 = all.iter().map(|(total, _)| total).sum();
        if total == operations / 2.0 {
            Ok(())
        } else {
            Err(Error::Device(format!("{operations} additions made {total}")))
        }
    })?;
    Ok(operations / (timing.median / 1e3) / 1e9)
}

/// [`COPIED`] bytes, every thread some of them.
fn copied_gb_per_second(runs: usize) -> Result<f64> {
    let from = vec![1_u64; COPIED / size_of::<u64>()];
    let mut to = vec![0_u64; from.len()];
    let timing = Timing::measure(String::new(), 1, runs, || {
        to.par_chunks_mut(1 << 16).zip(from.par_chunks(1 << 16)).for_each(|(to, from)| to.copy_from_slice(from));
        // So that no copy can be left out.
        black_box(&mut to);
        Ok(())
    })?;
    Ok(COPIED as f64 / (timing.median / 1e3) / 1e9)
}

fn gflops(side: usize, products: usize, timing: &Timing) -> f64 {
    2.0 * (side as f64).powi(3) * products as f64 / (timing.median / 1e3) / 1e9
}

/// Our own kernels, every thread with some rows of the same product.
fn own_gflops(runs: usize) -> Result<f64> {
    let values = latents(Seed(1), 0, SIDE, SIDE);
    let transposed: Vec<f32> = (0..SIDE * SIDE).map(|at| values[at % SIDE * SIDE + at / SIDE]).collect();
    let packed = Panels::new(&transposed, &[0.0; SIDE]);
    let mut out = vec![0.0; SIDE * SIDE];
    let rows = 64;
    let timing = Timing::measure(String::new(), 1, runs, || {
        let pieces = out.par_chunks_mut(rows * SIDE).zip(values.par_chunks(rows * SIDE));
        pieces.for_each(|(out, rows)| packed.apply(rows, out));
        check_corner(SIDE, &values, f64::from(out[0]))
    })?;
    Ok(gflops(SIDE, 1, &timing))
}

/// burn's, those that densities are computed with. One such product on a card is too short to time:
/// there the matrices are larger, and as many products follow each other as take [`LONG`].
fn burn_gflops(chosen: &OpenDevice, runs: usize) -> Result<f64> {
    let mut square = Square::new(SIDE, chosen);
    square.products(1)?;
    if square.timed(1)? < LONG / 10.0 {
        square = Square::new(LARGE, chosen);
        square.products(1)?;
    }
    let mut products = 1;
    while products < MOST && square.timed(products)? < LONG {
        products *= 2;
    }
    let timing = Timing::measure(String::new(), 0, runs, || square.products(products))?;
    Ok(gflops(square.side, products, &timing))
}

/// A matrix to be multiplied by itself.
struct Square {
    side: usize,
    values: Vec<f32>,
    there: Tensor<2>,
}

impl Square {
    fn new(side: usize, chosen: &OpenDevice) -> Self {
        let values = latents(Seed(1), 0, side, side);
        let there = Tensor::from_data(TensorData::new(values.clone(), [side, side]), &chosen.device);
        Self { side, values, there }
    }

    /// So many products, of the last of which one entry is read back.
    fn products(&self, many: usize) -> Result<()> {
        let product = || full_precision_matmul::matmul(self.there.clone(), self.there.clone());
        let last = (1..many).fold(product(), |_, _| product());
        let corner = to_host(last.narrow(0, 0, 1).narrow(1, 0, 1))?;
        check_corner(self.side, &self.values, corner.first().copied().unwrap_or(f64::NAN))
    }

    /// Milliseconds they take.
    fn timed(&self, many: usize) -> Result<f64> {
        let begun = Instant::now();
        self.products(many)?;
        Ok(begun.elapsed().as_secs_f64() * 1e3)
    }
}

/// Checks the first entry of the square of a matrix: a device that skips the work has no peak.
fn check_corner(side: usize, values: &[f32], corner: f64) -> Result<()> {
    let terms = values.iter().zip(values.iter().step_by(side)).map(|(a, b)| f64::from(*a) * f64::from(*b));
    let (expected, scale) = (terms.clone().sum::<f64>(), terms.map(f64::abs).sum::<f64>());
    if (corner - expected).abs() <= 1e-5 * scale {
        return Ok(());
    }
    Err(Error::Device(format!("a matrix product came out as {corner}, not {expected}: its figures mean nothing")))
}
