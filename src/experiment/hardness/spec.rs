//! What a ranking of corpora is told: one TOML file.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::published::plain;
use super::repeat::{RepeatSpec, Variant};
use crate::data::{in_folder, read_toml, sha256};
use crate::error::{Error, Result, check_name};
use crate::experiment::presets::{Preset, preset};
use crate::flow::weights::Storage;
use crate::oracle::train::{DataSpec, ModelSpec, OptimSpec, TrainSpec};
use crate::units::Seed;

/// Changes when the same spec would give other numbers than before.
const FORMAT: u32 = 1;

/// The specs that come with the program; the quick ones take a few minutes on two cores.
pub const PRESETS: &[Preset] =
    &[preset!("hardness-quick"), preset!("hardness"), preset!("hardness-worlds-quick"), preset!("hardness-worlds")];

impl Preset {
    /// The spec, if it is one of [`PRESETS`]; its paths are relative.
    ///
    /// # Errors
    /// When the program was built with a broken one.
    pub fn hardness(&self) -> Result<HardnessSpec> {
        self.read(HardnessSpec::validate)
    }
}

/// A list of corpora, and how the Glow of each is trained.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HardnessSpec {
    /// Name of the run.
    pub name: String,
    /// What it is for, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Seed of everything random.
    #[serde(default)]
    pub seed: u64,
    /// Says that this is a ranking of corpora.
    pub experiment: Kind,
    /// How the images of every corpus enter.
    #[serde(default)]
    pub images: ImagesSpec,
    /// The Glow.
    #[serde(default)]
    pub model: ModelSpec,
    /// Its optimisation.
    #[serde(default)]
    pub training: OptimSpec,
    /// With which λ, and as how many worlds, each corpus is trained on.
    #[serde(default, skip_serializing_if = "RepeatSpec::is_once")]
    pub repeat: RepeatSpec,
    /// The corpora.
    pub corpora: Vec<Corpus>,
}

/// The table `[experiment]`: its `kind` is `hardness`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Kind {
    /// A ranking of corpora.
    #[default]
    Hardness,
}

/// How images enter: the part of [`DataSpec`] that all corpora share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ImagesSpec {
    /// Side the images are padded to with zeros, pixels.
    pub pad_to: usize,
    /// Images set apart from the training part to choose the best epoch by.
    pub held_out: usize,
    /// Most pixels by which images are moved at random.
    pub shift: usize,
    /// Whether images are mirrored at random.
    pub mirror: bool,
}

impl Default for ImagesSpec {
    fn default() -> Self {
        Self { pad_to: 32, held_out: 500, shift: 0, mirror: false }
    }
}

/// A corpus.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Corpus {
    /// Its name; one of EBO's eleven is shown beside EBO's row.
    pub name: String,
    /// Where its images lie: anything [`crate::data::open_split`] reads, with labels.
    pub data: PathBuf,
    /// Only these classes, numbered in this order; all where empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub classes: Vec<String>,
    /// Use only so many images of the training part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
    /// What differs from the tables `images`, `model` and `training` for this corpus.
    #[serde(default, skip_serializing_if = "toml::Table::is_empty")]
    pub overrides: toml::Table,
}

/// What all corpora share unless they say otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Common {
    /// How images enter.
    pub images: ImagesSpec,
    /// The Glow.
    pub model: ModelSpec,
    /// Its optimisation.
    pub training: OptimSpec,
}

impl HardnessSpec {
    /// Whether a spec's text is of this kind; of text that is no TOML it is not.
    pub fn is(text: &str) -> bool {
        let table: Option<toml::Table> = toml::from_str(text).ok();
        let kind = table.as_ref().and_then(|table| table.get("experiment")?.get("kind")?.as_str());
        kind == Some("hardness")
    }

    /// Reads a spec file. Relative paths of corpora are taken from the folder of the file.
    ///
    /// # Errors
    /// Names the file and what is wrong in it.
    pub fn read(path: &Path) -> Result<Self> {
        let spec: Self = read_toml(path)?;
        spec.validate().map_err(|e| Error::file(path, e.to_string()))?;
        spec.relative_to(path.parent().unwrap_or(Path::new("")))
    }

