//! The truth about an exported dataset: posteriors, drawn labels and ids, without the images.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::arrays::{integers, matrix};
use super::manifest::{Manifest, check_is_dataset};
use super::typicality;
use crate::data::{Archive, DATASET, Split, Types, check_listed_hash, sha256_of_file, table_bytes};
use crate::error::{Error, Result};
use crate::events::{Events, Progress};
use crate::measure::typicality::Census;
use crate::measure::{ImageDoubt, argmax, log_softmax};
use crate::oracle::label_noise::LabelNoise;
use crate::oracle::rounding::Rounding;
use crate::units::ClassId;

/// Largest difference between stored posteriors and those of the stored log-likelihoods.
const SAME: f64 = 1e-4;
/// How far a row of stored posteriors may be from adding up to 1.
const NORMALISED: f64 = 1e-3;

/// What stands in place of posteriors beside pictures that lose them.
const MIDPOINT: &str = "midpoint_posterior";
const LOST: &str = "pictures of so few bits lose the posteriors of this world: midpoint_posterior is that of one point of a \
                    picture's cell and no truth to judge by. Judge on the float images of an export (--format npz), or on \
                    pictures of 16 bits (--format png16) where these keep the posteriors";

/// Where the posteriors came from.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PosteriorSource {
    /// Computed in float64 from `logp`, the prior and the smoothing T of the manifest.
    LogLikelihoods,
    /// The normalised float32 array `posterior`: without `logp`, or without prior and T.
    Stored,
}

impl PosteriorSource {
    /// Where the posteriors come from and their precision, for the report.
    pub fn describe(self) -> &'static str {
        match self {
            Self::LogLikelihoods => "float64, from logp with the manifest's prior and T",
            Self::Stored => "stored float32, normalised",
        }
    }
}

/// Which world and which file the truth is of.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Origin {
    /// SHA-256 of the weights of the world; absent without a manifest.
    pub weights_sha256: Option<String>,
    /// Base temperature τ.
    pub tau: Option<f64>,
    /// Posterior smoothing T.
    pub smoothing: Option<f64>,
    /// Class prior π; empty is uniform.
    pub prior: Option<Vec<f64>>,
    /// What the labels were drawn by; posteriors are then those of the noisy label.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label_noise: Option<LabelNoise>,
    /// SHA-256 of the archive with the test images, computed when it was read.
    pub dataset_sha256: String,
    /// File or folder.
    pub path: String,
    /// The split that was read.
    pub split: String,
}

/// What is known about the images of one split.
#[derive(Debug, Clone, PartialEq)]
pub struct Truth {
    /// Number of classes K.
    pub classes: usize,
    /// Names of the classes, K of them; numbers where the manifest has none.
    pub class_names: Vec<String>,
    /// p(y|x), [n, K], float64, rows add up to 1.
    pub posterior: Vec<f64>,
    /// Where they came from.
    pub source: PosteriorSource,
    /// Likeliest class of each image, [n], before any label noise: by it doubt about classes is told from noise of labels. Absent
    /// where that is not known: without a manifest, or under label noise without `logp`.
    pub class_decisions: Option<Vec<ClassId>>,
    /// Drawn labels, [n].
    pub labels: Vec<ClassId>,
    /// Number of each image, [n]: array `id`, or its place in the split.
    pub ids: Vec<i64>,
    /// Ends of the range that pixels fill in x; none without a manifest that says it.
    pub pixel_range: Option<[f32; 2]>,
    /// How the images stand to those of the other split, samples of the same world; none where that
    /// is not there.
    pub typicality: Option<Census>,
    /// Images whose posterior their 32-bit x does not carry, as the export counted them; none where it did not count.
    pub rounding: Option<Rounding>,
    /// World and file.
    pub origin: Origin,
}

impl Origin {
    /// The archive of the images.
    pub fn archive(&self) -> PathBuf {
        archive(Path::new(&self.path), &self.split)
    }
}

