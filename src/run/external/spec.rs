//! `run.toml` of an external run, and what is known of its test images.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

pub use super::super::files::PREDICTIONS;
use super::super::files::{SPEC, remove_file};
pub(super) use super::super::files::{TEST, TEST_FILES as FILES};
use crate::data::{
    ImageShape, Types, read_bounded, read_npy, read_text, read_toml, sha256, sha256_of_file, world_id, write_atomically,
};
use crate::error::{Error, Result, check_name, check_words};
use crate::events::silent;
use crate::flow::Precision;
use crate::judge::Kind;
use crate::oracle::label_noise::LabelNoise;
use crate::oracle::posterior::Prior;
use crate::oracle::rounding::Rounding;
use crate::units::{ClassId, Seed, Smoothing, Tau};

/// Version of the form of an external run that this program writes and reads.
pub const FORMAT: u32 = 1;
/// A file of this name says that nothing more comes.
const FINISHED: &str = "finished";
/// In a folder that is not complete yet; locked by the process that makes it.
pub(super) const BEGUN: &str = ".external-start";

/// Most numbers of an array of predictions: 1 GiB of float64.
const VALUES: usize = 1 << 27;
/// Most training images: what TOML and doubles count exactly.
const TRAIN_IMAGES: u64 = 1 << 53;
/// Room for the line and the header before the numbers of an array.
pub(super) const HEAD: u64 = 1 << 16;

/// An external run: its predictions come from a program that knows nothing of this one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ExternalSpec {
    /// Name of the run.
    pub name: String,
    /// What its writer and its readers agree on.
    pub external: Contract,
    /// The world.
    pub world: WorldRecord,
    /// Its test images.
    pub test: TestRecord,
}

/// What writer and readers of an external run agree on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Contract {
    /// Version of the form: [`FORMAT`].
    pub format: u32,
    /// What the numbers of every record are.
    pub predictions: Kind,
    /// The program that made the folder.
    #[serde(default)]
    pub made_by: String,
    /// Different images that the network is trained on; of an endless stream there is no such number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub train_images: Option<u64>,
}

/// A world and its knobs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WorldRecord {
    /// The oracle as it was asked for.
    pub oracle: String,
    /// SHA-256 of its weights.
    pub weights_sha256: String,
    /// How pixels enter the world, in a word, where no record of their training says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub assumed_pixels: Option<String>,
    /// Base temperature τ.
    pub tau: Tau,
    /// Posterior smoothing T.
    pub smoothing: Smoothing,
    /// Class prior π.
    pub prior: Prior,
    /// What the labels are drawn by; posteriors are then those of the noisy label.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label_noise: Option<LabelNoise>,
    /// Arithmetic of the passes.
    #[serde(default, skip_serializing_if = "Precision::is_usual")]
    pub precision: Precision,
}

impl WorldRecord {
    /// What tells the world from others (`OracleInfo::world_id`).
    pub fn id(&self) -> String {
        world_id(&self.weights_sha256, self.assumed_pixels.as_deref())
    }
}

/// The test images of an external run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TestRecord {
    /// How many.
    pub images: usize,
    /// They are the test images of `bayescope export` with this seed.
    pub seed: Seed,
    /// Names of the classes, in the order of the columns of posteriors and predictions.
    pub classes: Vec<String>,
    /// Shape of every image.
    pub shape: ImageShape,
    /// Images whose posterior their 32-bit x does not carry.
    #[serde(default)]
    pub rounding: Rounding,
    /// SHA-256 of the files beside this one, by name.
    pub files: BTreeMap<String, String>,
}

/// What is known of the test images.
#[derive(Debug, Clone, PartialEq)]
pub struct TestTruth {
    /// Exact posteriors, [n, K].
    pub posterior: Vec<f64>,
    /// Drawn labels, [n].
    pub labels: Vec<ClassId>,
}

/// An external run on disk.
#[derive(Debug, Clone, PartialEq)]
pub struct ExternalFolder {
    /// Where it lies.
    pub path: PathBuf,
    /// What it is.
    pub spec: ExternalSpec,
}

impl ExternalSpec {
    /// Whether the text of a `run.toml` is that of an external run.
    pub fn is(text: &str) -> bool {
        let table: Option<toml::Table> = toml::from_str(text).ok();
        table.is_some_and(|table| table.contains_key("external"))
    }

    /// Whether this program can read such a run.
    ///
    /// # Errors
    /// Says what it cannot.
    pub fn check(&self) -> Result<(), String> {
        let Self { name, external, world, test } = self;
        if external.format != FORMAT {
            return Err(format!("external.format is {}; this version of bayescope reads {FORMAT}", external.format));
        }
        if external.train_images.is_some_and(|images| images == 0 || images > TRAIN_IMAGES) {
            return Err(format!("external.train_images is 1 to {TRAIN_IMAGES}, and not there for an endless stream"));
        }
        let classes = test.classes.len();
        test.classes.iter().chain([name]).try_for_each(|name| check_name(name))?;
        [&world.oracle, &world.weights_sha256, &external.made_by]
            .into_iter()
            .try_for_each(|words| check_words(words))?;
        if classes < 2 || test.images < 2 {
            return Err(format!("{} test images of {classes} classes; two of both are needed at least", test.images));
        }
        if test.images.checked_mul(classes).is_none_or(|values| values > VALUES) {
            let images = test.images;
            return Err(format!(
                "{images} test images of {classes} classes; {VALUES} predictions a step at most are read"
            ));
        }
        if world.prior.classes() != classes {
            let given = world.prior.classes();
            return Err(format!("world.prior has {given} entries, test.classes {classes}"));
        }
        if let Some(noise) = &world.label_noise {
            noise.check(classes).map_err(|error| format!("world.label_noise: {error}"))?;
        }
        Ok(())
    }

