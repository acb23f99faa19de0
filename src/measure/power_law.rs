//! Scaling laws (theory §5): KL(N) = a·N^(−α), and KL(N) = a·N^(−α) + c with a floor c ≥ 0, the
//! asymptote of the fitted curve, which says nothing of other ways of training; both by least
//! squares of log KL over all runs.
//!
//! **Intervals.** The residual of a run is taken apart into a level of its seed, a level of its N
//! (other seeds at this N share it: lack of fit, or a test set in common) and its own. A replicate
//! is the fitted curve plus newly drawn levels of all three, refitted; see `scatter`. With one
//! seed, or where seeds and sizes do not cross enough to tell a level of seeds, it is of N and runs;
//! with one run at each N all residuals count as the runs' own: [`Resampling`] says which it was.
//!
//! **Test images in common.** All points of a law are measured on the same images. What these have
//! too much or too little moves the points together and shows in no residual as far as the curve
//! can follow: what is common to all points goes fully into a, c, the band and the forecast, what
//! changes evenly with log N into α. Where the images' own values at every point are known
//! ([`TestImages`]), each replicate draws the images anew, the same for all points. Where they are
//! not, it moves all points by one common normal number, times each point's own standard error of
//! log value ([`Point::error`]): errors of one set of images are taken for fully correlated, and α
//! has none of them. [`ImageError`] says which it was.
//!
//! | file | what |
//! |---|---|
//! | `points` | the points of a law |
//! | `curve` | the curve, and its least-squares fits |
//! | `scatter` | levels of scatter, replicates |
//! | `images` | how the test images move the points |
//! | `verdict` | which of the two laws, and what it means |
//! | `forms` | bands of both laws, and how many of their curves have a floor |
//! | `forecast` | how many images until KL ≤ d |
//! | `forecasts` | which form, weighting and range forecasts best |
//! | `hold_out` | the law fitted without the largest N, beside what came there |
//! | `test_images` | test: coverage where all runs share their test images |

use serde::{Deserialize, Serialize};

use super::bootstrap::quantile;
use super::interval::{Estimate, Interval};
use crate::error::{Error, Result};
use crate::units::Seed;

mod curve;
mod forecast;
mod forecasts;
mod forms;
mod hold_out;
mod images;
mod points;
mod scatter;
mod verdict;

pub use curve::Curve;
pub use forecast::{Forecast, more_data};
pub use forecasts::{FitRange, FitWay, GradedForecast, Weighting, graded_forecasts};
pub use hold_out::{HoldOut, hold_out};
pub use images::TestImages;
pub use points::{ImageError, Point, Variant, plain};
pub use scatter::Resampling;
pub use verdict::{Comparison, Verdict, compare};

use points::{Design, LARGEST_LOG};
use scatter::{Replicate, Scatter};

/// A fitted law.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PowerLaw {
    /// Which law.
    pub variant: Variant,
    /// a, in the unit of the values.
    pub a: Estimate,
    /// α; negative where values rise.
    pub alpha: Estimate,
    /// c of [`Variant::Floor`], the asymptote of the fitted curve, in the unit of the values; 0
    /// where the best curve has none.
    pub floor: Option<Estimate>,
    /// Share of the variance of log values that the curve explains; 0 where all values are equal.
    pub r_squared: f64,
    /// Σ of squared residuals, log².
    pub residual_sum: f64,
    /// Mean square of the scatter that the curve is judged against, log²: of sizes where they
    /// scatter by themselves, otherwise of single runs.
    pub error_mean_square: f64,
    /// Its degrees of freedom.
    pub error_freedom: f64,
    /// The points, as given.
    pub points: Vec<Point>,
    /// log value − log curve of each point.
    pub residuals: Vec<f64>,
    /// Runs.
    pub n_points: usize,
    /// Different seeds among them.
    pub n_seeds: usize,
    /// Different N among them.
    pub n_sizes: usize,
    /// What the intervals are drawn over.
    pub resampling: Resampling,
    /// How the intervals of a, α and c hold the error of the test images; of laws of older versions this is not known.
    /// How its band and forecasts do, which of a law read from a file are drawn anew: [`Self::image_error_drawn`].
    #[serde(default)]
    pub image_error: ImageError,
    /// What a reader must know before using the numbers, where there is such a thing.
    pub caveat: Option<String>,
    /// Seed of the intervals.
    pub seed: Seed,
    /// The curve, not rounded through `a`.
    pub curve: Curve,
    /// Refits behind all intervals. Drawn again from `seed` after a file was read; the values of
    /// test images are not in it, and their error then is one number for all points.
    #[serde(skip)]
    replicates: Vec<Replicate>,
}

/// Fits one law to `points`; their test images have one error. Same points and `seed`, same result.
///
/// # Errors
/// When a value or N is not a positive number, or there are not more different N than the law has
/// parameters: three, with a floor four.
pub fn fit(points: &[Point], variant: Variant, seed: Seed) -> Result<PowerLaw> {
    fit_on(points, None, variant, seed)
}

