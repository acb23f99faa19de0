//! The name of a cell: a hash of everything its numbers depend on.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::cell::Cell;
use super::dataset::{DataRecord, PartRecord};
use super::feature_file::FeatureFile;
use super::spec::ExperimentSpec;
use crate::classifier::{Architecture, Normalisation};
use crate::data::{sha256, sha256_of_file};
use crate::error::{Error, Result};
use crate::events::silent;
use crate::flow::preprocess::Dequantisation;

/// Changes when the same spec would give other numbers than before.
const FORMAT: u32 = 1;

/// Hashes of the files an experiment depends on.
#[derive(Debug, Clone, PartialEq)]
pub struct Files {
    /// The oracle's world (`OracleInfo::world_id`).
    pub oracle: String,
    /// SHA-256 of the weights that architectures start from.
    pub pretrained: BTreeMap<Architecture, String>,
    /// Of the images, where they are those of a dataset.
    pub data: Option<DataRecord>,
    /// Of the files of the experiment, in their order.
    pub features: Vec<FeatureFile>,
}

impl Files {
    /// Of a spec whose oracle's world, dataset and features are known already.
    ///
    /// # Errors
    /// Names a file that cannot be read.
    pub fn of(
        spec: &ExperimentSpec,
        oracle: &str,
        data: Option<&DataRecord>,
        features: &[FeatureFile],
    ) -> Result<Self> {
        let hash =
            |(architecture, file): (&Architecture, &PathBuf)| Ok((*architecture, sha256_of_file(file, &mut silent())?));
        let pretrained = spec.pretrained.iter().map(hash).collect::<Result<_>>()?;
        Ok(Self { oracle: oracle.to_owned(), pretrained, data: data.cloned(), features: features.to_vec() })
    }
}

