//! What a PNG of a world's image says of itself: that its levels hold the world's noise already.

use std::io::Cursor;
use std::path::Path;

use ::png::{Decoder, Limits};

use super::ImageShape;
use super::losses::Losses;
use super::write::{encode_png_with, write_atomically};
use crate::error::{Error, Result};

/// The name of the text of a PNG that says so.
const KEY: &str = "bayescope-noise";
/// Bytes that a text of a PNG may take.
const TEXT: usize = 1 << 16;
/// What every PNG begins with.
const SIGNATURE: &[u8] = b"\x89PNG";

/// The noise that a picture holds, and the world that it is of.
#[derive(Debug, Clone, PartialEq)]
pub struct HeldNoise {
    /// Standard deviation of the Gaussian noise, in units of x.
    pub std: f64,
    /// SHA-256 of the world's weights; empty where unknown.
    pub weights_sha256: String,
}

impl HeldNoise {
    /// The text of a PNG, with its name.
    pub(super) fn text(&self) -> (&'static str, String) {
        (KEY, format!("{} {}", self.std, self.weights_sha256))
    }

    fn of_text(text: &str) -> Option<Self> {
        let (std, weights_sha256) = text.split_once(' ')?;
        let std = std.parse().ok().filter(|std: &f64| *std > 0.0 && std.is_finite())?;
        let is_hash = weights_sha256.len() <= 64 && weights_sha256.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_hash.then(|| Self { std, weights_sha256: weights_sha256.to_owned() })
    }

    /// What the content of a picture's file says; `None` of all that say nothing.
    pub fn of_png(bytes: &[u8]) -> Option<Self> {
        if !bytes.starts_with(SIGNATURE) {
            return None;
        }
        let reader = Decoder::new_with_limits(Cursor::new(bytes), Limits { bytes: TEXT }).read_info().ok()?;
        let texts = &reader.info().uncompressed_latin1_text;
        texts.iter().find(|text| text.keyword == KEY).and_then(|text| Self::of_text(&text.text))
    }
}

/// What pictures that were read together say of the noise they hold, and what was lost of them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct HeldNoises {
    /// Pictures; 0 where images came from files of another kind.
    pub pictures: usize,
    /// Those of them that say that they hold noise.
    pub holding: usize,
    /// Whether the levels of all are those of their files, each in its place.
    pub untouched: bool,
    /// The different noises that they hold.
    pub held: Vec<HeldNoise>,
    /// What of the pictures is not in the images.
    pub losses: Losses,
}

impl HeldNoises {
    /// Of pictures: what each says, and whether its levels are those of its file.
    pub fn of(pictures: impl IntoIterator<Item = (Option<HeldNoise>, bool)>) -> Self {
        let none = Self { untouched: true, ..Self::default() };
        pictures.into_iter().fold(none, |mut all, (held, untouched)| {
            all.pictures += 1;
            all.holding += usize::from(held.is_some());
            all.untouched &= untouched;
            all.held.extend(held.filter(|held| !all.held.contains(held)));
            all
        })
    }
}

/// Writes an 8-bit image (CHW), grey or RGB, as a PNG that says which noise it holds.
///
/// # Errors
/// As [`super::write_png`].
pub fn write_png_of_world(path: &Path, shape: ImageShape, pixels: &[u8], held: &HeldNoise) -> Result<()> {
    let bytes = encode_png_with(shape, pixels, &[held.text()]);
    let bytes = bytes.map_err(|e| Error::input(format!("{}: {e}", path.display())))?;
    write_atomically(path, |out| out.write_all(&bytes))
}

#[cfg(test)]
mod tests {
    use super::super::{Split, encode_png, open_dataset, split_sheet, write_png, write_sheet};
    use super::*;

    #[test]
    fn a_picture_says_which_noise_it_holds_and_has_the_same_pixels() {
        let place = tempfile::tempdir().unwrap();
        let held = HeldNoise { std: 0.05, weights_sha256: "0a".repeat(32) };
        for channels in [1, 3] {
            let shape = ImageShape { channels, height: 2, width: 3 };
            let pixels: Vec<u8> = (0..shape.dims()).map(|i| (i * 14) as u8).collect();
            let (path, sheet) = (place.path().join("one.png"), place.path().join("sheet.png"));
            write_png_of_world(&path, shape, &pixels, &held).unwrap();
            let plain = encode_png(shape, &pixels).unwrap();
            let bytes = std::fs::read(&path).unwrap();
            assert_eq!(HeldNoise::of_png(&bytes), Some(held.clone()));
            let decoded = |bytes: &[u8]| image::load_from_memory(bytes).unwrap();
            assert_eq!(decoded(&bytes), decoded(&plain));
            assert!(
                [&plain[..], &bytes[..20], b"", b"no picture"].iter().all(|other| HeldNoise::of_png(other).is_none())
            );
            // A sheet says it of all its images, and is taken apart as before.
            write_sheet(&sheet, shape, &pixels.repeat(2), 2, 1, Some(&held)).unwrap();
            let bytes = std::fs::read(&sheet).unwrap();
            assert_eq!(HeldNoise::of_png(&bytes), Some(held.clone()));
            assert_eq!(split_sheet(&sheet, &bytes).unwrap(), [plain.clone(), plain]);
        }
    }

    #[test]
    fn a_folder_knows_how_many_of_its_pictures_hold_noise_and_whether_their_levels_are_their_own() {
        let place = tempfile::tempdir().unwrap();
        let held = HeldNoise { std: 0.05, weights_sha256: "0a".repeat(32) };
        let (shape, pixels) = (ImageShape { channels: 1, height: 4, width: 4 }, [7; 16]);
        let files = ["a/0.png", "a/1.png", "b/0.png"].map(|name| place.path().join(name));
        for file in &files {
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            write_png_of_world(file, shape, &pixels, &held).unwrap();
        }
        let read = |side| open_dataset(place.path(), Split::Train, side).unwrap();
        let all = HeldNoises {
            pictures: 3,
            holding: 3,
            untouched: true,
            held: vec![held.clone()],
            losses: Losses::default(),
        };
        let images = read(None);
        assert_eq!((&images.noises, &read(Some(4)).noises, &images.subset([1]).unwrap().noises), (&all, &all, &all));
        let touched = HeldNoises { untouched: false, ..all.clone() };
        let scaled = HeldNoises { losses: Losses { scaled: 3, ..Losses::default() }, ..touched.clone() };
        assert_eq!((read(Some(2)).noises, images.pad_to(6).unwrap().noises), (scaled, touched.clone()));
        assert_eq!(
            (images.pad_to(4).unwrap().noises, images.to_channels(3).unwrap().noises),
            (all.clone(), touched.clone())
        );
        write_png(&files[1], shape, &pixels).unwrap();
        assert_eq!(read(None).noises, HeldNoises { holding: 2, ..all });
        // One picture in colour gives colours to all.
        write_png_of_world(&files[1], ImageShape { channels: 3, ..shape }, &[7; 48], &held).unwrap();
        assert_eq!(read(None).noises, touched);
    }

    #[test]
    fn a_text_that_is_none_of_ours_says_nothing() {
        for text in ["", "0.05", "0 ab", "-1 ab", "nan ab", "inf ab", "0.05 xy", "0.05 a b", "x ab"] {
            assert_eq!(HeldNoise::of_text(text), None, "{text}");
        }
        assert_eq!(HeldNoise::of_text("0.05 "), Some(HeldNoise { std: 0.05, weights_sha256: String::new() }));
    }
}
