//! Image files, alone or in one folder per class, read in the order of torchvision's `ImageFolder`.
//!
//! Classes are the subfolders, sorted by name; within a class, files come in the order of
//! `sorted(os.walk(…, followlinks=True))` with sorted names, so labels and running numbers agree
//! with torchvision. Files with other extensions and images beside the class folders are ignored.
//! Beyond torchvision: `.gif` (first frame), a flat folder without classes, and classes without images in an exported dataset.
//!
//! Pixels are as PIL's `convert` gives them: transparency is dropped (not blended), palettes are
//! resolved, 16-bit values scaled to 8, EXIF rotation is ignored. The dataset has 1 channel when
//! every file is stored as grey, and 3 when one file is stored in colour.
//!
//! JPEG decoders differ: against libjpeg-turbo (Pillow) on the 10,000 CIFAR-10 test images as JPEG,
//! 22 % of the values differ, by 0.3 levels of 255 on average over all values and by 5 at most.

use std::path::{Path, PathBuf};

use image::ColorType;
use image::imageops::FilterType;

use super::decode::{Decoded, decoded};
use super::exported::is_exported_class;
use super::held_noise::{HeldNoise, HeldNoises};
use super::losses::Losses;
use super::pad::repeat_grey;
use super::picture::read_picture;
use super::reader::Reader;
use super::source::{entries, file_name};
use super::{Dataset, ImageShape, Input, Split};
use crate::error::{Error, Result};
use crate::parallel;

/// Extensions of image files, in lower case.
const EXTENSIONS: [&str; 10] = ["png", "jpg", "jpeg", "bmp", "gif", "webp", "ppm", "pgm", "tif", "tiff"];
/// Images decoded in parallel at a time; bounds the memory beside the dataset.
const CHUNK: usize = 512;

/// Returns whether the name ends like an image's, in upper or lower case.
pub fn is_image_name(path: &Path) -> bool {
    path.extension().is_some_and(|ext| {
        let ext = ext.to_string_lossy().to_ascii_lowercase();
        EXTENSIONS.contains(&ext.as_str())
    })
}

/// The format, as [`super::open`] knows it.
pub(super) struct Images;

impl Reader for Images {
    fn words(&self) -> &'static str {
        "images (PNG, JPEG, BMP, GIF, WebP, PPM, PGM, TIFF)"
    }

    fn is_named(&self, name: &str) -> bool {
        is_image_name(Path::new(name))
    }

    fn begins(&self, _: &Path, start: &[u8]) -> Result<bool> {
        Ok(image::guess_format(start).is_ok())
    }

    /// The subfolder of a split. A lone `train` among other folders is a class: subfolders are
    /// splits when a training and a test one are there, or when there are no others.
    fn files_of(&self, _: &Path, paths: &[PathBuf], split: Split) -> Result<Vec<PathBuf>> {
        let folders: Vec<(String, &PathBuf)> =
            paths.iter().filter(|path| path.is_dir()).map(|path| (file_name(path), path)).collect();
        let named = |name: &str| folders.iter().find(|(folder, _)| folder == name).map(|(_, path)| (*path).clone());
        let train = named("train");
        let test = named("test").or_else(|| named("val"));
        let no_others = folders.iter().all(|(name, _)| ["train", "test", "val"].contains(&name.as_str()));
        let both = train.is_some() && test.is_some();
        let found = match split {
            Split::Train => train,
            Split::Test => test,
        };
        Ok(Vec::from_iter(found.filter(|_| no_others || both)))
    }

    fn read(&self, files: &[PathBuf], _: Split, max_side: Option<usize>) -> Result<Input> {
        match files {
            [folder] if folder.is_dir() => read_folder(folder, max_side),
            files => read_image_files(files, max_side),
        }
        .map(Input::Pixels)
    }
}

/// Reads `root/<class>/…/*.png` (and other formats) as a labelled dataset, a folder without
/// subfolders as an unlabelled one. Ids are paths relative to `root`. All images have the same
/// size.
///
/// # Errors
/// Names the entry: an empty folder, a class without images (but of an exported dataset), a file that is no image, the first
/// file of another size, a symbolic link that leads back to a folder around it.
pub fn read_folder(root: &Path, max_side: Option<usize>) -> Result<Dataset> {
    let ImageFiles { name, files, ids, labels, class_names } = list_folder(root)?;
    Ok(Dataset { name, labels, class_names, ids, ..read_image_files(&files, max_side)? })
}