    /// The same, its relative paths taken from a folder: a run may be resumed from anywhere.
    ///
    /// # Errors
    /// When the present folder cannot be told.
    pub fn relative_to(mut self, folder: &Path) -> Result<Self> {
        for corpus in &mut self.corpora {
            corpus.data = in_folder(folder, &corpus.data)?;
        }
        Ok(self)
    }

    /// Whether it can be planned; whether the images are there, only the run finds out.
    ///
    /// # Errors
    /// Says what is wrong.
    pub fn validate(&self) -> Result<()> {
        let mut names = self.corpora.iter().map(|corpus| &corpus.name).chain([&self.name]);
        names.try_for_each(|name| check_name(name)).map_err(Error::input)?;
        if self.corpora.is_empty() {
            return Err(Error::input("corpora is empty: list at least one, each a [[corpora]] with name and data"));
        }
        self.repeat.validate()?;
        if self.training.seed != Seed(0) {
            return Err(Error::input("training.seed: the seed of a ranking stands at the top, as seed = …"));
        }
        for (i, corpus) in self.corpora.iter().enumerate() {
            let Corpus { name, data, limit, .. } = corpus;
            if plain(name).is_empty() {
                return Err(Error::input(format!("corpora: number {} has no name", i + 1)));
            }
            if self.corpora[..i].iter().any(|before| plain(&before.name) == plain(name)) {
                return Err(Error::input(format!("corpora: {name} is named twice")));
            }
            if data.as_os_str().is_empty() {
                return Err(Error::input(format!("corpora: {name} has no data; give the folder of its images")));
            }
            if *limit == Some(0) {
                return Err(Error::input(format!("corpora: the limit of {name} must be at least 1")));
            }
            let told = |error: Error| Error::input(format!("corpora: {name}: {error}"));
            self.train_spec(corpus)?.validate().map_err(told)?;
        }
        Ok(())
    }

    /// How the Glow of a corpus is trained.
    ///
    /// # Errors
    /// Names the override that is wrong.
    pub fn train_spec(&self, corpus: &Corpus) -> Result<TrainSpec> {
        let wrong = |e: String| Error::input(format!("corpora: overrides of {}: {e}", corpus.name));
        let Self { images, model, training, seed, .. } = self;
        let common = Common { images: *images, model: *model, training: *training };
        let mut table = toml::Table::try_from(common).map_err(|e| wrong(e.to_string()))?;
        merge(&mut table, &corpus.overrides);
        let Common { images, model, training } = table.try_into().map_err(|e: toml::de::Error| wrong(e.to_string()))?;
        let ImagesSpec { pad_to, held_out, shift, mirror } = images;
        let Corpus { name, data, classes, limit, .. } = corpus;
        Ok(TrainSpec {
            name: name.clone(),
            storage: Storage::F32,
            data: DataSpec {
                path: data.clone(),
                description: None,
                notice: None,
                pad_to,
                resize: None,
                held_out,
                shift,
                mirror,
                turn: false,
                classes: classes.clone(),
                limit: *limit,
                bootstrap: None,
                split: None,
            },
            model,
            // Only a map that all classes share makes the Bayes error an integral over Gaussians.
            tarflow: None,
            training: OptimSpec { seed: Seed(*seed), ..training },
        })
    }

    /// How a flow of a corpus is trained, and the name of its folder: a hash of what its numbers depend on,
    /// but for pixels and device.
    ///
    /// # Errors
    /// As [`Self::train_spec`].
    pub fn flow(&self, corpus: &Corpus, variant: Variant) -> Result<(String, TrainSpec)> {
        let train = self.repeat.train_spec(variant, self.train_spec(corpus)?);
        let content = serde_json::json!({ "format": FORMAT, "train": train });
        Ok((sha256(content.to_string().as_bytes())[..16].to_owned(), train))
    }
}