impl Truth {
    /// Reads the truth of a split from a dataset folder, or from an `.npz` alone (with the manifest
    /// beside it, if any), of the split that its name says, such as `train.npz` or `test.16bit.npz`. The images are hashed but
    /// never held in memory; `events` gets the bytes hashed.
    ///
    /// # Errors
    /// Names the file and the cause: arrays that are missing or disagree, labels that are no
    /// classes, a manifest that is not JSON, whose hash is not that of the archive, or whose prior
    /// and T do not lead to the stored posteriors; or when the caller stops.
    pub fn open(path: &Path, split: Split, events: &mut dyn Events<Progress>) -> Result<Self> {
        let archive = archive(path, &split.to_string());
        let manifest = Manifest::read_beside(&archive)?;
        let name = archive.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() && !archive.is_file() {
            check_is_dataset(path)?;
            manifest.has(&name, split).map_err(|cause| Error::file(&archive, cause))?;
        }
        let dataset_sha256 = sha256_of_file(&archive, events)?;
        // An archive that is named by itself says which split it is.
        let split = split_named(&name).unwrap_or(split);
        if let Some(listed) = manifest.files.get(&name) {
            check_listed_hash(&archive, &dataset_sha256, listed)?;
        }
        let origin = Origin {
            weights_sha256: manifest.weights_sha256.clone(),
            tau: manifest.tau,
            smoothing: manifest.smoothing,
            prior: manifest.prior.clone(),
            label_noise: manifest.label_noise.clone(),
            dataset_sha256,
            path: path.display().to_string(),
            split: split.to_string(),
        };
        let other = path.is_dir().then(|| self::archive(path, &split.other().to_string()));
        read(&archive, other.filter(|other| other.is_file()), manifest, origin)
    }

    /// The archive it was read from.
    pub fn archive(&self) -> PathBuf {
        self.origin.archive()
    }

    /// Number of images.
    pub fn len(&self) -> usize {
        self.labels.len()
    }

    /// Returns whether there is no image.
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty()
    }

    /// p(y|x) of image `i`, [K].
    pub fn row(&self, i: usize) -> &[f64] {
        &self.posterior[i * self.classes..(i + 1) * self.classes]
    }

    /// Whether there are enough images to judge by.
    ///
    /// # Errors
    /// When there are fewer than two.
    pub(super) fn check_enough(&self) -> Result<()> {
        if self.len() < 2 {
            return Err(Error::input("one image says nothing about the error of a mean: judge two or more"));
        }
        Ok(())
    }

    /// [`crate::measure::PerImage::doubts`] of a classifier with these decisions.
    pub fn doubts(&self, decisions: &[ClassId]) -> Vec<ImageDoubt> {
        let doubt = |i: usize, decision: ClassId| match &self.origin.label_noise {
            Some(noise) => noise.doubt(decision, self.row(i)),
            None => 1.0 - self.row(i)[decision],
        };
        let of_classes = self.class_decisions.iter().flatten().zip(decisions).enumerate();
        let of =
            |(i, (&class, &decided))| ImageDoubt { class, of_class: doubt(i, class), of_decision: doubt(i, decided) };
        of_classes.map(of).collect()
    }

    /// The name of image `i` in reports, e.g. `test/000123`.
    pub fn image_name(&self, i: usize) -> String {
        format!("{}/{:06}", self.origin.split, self.ids[i])
    }

    /// Bytes of a float64 for each class of each image.
    pub(super) fn table_bytes(&self) -> u64 {
        8 * self.posterior.len() as u64
    }

    /// Where an image of a number is.
    pub(super) fn places(&self) -> HashMap<i64, usize> {
        self.ids.iter().enumerate().map(|(i, &id)| (id, i)).collect()
    }
}

/// The split that an archive of an export is of by its name: `train.npz`, or beside pictures `train.8bit.npz`, `train.16bit.npz`.
fn split_named(name: &str) -> Option<Split> {
    let is_of = |split: &Split| {
        let rest = name.strip_prefix(&split.to_string());
        rest.is_some_and(|rest| [".npz", ".8bit.npz", ".16bit.npz"].contains(&rest))
    };
    [Split::Train, Split::Test].into_iter().find(is_of)
}

