//! Figures of the features and pixels of the three sets.

use serde::Serialize;

use super::copies::Near;
use super::embedded::AllEmbedded;
use super::generated::Generated;
use super::real::Real;
use super::spot::unit;
use super::{FeatureRecord, Stage, ValidateEvent, Work};
use crate::classifier::features::{FID_NETWORK, FID_WEIGHTS};
use crate::data::{FidStatistics, read_fid_statistics};
use crate::error::{Error, Result};
use crate::events::{Events, Progress};
use crate::measure::Estimate;
use crate::measure::fidelity::{
    BLOCK, ClassDiversity, Compared, Coverage, Features, GROUPS, Gaussian, InCells, InceptionScore, K_COVERAGE,
    K_PRECISION, Kid, LEVEL, Manifold, SPLITS, Unbiased, WINDOW, compare_manifolds, coverage, diversity,
    expected_coverage, frechet, frechet_unbiased, inception_score, kid, texture, texture_ratios, thinned,
};
use crate::units::{ClassId, Seed};

/// Fewest blocks that KID's images are cut into.
const KID_BLOCKS: usize = 5;
/// Figures that are counted while measuring.
const FIGURES: usize = 6;

/// What features and pixels say, generated images beside held-out real ones.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Fidelity {
    /// What made the features.
    pub features: FeatureRecord,
    /// Training, held-out and generated images.
    pub n: [usize; 3],
    /// FID of equal numbers of generated and of held-out images.
    pub plain_fid: Compared<f64>,
    /// FID against the training images, or against the statistics that were given.
    pub fid: Compared<Unbiased>,
    /// What FID is against.
    pub fid_against: String,
    /// KID against the training images; none below three blocks.
    pub kid: Option<Compared<Kid>>,
    /// Inception score over the net's own classes.
    pub inception: Compared<InceptionScore>,
    /// Coverage as in the paper, and with a threshold from real images.
    pub coverage: Coverage,
    /// Precision and recall.
    pub precision: Compared<Manifold>,
    /// Density and coverage.
    pub density: Compared<Manifold>,
    /// Coverage of equal distributions in these numbers (Naeem et al. 2020, lemma 2).
    pub expected_coverage: f64,
    /// How near the nearest training images are, where copies are looked for.
    #[serde(flatten)]
    pub near: Near,
    /// Diversity of each class over that of the training images; none without labels.
    pub diversity: Option<Compared<Vec<ClassDiversity>>>,
    /// Texture of each class over that of the training images; none without labels.
    pub texture: Option<Vec<ClassTexture>>,
}

/// Texture of a class over that of its training images (BLC App. A.6).
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ClassTexture {
    /// The class.
    pub class: ClassId,
    /// Side of the window, pixels.
    pub window: usize,
    /// Variance within the window; none where a class has too few images.
    pub within: Compared<Option<Estimate>>,
    /// Variance over the whole image.
    pub whole: Compared<Option<Estimate>>,
}

/// The three sets of features.
struct Sets<'a> {
    train: Features<'a, f32>,
    held_out: Features<'a, f32>,
    generated: Features<'a, f32>,
}

/// Measures what is not known yet, beside how `near` training images are.
///
/// # Errors
/// When features are no finite numbers, given statistics do not fit the net, or the caller stops.
pub fn measure(
    work: &Work<'_>,
    real: &Real,
    made: &Generated,
    embedded: &AllEmbedded,
    near: Near,
    events: &mut dyn Events<ValidateEvent>,
) -> Result<Fidelity> {
    let (d, k) = (embedded.record.dims, embedded.record.classes);
    let mut events = work.stage(Stage::Measuring, events);
    let mut tick = |done: usize| events.report(Progress { done, total: FIGURES });
    tick(0)?;
    let sets = Sets {
        train: Features::new(&embedded.train.features, d)?,
        held_out: Features::new(&embedded.held_out.features, d)?,
        generated: Features::new(&embedded.generated.features, d)?,
    };
    let seed = work.spec.seed.split("fidelity");
    let (against, fid_against) = real_gaussian(work, &sets, &embedded.record)?;
    // Both change with the number of images: held-out images are the best in equal number only.
    let equal = sets.held_out.n().min(sets.generated.n());
    let plain = |set: &Features<'_, f32>| {
        frechet(&against, &Gaussian::of(&Features::new(&thinned(set, equal, seed), d)?)?).map(|found| found.value)
    };
    let plain_fid = Compared { generated: plain(&sets.generated)?, held_out: plain(&sets.held_out)? };
    let fid = Compared {
        generated: frechet_unbiased(&against, &sets.generated, GROUPS, seed)?,
        held_out: frechet_unbiased(&against, &sets.held_out, GROUPS, seed)?,
    };
    tick(1)?;
    let kid = kids(&sets, seed)?;
    tick(2)?;
    let score = |set: &[f64]| inception_score(&thinned(&Features::new(set, k)?, equal, seed), k, SPLITS, Some(seed));
    let inception =
        Compared { generated: score(&embedded.generated.log_p)?, held_out: score(&embedded.held_out.log_p)? };
    let coverage = coverage(&sets.train, &sets.held_out, &sets.generated, (1, LEVEL), seed)?;
    tick(3)?;
    let precision = compare_manifolds(&sets.train, &sets.held_out, &sets.generated, K_PRECISION, seed)?;
    tick(4)?;
    let density = compare_manifolds(&sets.train, &sets.held_out, &sets.generated, K_COVERAGE, seed)?;
    tick(5)?;
    let (diversity, texture) = by_class(work, real, made, &sets)?;
    tick(FIGURES)?;
    let [n, m] = density.generated.n;
    Ok(Fidelity {
        features: embedded.record.clone(),
        n: [sets.train.n(), sets.held_out.n(), sets.generated.n()],
        plain_fid,
        fid,
        fid_against,
        kid,
        inception,
        coverage,
        precision,
        density,
        expected_coverage: expected_coverage(n, m, K_COVERAGE),
        near,
        diversity,
        texture,
    })
}

