//! Judges a classifier q(y|x) in a world with known posterior p(y|x) (theory §4): its loss split
//! into the unavoidable part and the part still to be learned, its calibration, and how both change
//! with the number of training images. Pure mathematics: numbers in, numbers out.
//!
//! L = mean_i −Σ_y p_i(y) log q_i(y) = mean H(p_i) + mean KL(p_i‖q_i)  (BLC eq. 4, nats)
//!
//! | file | what |
//! |---|---|
//! | `interval` | a number with its 95 % interval; Wilson's and Clopper and Pearson's of a proportion |
//! | `bootstrap` | resampling of images, BCa intervals |
//! | `images`, `softmax` | the figures of each image; log-probabilities of logits |
//! | `decomposition` | the figures of a test set, with intervals |
//! | `reliability` | reliability diagram, expected and exact calibration error |
//! | `calibrate`, `ece` | calibrators fitted on labels; estimators of the calibration error, and its exact value |
//! | `fidelity` | how near the samples of an oracle are to real images: FID, KID, coverage, memorisation |
//! | `grade` | estimators of the Bayes error from samples alone, to be held against worlds that know it |
//! | `typicality` | whether an image is one that a world makes: log p(x) among those of samples |
//! | `uncertainty` | scores of a classifier's uncertainty against the true aleatoric and epistemic parts |
//! | `power_law` | a·N^(−α) and a·N^(−α) + c: fits, intervals, which of the two, how many images until KL ≤ d |

mod bootstrap;
mod calibrate;
mod decomposition;
mod ece;
pub mod fidelity;
pub mod grade;
mod images;
mod interval;
mod power_law;
mod reliability;
mod softmax;
pub mod typicality;
pub mod uncertainty;

pub use bootstrap::{Bootstrap, REPLICATES};
pub use calibrate::{Calibration, Calibrator, Penalty, mixed};
pub use decomposition::{ClassMeasured, Measured, measure};
pub use ece::{EceEstimator, Norm, exact_calibration_error};
pub use images::{ImageDoubt, PerImage};
pub use interval::{Estimate, Interval, NATS, SHARE, UNBOUNDED, clopper_pearson, student_half, student_mean, wilson};
pub use power_law::{
    Comparison, Curve, FitRange, FitWay, Forecast, GradedForecast, HoldOut, ImageError, Point, PowerLaw, Resampling,
    TestImages, Variant, Verdict, Weighting, compare, fit, fit_on, graded_forecasts, hold_out, more_data, plain,
};
pub use reliability::{BIASED, BINS, Bin, Reliability};
pub use softmax::{argmax, log_softmax};
