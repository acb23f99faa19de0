//! Samples made lately, so that the inspector and the evidence map need not make them again.

use std::collections::HashMap;
use std::sync::Arc;

use crate::device::{ImageSource, MatmulPrecision};
use crate::flow::sampling::SamplerOptions;
use crate::oracle::world::{Figures, ResidentSamples, Sample, SampleSpec, Settings};
use crate::units::{ClassId, Seed};

/// Memory for samples, bytes.
const ROOM: usize = 96 << 20;

/// What samples depend on, beside their running number.
type Key = (Seed, Option<ClassId>, MatmulPrecision, Settings);

fn key(spec: &SampleSpec, settings: &Settings) -> Key {
    (spec.seed, spec.class, spec.products, settings.clone())
}

/// A sample whose image stayed on the device.
#[derive(Clone)]
pub struct Resident {
    /// It and its neighbours.
    pub batch: Arc<ResidentSamples>,
    /// Its place among them.
    pub row: usize,
    /// Its picture.
    pub picture: ImageSource,
}

impl Resident {
    /// What is known of it.
    pub fn figures(&self) -> &Figures {
        &self.batch.figures[self.row]
    }
}

/// Samples of one seed at one setting of the knobs.
#[derive(Default)]
pub struct SampleCache {
    key: Option<Key>,
    samples: HashMap<usize, Arc<Sample>>,
    residents: HashMap<usize, Resident>,
    /// Pictures of these samples with a look.
    look: Option<SamplerOptions>,
    pictures: HashMap<usize, Vec<u8>>,
    bytes: usize,
}

impl SampleCache {
    /// Sample `index`, if it is kept.
    pub fn get(&self, spec: &SampleSpec, settings: &Settings, index: usize) -> Option<Arc<Sample>> {
        self.samples.get(&index).filter(|_| self.key.as_ref() == Some(&key(spec, settings))).cloned()
    }

    /// Sample `index`, if its image is kept on the device.
    pub fn resident(&self, spec: &SampleSpec, settings: &Settings, index: usize) -> Option<&Resident> {
        self.residents.get(&index).filter(|_| self.key.as_ref() == Some(&key(spec, settings)))
    }

    /// Makes room for samples of these settings, in place of those of others.
    fn make_room(&mut self, spec: &SampleSpec, settings: &Settings) {
        let key = key(spec, settings);
        if self.key.as_ref() != Some(&key) || self.bytes > ROOM {
            *self = Self { key: Some(key), ..Self::default() };
        }
    }

    /// Keeps samples whose images stayed on the device, in place of those of other settings.
    pub fn keep_resident(
        &mut self,
        spec: &SampleSpec,
        settings: &Settings,
        (batch, pictures): (&Arc<ResidentSamples>, Vec<ImageSource>),
    ) {
        self.make_room(spec, settings);
        // Images and levels in f32, and what is known of each.
        let classes = settings.prior.classes();
        self.bytes += 2 * 4 * batch.images.dims().iter().product::<usize>() + batch.figures.len() * 3 * 8 * classes;
        for (row, (figures, picture)) in batch.figures.iter().zip(pictures).enumerate() {
            self.residents.insert(figures.index, Resident { batch: batch.clone(), row, picture });
        }
    }

    /// Keeps a sample, in place of those of other settings.
    pub fn keep(&mut self, spec: &SampleSpec, settings: &Settings, sample: &Arc<Sample>) {
        self.make_room(spec, settings);
        let classes = sample.posterior.probabilities.len();
        if self.samples.insert(sample.index, sample.clone()).is_none() {
            self.bytes += 4 * sample.x.len() + 3 * 8 * classes;
        }
    }

    /// The picture of sample `index` with a look, if it is kept.
    pub fn picture(&self, look: &SamplerOptions, index: usize) -> Option<&Vec<u8>> {
        self.pictures.get(&index).filter(|_| self.look.as_ref() == Some(look))
    }

    /// Keeps a picture, in place of those with another look.
    pub fn keep_picture(&mut self, look: &SamplerOptions, index: usize, picture: Vec<u8>) {
        if self.look.as_ref() != Some(look) {
            self.pictures.clear();
            self.look = Some(*look);
        }
        self.bytes += picture.len();
        self.pictures.insert(index, picture);
    }

    /// Some of the kept samples, at most `n`.
    pub fn some(&self, n: usize) -> Vec<Arc<Sample>> {
        let mut indices: Vec<&usize> = self.samples.keys().collect();
        indices.sort_unstable();
        indices.into_iter().take(n).filter_map(|index| self.samples.get(index).cloned()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oracle::posterior::Posterior;
    use crate::units::Tau;

    #[test]
    fn samples_of_other_knobs_are_other_samples() {
        let settings = Settings::default_for(2);
        let spec = SampleSpec::new(4, Seed(1));
        let posterior = Posterior::new(vec![-1.0, -2.0], &settings.prior, settings.smoothing);
        let sample = Sample { index: 3, source: 0, label: 0, x: vec![0.5], posterior };
        let mut cache = SampleCache::default();
        cache.keep(&spec, &settings, &Arc::new(sample));
        assert!(cache.get(&spec, &settings, 3).is_some());
        assert!(cache.get(&SampleSpec { n: 9, ..spec }, &settings, 3).is_some(), "their number changes none");
        for other in [
            SampleSpec { seed: Seed(2), ..spec },
            SampleSpec { class: Some(1), ..spec },
            SampleSpec { products: MatmulPrecision::Bf16, ..spec },
        ] {
            assert!(cache.get(&other, &settings, 3).is_none(), "{other:?}");
        }
        let other = Settings { tau: Tau::new(0.5).unwrap(), ..settings };
        assert!(cache.get(&spec, &other, 3).is_none());
    }
}
