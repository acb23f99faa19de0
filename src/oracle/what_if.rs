//! What if: the latent of an image under every class, and several images side by side with the evidence of their differences.

use crate::error::{Error, Result};
use crate::events::{Events, Progress, silent};
use crate::flow::Evidence;
use crate::oracle::evidence::leaders;
use crate::oracle::posterior::Posterior;
use crate::oracle::world::{Settings, World};
use crate::units::ClassId;

/// Classes looked at together.
const TOGETHER: usize = 4;

/// The latent of an image, mapped under a class.
#[derive(Debug, Clone, PartialEq)]
pub struct UnderClass {
    /// The class.
    pub class: ClassId,
    /// World-space image, CHW.
    pub x: Vec<f32>,
    /// Its exact posterior.
    pub posterior: Posterior,
}

/// Images side by side.
#[derive(Debug, Clone, PartialEq)]
pub struct Comparison {
    /// The classes the evidence is for and against; none in a world of one class.
    pub pair: Option<(ClassId, ClassId)>,
    /// The images, in order.
    pub images: Vec<Compared>,
}

/// One of them.
#[derive(Debug, Clone, PartialEq)]
pub struct Compared {
    /// Its exact posterior.
    pub posterior: Posterior,
    /// Its evidence for the first class against the second.
    pub evidence: Option<Evidence>,
    /// That of the first image less its own: what the first has more of, place by place. None of the
    /// first image itself.
    pub difference: Option<Evidence>,
}

impl World {
    /// The latent that image `x` (CHW) has under class `of`, mapped to an image under every class in order: same noise, another
    /// class. Under `of` itself that is x.
    ///
    /// # Errors
    /// At τ = 0, where every class is a point; when the class does not exist or the prior does not fit,
    /// the image has no density, the device fails, or the caller stops.
    pub fn under_every_class(
        &self,
        x: &[f32],
        of: ClassId,
        settings: &Settings,
        events: &mut dyn Events<UnderClass>,
    ) -> Result<()> {
        self.check(settings)?;
        self.check_class(of)?;
        self.has_density(settings)?;
        let noise = self.flow().noise(x, &[of], settings.tau)?;
        let noise: Vec<f32> = noise.into_iter().map(|v| v as f32).collect();
        let own = self.posterior(&self.score(x, &mut silent())?, 0, settings);
        let all: Vec<ClassId> = (0..self.flow().classes()).collect();
        for classes in all.chunks(TOGETHER) {
            let others: Vec<ClassId> = classes.iter().copied().filter(|class| *class != of).collect();
            let mut made = match others.len() {
                0 => Vec::new(),
                n => self.decode(&noise.repeat(n), &others, settings, &mut silent())?,
            }
            .into_iter();
            for &class in classes {
                let itself = (class == of).then(|| (x.to_vec(), own.clone()));
                let Some((x, posterior)) = itself.or_else(|| made.next()) else { continue };
                events.report(UnderClass { class, x, posterior })?;
            }
        }
        Ok(())
    }

    /// Several world-space images (CHW) side by side: their posteriors, their evidence for one class against another (where `pair`
    /// names none, for the decision of the first against the next decision that differs), and how the first differs in it.
    ///
    /// # Errors
    /// At τ = 0; when there are no images, one has no density, a class is not of this world, the device
    /// fails, or the caller stops.
    pub fn compare(
        &self,
        images: &[&[f32]],
        pair: Option<(ClassId, ClassId)>,
        settings: &Settings,
        events: &mut dyn Events<Progress>,
    ) -> Result<Comparison> {
        self.check(settings)?;
        self.has_density(settings)?;
        let scores = self.score(&images.concat(), &mut silent())?;
        let posteriors: Vec<Posterior> = (0..images.len()).map(|i| self.posterior(&scores, i, settings)).collect();
        let pair = pair.or_else(|| parted(&posteriors));
        let mut compared: Vec<Compared> = Vec::with_capacity(images.len());
        for (x, posterior) in images.iter().zip(posteriors) {
            let evidence = match pair {
                Some((a, b)) => Some(self.evidence(x, a, b, settings.tau)?),
                None => None,
            };
            let first = compared.first().and_then(|first| first.evidence.as_ref());
            let difference = first.zip(evidence.as_ref()).map(|(first, own)| first.less(own));
            compared.push(Compared { posterior, evidence, difference });
            events.report(Progress { done: compared.len(), total: images.len() })?;
        }
        Ok(Comparison { pair, images: compared })
    }

    fn has_density(&self, settings: &Settings) -> Result<()> {
        match settings.tau.get() {
            0.0 => Err(Error::input("at τ = 0 every class is a point, and no image has a density: choose a τ above 0")),
            _ => Ok(()),
        }
    }
}

/// The decision of the first and the next that differs, or else the two classes most probable there.
fn parted(posteriors: &[Posterior]) -> Option<(ClassId, ClassId)> {
    let first = posteriors.first()?;
    let other = posteriors.iter().map(|posterior| posterior.decision).find(|class| *class != first.decision);
    other.map_or_else(|| leaders(first), |other| Some((first.decision, other)))
}
