//! `dataset.json` beside exported samples, or the record beside others: which world they are of.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::data::{DATASET, Home, OfWorld, Split, check_listed_hash, read_bytes, sha256_of_file};
use crate::error::Result;
use crate::events::silent;
use crate::oracle::label_noise::LabelNoise;
use crate::oracle::posterior::Prior;
use crate::oracle::provenance::{LABEL_NOISE, PRIOR, Record, SMOOTHING, TAU};
use crate::oracle::world::Settings;
use crate::units::images;

/// Probabilities of a class prior that differ by no more are the same, written down in another way.
const SAME: f64 = 1e-12;

/// What of it matters here, and the archive it is asked about.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Manifest {
    /// The world.
    #[serde(flatten)]
    of: OfWorld,
    /// Base temperature of the samples.
    tau: f64,
    /// Posterior smoothing T; absent from manifests of other programs.
    smoothing: Option<f64>,
    /// Weights of the class prior π, likewise; uniform where empty.
    prior: Option<Vec<f64>>,
    /// What its labels were drawn by.
    label_noise: Option<LabelNoise>,
    /// Names of its classes.
    pub class_names: Vec<String>,
    /// SHA-256 of the files beside it, by name.
    files: BTreeMap<String, String>,
    #[serde(skip)]
    archive: PathBuf,
    /// Pictures in its folder that it does not name.
    #[serde(skip)]
    strangers: usize,
}

impl Manifest {
    /// Reads the one beside the archive of a split in a dataset folder, or beside an archive. An
    /// unreadable one proves nothing.
    pub fn beside(path: &Path, split: Split) -> Option<Self> {
        let archive = if path.is_dir() { path.join(format!("{split}.npz")) } else { path.to_owned() };
        let npz = archive.extension().is_some_and(|e| e.eq_ignore_ascii_case("npz"));
        let file = archive.with_file_name(DATASET);
        let text = read_bytes(&file).ok().filter(|_| npz && archive.is_file())?;
        match serde_json::from_slice::<Self>(&text) {
            Ok(manifest) => Some(Self { archive, ..manifest }),
            Err(error) => {
                tracing::warn!(
                    "{}: {error}; the images beside it are taken as those of no known world",
                    file.display()
                );
                None
            }
        }
    }

    /// What the record beside samples of the world `home`, or of the folder of pictures, says of them. `None` without one, or
    /// where their file is not the one that it was written for.
    pub fn of_samples(path: &Path, home: &Home<'_>) -> Option<Self> {
        let record = Record::of_samples(path, home)?;
        let is_its_file = |listed: &String| sha256_of_file(&record.of, &mut silent()).is_ok_and(|sum| sum == *listed);
        if !record.sha256.as_ref().is_none_or(is_its_file) {
            return None;
        }
        Some(Self {
            of: OfWorld { weights_sha256: home.weights_sha256.to_owned(), ..OfWorld::default() },
            tau: record.said(TAU)?.parse().ok()?,
            smoothing: record.said(SMOOTHING).and_then(|value| value.parse().ok()),
            // A list, unless it is the word for a uniform one.
            prior: record.said(PRIOR).map(|list| serde_json::from_slice(list.as_bytes()).unwrap_or_default()),
            label_noise: record.said(LABEL_NOISE).map(LabelNoise::unread).transpose().ok()?,
            strangers: record.strangers,
            archive: if record.of.as_os_str().is_empty() { PathBuf::from(".") } else { record.of },
            ..Self::default()
        })
    }

    /// Checks that the archive is the file it was written for, where it has a hash of it.
    ///
    /// # Errors
    /// Names the archive where it is another one or cannot be read.
    pub fn check_archive(&self) -> Result<()> {
        match self.listed() {
            Some(listed) => check_listed_hash(&self.archive, &sha256_of_file(&self.archive, &mut silent())?, listed),
            None => Ok(()),
        }
    }

    /// Whether it names the world `home` at the τ of `settings` and has the hash of the
    /// archive, which [`Self::check_archive`] checks. Its log p(x|y), which depend on neither π nor
    /// T, are then of that world.
    pub fn proves_likelihoods(&self, home: &Home<'_>, settings: &Settings) -> bool {
        self.listed().is_some() && self.of.is(home) && self.tau == settings.tau.get()
    }

    /// The SHA-256 that it has of the archive.
    fn listed(&self) -> Option<&String> {
        self.files.get(&*self.archive.file_name()?.to_string_lossy())
    }

    /// Whether labels were drawn with the π, T and label noise of `settings`, as far as it says.
    pub fn has_labels_of(&self, settings: &Settings) -> bool {
        let Settings { smoothing, prior, label_noise, .. } = settings;
        let same = |weights: &Vec<f64>| {
            let own = if weights.is_empty() { Ok(Prior::uniform(prior.classes())) } else { Prior::new(weights) };
            own.is_ok_and(|own| {
                let mut pairs = own.probabilities().iter().zip(prior.probabilities());
                own.classes() == prior.classes() && pairs.all(|(a, b)| (a - b).abs() <= SAME)
            })
        };
        let same_noise = self.label_noise == *label_noise;
        same_noise && self.smoothing.is_none_or(|own| own == smoothing.get()) && self.prior.as_ref().is_none_or(same)
    }

    /// What to say of posteriors by `settings` for samples of the same world that were drawn
    /// otherwise.
    pub fn drawn_otherwise(&self, home: &Home<'_>, settings: &Settings) -> Option<String> {
        let same = self.tau == settings.tau.get() && self.has_labels_of(settings);
        (self.of.is(home) && !same).then(|| {
            let mut knobs = vec![format!("τ = {}", self.tau)];
            knobs.extend(self.smoothing.map(|smoothing| format!("T = {smoothing}")));
            knobs.extend(
                self.prior.as_ref().filter(|prior| !prior.is_empty()).map(|prior| format!("class prior {prior:?}")),
            );
            knobs.extend(self.label_noise.as_ref().map(|noise| format!("label noise {}", noise.describe())));
            let but = match self.strangers {
                0 => String::new(),
                strangers => format!(", all but {} that its record does not name,", images(strangers)),
            };
            format!(
                "{}{but} are samples of this world at {}; these posteriors are of {}",
                self.archive.display(),
                knobs.join(", "),
                settings.describe()
            )
        })
    }
}