/// What FID compares with, and what that is.
fn real_gaussian(work: &Work<'_>, sets: &Sets<'_>, net: &FeatureRecord) -> Result<(Gaussian, String)> {
    let Some(path) = &work.spec.real_statistics else {
        return Ok((Gaussian::of(&sets.train)?, format!("{} training images", sets.train.n())));
    };
    let gaussian = match read_fid_statistics(path)? {
        FidStatistics::Moments { mean, covariance } => Gaussian::new(mean, &covariance, None),
        FidStatistics::Sums { sum, products, n } => Gaussian::from_sums(&sum, &products, n),
    };
    let gaussian = gaussian.map_err(|error| Error::file(path, error.to_string()))?;
    let given = gaussian.mean().len();
    if given != net.dims {
        let why = format!("holds statistics of {given} features, the feature net has {}", net.dims);
        return Err(Error::file(path, why));
    }
    let images = gaussian.n().map_or_else(String::new, |n| format!(" of {n} images"));
    let unsaid = format!("(which do not say what network made them{})", otherwise(net));
    Ok((gaussian, format!("the statistics in {}{images} {unsaid}", path.display())))
}

/// In what a net differs from the one whose statistics are about, for the end of a sentence: networks of as many features give
/// figures that look alike and compare with nothing, and so do other weights of one network.
fn otherwise(net: &FeatureRecord) -> String {
    if !net.name.starts_with(FID_NETWORK) {
        return format!(", and this one is not the {FID_NETWORK}");
    }
    match net.sha256.as_deref() {
        Some(FID_WEIGHTS) => String::new(),
        _ => ", and the file of this one's weights is not that of pytorch-fid, by its SHA-256".into(),
    }
}

fn kids(sets: &Sets<'_>, seed: Seed) -> Result<Option<Compared<Kid>>> {
    let least = sets.train.n().min(sets.held_out.n()).min(sets.generated.n());
    let block = BLOCK.min(least / KID_BLOCKS);
    if block < 2 {
        return Ok(None);
    }
    Ok(Some(Compared {
        generated: kid(&sets.train, &sets.generated, block, seed)?,
        held_out: kid(&sets.train, &sets.held_out, block, seed)?,
    }))
}

type OfClasses = (Option<Compared<Vec<ClassDiversity>>>, Option<Vec<ClassTexture>>);

fn by_class(work: &Work<'_>, real: &Real, made: &Generated, sets: &Sets<'_>) -> Result<OfClasses> {
    let (Some(train), Some(held_out)) = (&real.train.labels, &real.held_out.labels) else {
        return Ok((None, None));
    };
    let k = work.world.class_names().len();
    let train: InCells<'_, f32> = (&sets.train, train);
    let [held_out, generated] = [(&sets.held_out, &held_out[..]), (&sets.generated, &made.labels[..])];
    let spread = Compared { generated: diversity(train, generated, k)?, held_out: diversity(train, held_out, k)? };
    let shape = real.train.shape;
    let window = WINDOW.min(shape.height).min(shape.width);
    let ratios = |window: Option<usize>| -> Result<Compared<Vec<Option<Estimate>>>> {
        let of = |pixels: &[u8]| {
            let values: Vec<f32> = unit(pixels).collect();
            texture(&values, [shape.channels, shape.height, shape.width], window)
        };
        let base = of(&real.train.pixels)?;
        let over = |pixels: &[u8], labels| texture_ratios((&base, train.1), (&of(pixels)?, labels), k);
        Ok(Compared { generated: over(&made.pixels, generated.1)?, held_out: over(&real.held_out.pixels, held_out.1)? })
    };
    let (within, whole) = (ratios(Some(window))?, ratios(None)?);
    let at = |of: &Compared<Vec<Option<Estimate>>>, class: usize| Compared {
        generated: of.generated[class],
        held_out: of.held_out[class],
    };
    let of_class =
        |class: ClassId| ClassTexture { class, window, within: at(&within, class), whole: at(&whole, class) };
    Ok((Some(spread), Some((0..k).map(of_class).collect())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_weights_under_the_same_name_are_told_apart_by_their_hash() {
        let net = |name: &str, sha256: Option<&str>| {
            let (name, sha256) = (name.to_owned(), sha256.map(str::to_owned));
            otherwise(&FeatureRecord { name, sha256, dims: 2048, classes: 1008 })
        };
        let named = format!("{FID_NETWORK} (pt_inception-2015-12-05-6726825d.pth)");
        assert_eq!(net(&named, Some(FID_WEIGHTS)), "");
        let other = FID_WEIGHTS.replacen('6', "7", 1);
        assert!(net(&named, Some(&other)).contains("not that of pytorch-fid"));
        assert!(net("ResNet-18 of torchvision (r.pth)", Some(FID_WEIGHTS)).contains("is not the Inception-v3"));
    }
}