/// The archive of a split in a dataset folder, or the one that is named.
fn archive(path: &Path, split: &str) -> PathBuf {
    if path.is_dir() { path.join(format!("{split}.npz")) } else { path.to_owned() }
}

fn read(path: &Path, other: Option<PathBuf>, manifest: Manifest, origin: Origin) -> Result<Truth> {
    let pixel_range = manifest.pixel_range;
    let rounding = manifest.splits.get(&origin.split).and_then(|split| split.rounding);
    let bad = |name: &str, cause: String| Error::file(path, format!("array {name}: {cause}"));
    let mut archive = Archive::open(path, Types::All)?;
    let missing = "missing; a judge needs the drawn labels. The dataset comes first, predictions after --predictions";
    let y = archive.read("y")?.ok_or_else(|| bad("y", missing.into()))?;
    let y = integers(y).map_err(|cause| bad("y", cause))?;
    let known = table_bytes(&y, Some(manifest.class_names.len()).filter(|named| *named > 0));
    let mut rows = |name: &'static str| -> Result<Option<(Vec<f64>, usize)>> {
        let found = archive.read_known(name, known)?.map(matrix).transpose().map_err(|e| bad(name, e))?;
        match found {
            Some((values, classes)) if classes == 0 || values.len() != y.len() * classes => {
                Err(bad(name, format!("{} values are no rows for {} labels", values.len(), y.len())))
            }
            other => Ok(other),
        }
    };
    let stored = rows("posterior")?;
    let logp = rows("logp")?;
    let typicality =
        manifest.prior.as_ref().zip(logp.as_ref()).zip(other).and_then(|((prior, (logp, classes)), other)| {
            typicality::census(&typicality::log_px(logp, *classes, prior)?, &other, *classes, prior)
        });
    let ids = archive.read("id")?.map(integers).transpose().map_err(|e| bad("id", e))?;
    let Posteriors { posterior, classes, source, class_decisions } =
        posteriors(&manifest, stored, logp, &archive.names()).map_err(|cause| Error::file(path, cause))?;
    let ids = ids.unwrap_or_else(|| (0..y.len() as i64).collect());
    if ids.len() != y.len() || ids.iter().collect::<std::collections::HashSet<_>>().len() != ids.len() {
        return Err(bad("id", format!("{} images need as many different ids", y.len())));
    }
    let label = |(i, y): (usize, i64)| {
        let class = usize::try_from(y).ok().filter(|&class| class < classes);
        class.ok_or_else(|| bad("y", format!("image {i} has label {y}; the posteriors have {classes} classes")))
    };
    let labels = y.into_iter().enumerate().map(label).collect::<Result<Vec<_>>>()?;
    if labels.is_empty() {
        return Err(bad("y", "no images".into()));
    }
    let named = manifest.class_names.len();
    if named != 0 && named != classes {
        let cause = format!("{named} class names for posteriors of {classes} classes in {}", path.display());
        return Err(Error::file(path.with_file_name(DATASET), cause));
    }
    let class_names =
        if named == 0 { (0..classes).map(|k| k.to_string()).collect() } else { manifest.class_names.clone() };
    Ok(Truth {
        classes,
        class_names,
        posterior,
        source,
        class_decisions,
        labels,
        ids,
        pixel_range,
        typicality,
        rounding,
        origin,
    })
}

type Matrix = Option<(Vec<f64>, usize)>;

/// As in [`Truth`].
struct Posteriors {
    posterior: Vec<f64>,
    classes: usize,
    source: PosteriorSource,
    class_decisions: Option<Vec<ClassId>>,
}

