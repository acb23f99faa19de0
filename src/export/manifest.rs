//! `dataset.json`, which is written last, and the card beside it.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::{DepthCost, ExportEvent, ExportSpec, Format, Stage, Work};
use crate::data::{DATASET, ImageShape, listed, read_json, sha256_of_file, write_atomically, write_json};
use crate::error::{Error, Result};
use crate::events::{Events, Progress};
use crate::experiment::Facts;
use crate::flow::Precision;
use crate::flow::preprocess::Preprocessing;
use crate::measure::Estimate;
use crate::oracle::label_noise::LabelNoise;
use crate::oracle::posterior::Prior;
use crate::oracle::rounding::Rounding;
use crate::provenance::{Badge, Made, Provenance};
use crate::units::{Seed, Smoothing, Tau};

/// Everything that must be known about a dataset of a world, as `dataset.json` holds it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// Version of this form.
    pub format: u32,
    /// The program and its version.
    pub made_by: String,
    /// The oracle as it was asked for.
    pub oracle: String,
    /// SHA-256 of its weights.
    pub weights_sha256: String,
    /// How 8-bit pixels enter it, in a word: with the weights it tells the world from others. Absent from older files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pixels: Option<String>,
    /// What whoever uses the images is to be told of those the world was trained on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notice: Option<String>,
    /// Base temperature τ.
    pub tau: Tau,
    /// Posterior smoothing T.
    pub smoothing: Smoothing,
    /// Class prior π.
    pub prior: Prior,
    /// What the labels are drawn by: posteriors are those of the noisy label, `logp` is log p(x|y) of the classes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label_noise: Option<LabelNoise>,
    /// Arithmetic of the passes that drew images and computed posteriors.
    #[serde(default, skip_serializing_if = "Precision::is_usual")]
    pub precision: Precision,
    /// Seed of the export.
    pub seed: Seed,
    /// What the labels are.
    pub labels: String,
    /// Names of the classes, in the order of posteriors.
    pub class_names: Vec<String>,
    /// Shape of every image.
    pub shape: ImageShape,
    /// What x is.
    pub world_space: String,
    /// Ends of the range that pixels fill in x.
    pub pixel_range: [f32; 2],
    /// For which images posteriors are exact.
    pub exactness: String,
    /// Figures of the world.
    pub world: Facts,
    /// By name.
    pub splits: BTreeMap<String, SplitRecord>,
    /// SHA-256 of the files, by name.
    pub files: BTreeMap<String, String>,
}

/// The images of a split.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SplitRecord {
    /// How many.
    pub images: usize,
    /// Image i is sample i of the world under this seed.
    pub seed: Seed,
    /// Images of each class, by their drawn labels.
    pub counts: Vec<usize>,
    /// Bayes error of these images, mean 1 − max p; the interval is that of the world it estimates.
    pub bayes_error: Estimate,
    /// Aleatoric uncertainty of these images, mean H(p), nats; likewise.
    pub aleatoric_nats: Estimate,
    /// Images whose posterior their 32-bit x does not carry.
    pub rounding: Rounding,
    /// What pictures do to posteriors, by their bits.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub pictures: BTreeMap<u32, DepthCost>,
}

/// SHA-256 of a file of the dataset.
fn sum_of(path: &Path, events: &mut dyn Events<ExportEvent>) -> Result<String> {
    sha256_of_file(path, &mut |progress: Progress| events.emit(ExportEvent { stage: Stage::Hashing, progress }))
}

impl Manifest {
    /// Of a dataset whose splits are still to be put in.
    pub(super) fn of(work: &Work<'_>, world: Facts) -> Self {
        let ExportSpec { oracle, settings, precision, seed, .. } = work.spec.clone();
        let classes = match settings.smoothing == Smoothing::ONE {
            true => "the class whose density the image was drawn from".into(),
            false => format!("drawn from the smoothed posterior p_T(y|x), T = {}", settings.smoothing.get()),
        };
        let labels = match &settings.label_noise {
            None => classes,
            Some(noise) => format!(
                "label noise {}: drawn from row y of its matrix C, y being {classes}; the posteriors are those of the noisy label, Cᵀp",
                noise.describe()
            ),
        };
        let pixels = work.world.flow().pixels();
        Self {
            format: 1,
            made_by: format!("bayescope {}", env!("CARGO_PKG_VERSION")),
            oracle,
            weights_sha256: work.info.weights_sha256.clone(),
            pixels: Some(pixels.word()),
            notice: work.info.notice().map(str::to_owned),
            tau: settings.tau,
            smoothing: settings.smoothing,
            prior: settings.prior,
            label_noise: settings.label_noise,
            precision,
            seed,
            labels,
            class_names: work.world.class_names().to_vec(),
            shape: work.world.shape(),
            world_space: pixels.describe(),
            pixel_range: pixels.range(),
            exactness: "posteriors are exact for the float32 x of the .npz files, but for the images counted under `rounding`; the \
                        posteriors beside pictures are those of the rounded images"
                .into(),
            world,
            splits: BTreeMap::new(),
            files: BTreeMap::new(),
        }
    }