/// Image files that are not read yet.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ImageFiles {
    /// What to call them together.
    pub name: String,
    /// Where they lie.
    pub files: Vec<PathBuf>,
    /// A name for each.
    pub ids: Vec<String>,
    /// One class per file; `None` where there are no class folders.
    pub labels: Option<Vec<usize>>,
    /// Names of the class folders.
    pub class_names: Vec<String>,
}

impl ImageFiles {
    /// Files without classes, called as they are.
    pub(super) fn of(files: &[PathBuf]) -> Self {
        let ids: Vec<String> = files.iter().map(|file| file_name(file)).collect();
        let name = ids.first().cloned().unwrap_or_default();
        Self { name, files: files.to_vec(), ids, ..Self::default() }
    }
}

/// The image files of a folder, with the classes of its subfolders.
///
/// # Errors
/// As [`read_folder`], what is in the files aside.
pub(super) fn list_folder(root: &Path) -> Result<ImageFiles> {
    let mut classes = Vec::new();
    let mut loose = Vec::new();
    for path in entries(root)? {
        if path.is_dir() {
            classes.push(path);
        } else if is_image_name(&path) {
            loose.push(path);
        }
    }
    if classes.is_empty() && loose.is_empty() {
        return Err(no_images(root));
    }
    let (files, labels) = match classes.is_empty() {
        true => (loose, None),
        false => labelled_files(root, &classes).map(|(files, labels)| (files, Some(labels)))?,
    };
    if files.is_empty() {
        return Err(no_images(root));
    }
    let relative = |file: &PathBuf| file.strip_prefix(root).unwrap_or(file).to_string_lossy().into_owned();
    let ids = files.iter().map(relative).collect();
    let class_names = classes.iter().map(|class| file_name(class)).collect();
    Ok(ImageFiles { name: file_name(root), files, ids, labels, class_names })
}

fn no_images(folder: &Path) -> Error {
    Error::file(folder, format!("holds no images (*.{})", EXTENSIONS.join(", *.")))
}

/// The files of all classes in order, and their labels. Of an exported dataset a class may have none.
fn labelled_files(root: &Path, classes: &[PathBuf]) -> Result<(Vec<PathBuf>, Vec<usize>)> {
    let (mut files, mut labels) = (Vec::new(), Vec::new());
    for (label, class) in classes.iter().enumerate() {
        let before = files.len();
        let mut folders = Vec::new();
        walk(class, &mut Vec::new(), &mut folders)?;
        folders.sort_by(|a, b| a.as_os_str().as_encoded_bytes().cmp(b.as_os_str().as_encoded_bytes()));
        for folder in folders {
            let images = entries(&folder)?.into_iter().filter(|path| !path.is_dir() && is_image_name(path));
            files.extend(images);
        }
        if files.len() == before && !is_exported_class(root, &file_name(class)) {
            return Err(Error::file(
                class,
                format!("holds no images (*.{}), and every folder of a dataset is a class", EXTENSIONS.join(", *.")),
            ));
        }
        labels.resize(files.len(), label);
    }
    Ok((files, labels))
}

/// Collects `folder` and all folders below. `around` has the real paths of those above.
fn walk(folder: &Path, around: &mut Vec<PathBuf>, found: &mut Vec<PathBuf>) -> Result<()> {
    let real = folder.canonicalize().map_err(|e| Error::io(folder, e))?;
    if around.contains(&real) {
        return Err(Error::file(folder, format!("leads back to {}, which it lies in", real.display())));
    }
    around.push(real);
    found.push(folder.to_owned());
    for path in entries(folder)? {
        if path.is_dir() {
            walk(&path, around, found)?;
        }
    }
    around.pop();
    Ok(())
}

