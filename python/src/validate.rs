//! A world beside real images, as `bayescope oracle validate` compares them.

use std::path::{Path, PathBuf};

use bayescope::error::{Error, Result};
use bayescope::oracle::world::Settings;
use bayescope::units::Seed;
use bayescope::validate::{FeatureChoice, OnTheSpot, TwoSampleSpec, ValidateSpec, validate, write_report};
use serde::Deserialize;

use crate::engine::{Open, Stop};
use crate::json;

/// What is asked for, by the names of the command's options; the open world says the rest.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    data: PathBuf,
    images: usize,
    features: Option<PathBuf>,
    feature_epochs: usize,
    two_sample_images: usize,
    two_sample_epochs: usize,
    fid_stats: Option<PathBuf>,
    limit: Option<usize>,
    threshold: Option<f64>,
    seed: u64,
}

impl Asked {
    fn of(self, open: &Open, settings: &Settings) -> ValidateSpec {
        let on_the_spot =
            || FeatureChoice::OnTheSpot(OnTheSpot { epochs: self.feature_epochs, ..OnTheSpot::default() });
        ValidateSpec {
            oracle: open.name.clone(),
            data: self.data,
            images: self.images,
            limit: self.limit,
            settings: settings.clone(),
            precision: open.precision,
            features: self.features.map_or_else(on_the_spot, FeatureChoice::Weights),
            two_sample: TwoSampleSpec {
                images: self.two_sample_images,
                epochs: self.two_sample_epochs,
                ..TwoSampleSpec::default()
            },
            real_statistics: self.fid_stats,
            threshold: self.threshold,
            seed: Seed(self.seed),
        }
    }
}

/// Validates the open world; with a folder, what takes long is kept there, and the report at the end. As JSON.
///
/// # Errors
/// When what is asked for cannot be used, the images do not fit the world, the folder holds another validation or cannot be
/// written, the device fails, or nobody waits any more.
pub fn validated(open: &Open, stop: &Stop, settings: &Settings, asked: &str, folder: Option<&Path>) -> Result<String> {
    let asked: Asked =
        serde_json::from_slice(asked.as_bytes()).map_err(|e| Error::input(format!("the validation: {e}")))?;
    let spec = asked.of(open, settings);
    let (found, pairs) = validate(&open.world, &open.info, &spec, &open.chosen.device, folder, &mut stop.sink())?;
    if let Some(folder) = folder {
        write_report(folder, &found, pairs.as_ref())?;
    }
    json(&found)
}