impl Cell {
    /// The hash of everything the cell's numbers depend on but the device: equal in every run that
    /// asks for it.
    ///
    /// # Errors
    /// When the spec's overrides are wrong.
    pub fn id(&self, spec: &ExperimentSpec, files: &Files) -> Result<String> {
        let world = &spec.world;
        let training = spec.training_of(self.architecture, self.condition)?;
        let pretrained = files.pretrained.get(&self.architecture);
        let mut content = serde_json::json!({
            "format": FORMAT,
            "weights": files.oracle,
            "pretrained": pretrained.filter(|_| !spec.experiment.starts_from_scratch(self.condition)),
            "tau": spec.tau(self.condition),
            "smoothing": world.smoothing,
            "prior": world.prior,
            "world_seed": world.seed,
            // A condition counts by its content, not by its place in the list.
            "cell": Self { condition: 0, ..*self },
            "test": spec.test,
            "training": training,
        });
        if let Some(condition) = spec.experiment.content(spec, self) {
            content["experiment"] = condition;
        }
        // Absent without label noise, as from older versions.
        if let Some(noise) = &world.label_noise {
            content["label_noise"] = serde_json::json!(noise);
        }
        // Older versions took every world's pixels to lie between 0 and 1.
        if training.input == Normalisation::Imagenet {
            content["imagenet"] = serde_json::json!("of the world's range");
        }
        // Absent without a dataset: cells of the world's own images keep their names.
        if let Some(DataRecord { train, test, .. }) = &files.data {
            content["data"] = serde_json::json!([train.sha256, test.as_ref().map(|test| &test.sha256)]);
            // Absent with the noise that there is unless another is asked for, as from older versions.
            let other = |part: &PartRecord| part.dequantisation.filter(|how| *how != Dequantisation::default());
            let noise = [other(train), test.as_ref().and_then(other)];
            if noise != [None; 2] {
                content["dequantisation"] = serde_json::json!(noise);
            }
            // Absent as from older versions, which gave a test image the noise of the training image of its number.
            if let Some(test) = test.as_ref().filter(|test| test.noise_from > 0) {
                content["test_noise_from"] = serde_json::json!(test.noise_from);
            }
        }
        // Likewise: cells that see no file keep their names.
        if !files.features.is_empty() {
            content["features"] = files.features.iter().map(|file| file.sha256.as_str()).collect();
        }
        let text = serde_json::to_vec(&content).map_err(|e| Error::input(e.to_string()))?;
        Ok(sha256(&text)[..16].to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::self_validation::SelfValidationSpec;
    use crate::experiment::soft_labels::SoftLabelsSpec;
    use crate::experiment::{Experiment, Mapped, PRESETS, TemperatureSpec};
    use crate::units::{Seed, Tau};

    /// The weights of the bundled `mnist` when these names were written down.
    const WEIGHTS: &str = "9b44f254a849e56912d37bb88cfaaa6403bd39f6d809328d85ef15de5aa6c94a";

    /// Name of the first cell of the first preset under them.
    const PLAIN: &str = "02632e1eca1fb2ea";

    fn part(sha256: &str) -> PartRecord {
        let classes = Mapped::ByNumber;
        let (path, sha256, note) = ("digits".into(), sha256.into(), None);
        let (dequantisation, of_this_world) = (None, false);
        PartRecord { path, images: 9, sha256, dequantisation, noise_from: 0, note, classes, of_this_world }
    }

    #[test]
    fn a_kind_that_only_looks_at_its_cells_in_its_own_way_leaves_them_their_names() {
        let spec = PRESETS[0].spec().unwrap();
        let id = |experiment: Experiment, condition: usize| {
            let spec = ExperimentSpec { experiment, ..spec.clone() };
            let files = Files::of(&spec, WEIGHTS, None, &[]).unwrap();
            Cell { condition, ..spec.cells()[0] }.id(&spec, &files).unwrap()
        };
        let taus = vec![Tau::new(0.7).unwrap(), spec.world.tau];
        let sweep = Experiment::new(TemperatureSpec { taus });
        let (validation, soft) = (Experiment::new(SelfValidationSpec {}), Experiment::new(SoftLabelsSpec {}));
        for same in [id(validation, 0), id(soft, 0), id(sweep.clone(), 1)] {
            assert_eq!(same, PLAIN);
        }
        // Written down when sweeps were new.
        assert_eq!(id(sweep, 0), "6913a3c7c5bd7327");
    }

    #[test]
    fn cells_of_the_worlds_own_images_keep_their_names_and_other_data_are_other_cells() {
        let spec = PRESETS[0].spec().unwrap();
        let id = |data: Option<DataRecord>| {
            let files = Files::of(&spec, WEIGHTS, data.as_ref(), &[]).unwrap();
            spec.cells()[0].id(&spec, &files).unwrap()
        };
        assert_eq!(id(None), PLAIN);
        let data =
            |train: &str, test: Option<&str>| DataRecord { train: part(train), test: test.map(part), both: false };
        let ids = [id(None), id(Some(data("a", None))), id(Some(data("b", None))), id(Some(data("a", Some("b"))))];
        assert!(ids.iter().enumerate().all(|(i, id)| !ids[..i].contains(id)), "{ids:?}");
        // Where the files lie does not matter.
        let mut moved = data("a", None);
        moved.train.path = "elsewhere".into();
        assert_eq!(id(Some(moved)), ids[1]);
        // How pixels become real numbers does.
        let noisy = |how| {
            let mut noisy = data("a", None);
            noisy.train.dequantisation = how;
            id(Some(noisy))
        };
        assert_eq!(noisy(Some(Dequantisation::default())), ids[1]);
        let [middle, seeded] = [Dequantisation::MidPoint, Dequantisation::Seeded(Seed(1))].map(|how| noisy(Some(how)));
        assert!(middle != seeded && ![&middle, &seeded].contains(&&ids[1]), "{middle} {seeded}");
        // Which noise test images have does, too.
        let mut apart = data("a", Some("b"));
        apart.test.iter_mut().for_each(|test| test.noise_from = 1 << 31);
        assert_ne!(id(Some(apart)), ids[3]);
    }

    #[test]
    fn other_features_are_other_cells_wherever_they_lie() {
        let text = "name = 'x'\n[world]\noracle = 'mnist'\n[experiment]\nkind = 'graders'\ntaus = [1.0]\nfeatures = FEATURES\n\
                    [grid]\narchitectures = ['linear']\ntrain_sizes = [100]\n";
        let id = |features: &str, files: &[(&str, &str)]| {
            let spec: ExperimentSpec = toml::from_str(&text.replace("FEATURES", features)).unwrap();
            spec.validate().unwrap();
            let file = |(path, sha256): &(&str, &str)| FeatureFile { path: path.into(), sha256: (*sha256).into() };
            let files: Vec<FeatureFile> = files.iter().map(file).collect();
            spec.cells()[0].id(&spec, &Files::of(&spec, WEIGHTS, None, &files).unwrap()).unwrap()
        };
        let one = id("['pixels', { file = 'a.npz' }]", &[("a.npz", "1")]);
        assert_eq!(one, id("['pixels', { file = '/elsewhere/b.npz' }]", &[("/elsewhere/b.npz", "1")]));
        let others = [
            one,
            id("['pixels']", &[]),
            id("[{ file = 'a.npz' }]", &[("a.npz", "1")]),
            id("['pixels', { file = 'a.npz' }]", &[("a.npz", "2")]),
            id("['pixels', 'trained', { file = 'a.npz' }]", &[("a.npz", "1")]),
        ];
        assert!(others.iter().enumerate().all(|(i, id)| !others[..i].contains(id)), "{others:?}");
    }
}
