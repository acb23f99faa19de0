//! Provenance of files made from a world: a badge and a chain in a file next to each.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::data::{Home, image_files, read_json, sha256_of_file, world_id, write_json};
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
/// That says how 8-bit pixels enter it, in a word, where no record of a training does ([`OracleInfo::assumed_pixels`]).
pub const PIXELS: &str = "pixels";
/// That names its τ.
pub const TAU: &str = "τ";
/// That names its T.
pub const SMOOTHING: &str = "T";
/// That names its class prior.
pub const PRIOR: &str = "class prior π";
/// That names its label noise, where there is any.
pub const LABEL_NOISE: &str = "label noise";
/// That numbers samples.
const NUMBERS: &str = "running numbers";
/// That counts those of given latents.
const IMAGES: &str = "images";

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
    /// Pictures among those asked about that it does not name: put into its folder by others.
    #[serde(skip)]
    pub strangers: usize,
}

impl Record {
    /// The record that calls a file or folder samples of the world `home`: its own or, of pictures, that of a
    /// folder which they are in, if it names any of them. One that cannot be read is none.
    pub fn of_samples(path: &Path, home: &Home<'_>) -> Option<Self> {
        // A folder, a picture, or a picture or folder of a class.
        let folders = path.ancestors().skip(1).take(2).filter(|_| !is_npz(path));
        let own = std::iter::once((path, place(path)));
        let mut places = own.chain(folders.map(|folder| (folder, folder.join(FOLDER))));
        places.find_map(|(of, place)| {
            let record: Self = read_json(&place).ok()??;
            let is_of_it = record.what == SAMPLES && record.world().is_some_and(|world| world == home.id());
            let record = Self { place, of: of.to_owned(), ..record };
            if is_of_it { record.about(path) } else { None }
        })
    }

    /// With the pictures at `path` that it does not name counted. `None` where it is of their folder and names none of them.
    fn about(self, path: &Path) -> Option<Self> {
        let listed = |folder: &Path| image_files(&[folder.to_owned()]).ok()?.map(|found| found.files);
        let pictures = if path.is_dir() { listed(path) } else { Some(vec![path.to_owned()]) };
        // What is read of a folder in another way is not told apart.
        let Some(pictures) = pictures.filter(|_| !self.of.is_file()) else { return Some(self) };
        let strangers = pictures.iter().filter(|picture| !self.names(picture)).count();
        (strangers < pictures.len()).then_some(Self { strangers, ..self })
    }

    /// Whether it names a picture of its folder: one in the folder of a class that is called by a running number of its list.
    /// A record has no hash of pictures, so that another picture of such a name is taken for a sample.
    fn names(&self, picture: &Path) -> bool {
        let in_a_class = picture.strip_prefix(&self.of).is_ok_and(|within| within.components().count() == 2);
        let stem = picture.file_stem().and_then(|stem| stem.to_str()).filter(|_| in_a_class).unwrap_or_default();
        stem.parse::<usize>().is_ok_and(|number| stem == picture_stem(number) && self.lists(number))
    }

    /// Whether samples of this running number are among those it is of; where it does not say which, all are.
    fn lists(&self, number: usize) -> bool {
        let Some(numbers) = self.said(NUMBERS) else {
            let count = self.said(IMAGES).and_then(|count| count.parse::<usize>().ok());
            return count.is_none_or(|count| number < count);
        };
        match numbers.strip_prefix("0 to ") {
            Some(last) => last.parse::<usize>().is_ok_and(|last| number <= last),
            None => serde_json::from_slice::<Vec<usize>>(numbers.as_bytes()).is_ok_and(|all| all.contains(&number)),
        }
    }

    /// What tells the world that it names from others (`OracleInfo::world_id`).
    fn world(&self) -> Option<String> {
        Some(world_id(self.said(WEIGHTS)?, self.said(PIXELS)))
    }

    /// What the link of this name in its chain says.
    pub fn said(&self, name: &str) -> Option<&str> {
        self.chain.iter().find(|(link, _)| link == name).map(|(_, value)| value.as_str())
    }
}

