//! Provenance of files made from a world: a badge and a chain in a file next to each.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::data::{read_json, sha256_of_file, write_json};
use crate::device::{Candidate, DeviceChoice, MatmulPrecision};
use crate::error::Result;
use crate::events::{Events, Progress};
use crate::flow::sampling::SamplerOptions;
use crate::kernels::instruction_set;
use crate::oracle::folder::OracleInfo;
use crate::oracle::rounding::Rounding;
use crate::oracle::world::{SampleSpec, Settings};
use crate::provenance::{Badge, Made, Provenance};

/// Pictures are clipped and have 8 bits.
const EIGHT_BITS: &str = "clipped and rounded to 8 bits, whose posterior is another one";

/// Name of the record in a folder.
pub const FOLDER: &str = "provenance.json";
/// What a record calls samples of a world.
pub const SAMPLES: &str = "samples";
/// The link of a chain that names a world.
pub const WEIGHTS: &str = "weights SHA-256";
/// That names its τ.
pub const TAU: &str = "τ";
/// That names its T.
pub const SMOOTHING: &str = "T";
/// That names its class prior.
pub const PRIOR: &str = "class prior π";
/// That names its label noise, where there is any.
pub const LABEL_NOISE: &str = "label noise";

/// What computed a file: the same command gives the same bytes for the same of these.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Machine {
    /// `cpu`, or name and driver of a device.
    pub device: String,
    /// The instruction set of the host's kernels, whatever the device.
    pub instructions: &'static str,
}

impl Machine {
    /// This machine with a device of it.
    pub fn with(device: &Candidate) -> Self {
        match device.choice {
            DeviceChoice::Cpu => Self::alone(),
            _ => Self { device: device.label(), ..Self::alone() },
        }
    }

    /// The processor of this machine.
    pub fn alone() -> Self {
        Self { device: DeviceChoice::Cpu.to_string(), instructions: instruction_set() }
    }
}

/// The content of the file next to it.
#[derive(Serialize)]
struct Beside<'a> {
    #[serde(flatten)]
    made: &'a Made,
    #[serde(flatten)]
    machine: &'a Machine,
    /// Of the file; none of a folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    sha256: Option<String>,
}

/// What is read of a record beside samples.
#[derive(Debug, Deserialize)]
pub struct Record {
    what: String,
    chain: Vec<(String, String)>,
    /// SHA-256 of the file that it is beside; none of a folder.
    pub sha256: Option<String>,
    /// Where it is.
    #[serde(skip)]
    pub place: PathBuf,
    /// The file or folder that it is of.
    #[serde(skip)]
    pub of: PathBuf,
}

impl Record {
    /// The record that calls a file or folder samples of the world of these weights: its own or, of pictures, that of a
    /// folder which they are in. One that cannot be read is none.
    pub fn of_samples(path: &Path, weights_sha256: &str) -> Option<Self> {
        // A folder, a picture, or a picture or folder of a class.
        let folders = path.ancestors().skip(1).take(2).filter(|_| !is_npz(path));
        let own = std::iter::once((path, place(path)));
        let mut places = own.chain(folders.map(|folder| (folder, folder.join(FOLDER))));
        places.find_map(|(of, place)| {
            let record: Self = read_json(&place).ok()??;
            let is_of_it = record.what == SAMPLES && record.said(WEIGHTS) == Some(weights_sha256);
            is_of_it.then(|| Self { place, of: of.to_owned(), ..record })
        })
    }

    /// What the link of this name in its chain says.
    pub fn said(&self, name: &str) -> Option<&str> {
        self.chain.iter().find(|(link, _)| link == name).map(|(_, value)| value.as_str())
    }
}

impl OracleInfo {
    /// The chain of anything computed in this world at these knobs.
    pub fn provenance(&self, badge: Badge, settings: &Settings) -> Provenance {
        let provenance = Provenance::new(badge)
            .with("oracle", &self.name)
            .with(WEIGHTS, &self.weights_sha256)
            .with(TAU, settings.tau.get().to_string())
            .with(SMOOTHING, settings.smoothing.get().to_string())
            .with(PRIOR, settings.prior.describe());
        match &settings.label_noise {
            Some(noise) => provenance.with(LABEL_NOISE, noise.describe()),
            None => provenance,
        }
    }

