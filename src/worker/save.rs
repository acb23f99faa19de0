//! Task: samples or pictures are written to files, each with its provenance.

use std::path::PathBuf;

use crate::data::check_disk_space;
use crate::error::Result;
use crate::flow::sampling::SamplerOptions;
use crate::oracle::export::{Target, asked, least_bytes, save_samples};
use crate::oracle::look::save_pictures_with;
use crate::oracle::provenance::{Machine, SAMPLES, write_provenance};
use crate::oracle::rounding::Rounding;
use crate::oracle::world::{SampleSpec, Settings};
use crate::task::{Done, OpenOracle, Task, TaskContext};

/// Writes samples to a `.npz` file, a `.png` contact sheet or a folder of PNGs. Pictures with a
/// look are never numbers.
#[derive(Debug, Clone, PartialEq)]
pub struct SaveSamples {
    /// Which samples.
    pub spec: SampleSpec,
    /// Running numbers of those to write; all of `spec` where empty.
    pub indices: Vec<usize>,
    /// The world's knobs.
    pub settings: Settings,
    /// How the pictures of these latents are made, where they are not to be samples of the world.
    pub look: Option<SamplerOptions>,
    /// Whether one picture, too, becomes a contact sheet, enlarged for the eye.
    pub sheet: bool,
    /// Where to.
    pub path: PathBuf,
}

/// So many samples at most are saved soon.
const FEW: usize = 64;

/// What was saved.
#[derive(Debug, Clone)]
pub enum Saved {
    /// Samples, and what rounding x to 32 bits does to their posteriors.
    Samples(Rounding),
    /// So many pictures with a look.
    Pictures(usize),
}

impl Task for SaveSamples {
    type Event = ();
    type Live = ();
    type Report = Saved;

    fn title(&self) -> String {
        format!("Save {}", self.path.display())
    }

    fn is_short(&self) -> bool {
        asked(&self.spec, &self.indices) <= FEW
    }

    fn run(&self, cx: &mut TaskContext<'_, ()>) -> Result<Done<Saved>> {
        let OpenOracle { info, world, .. } = cx.oracle()?;
        let Self { spec, indices, settings, look, sheet, path } = self;
        check_disk_space(path, least_bytes(world, asked(spec, indices), path))?;
        let machine = Machine::with(&cx.chosen.report.used);
        let (saved, made, sentence) = match look {
            None => {
                let saved = save_samples(world, spec, indices, settings, Target { path, sheet: *sheet }, cx)?;
                let provenance = info.of_samples(spec, indices, settings, &saved, path);
                let carried = match saved.rounded {
                    0 => String::new(),
                    n => format!("; the 32-bit x of {n} does not carry their posterior to 0.001"),
                };
                let made = write_provenance(path, SAMPLES, provenance, &machine, cx)?;
                let sentence = format!("{} samples are in {}{carried}", saved.images, path.display());
                (Saved::Samples(saved), made, sentence)
            }
            Some(look) => {
                let n = save_pictures_with(world, spec, indices, settings, look, Target { path, sheet: *sheet }, cx)?;
                let provenance = info.of_pictures(spec, indices, settings, look);
                let made = write_provenance(path, "pictures with a look", provenance, &machine, cx)?;
                let left = "illustrative: they have left the world";
                (Saved::Pictures(n), made, format!("{n} pictures ({left}) are in {}", path.display()))
            }
        };
        Ok(Done::new(saved, sentence).made([made]))
    }
}
