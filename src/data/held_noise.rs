//! What a PNG of a world's image says of itself: that its levels hold the world's noise already.

use std::io::Cursor;
use std::path::Path;

use ::png::{Decoder, Limits};

use super::ImageShape;
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
    use super::super::{encode_png, split_sheet, write_sheet};
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
    fn a_text_that_is_none_of_ours_says_nothing() {
        for text in ["", "0.05", "0 ab", "-1 ab", "nan ab", "inf ab", "0.05 xy", "0.05 a b", "x ab"] {
            assert_eq!(HeldNoise::of_text(text), None, "{text}");
        }
        assert_eq!(HeldNoise::of_text("0.05 "), Some(HeldNoise { std: 0.05, weights_sha256: String::new() }));
    }
}