/// Puts the values of `changes` into `table`, tables within tables one by one.
fn merge(table: &mut toml::Table, changes: &toml::Table) {
    for (key, change) in changes {
        match (table.get_mut(key), change) {
            (Some(toml::Value::Table(inner)), toml::Value::Table(change)) => merge(inner, change),
            _ => {
                table.insert(key.clone(), change.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "name = 'x'\nseed = 3\n[experiment]\nkind = 'hardness'\n[model]\nhidden = 16\nlevels = 2\n\
                        [training]\nepochs = 4\n[[corpora]]\nname = 'MNIST'\ndata = 'a'\n[[corpora]]\nname = 'b'\n\
                        data = '/b'\nlimit = 9\n[corpora.overrides.model]\nsteps = 1\n[corpora.overrides.training]\n\
                        epochs = 2\n";

    fn spec(text: &str) -> Result<HardnessSpec> {
        let spec: HardnessSpec = toml::from_str(text).map_err(|e| Error::input(e.to_string()))?;
        spec.validate().map(|()| spec)
    }

    #[test]
    fn corpora_share_a_training_and_may_differ_in_parts() {
        let spec = spec(TEXT).unwrap();
        let [first, second] = [0, 1].map(|i| spec.train_spec(&spec.corpora[i]).unwrap());
        assert_eq!((first.model.hidden, first.model.steps, first.training.epochs), (16, 8, 4));
        assert_eq!((second.model.hidden, second.model.steps, second.training.epochs), (16, 1, 2));
        assert_eq!((first.training.seed, second.data.limit, second.data.pad_to), (Seed(3), Some(9), 32));
        let again: HardnessSpec = toml::from_str(&toml::to_string_pretty(&spec).unwrap()).unwrap();
        assert_eq!(spec, again);
        let id = |spec: &HardnessSpec, i: usize| spec.flow(&spec.corpora[i], Variant::default()).unwrap().0;
        let ids = [id(&spec, 0), id(&spec, 1)];
        assert!(ids[0] != ids[1] && ids[0].len() == 16);
        let other = HardnessSpec { seed: 4, ..spec.clone() };
        assert_ne!(id(&other, 0), ids[0]);
        let second = Variant { world: 1, lambda: Some(10.0) };
        let (other, train) = spec.flow(&spec.corpora[0], second).unwrap();
        assert!(other != ids[0] && train.training.lambda == 10.0 && train.training.seed != Seed(3));
    }

    #[test]
    fn paths_are_taken_from_the_folder_of_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("spec.toml");
        std::fs::write(&file, TEXT).unwrap();
        let spec = HardnessSpec::read(&file).unwrap();
        assert_eq!(spec.corpora[0].data, folder.path().join("a"));
        assert_eq!(spec.corpora[1].data, Path::new("/b"));
        assert!(HardnessSpec::is(TEXT) && !HardnessSpec::is("name = 'x'") && !HardnessSpec::is("]"));
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (from, to, complaint) in [
            ("name = 'b'", "name = 'mnist'", "named twice"),
            ("data = '/b'", "data = ''", "b has no data"),
            ("name = 'b'", "name = ''", "number 2 has no name"),
            ("limit = 9", "limit = 0", "limit of b"),
            ("steps = 1", "step = 1", "step"),
            ("epochs = 2", "epochs = 0", "b: training.epochs"),
            ("hidden = 16", "hiden = 16", "hiden"),
            ("epochs = 4", "seed = 4", "stands at the top"),
            ("levels = 2", "levels = 9", "MNIST"),
            ("kind = 'hardness'", "kind = 'scaling'", "hardness"),
        ] {
            let error = spec(&TEXT.replace(from, to)).unwrap_err().to_string();
            assert!(error.contains(complaint), "{to}: {error}");
        }
        let none = TEXT.split("[[corpora]]").next().unwrap();
        assert!(spec(&format!("corpora = []\n{none}")).unwrap_err().to_string().contains("at least one"));
    }

    #[test]
    fn what_comes_with_the_program_can_be_run() {
        for preset in PRESETS {
            let spec = preset.hardness().unwrap();
            assert_eq!(spec.name, preset.name);
            assert!(spec.description.is_some());
        }
        let paper = PRESETS.iter().find(|preset| preset.name == "hardness").unwrap().hardness().unwrap();
        assert_eq!(paper.model, ModelSpec { hidden: 512, levels: 3, steps: 16, ..ModelSpec::default() });
        assert!(paper.corpora.iter().all(|corpus| super::super::published(&corpus.name).is_some()));
        assert_eq!(paper.corpora.len(), super::super::EBO_TABLE_1.len());
    }
}