    /// The dataset in `folder` as a line of the exactness ledger.
    pub fn made(&self, folder: &Path) -> Made {
        let images: Vec<String> = self.splits.iter().map(|(name, split)| format!("{} {name}", split.images)).collect();
        let provenance = Provenance::new(Badge::Exact)
            .with("oracle", &self.oracle)
            .with("weights SHA-256", &self.weights_sha256)
            .with("τ", self.tau.get().to_string())
            .with("T", self.smoothing.get().to_string())
            .with("class prior π", self.prior.describe());
        let provenance = match &self.label_noise {
            Some(noise) => provenance.with("label noise", noise.describe()),
            None => provenance,
        };
        let provenance = provenance
            .with("seed", self.seed.0.to_string())
            .with("images", images.join(", "))
            .with("exactness", &self.exactness)
            .with("files", format!("{}, their SHA-256 in {DATASET}", self.files.len()));
        Made { what: "dataset".into(), place: Some(folder.display().to_string()), provenance }
    }

    /// The one of a folder; `None` where there is none, so that a dataset is incomplete.
    ///
    /// # Errors
    /// Names the file that cannot be read.
    pub fn read(folder: &Path) -> Result<Option<Self>> {
        read_json(&folder.join(DATASET))
    }

    /// Adds files by name.
    pub(super) fn hash(
        &mut self,
        work: &Work<'_>,
        names: impl Iterator<Item = String>,
        events: &mut dyn Events<ExportEvent>,
    ) -> Result<()> {
        for name in names {
            let sum = sum_of(&work.folder.join(&name), events)?;
            self.files.insert(name, sum);
        }
        Ok(())
    }

    /// Checks that the files it lists are there and those that were written.
    ///
    /// # Errors
    /// Names those that are missing or changed, and the way out; when one cannot be read, or the caller stops.
    pub(super) fn check_files(&self, folder: &Path, events: &mut dyn Events<ExportEvent>) -> Result<()> {
        let missing: Vec<String> = self.files.keys().filter(|name| !folder.join(name).is_file()).cloned().collect();
        let mut changed = Vec::new();
        for (name, sum) in self.files.iter().filter(|(name, _)| !missing.contains(name)) {
            if !sum.eq_ignore_ascii_case(&sum_of(&folder.join(name), events)?) {
                changed.push(name.clone());
            }
        }
        let mut wrong = Vec::new();
        if !missing.is_empty() {
            let are = if missing.len() == 1 { "is" } else { "are" };
            wrong.push(format!("{} {are} listed in {DATASET} and missing", listed(&missing)));
        }
        if !changed.is_empty() {
            let have = if changed.len() == 1 { "has" } else { "have" };
            wrong.push(format!("{} {have} another SHA-256 than {DATASET} says", listed(&changed)));
        }
        if wrong.is_empty() {
            return Ok(());
        }
        // An export that goes on keeps a file that is there, so that every changed one has to go.
        changed.push(DATASET.to_owned());
        let why = format!(
            "is not what was exported any more: {}; delete {}, and the same command makes the files again",
            wrong.join("; "),
            changed.join(" and ")
        );
        Err(Error::file(folder, why))
    }

    /// Writes it, and the card for people before it.
    pub(super) fn write(&self, folder: &Path) -> Result<()> {
        write_atomically(&folder.join("README.md"), |out| out.write_all(self.card().as_bytes()))?;
        write_json(&folder.join(DATASET), self)
    }