/// [`fit`] of points of whose test images more may be known.
///
/// # Errors
/// As [`fit`], and when `images` are those of other points.
pub fn fit_on(points: &[Point], images: Option<&TestImages>, variant: Variant, seed: Seed) -> Result<PowerLaw> {
    let design = Design::of(points, images)?;
    let needed = variant.parameters() + 1;
    if design.sizes < needed {
        let law = if variant == Variant::Pure { "" } else { " with a floor" };
        return Err(Error::input(format!(
            "a power law{law} needs at least {needed} different numbers of training images, not {}",
            design.sizes
        )));
    }
    let curve = Curve::fit(&design.x, &design.y, variant);
    let residuals: Vec<f64> = design.x.iter().zip(&design.y).map(|(&x, y)| y - curve.log_value(x)).collect();
    let scatter = Scatter::of(&design, &residuals, &curve, variant)?;
    let replicates = scatter.replicates(&design, curve, variant, seed);
    let mean = design.y.iter().sum::<f64>() / design.y.len() as f64;
    let total: f64 = design.y.iter().map(|y| (y - mean).powi(2)).sum();
    let residual_sum: f64 = residuals.iter().map(|r| r * r).sum();
    let (error_mean_square, error_freedom) = scatter.error();
    let alpha = interval(&replicates, curve.alpha, |curve| curve.alpha);
    let floor = interval(&replicates, curve.floor, |curve| curve.floor);
    Ok(PowerLaw {
        variant,
        a: interval(&replicates, curve.a(), Curve::a),
        alpha,
        floor: (variant == Variant::Floor).then_some(floor),
        r_squared: if design.is_flat() { 0.0 } else { (1.0 - residual_sum / total).max(0.0) },
        residual_sum,
        error_mean_square,
        error_freedom,
        n_points: points.len(),
        n_seeds: design.seeds,
        n_sizes: design.sizes,
        resampling: scatter.resampling(),
        image_error: ImageError::of(points, images),
        caveat: caveat(&design, variant, alpha, floor),
        points: points.to_vec(),
        residuals,
        seed,
        curve,
        replicates,
    })
}

/// The interval of one quantity of the curve: percentiles of its replicates.
fn interval(replicates: &[Replicate], value: f64, of: impl Fn(&Curve) -> f64) -> Estimate {
    let mut draws: Vec<f64> = replicates.iter().map(|r| of(&r.curve)).collect();
    draws.sort_unstable_by(f64::total_cmp);
    Estimate::new(value, Interval { low: quantile(&draws, 0.025), high: quantile(&draws, 0.975) })
}

/// What keeps the parameters from being told apart, if anything does.
fn caveat(design: &Design, variant: Variant, alpha: Estimate, floor: Estimate) -> Option<String> {
    if design.is_flat() {
        return Some("All values are equal: no law can be told from another.".into());
    }
    match variant {
        Variant::Pure if alpha.interval.contains(0.0) => {
            Some("The interval of the exponent holds 0: these runs do not say how fast the value falls with N.".into())
        }
        Variant::Floor if alpha.interval.high >= curve::STEEPEST || alpha.interval.low <= 0.0 => Some(
            "Floor and exponent cannot be told apart: curves that level off at once and curves that hardly fall fit alike."
                .into(),
        ),
        Variant::Floor if floor.interval.low <= 0.0 => {
            Some("The interval of the floor begins at 0: how large it is, these values hardly say.".into())
        }
        _ => None,
    }
}

impl PowerLaw {
    /// The fitted value at `n` training images.
    pub fn value(&self, n: f64) -> f64 {
        self.curve.log_value(n.ln()).exp()
    }

    /// The 95 % interval of the curve at `n` training images, given that this form holds:
    /// [`Comparison::band`] holds the doubt about that. Single runs scatter around it.
    pub fn band(&self, n: f64) -> Interval {
        self.band_of(&self.drawn(), n)
    }

    /// The same of other curves that fit.
    fn band_of(&self, replicates: &[Replicate], n: f64) -> Interval {
        let x = n.ln();
        interval(replicates, self.value(n), |curve| curve.log_value(x).min(LARGEST_LOG).exp()).interval
    }

    /// What the intervals leave out of the scatter of seeds, in words; `None` where it is in them.
    pub fn left_out(&self) -> Option<&'static str> {
        match (self.resampling, self.n_seeds) {
            (Resampling::SeedsAndPoints, _) => None,
            (_, 0 | 1) => Some("one seed: what its runs have in common is not in them"),
            _ => Some(
                "too few runs share both a seed and an N with others: what runs of one seed have in common is not in them",
            ),
        }
    }

    /// How the band and forecasts hold the error of the test images: as [`Self::image_error`] says, unless the law was read from
    /// a file, in which neither replicates nor values of test images are.
    pub fn image_error_drawn(&self) -> ImageError {
        match self.replicates.is_empty() {
            true => ImageError::of(&self.points, None),
            false => self.image_error,
        }
    }

    /// The replicates, drawn again if this fit comes from a file.
    fn drawn(&self) -> std::borrow::Cow<'_, [Replicate]> {
        if self.replicates.is_empty() {
            let again = fit(&self.points, self.variant, self.seed).map(|fit| fit.replicates);
            return again.unwrap_or_default().into();
        }
        (&self.replicates[..]).into()
    }

    /// Smallest N among the points.
    fn smallest(&self) -> f64 {
        self.points.iter().map(|point| point.n).fold(f64::INFINITY, f64::min)
    }

    /// Largest N among the points.
    fn largest(&self) -> f64 {
        self.points.iter().map(|point| point.n).fold(0.0, f64::max)
    }
}

#[cfg(test)]
mod test_images;
#[cfg(test)]
mod tests;