    fn of_latents(&self, spec: &SampleSpec, indices: &[usize], settings: &Settings) -> Provenance {
        let which = match indices {
            [] => format!("0 to {}", spec.n.saturating_sub(1)),
            some => format!("{some:?}"),
        };
        let class = spec.class.map_or_else(|| "drawn from π".to_owned(), |class| self.class_names[class].clone());
        self.provenance(Badge::Exact, settings)
            .with("seed", spec.seed.0.to_string())
            .with("classes", class)
            .with("running numbers", which)
    }

    /// What is behind samples in a file: exact in an `.npz`, pictures for the eye otherwise.
    pub fn of_samples(
        &self,
        spec: &SampleSpec,
        indices: &[usize],
        settings: &Settings,
        saved: &Rounding,
        path: &Path,
    ) -> Provenance {
        let provenance = of_rounded(self.of_latents(spec, indices, settings), saved);
        let provenance = match spec.products {
            MatmulPrecision::F32 => provenance,
            narrow => {
                let drawn = format!("{}; log p(x|y) of these very images in 32 bits", narrow.label());
                provenance.with("products that drew them", drawn)
            }
        };
        if is_npz(path) { provenance } else { provenance.for_the_eye(EIGHT_BITS) }
    }

    /// What is behind the images that the latents of a file became: none is drawn, and no seed has a part in them.
    ///
    /// # Errors
    /// Names the file of the latents if it cannot be read; [`Error::Cancelled`](crate::error::Error::Cancelled).
    pub fn of_given_latents(
        &self,
        latents: &Path,
        settings: &Settings,
        saved: &Rounding,
        events: &mut dyn Events<Progress>,
    ) -> Result<Provenance> {
        let provenance = self
            .provenance(Badge::Exact, settings)
            .with("images", saved.images.to_string())
            .with("latents", latents.display().to_string())
            .with("latents SHA-256", sha256_of_file(latents, events)?)
            .with("classes", "as given");
        Ok(of_rounded(provenance, saved))
    }

    /// What is behind pictures with a look.
    pub fn of_pictures(
        &self,
        spec: &SampleSpec,
        indices: &[usize],
        settings: &Settings,
        look: &SamplerOptions,
    ) -> Provenance {
        let mut provenance = self.of_latents(spec, indices, settings);
        if let Some(guidance) = &look.guidance {
            let annealed = if guidance.annealed { ", annealed" } else { "" };
            let value = format!(
                "{} of {:?}{annealed}, attention {}",
                guidance.scale, guidance.what, guidance.attention_temperature
            );
            provenance = provenance.with("guidance", value);
        }
        if look.denoise {
            provenance = provenance.with("denoising", "one Tweedie step");
        }
        provenance.for_the_eye("pictures with a look have left the world, and have no posterior")
    }

    /// What is behind the points of a walk in a file.
    pub fn of_walk(&self, settings: &Settings, path: &Path) -> Provenance {
        let provenance = self.provenance(Badge::Exact, settings).with("points", "in order, the 50/50 point last");
        if is_npz(path) { provenance } else { provenance.for_the_eye(EIGHT_BITS) }
    }
}

/// The chain of images whose x is rounded to 32 bits.
fn of_rounded(provenance: Provenance, saved: &Rounding) -> Provenance {
    let provenance = provenance.with("precision", "sums over dimensions in 64 bits, x rounded to 32 bits");
    match saved.describe() {
        Some(caveat) => provenance.with("rounding", caveat),
        None => provenance,
    }
}

fn is_npz(path: &Path) -> bool {
    path.extension().is_some_and(|e| e.eq_ignore_ascii_case("npz"))
}

/// Where [`write_provenance`] writes: `FILE.provenance.json` beside a file, `provenance.json` in a
/// folder.
pub fn place(path: &Path) -> PathBuf {
    if path.is_dir() {
        return path.join(FOLDER);
    }
    let mut name = path.as_os_str().to_owned();
    name.push(".provenance.json");
    PathBuf::from(name)
}

/// Writes the provenance of a file or folder next to it or into it, with device, instruction set
/// and the file's SHA-256. Returns the line for the ledger.
///
/// # Errors
/// Names the file that cannot be read or written; [`Error::Cancelled`] while a large one is hashed.
pub fn write_provenance(
    path: &Path,
    what: &str,
    provenance: Provenance,
    machine: &Machine,
    events: &mut dyn Events<Progress>,
) -> Result<Made> {
    let made = Made { what: what.to_owned(), place: Some(path.display().to_string()), provenance };
    let hash = path.is_file().then(|| sha256_of_file(path, events)).transpose()?;
    let place = place(path);
    write_json(&place, &Beside { made: &made, machine, sha256: hash })?;
    Ok(made)
}