    fn has(&self, format: Format) -> bool {
        let ending = match format {
            Format::Npz => ".npz",
            Format::Png => ".sha256",
            Format::Png16 => ".16bit.sha256",
            Format::Parquet => return self.files.keys().any(|name| name.ends_with(".parquet")),
        };
        self.splits.keys().any(|split| self.files.contains_key(&format!("{split}{ending}")))
    }

    /// Returns whether pictures of so many bits lose the truth in any split.
    pub(super) fn is_costly(&self, bits: u32) -> bool {
        self.splits.values().filter_map(|split| split.pictures.get(&bits)).any(DepthCost::is_costly)
    }

    /// How to train a world whose images carry their posteriors, where some of these do not because their pixels
    /// saturate in the logit map of the flow.
    pub fn rounding_remedy(&self) -> Option<&'static str> {
        let lost = self.splits.values().any(|split| split.rounding.rounded > 0);
        let logit = self.pixels.as_ref().is_some_and(|word| *word == Preprocessing::Uniform.word());
        (lost && logit).then_some(
            "a flow that is trained with pixels = { noise = \"gaussian\", std = 0.05 } in the [model] of its spec has no logit map, in \
             which pixels saturate",
        )
    }

    /// One sentence a depth on the Bayes error of its pictures; the most cautious of its splits.
    pub fn picture_sentences(&self) -> Vec<String> {
        let error = self.world.truth.bayes_error.interval;
        let mut depths: BTreeMap<u32, Vec<&DepthCost>> = BTreeMap::new();
        for (bits, cost) in self.splits.values().flat_map(|split| &split.pictures) {
            depths.entry(*bits).or_default().push(cost);
        }
        let sentence = |costs: &Vec<&DepthCost>| {
            let formula = costs.first()?.levels.formula();
            Some(format!("{}; {formula}", DepthCost::sentence_of_all(costs, error)?))
        };
        depths.values().filter_map(sentence).collect()
    }

    /// The text of `README.md`.
    fn card(&self) -> String {
        let Self { oracle, tau, smoothing, weights_sha256, class_names, shape, world, splits, .. } = self;
        let interval = |e: &Estimate, scale: f64| {
            format!("{:.4} [{:.4}, {:.4}]", scale * e.value, scale * e.interval.low, scale * e.interval.high)
        };
        let (error, entropy) = (&world.truth.bayes_error, &world.aleatoric_nats);
        let notice = self.notice.as_ref().map_or(String::new(), |notice| format!("{notice}\n\n"));
        let mut text = format!(
            "# Samples of the world `{oracle}` at τ = {}, T = {}\n\nMade by {}. World: weights {weights_sha256}. {} classes, images {shape}.\n\n{notice}\
             | of the world | value | 95 % interval |\n|---|---|---|\n\
             | Bayes error | {:.4} % | {:.4} to {:.4} |\n| aleatoric uncertainty, E[H(p(y\\|x))] | {:.5} nats | {:.5} to {:.5} |\n",
            tau.get(),
            smoothing.get(),
            self.made_by,
            class_names.len(),
            100.0 * error.value,
            100.0 * error.interval.0,
            100.0 * error.interval.1,
            entropy.value,
            entropy.interval.0,
            entropy.interval.1,
        );
        if self.label_noise.is_some() {
            text += "| labels | noisy | all figures are those of the noisy label |\n";
        }
        if let Some(mutual) = &world.mutual_information_bits {
            let (value, (low, high)) = (mutual.value, mutual.interval);
            text += &format!("| mutual information I(X;Y) | {value:.5} bits | {low:.5} to {high:.5} |\n");
        }
        text += "\n| split | images | Bayes error of the images, % | mean H(p), nats |\n|---|---|---|---|\n";
        for (name, split) in splits {
            let (error, entropy) = (interval(&split.bayes_error, 100.0), interval(&split.aleatoric_nats, 1.0));
            text += &format!("| {name} | {} | {error} | {entropy} |\n", split.images);
        }
        text += &self.picture_table();
        text += "\nNo classifier, however trained, has a smaller expected error than the Bayes error. ";
        text += &self.judging();
        text += &self.readers();
        text + &format!("\n{}.\n", self.exactness)
    }

    /// How a classifier is judged on what there is: the exact images, or the finest pictures that carry a truth.
    fn judging(&self) -> String {
        let has = |name: &str| self.files.contains_key(name);
        let rounded = || {
            let bits =
                [16, 8].into_iter().find(|&bits| has(&format!("test.{bits}bit.npz")) && !self.is_costly(bits))?;
            Some(format!("THIS_FOLDER/test.{bits}bit.npz"))
        };
        match has("test.npz").then(|| "THIS_FOLDER".to_owned()).or_else(rounded) {
            Some(truth) => format!(
                "To judge one: let it predict the test images in their order and run `bayescope evaluate {truth} --predictions FILE`.\n"
            ),
            None => "To judge one, `bayescope evaluate` needs `test.npz`, which is not here: export test images with `--format npz`, \
                     from the same seed into another folder.\n"
                .to_owned(),
        }
    }

    /// The table of the pictures' costs.
    fn picture_table(&self) -> String {
        if self.picture_sentences().is_empty() {
            return String::new();
        }
        let mut text = String::from(
            "\n| pictures of | bits | KL of the exact posterior from theirs, nats | Bayes decisions changed | largest KL |\n|---|---|---|---|---|\n",
        );
        for (name, split) in &self.splits {
            for (bits, cost) in &split.pictures {
                let Estimate { value, interval } = cost.kl_nats;
                text += &format!(
                    "| {name} | {bits} | {value:.5} [{:.5}, {:.5}] | {:.2} % | {:.3} |\n",
                    interval.low,
                    interval.high,
                    100.0 * cost.decisions_changed.value,
                    cost.largest_kl_nats
                );
            }
        }
        for sentence in self.picture_sentences() {
            text += &format!("\n{sentence}.\n");
        }
        if self.splits.values().flat_map(|split| split.pictures.values()).any(DepthCost::is_costly) {
            text += "\nColumns that begin with `midpoint_` are those of one point of the picture's cell: neither soft labels nor a truth to judge by.\n";
        }
        text
    }

    /// Python code that reads each format; of a split that is there.
    fn readers(&self) -> String {
        let rgb = self.shape.channels > 1;
        let [arrays, pictures] = [["test", "train"], ["train", "test"]]
            .map(|splits| splits.into_iter().find(|split| self.splits.contains_key(*split)).unwrap_or(splits[0]));
        let is_empty = self.splits.get(pictures).is_some_and(|split| split.counts.contains(&0));
        let (empty, version) = match is_empty {
            true => (", allow_empty=True", "  # torchvision 0.17 or later: a class has no image here"),
            false => ("", ""),
        };
        let mut text = String::new();
        let mut code = |lines: &str| text += &format!("\n```python\n{lines}\n```\n");
        if self.has(Format::Npz) {
            code(&format!(
                "import numpy as np\n{arrays} = np.load(\"{arrays}.npz\")\nx, y, p = {arrays}[\"x\"], {arrays}[\"y\"], {arrays}[\"posterior\"]  # [N, C, H, W], [N], [N, K]",
            ));
        }
        if self.has(Format::Png16) {
            code(&format!(
                "import cv2  # Pillow reads RGB pictures of 16 bits with 8\nfrom torchvision.datasets import ImageFolder\n\
                 read = lambda path: cv2.imread(path, cv2.IMREAD_UNCHANGED)  # BGR where in colour\n\
                 {pictures} = ImageFolder(\"png16/{pictures}\", loader=read{empty}){version}\n\
                 # file 000123.png is row 123 of {pictures}.16bit.npz",
            ));
        }
        if self.has(Format::Png) {
            code(&format!(
                "from torchvision.datasets import ImageFolder\n{pictures} = ImageFolder(\"{pictures}\"{empty}){version}\n\
                 # file 000123.png is row 123 of {pictures}.8bit.npz",
            ));
        }
        if self.has(Format::Parquet) {
            let bytes = format!(
                "\nimport cv2, numpy as np\nimage = cv2.imdecode(np.frombuffer(data[\"{pictures}\"][0][\"image\"][\"bytes\"], \"u1\"), cv2.IMREAD_UNCHANGED)  # 16 bits, BGR"
            );
            let eight = self.has(Format::Png) && !self.has(Format::Png16);
            let more = if rgb && !eight { bytes.as_str() } else { "" };
            code(&format!(
                "from datasets import load_dataset\ndata = load_dataset(\"parquet\", data_dir=\"parquet\"){more}"
            ));
        }
        text
    }
}
