//! Pictures that a person shows to a world: files of any size, each brought into its shape, with a
//! record of what was done.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::data::{
    self, Dataset, Fit, Fitted, Frame, Ground, HeldNoise, HeldNoises, ImageFiles, InWorld, Input, Preview, Treatment,
    Way, border, fit_picture, images_in, read_picture, split_sheet,
};
use crate::error::{Error, Result};
use crate::flow::preprocess::Dequantisation;
use crate::oracle::noises::NoiseHeld;
use crate::oracle::world::{SampleSpec, Settings, World};
use crate::parallel;
use crate::units::Seed;

/// Samples whose borders say what this world's are like.
const SAMPLES: usize = 4;
/// Pictures of which a preview is kept.
const PREVIEWS: usize = 64;

/// What is to be done to several pictures.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Fits {
    /// To all of them.
    pub usual: Fit,
    /// To some, by their place, in place of that.
    pub own: BTreeMap<usize, Fit>,
}

impl Fits {
    /// The same for all.
    pub fn all(usual: Fit) -> Self {
        Self { usual, own: BTreeMap::new() }
    }

    /// What is to be done to picture `i`.
    pub fn of(&self, i: usize) -> Fit {
        self.own.get(&i).copied().unwrap_or(self.usual)
    }
}

/// How a picture came into a world.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Picture {
    /// What was asked for.
    pub fit: Fit,
    /// What was done.
    #[serde(flatten)]
    pub treatment: Treatment,
    /// The whole picture, small; of many pictures none.
    #[serde(skip)]
    pub preview: Option<Preview>,
}

impl Picture {
    /// The frame that was cut out, as a later fit may have it; nothing where all of it was taken.
    pub fn frame(&self) -> Option<Frame> {
        self.treatment.cropped.map(|cut| Frame { x: cut.x, y: cut.y, width: cut.width })
    }
}

/// What was read of files.
#[derive(Debug, Clone)]
pub struct Reading {
    /// The images.
    pub input: Input,
    /// How each came into the world's shape; empty where a dataset was read, whose images all have
    /// one size and are padded with zeros.
    pub pictures: Vec<Picture>,
    /// Names of images in world space; empty where they are numbered.
    pub ids: Vec<String>,
    /// What is to be said of images of another world, and of images that were not read.
    pub note: Option<String>,
    /// What is known of the noise that the levels of pixels hold already.
    pub noise: NoiseHeld,
}

impl Reading {
    /// With how its 8-bit pixels become real numbers, which the note says as far as it must be said: as it is asked for, else
    /// with the noise that they do not hold yet.
    ///
    /// # Errors
    /// When something is asked for, and there are no pixels.
    pub fn settled(self, asked: Option<Dequantisation>) -> Result<(Self, Dequantisation)> {
        if let (Input::World(_), Some(how)) = (&self.input, asked) {
            return Err(no_pixels(how));
        }
        let Self { input, pictures, ids, note, noise } = self;
        let (how, said) = noise.settled(asked, Dequantisation::default());
        Ok((Self { input, pictures, ids, note: together(note, said), noise: NoiseHeld::None }, how))
    }
}

/// The refusal of a dequantisation where images are no 8-bit pixels.
pub(super) fn no_pixels(how: Dequantisation) -> Error {
    Error::input(format!(
        "--dequantise {how} is of 8-bit pixels, and these images are in world space already: leave it out"
    ))
}

impl From<Input> for Reading {
    fn from(input: Input) -> Self {
        Self { input, pictures: Vec::new(), ids: Vec::new(), note: None, noise: NoiseHeld::None }
    }
}