impl OracleInfo {
    /// The chain of anything computed in this world at these knobs.
    pub fn provenance(&self, badge: Badge, settings: &Settings) -> Provenance {
        let provenance = Provenance::new(badge).with("oracle", &self.name).with(WEIGHTS, &self.weights_sha256);
        let provenance = match self.assumed_pixels() {
            Some(pixels) => provenance.with(PIXELS, pixels),
            None => provenance,
        }
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
            .with(NUMBERS, which)
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
            .with(IMAGES, saved.images.to_string())
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

/// Name of the picture of a sample in the folder of its class, without the ending.
pub(super) fn picture_stem(number: usize) -> String {
    format!("{number:06}")
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{ImageShape, write_png};
    use crate::oracle::library;

    /// A folder of pictures with a record that has these links beside that of the weights.
    fn folder(links: &[(&str, &str)], pictures: &[&str]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let chain: Vec<_> = [(WEIGHTS, "w")].iter().chain(links).copied().collect();
        write_json(&folder.path().join(FOLDER), &serde_json::json!({ "what": SAMPLES, "chain": chain })).unwrap();
        let shape = ImageShape { channels: 1, height: 2, width: 2 };
        for picture in pictures.iter().map(|name| folder.path().join(name)) {
            std::fs::create_dir_all(picture.parent().unwrap()).unwrap();
            write_png(&picture, shape, &[0, 9, 9, 0]).unwrap();
        }
        folder
    }

    fn home(pixels: &str, assumed: bool) -> Home<'static> {
        Home { weights_sha256: "w", pixels: pixels.into(), assumed, pixel_range: [0.0, 1.0], class_names: &[] }
    }

    fn strangers(path: &Path) -> Option<usize> {
        Record::of_samples(path, &home("uniform", false)).map(|record| record.strangers)
    }

    #[test]
    fn samples_of_the_same_weights_under_other_pixels_are_of_another_world() {
        let homes = [home("gaussian-0.05", false), home("gaussian-0.05", true), home("uniform", true)];
        let known = |links: &[(&str, &str)]| {
            let folder = folder(links, &["a/000000.png"]);
            homes.each_ref().map(|home| Record::of_samples(folder.path(), home).is_some())
        };
        assert_eq!(known(&[]), [true, false, false]);
        assert_eq!(known(&[(PIXELS, "gaussian-0.05")]), [false, true, false]);
        assert_eq!(known(&[(PIXELS, "uniform")]), [false, false, true]);
        // What is written of a world is what is read of it.
        let recorded = library::find("mnist").unwrap().info().unwrap();
        let unrecorded = OracleInfo { training: None, ..recorded.clone() };
        for info in [recorded, unrecorded] {
            let provenance = info.provenance(Badge::Exact, &Settings::default_for(10));
            let made = Made { what: SAMPLES.into(), place: None, provenance };
            let record: Record = serde_json::from_value(serde_json::to_value(&made).unwrap()).unwrap();
            assert_eq!((record.world(), info.home().id()), (Some(info.world_id()), info.world_id()));
        }
    }

    #[test]
    fn a_picture_that_was_put_into_a_folder_of_samples_is_none_of_them() {
        let samples = ["a/000000.png", "a/000002.png", "b/000001.png"];
        let folder = folder(&[(NUMBERS, "0 to 2")], &samples);
        let at = |name: &str| folder.path().join(name);
        assert_eq!(
            (strangers(folder.path()), strangers(&at("a")), strangers(&at(samples[1]))),
            (Some(0), Some(0), Some(0))
        );
        let others = ["a/cat.png", "a/000003.png", "b/1.png"];
        for other in others {
            std::fs::copy(at(samples[0]), at(other)).unwrap();
            assert_eq!(strangers(&at(other)), None, "{other}");
        }
        assert_eq!((strangers(folder.path()), strangers(&at("a")), strangers(&at("b"))), (Some(3), Some(2), Some(1)));
        // Beside the folders of classes there is no sample.
        std::fs::copy(at(samples[0]), at("000000.png")).unwrap();
        assert_eq!(strangers(&at("000000.png")), None);
        for sample in samples {
            std::fs::remove_file(at(sample)).unwrap();
        }
        assert_eq!((strangers(&at("a")), strangers(&at("b"))), (None, None));
        assert!(strangers(&at(others[0])).is_none());
    }

    #[test]
    fn which_samples_a_record_names_is_as_it_says() {
        let pictures = ["a/000004.png", "a/000007.png"];
        let one = |links: &[(&str, &str)]| {
            let folder = folder(links, &pictures);
            pictures.map(|picture| strangers(&folder.path().join(picture)).is_some())
        };
        assert_eq!(one(&[(NUMBERS, "[7, 12]")]), [false, true]);
        assert_eq!(one(&[(IMAGES, "7")]), [true, false]);
        assert_eq!(one(&[]), [true, true], "it does not say which");
    }
}