/// Posteriors from what there is among these arrays, the finest first.
fn posteriors(manifest: &Manifest, stored: Matrix, logp: Matrix, arrays: &[String]) -> Result<Posteriors, String> {
    let decisions = |p: &[f64], classes: usize| p.chunks_exact(classes).map(argmax).collect::<Vec<ClassId>>();
    let stored = stored.map(|(p, classes)| normalised(p, classes).map(|p| (p, classes))).transpose()?;
    let fine = match (&manifest.prior, manifest.smoothing, logp) {
        (Some(prior), Some(smoothing), Some((logp, classes))) => {
            let p = of_log_likelihoods(logp, classes, prior, smoothing)?;
            let of_classes = decisions(&p, classes);
            Some((of_labels(p, classes, manifest.label_noise.as_ref())?, classes, of_classes))
        }
        _ => None,
    };
    match (fine, stored) {
        (Some((fine, classes, of_classes)), stored) => {
            if let Some((stored, of_stored)) = stored {
                if of_stored != classes {
                    return Err(format!("arrays posterior and logp: {of_stored} and {classes} classes"));
                }
                let apart = fine.iter().zip(&stored).map(|(a, b)| (a - b).abs()).enumerate();
                if let Some((at, apart)) = apart.max_by(|a, b| a.1.total_cmp(&b.1)).filter(|(_, apart)| *apart > SAME) {
                    return Err(format!(
                        "image {}: the posterior of logp with the manifest's prior and T is {apart:.2e} off the stored one: prior or T of \
                         {DATASET} are not those of the arrays",
                        at / classes
                    ));
                }
            }
            let source = PosteriorSource::LogLikelihoods;
            Ok(Posteriors { posterior: fine, classes, source, class_decisions: Some(of_classes) })
        }
        (None, Some((posterior, classes))) => {
            // A manifest tells of label noise.
            let without_noise = manifest.prior.is_some() && manifest.label_noise.is_none();
            let class_decisions = without_noise.then(|| decisions(&posterior, classes));
            Ok(Posteriors { posterior, classes, source: PosteriorSource::Stored, class_decisions })
        }
        (None, None) if arrays.iter().any(|name| name == MIDPOINT) => Err(LOST.into()),
        (None, None) => {
            Err(format!("no posteriors: neither an array posterior, nor logp with prior and smoothing in {DATASET}"))
        }
    }
}

/// p_T(y|x) ∝ (π_y p(x|y))^(1/T), in log space (theory §2).
fn of_log_likelihoods(logp: Vec<f64>, classes: usize, prior: &[f64], smoothing: f64) -> Result<Vec<f64>, String> {
    let sum: f64 = prior.iter().sum();
    let sound = prior.iter().all(|p| p.is_finite() && *p >= 0.0) && (prior.is_empty() || sum > 0.0);
    if !sound || !(prior.is_empty() || prior.len() == classes) || !(smoothing.is_finite() && smoothing > 0.0) {
        return Err(format!("{DATASET}: prior {prior:?} or smoothing {smoothing} fit no world of {classes} classes"));
    }
    let log_prior = |y: usize| if prior.is_empty() { 0.0 } else { (prior[y] / sum).ln() };
    let joint: Vec<f64> =
        logp.into_iter().enumerate().map(|(at, l)| (l + log_prior(at % classes)) / smoothing).collect();
    let p: Vec<f64> = log_softmax(&joint, classes).into_iter().map(f64::exp).collect();
    match p.iter().position(|p| p.is_nan()) {
        Some(at) => Err(format!("array logp: image {} has no posterior (NaN, +∞, or −∞ of all classes)", at / classes)),
        None => Ok(p),
    }
}

/// p~ = Cᵀp of every row.
fn of_labels(p: Vec<f64>, classes: usize, noise: Option<&LabelNoise>) -> Result<Vec<f64>, String> {
    let Some(noise) = noise else { return Ok(p) };
    noise.check(classes).map_err(|error| format!("{DATASET}: {error}"))?;
    Ok(p.chunks_exact(classes).flat_map(|p| noise.labels(p)).collect())
}

fn normalised(mut p: Vec<f64>, classes: usize) -> Result<Vec<f64>, String> {
    for (i, row) in p.chunks_mut(classes).enumerate() {
        let sum: f64 = row.iter().sum();
        if row.iter().any(|p| p.is_nan() || *p < 0.0) || (sum - 1.0).abs() > NORMALISED {
            return Err(format!("array posterior: image {i} has probabilities that add up to {sum}, not to 1"));
        }
        row.iter_mut().for_each(|p| *p /= sum);
    }
    Ok(p)
}