/// Reads image files of one size into an unlabelled dataset; ids are the file names. Images beyond
/// `max_side` are scaled down to `max_side`×`max_side` while they are read, so that a corpus of
/// large photographs fits into memory: bilinearly with antialiasing, as in PIL and torchvision's
/// `Resize`, keeping the middle of the longer side.
///
/// # Errors
/// No file, a file that is no image (whatever its name) or has more than 512 MiB, or the first file of another size.
pub fn read_image_files(files: &[PathBuf], max_side: Option<usize>) -> Result<Dataset> {
    let (mut stack, mut said, mut losses): (Option<Stack>, Vec<_>, _) = (None, Vec::new(), Losses::default());
    for chunk in files.chunks(CHUNK) {
        // Collected before looking at errors, so that the first bad file is the one reported.
        let images = parallel::map(chunk.len(), |i| decode(&chunk[i], max_side));
        for (file, image) in chunk.iter().zip(images) {
            let Picture { image, held, untouched, lost } = image?;
            losses = losses.and(lost);
            said.push((held, untouched, image.shape.channels));
            match &mut stack {
                Some(stack) => stack.push(file, image)?,
                None => stack = Some(Stack { first: file.clone(), shape: image.shape, pixels: image.pixels }),
            }
        }
    }
    let (Some(stack), Some(first)) = (stack, files.first()) else {
        return Err(Error::input("no image file was named"));
    };
    let channels = stack.shape.channels;
    let noises = HeldNoises::of(said.into_iter().map(|(held, untouched, own)| (held, untouched && own == channels)));
    Ok(Dataset {
        noises: HeldNoises { losses, ..noises },
        name: file_name(first),
        shape: stack.shape,
        pixels: stack.pixels,
        labels: None,
        class_names: Vec::new(),
        ids: files.iter().map(|file| file_name(file)).collect(),
    })
}

/// One decoded file, CHW.
struct Image {
    shape: ImageShape,
    pixels: Vec<u8>,
}

/// The same, with what its file says of noise, whether its levels are those of the file, and what was lost.
struct Picture {
    image: Image,
    held: Option<HeldNoise>,
    untouched: bool,
    lost: Losses,
}

/// The images so far, all of one shape: grey until the first colour image.
struct Stack {
    first: PathBuf,
    shape: ImageShape,
    pixels: Vec<u8>,
}

impl Stack {
    fn push(&mut self, file: &Path, image: Image) -> Result<()> {
        let size = |shape: ImageShape| (shape.height, shape.width);
        if size(image.shape) != size(self.shape) {
            return Err(Error::file(
                file,
                format!(
                    "is {}×{} pixels (height × width), but {} is {}×{}: all images of a dataset have the same size (in the [data] of an oracle's \
                     spec, resize = SIDE makes squares of those with a longer side while they are read)",
                    image.shape.height,
                    image.shape.width,
                    self.first.display(),
                    self.shape.height,
                    self.shape.width
                ),
            ));
        }
        let plane = self.shape.height * self.shape.width;
        match (self.shape.channels, image.shape.channels) {
            (1, 3) => {
                self.pixels = repeat_grey(&self.pixels, plane);
                self.shape.channels = 3;
                self.pixels.extend(image.pixels);
            }
            (3, 1) => self.pixels.extend(repeat_grey(&image.pixels, plane)),
            _ => self.pixels.extend(image.pixels),
        }
        Ok(())
    }
}

fn decode(file: &Path, max_side: Option<usize>) -> Result<Picture> {
    let bytes = read_picture(file)?;
    let Decoded { image, orientation, .. } = decoded(file, &bytes)?;
    let most = max_side.and_then(|most| u32::try_from(most).ok());
    let most = most.filter(|&most| most > 0 && image.height().max(image.width()) > most);
    let lost = Losses::of(&image, orientation, most);
    let untouched = most.is_none() && matches!(image.color(), ColorType::L8 | ColorType::Rgb8);
    let image = match most {
        Some(most) => image.resize_to_fill(most, most, FilterType::Triangle),
        None => image,
    };
    let (height, width) = (image.height() as usize, image.width() as usize);
    let channels = if image.color().has_color() { 3 } else { 1 };
    let shape = ImageShape { channels, height, width };
    if shape.dims() == 0 {
        return Err(Error::file(file, "is an image without pixels"));
    }
    let pixels = if channels == 1 {
        image.into_luma8().into_raw()
    } else {
        let interleaved = image.into_rgb8().into_raw();
        let (rgb, _) = interleaved.as_chunks::<3>();
        (0..3).flat_map(|c| rgb.iter().map(move |pixel| pixel[c])).collect()
    };
    Ok(Picture { image: Image { shape, pixels }, held: HeldNoise::of_png(&bytes), untouched, lost })
}