    /// Numbers of every record.
    pub fn values(&self) -> usize {
        self.test.images * self.test.classes.len()
    }
}

impl ExternalFolder {
    /// Folders and files that a run consists of, besides its spec.
    pub const PARTS: (&[&str], &[&str]) = (&[TEST, PREDICTIONS], &[FINISHED, BEGUN]);

    /// Whether a folder looks like an external run.
    pub fn is(path: &Path) -> bool {
        read_text(path.join(SPEC)).is_ok_and(|text| ExternalSpec::is(&text))
    }

    /// Opens a folder.
    ///
    /// # Errors
    /// Names the file that is missing or wrong.
    pub fn open(path: &Path) -> Result<Self> {
        let file = path.join(SPEC);
        let spec: ExternalSpec = read_toml(&file)?;
        spec.check().map_err(|cause| Error::file(&file, cause))?;
        Ok(Self { path: path.to_owned(), spec })
    }

    /// Says that nothing more comes.
    ///
    /// # Errors
    /// Names the file that cannot be written.
    pub fn finish(&self) -> Result<()> {
        write_atomically(&self.path.join(FINISHED), |_| Ok(()))
    }

    /// Takes that back.
    pub(super) fn go_on(&self) -> Result<()> {
        remove_file(&self.path.join(FINISHED))
    }

    /// Whether its writer has said that nothing more comes.
    pub fn finished(&self) -> bool {
        self.path.join(FINISHED).exists()
    }

    /// Posteriors and labels of its test images, as they were written when it was made.
    ///
    /// # Errors
    /// Names a file that is missing, has been changed since, or has another shape.
    pub fn truth(&self) -> Result<TestTruth> {
        let (n, classes) = (self.spec.test.images, self.spec.test.classes.len());
        let wrong = |name: &str, what: &str| Error::file(self.path.join(TEST).join(name), what);
        let [_, labels, posterior] = FILES;
        let p = self.array(posterior, &[n, classes])?.floats();
        let y = self.array(labels, &[n])?.integers();
        let y = y.ok_or_else(|| wrong(labels, "has no whole numbers"))?;
        let label = |&y: &i64| usize::try_from(y).ok().filter(|&y| y < classes);
        let y: Option<Vec<ClassId>> = y.iter().map(label).collect();
        Ok(TestTruth {
            posterior: p.ok_or_else(|| wrong(posterior, "has no floating-point numbers"))?,
            labels: y.ok_or_else(|| wrong(labels, &format!("has a label that is none of {classes} classes")))?,
        })
    }

    /// Test files that are missing, or are not those that `run.toml` names.
    ///
    /// # Errors
    /// Names the file that is there and cannot be read.
    pub(super) fn wrong_files(&self) -> Result<Vec<&'static str>> {
        let mut wrong = Vec::new();
        for name in FILES {
            let path = self.path.join(TEST).join(name);
            if !path.exists() || !self.names(name, &sha256_of_file(&path, &mut silent())?) {
                wrong.push(name);
            }
        }
        Ok(wrong)
    }

    /// Whether `run.toml` names a test file with this SHA-256.
    pub(super) fn names(&self, file: &str, sha256: &str) -> bool {
        self.spec.test.files.get(file).is_some_and(|known| known.eq_ignore_ascii_case(sha256))
    }

    pub(super) fn array(&self, name: &str, shape: &[usize]) -> Result<crate::data::Values> {
        let path = self.path.join(TEST).join(name);
        let most = HEAD + 8 * shape.iter().product::<usize>() as u64;
        let bytes = read_bounded(&path, most).map_err(|e| Error::io(&path, e))?;
        let found = sha256(&bytes);
        if !self.names(name, &found) {
            return Err(changed(&path, &found));
        }
        let array = read_npy(&mut &bytes[..], bytes.len() as u64, Types::Numbers);
        let array = array.map_err(|cause| Error::file(&path, cause))?;
        if array.shape != shape {
            return Err(Error::file(&path, format!("has the shape {:?}, not {shape:?}", array.shape)));
        }
        Ok(array.values)
    }
}

/// Of a test file that has another SHA-256 than `run.toml` says.
pub(super) fn changed(path: &Path, found: &str) -> Error {
    Error::file(
        path,
        format!(
            "is not the file that {SPEC} names: its SHA-256 is {found}; `bayescope external start` with the same settings makes it \
             again"
        ),
    )
}