/// What was done to pictures, in few words; nothing where each only got margins.
pub fn summary(pictures: &[Picture]) -> Option<String> {
    let count = |done: fn(&Treatment) -> bool| pictures.iter().filter(|picture| done(&picture.treatment)).count();
    let counts = [
        ("first frames", count(|done| done.first_frame)),
        ("brought to 8 bits", count(|done| done.bits.is_some())),
        ("on a background", count(|done| done.background.is_some())),
        ("turned", count(|done| done.turned.is_some())),
        ("cropped", count(|done| done.cropped.is_some())),
        ("scaled", count(|done| done.scaled.is_some())),
        ("turned to grey", count(|done| done.colour == data::Colour::ToGrey)),
        ("given colours", count(|done| done.colour == data::Colour::GreyInEach)),
        ("inverted", count(|done| done.inverted)),
    ];
    let done: Vec<String> = counts.iter().filter(|(_, n)| *n > 0).map(|(what, n)| format!("{n} {what}")).collect();
    (!done.is_empty()).then(|| {
        let plural = if pictures.len() == 1 { "" } else { "s" };
        format!("of {} picture{plural} {}", pictures.len(), done.join(", "))
    })
}

impl World {
    /// What pictures are made to look like: the shape of this world's images and the usual colour
    /// of their borders, found from a few samples once.
    ///
    /// # Errors
    /// When the device fails.
    pub fn ground(&self) -> Result<Ground> {
        if let Some(ground) = self.known_ground().get() {
            return Ok(*ground);
        }
        let settings = Settings::default_for(self.class_names().len());
        let indices: Vec<usize> = (0..SAMPLES).collect();
        let spec = SampleSpec::new(SAMPLES, Seed(0));
        let pieces = indices.chunks(self.batch()).map(|piece| self.sample_indices(&spec, &settings, piece));
        let mut pixels = Vec::new();
        for samples in pieces {
            samples?.iter().for_each(|sample| pixels.extend(self.flow().pixels().picture(&sample.x)));
        }
        let ground = Ground { shape: self.shape(), border: border(self.shape(), &pixels) };
        Ok(*self.known_ground().get_or_init(|| ground))
    }

    /// Reads files or a folder, of one with two splits the training images, which the note says. Pictures, and those in contact
    /// sheets, are brought into this world's shape one by one; 8-bit images of datasets are not mapped yet, and world-space tensors are taken as they are, pictures of an exported dataset as
    /// the values that its levels stand for. Labels of an exported dataset of another world count by class names alone.
    ///
    /// # Errors
    /// Names the file and the cause; also when the device fails that draws the samples for
    /// [`World::ground`].
    pub fn read_files(&self, paths: &[PathBuf], fits: &Fits) -> Result<Reading> {
        let [first, ..] = paths else { return Err(Error::input("no file given")) };
        for path in paths {
            path.metadata().map_err(|e| match e.kind() {
                io::ErrorKind::NotFound => Error::file(path, "there is no such file or folder"),
                _ => Error::io(path, e),
            })?;
        }
        let reading = self.read_training_part(first, paths, fits)?;
        let unread = if paths.len() == 1 { data::left_unread(first)? } else { None };
        Ok(Reading { note: together(unread, reading.note), ..reading })
    }

