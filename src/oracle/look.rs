//! Looks: pictures of a world's latents that need not be samples of the world (guided, denoised).
//! They are for the eye only and have no posterior.

use serde::Serialize;

use crate::error::{Error, Result};
use crate::events::{Events, Progress};
use crate::flow::preprocess::Preprocessing;
use crate::flow::sampling::SamplerOptions;
use crate::flow::{Architecture, Decoding, GuidedFlow};
use crate::oracle::export::{Pictures, Target, asked, drawn_anew, passes};
use crate::oracle::numbering::of_sample;
use crate::oracle::world::{Sample, SampleSpec, Settings, World};
use crate::units::ClassId;

/// Which looks a flow can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Looks {
    /// Classifier-free guidance: the flow knows passes without a class.
    pub guidance: bool,
    /// Tweedie's denoising: its world holds images under Gaussian noise.
    pub denoise: bool,
}

impl Looks {
    /// Those of an architecture and its preprocessing.
    pub fn of(architecture: &Architecture, pixels: Preprocessing) -> Self {
        match architecture {
            Architecture::TarFlow(config) if !config.shared_map => Self::under(config.guides(), pixels),
            Architecture::Glow(_) | Architecture::TarFlow(_) => Self { guidance: false, denoise: false },
        }
    }

    /// Those of a flow that may know passes without a class.
    fn under(guidance: bool, pixels: Preprocessing) -> Self {
        Self { guidance, denoise: matches!(pixels, Preprocessing::Gaussian { std } if std > 0.0) }
    }

    /// Whether there is any.
    pub fn any(self) -> bool {
        self.guidance || self.denoise
    }
}

impl World {
    /// The flow that can have this look.
    fn can_look(&self, look: &SamplerOptions) -> Result<&dyn GuidedFlow> {
        let none = "this world's flow draws nothing but samples: guidance and denoising need a TarFlow whose map depends on \
                    the class";
        let flow = self.flow().guided().ok_or_else(|| Error::input(none))?;
        let looks = Looks::under(flow.guides(), flow.pixels());
        if look.guidance.is_some() && !looks.guidance {
            return Err(Error::input(
                "guidance needs a flow of several classes that also knows passes without a class",
            ));
        }
        if look.denoise && !looks.denoise {
            return Err(Error::input("denoising needs a world of images under Gaussian noise"));
        }
        if let Some(guidance) = look.guidance {
            let [scale, temperature] = [guidance.scale, guidance.attention_temperature];
            if !(scale > 0.0 && scale.is_finite() && temperature > 0.0 && temperature.is_finite()) {
                return Err(Error::input("guidance and attention temperature must be numbers > 0"));
            }
        }
        Ok(flow)
    }

    /// 8-bit pictures of samples with a look, one after the other. The samples themselves stay what
    /// they are.
    ///
    /// # Errors
    /// When the world cannot have the look, the device fails, or the caller stops.
    pub fn pictures_with(
        &self,
        samples: &[&Sample],
        spec: &SampleSpec,
        settings: &Settings,
        look: &SamplerOptions,
        events: &mut dyn Events<Decoding>,
    ) -> Result<Vec<Vec<u8>>> {
        let flow = self.can_look(look)?;
        let dims = self.shape().dims();
        let x = if look.guidance.is_none() {
            // What is denoised is the sample itself.
            let classes: Vec<ClassId> = samples.iter().map(|sample| sample.source).collect();
            let x: Vec<f32> = samples.iter().flat_map(|sample| sample.x.iter().copied()).collect();
            flow.denoise(&x, &classes)?
        } else {
            let indices: Vec<usize> = samples.iter().map(|sample| sample.index).collect();
            let (classes, noise) = self.latents_of(spec, settings, &indices)?;
            let made = flow.decode_with(&noise, &classes, settings.tau, look, events);
            made.map_err(|error| of_sample(error, &indices, settings.tau))?
        };
        Ok(x.chunks(dims).map(|x| self.flow().pixels().picture(x)).collect())
    }
}

/// Writes pictures with a look: a contact sheet (`.png`) or a folder by class. Never numbers: what
/// has left the world has no posterior. Returns how many.
///
/// # Errors
/// For an `.npz`, naming the file; when the world cannot have the look; [`Error::Cancelled`].
pub fn save_pictures_with<'a>(
    world: &World,
    spec: &SampleSpec,
    indices: &[usize],
    settings: &Settings,
    look: &SamplerOptions,
    target: impl Into<Target<'a>>,
    events: &mut dyn Events<Progress>,
) -> Result<usize> {
    let target = target.into();
    let path = target.path;
    let ending = path.extension().and_then(|e| e.to_str()).map(str::to_ascii_lowercase);
    if ending.as_deref() == Some("npz") {
        return Err(Error::file(
            path,
            "an .npz holds samples with their exact posteriors; guided or denoised pictures have left the world and have none. \
             Write a .png or a folder, or switch guidance and denoising off",
        ));
    }
    let flow = world.can_look(look)?;
    let (dims, total, mut done) = (world.shape().dims(), asked(spec, indices), 0);
    // What is denoised holds no noise.
    let held = if look.denoise { None } else { world.held_noise() };
    let mut pictures = Pictures::open(world, target, total, held)?;
    for piece in passes(spec, indices, world.batch()) {
        let (classes, noise) = world.latents_of(spec, settings, &piece)?;
        let mut watch = |_: Decoding| events.emit(Progress { done, total });
        let made = flow.decode_with(&noise, &classes, settings.tau, look, &mut watch);
        let x = made.map_err(|error| of_sample(error, &piece, settings.tau))?;
        for ((x, index), class) in x.chunks(dims).zip(&piece).zip(&classes) {
            pictures.add(*class, *index, world.flow().pixels().picture(x)).map_err(drawn_anew)?;
        }
        done += piece.len();
        events.report(Progress { done, total })?;
    }
    pictures.finish().map_err(drawn_anew)?;
    Ok(total)
}
