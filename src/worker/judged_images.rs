//! The worst images of a judged model for the gallery, read from the dataset it was judged on.

use std::path::Path;
use std::sync::Arc;

use super::loaded_images::LoadedImages;
use super::protocol::JobId;
use crate::data::{NpzImages, OfWorld, read_array, read_logp};
use crate::error::{Error, Result};
use crate::experiment::WorstImage as Shown;
use crate::export::Manifest;
use crate::judge::{Origin, WorstImage};
use crate::oracle::classify::ExternalImages;
use crate::oracle::folder::OracleInfo;
use crate::oracle::library;
use crate::oracle::posterior::Prior;
use crate::oracle::world::Settings;
use crate::units::{Smoothing, Tau};

/// How far max p may be from the judgement's: prior and T are written in decimals.
const SAME: f64 = 1e-6;

/// Which images are the worst.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorstBy {
    /// Those with the largest KL(p‖q).
    Kl,
    /// Those with the largest gap max p − p(argmax q).
    Gap,
}

impl WorstBy {
    /// The short label of the order: "KL" or "gap".
    pub fn label(self) -> &'static str {
        match self {
            Self::Kl => "KL",
            Self::Gap => "gap",
        }
    }
}

/// Asks for the worst images of a model.
#[derive(Debug, Clone, PartialEq)]
pub struct JudgedImagesRequest {
    /// Its name.
    pub model: String,
    /// In which sense they are the worst.
    pub by: WorstBy,
    /// The images, and what the model says of them.
    pub images: Vec<WorstImage>,
    /// Images it was judged on.
    pub tested: usize,
    /// The dataset.
    pub origin: Origin,
    /// Name of the open oracle.
    pub oracle: String,
    /// What is known about it: images of another world have no posterior in this one.
    pub info: Arc<OracleInfo>,
}

impl JudgedImagesRequest {
    /// A short name for the list of jobs.
    pub fn title(&self) -> String {
        format!("Worst images of {} by {}", self.model, self.by.label())
    }

    /// Reads them.
    ///
    /// # Errors
    /// When the dataset is of another world or does not say of which, or has changed since.
    pub(super) fn read(&self, id: JobId) -> Result<LoadedImages> {
        let archive = self.origin.archive();
        let settings = self.settings(&archive)?;
        let images = NpzImages::open(&archive)?.ok_or_else(|| Error::file(&archive, "holds no world-space images"))?;
        let (logp, classes) = read_logp(&archive)?;
        let labels = read_array(&archive, "y")?;
        let settings = settings(classes)?;
        let (mut x, mut known, mut drawn, mut verdicts) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for one in &self.images {
            let changed = || Error::file(&archive, format!("is not what was judged: {} is another", one.image));
            let (logp, label) = logp.chunks_exact(classes.max(1)).zip(&labels).nth(one.index).ok_or_else(changed)?;
            let posterior = settings.posterior(logp.to_vec());
            let best = posterior.probabilities.iter().copied().fold(0.0, f64::max);
            if one.q.len() != classes || (best - one.lost - one.expected).abs() > SAME {
                return Err(changed());
            }
            x.extend(images.read(one.index..one.index + 1)?);
            let (label, p) = (*label as usize, posterior.probabilities.clone());
            verdicts.push(Shown { image: one.index, kl: one.kl, label, p, q: one.q.clone() });
            known.push(posterior);
            drawn.push(label);
        }
        let (n, split) = (self.images.len(), &self.origin.split);
        let name = format!("{}: {n} worst of {} {split} images by {}", self.model, self.tested, self.by.label());
        let ids = self.images.iter().map(|one| self.caption(one)).collect();
        let (shape, world) = (images.shape(), self.info.world_id());
        let mut images = ExternalImages::new(name, ids, Some(drawn), x);
        images.known = Some((settings.clone(), known));
        Ok(LoadedImages { id, world, shape, settings, images, verdicts })
    }

    fn caption(&self, one: &WorstImage) -> String {
        let WorstImage { image, label, decision, kl, lost, .. } = one;
        format!("{image}: label {label}, {} says {decision}; KL {kl:.3} nats, gap {:.1} %", self.model, 100.0 * lost)
    }

    /// The knobs of the dataset's world, if that is the one that is open.
    fn settings(&self, archive: &Path) -> Result<impl Fn(usize) -> Result<Settings> + use<>> {
        let Origin { weights_sha256, tau, smoothing, prior, label_noise, .. } = &self.origin;
        let (Some(weights), Some(tau), Some(smoothing)) = (weights_sha256, tau, smoothing) else {
            let why = "does not say of which world its images are: judge the folder that `bayescope export` made, with its dataset.json";
            return Err(Error::file(archive, why));
        };
        let manifest = archive.parent().and_then(|folder| Manifest::read(folder).ok().flatten());
        let (pixels, pixel_range) = manifest.as_ref().map(|said| (said.pixels.clone(), said.pixel_range)).unzip();
        let of = OfWorld { weights_sha256: weights.clone(), pixels: pixels.flatten(), pixel_range };
        if !of.is(&self.info.home()) {
            let named =
                manifest.map_or("its oracle".to_owned(), |manifest| library::opening(&manifest.oracle, weights));
            let open = &self.oracle;
            return Err(Error::input(format!("these images are of another world than {open}: open {named} first")));
        }
        let (tau, smoothing) = (Tau::new(*tau)?, Smoothing::new(*smoothing)?);
        let (prior, label_noise) = (prior.clone().filter(|prior| !prior.is_empty()), label_noise.clone());
        Ok(move |classes| {
            let prior = prior.as_ref().map_or_else(|| Ok(Prior::uniform(classes)), |prior| Prior::new(prior))?;
            label_noise.as_ref().map_or(Ok(()), |noise| noise.check(classes))?;
            Ok(Settings { tau, smoothing, prior, label_noise: label_noise.clone() })
        })
    }
}