    /// Reads files, of one folder or archive with two splits the training images.
    fn read_training_part(&self, first: &Path, paths: &[PathBuf], fits: &Fits) -> Result<Reading> {
        let Some(ImageFiles { name, files, ids, labels, class_names }) = data::image_files(paths)? else {
            refuse_fit(first, fits)?;
            let InWorld { input, ids, note } = data::labelled_in_world(data::open(first)?, first, &self.home())?;
            return Ok(Reading { ids, note, ..Reading::from(input) });
        };
        // Files of class folders are images of a dataset, one each.
        let images = |file: &PathBuf| if labels.is_some() { 1 } else { images_in(file) };
        let counts: Vec<usize> = files.iter().map(images).collect();
        let total: usize = counts.iter().sum();
        if total != 1 && fits.usual.frame.is_some() {
            return Err(Error::input(format!("a frame is of one picture, and there are {total}")));
        }
        let ground = self.ground()?;
        let firsts = counts.iter().scan(0, |next, count| Some(std::mem::replace(next, *next + count)));
        let named: Vec<(usize, &PathBuf, &String)> =
            firsts.zip(files.iter().zip(&ids)).map(|(first, (file, id))| (first, file, id)).collect();
        let fitted = |at: usize| {
            let (first, file, id) = named[at];
            let fit_one = |(i, (id, bytes)): (usize, (String, Vec<u8>))| {
                let fit = fits.of(first + i);
                let Fitted { pixels, treatment, preview } = fit_picture(file, &bytes, &fit, &ground)?;
                let preview = (total <= PREVIEWS).then_some(preview);
                Ok((id, pixels, Picture { fit, treatment, preview }))
            };
            let bytes = read_picture(file)?;
            let held = HeldNoise::of_png(&bytes);
            let fitted: Result<Vec<Named>> =
                pictures_in(file, (id, bytes), labels.is_none())?.into_iter().enumerate().map(fit_one).collect();
            Ok((held, fitted?))
        };
        // Collected before looking at errors, so that the first bad file is the one reported.
        let fitted: Vec<Result<OfFile>> = parallel::map(named.len(), fitted);
        let (mut ids, mut pixels, mut pictures, mut said) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for of_file in fitted {
            let (held, images) = of_file?;
            for (id, of_one, picture) in images {
                said.push((held.clone(), picture.treatment.is_untouched()));
                ids.push(id);
                pixels.extend(of_one);
                pictures.push(picture);
            }
        }
        let noises = HeldNoises::of(said);
        let dataset = Dataset { name, shape: ground.shape, pixels, labels, class_names, ids, noises };
        Ok(self.reading_of(dataset, pictures, paths))
    }

    /// Pictures that were read, with what is known of their noise.
    fn reading_of(&self, images: Dataset, pictures: Vec<Picture>, paths: &[PathBuf]) -> Reading {
        let noise = self.noise_held(&images.noises, paths);
        Reading { pictures, noise, ..Reading::from(Input::Pixels(images)) }
    }

    /// Brings one picture that has no file into this world's shape; `bytes` is what its file would
    /// hold.
    ///
    /// # Errors
    /// As [`World::read_files`].
    pub fn read_pasted(&self, name: &str, bytes: &[u8], fit: Fit) -> Result<Reading> {
        let ground = self.ground()?;
        let Fitted { pixels, treatment, preview } = fit_picture(Path::new(name), bytes, &fit, &ground)?;
        let (name, ids) = (name.to_owned(), vec![name.to_owned()]);
        let noises = HeldNoises::of([(HeldNoise::of_png(bytes), treatment.is_untouched())]);
        let dataset = Dataset { name, shape: ground.shape, pixels, labels: None, class_names: Vec::new(), ids, noises };
        Ok(self.reading_of(dataset, vec![Picture { fit, treatment, preview: Some(preview) }], &[]))
    }
}

/// The name of a picture, its pixels in the world's shape, and how it got there.
type Named = (String, Vec<u8>, Picture);

/// Two notes as one.
pub(super) fn together(one: Option<String>, other: Option<String>) -> Option<String> {
    [one, other].into_iter().flatten().reduce(|one, other| format!("{one}; {other}"))
}

/// What a file says of noise, and its pictures.
type OfFile = (Option<HeldNoise>, Vec<Named>);

/// The pictures in a file of that name and content, each with its name: those of a contact sheet, or the file itself.
fn pictures_in(file: &Path, (id, bytes): (&str, Vec<u8>), sheets: bool) -> Result<Vec<(String, Vec<u8>)>> {
    let images = if sheets { split_sheet(file, &bytes)? } else { Vec::new() };
    if images.is_empty() {
        return Ok(vec![(id.to_owned(), bytes)]);
    }
    let numbered = images.into_iter().enumerate();
    Ok(numbered.map(|(i, image)| (format!("{id}, image {i}"), image)).collect())
}

/// Datasets are padded, whatever their images: another treatment is not carried out in silence.
pub(super) fn refuse_fit(path: &Path, fits: &Fits) -> Result<()> {
    let asked = fits.usual;
    if asked.invert || asked.frame.is_some() || matches!(asked.way, Way::Pad | Way::Stretch) {
        let cause =
            "is a dataset and no picture: its images are padded with zeros, neither scaled, cropped nor inverted";
        return Err(Error::file(path, cause));
    }
    Ok(())
}
