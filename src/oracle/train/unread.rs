//! What a spec sets and the training of its flow does not read.

use super::spec::{ModelSpec, OptimSpec, TarFlowSpec, TrainSpec};
use crate::data::fields;
use crate::error::{Error, Result};

impl TrainSpec {
    /// The same training, with the default in every field that it does not read.
    pub fn effective(&self) -> Self {
        let mut spec = self.clone();
        if let Some(flow) = &mut spec.tarflow {
            let (training, default) = (&mut spec.training, OptimSpec::default());
            spec.model = ModelSpec::default();
            (training.classification, training.mean_std) = (default.classification, default.mean_std);
            if flow.shared_map {
                flow.label_dropout = TarFlowSpec::default().label_dropout;
            } else {
                training.lambda = default.lambda;
            }
        }
        spec
    }

    /// Whether all that differs from a default is read. Not asked of a training that goes on, which may be of a version
    /// that did not ask.
    ///
    /// # Errors
    /// Names the fields.
    pub fn check_read(&self) -> Result<()> {
        let (set, read) = (fields(self, &[]), fields(&self.effective(), &[]));
        let unread: Vec<&str> = set.iter().filter(|field| !read.contains(field)).map(|(name, _)| &**name).collect();
        if unread.is_empty() {
            return Ok(());
        }
        let flow = match self.tarflow.is_some_and(|flow| flow.shared_map) {
            true => "one map for all classes",
            false => "a map for each class",
        };
        let unread = unread.join(", ");
        Err(Error::input(format!("{unread}: the training of a TarFlow with {flow} does not read this; leave it out")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oracle::train::PRESETS;

    #[test]
    fn what_is_set_and_not_read_is_refused_by_name() {
        let spec =
            |text: &str| -> TrainSpec { toml::from_str(&format!("name = 'x'\ndata.path = 'd'\n{text}")).unwrap() };
        let (each, shared) = ("tarflow.blocks = 4", "tarflow.shared_map = true");
        for (flow, set, named) in [
            (each, "training.lambda = 5.0", "training.lambda"),
            (each, "training.classification = 'linear-head'", "training.classification"),
            (each, "training.mean_std = 0.2", "training.mean_std"),
            (each, "model.hidden = 32", "model.hidden"),
            (shared, "model.pixels = { noise = 'gaussian', std = 0.05 }", "model.pixels.noise, model.pixels.std"),
            (shared, "tarflow.label_dropout = 0.2", "tarflow.label_dropout"),
        ] {
            let spec = spec(&format!("{flow}\n{set}"));
            let why = spec.check_read().unwrap_err().to_string();
            assert!(why.starts_with(&format!("{named}: ")), "{why}");
            spec.effective().check_read().unwrap();
        }
        for read in [
            "training.lambda = 5.0\ntraining.mean_std = 0.2\ntraining.classification = 'linear-head'\nmodel.hidden = 32",
            "tarflow.shared_map = true\ntraining.lambda = 5.0",
            "tarflow.label_dropout = 0.2",
        ] {
            spec(read).check_read().unwrap();
        }
    }

    /// Specs of the presets, also as a run keeps them, and those in the records of oracles.
    #[test]
    fn specs_that_come_with_the_program_are_accepted() {
        let mut specs: Vec<TrainSpec> = PRESETS.iter().map(|preset| preset.spec().unwrap()).collect();
        for oracle in [
            "assets/oracles/mnist",
            "assets/oracles/mnist-9b44f254",
            "assets/oracles/fashion",
            "assets/oracles/cells",
            "tests/worlds/animals",
        ] {
            let record = std::fs::read(format!("{}/{oracle}/oracle.json", env!("CARGO_MANIFEST_DIR"))).unwrap();
            let record: serde_json::Value = serde_json::from_slice(&record).unwrap();
            specs.push(serde_json::from_value(record["training"]["spec"].clone()).unwrap());
        }
        for spec in specs {
            let kept: TrainSpec = toml::from_str(&toml::to_string_pretty(&spec).unwrap()).unwrap();
            kept.validate().and_then(|()| kept.check_read()).unwrap();
            assert_eq!(kept.effective(), spec, "{}", spec.name);
        }
    }
}
