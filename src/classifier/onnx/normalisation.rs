//! What a network wants done to images before they enter: asked for by the user, or read from the
//! file.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::classifier::spec::IMAGENET;
use crate::error::{Error, Result};

/// Key of a file's `metadata_props` that holds a normalisation as [`Normalisation`] is written.
pub const KEY: &str = "bayescope.normalisation";
/// Keys that hold the mean and the standard deviation of each channel instead: numbers between
/// commas, in brackets or not.
pub const MEAN_AND_STD: [&str; 2] = ["mean", "std"];

/// Largest deviation that is taken for one of pixels between 0 and 1.
const WIDEST: f64 = 10.0;

/// How images are scaled before they enter, said of pixels p between 0 and 1. World-space values
/// are taken there first by the range of the world's pixels: p = (x − low)/(high − low).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Normalisation {
    /// x itself, as it is in the world: `as-is`.
    AsIs,
    /// p: `zero-to-one`.
    ZeroToOne,
    /// 2p − 1: `minus-one-to-one`.
    MinusOneToOne,
    /// 255p, rounded and cut to 0..=255 where the network reads bytes: `bytes`.
    Bytes,
    /// (p − mean)/std with ImageNet's figures: `imagenet`.
    ImageNet,
    /// (p − mean)/std, one number for each channel or one for all:
    /// `mean=0.5,0.5,0.5;std=0.2,0.2,0.2`.
    MeanStd {
        /// Means of the channels.
        mean: Vec<f64>,
        /// Standard deviations of the channels, > 0.
        std: Vec<f64>,
    },
}

/// x ↦ (x − shift)·factor.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Scale {
    shift: f64,
    factor: f64,
}

impl Scale {
    /// In f64, rounded once.
    #[cfg(feature = "onnx")]
    pub(super) fn apply(self, x: f64) -> f32 {
        ((x - self.shift) * self.factor) as f32
    }
}

impl Normalisation {
    /// The scale of each of the network's channels, for worlds whose pixels lie in `range`. Only images as they are do
    /// without that: worlds differ in it, and a guess would change every figure.
    pub(super) fn scales(&self, channels: usize, range: Option<[f32; 2]>) -> Result<Vec<Scale>> {
        if *self == Self::AsIs {
            return Ok(vec![Scale { shift: 0.0, factor: 1.0 }; channels]);
        }
        let Some([low, high]) = range else {
            return Err(Error::input(format!(
                "'{self}' needs the range of the world's pixels, and no dataset.json beside the images says it. \
                 Judge the folder of an export, which has one"
            )));
        };
        let (low, width) = (f64::from(low), f64::from(high) - f64::from(low));
        if !(width > 0.0 && width.is_finite()) {
            return Err(Error::input(format!("a range of pixels from {low} to {high} is none")));
        }
        let (mean, std): (&[f64], &[f64]) = match self {
            Self::AsIs | Self::ZeroToOne => (&[0.0], &[1.0]),
            Self::MinusOneToOne => (&[0.5], &[0.5]),
            Self::Bytes => (&[0.0], &[1.0 / 255.0]),
            Self::ImageNet => (&IMAGENET[0], &IMAGENET[1]),
            Self::MeanStd { mean, std } => (mean, std),
        };
        let of = |numbers: &[f64], what: &str| match numbers.len() {
            1 => Ok(vec![numbers[0]; channels]),
            n if n == channels => Ok(numbers.to_vec()),
            n => Err(Error::input(format!(
                "'{self}' has {n} {what}, and the network's images have {channels} channel(s)"
            ))),
        };
        let scale = |(mean, std): (f64, f64)| Scale { shift: low + mean * width, factor: 1.0 / (std * width) };
        Ok(of(mean, "means")?.into_iter().zip(of(std, "standard deviations")?).map(scale).collect())
    }

    /// The scale of each of the network's channels as x ↦ (x − shift)·factor in 32 bits, for worlds
    /// whose pixels lie in `range`.
    ///
    /// # Errors
    /// When it has figures for another number of channels, or needs a range that is not known.
    pub(in crate::classifier) fn shifts_and_factors(
        &self,
        channels: usize,
        range: Option<[f32; 2]>,
    ) -> Result<Vec<(f32, f32)>> {
        let scales = self.scales(channels, range)?;
        Ok(scales.into_iter().map(|Scale { shift, factor }| (shift as f32, factor as f32)).collect())
    }

    /// What the metadata of a file say: [`KEY`], else both of [`MEAN_AND_STD`].
    ///
    /// # Errors
    /// When they cannot be read, or have figures that pixels between 0 and 1 do not have.
    #[cfg(feature = "onnx")]
    pub(super) fn of_metadata<'a>(value: impl Fn(&str) -> Option<&'a str>) -> Result<Option<Self>> {
        if let Some(text) = value(KEY) {
            return text.parse::<Self>().and_then(Self::of_unit_pixels).map(Some);
        }
        match MEAN_AND_STD.map(value) {
            [None, None] => Ok(None),
            [Some(mean), Some(std)] => mean_std(mean, std).and_then(Self::of_unit_pixels).map(Some),
            [mean, _] => {
                let present = if mean.is_some() { 0 } else { 1 };
                let (there, absent) = (MEAN_AND_STD[present], MEAN_AND_STD[1 - present]);
                Err(Error::input(format!("its metadata have '{there}' without '{absent}'")))
            }
        }
    }
}

#[cfg(feature = "onnx")]
impl Normalisation {
    /// Refuses figures that pixels between 0 and 1 do not have: many exporters write those of pixels between
    /// 0 and 255.
    fn of_unit_pixels(self) -> Result<Self> {
        match &self {
            Self::MeanStd { mean, std }
                if mean.iter().any(|mean| !(0.0..=1.0).contains(mean)) || std.iter().any(|std| *std > 1.0) =>
            {
                let unit = of_bytes(mean, std);
                Err(Error::input(format!(
                    "its metadata have '{self}', and pixels between 0 and 1 have means between 0 and 1 and standard deviations of at \
                     most 1: say the figures that are meant, such as --normalisation '{unit}' where those are of pixels between 0 and 255"
                )))
            }
            _ => Ok(self),
        }
    }
}

/// Figures of pixels between 0 and 1 from those of pixels between 0 and 255.
fn of_bytes(mean: &[f64], std: &[f64]) -> Normalisation {
    // As many digits as figures are written with, without those that the division adds.
    let unit = |numbers: &[f64]| numbers.iter().map(|v| (v / 255.0 * 1e6).round() / 1e6).collect();
    Normalisation::MeanStd { mean: unit(mean), std: unit(std) }
}

/// Refuses what nobody says of pixels between 0 and 1: a network sees hardly anything of images that are scaled so.
fn said(found: Normalisation) -> Result<Normalisation> {
    match &found {
        Normalisation::MeanStd { mean, std }
            if mean.iter().any(|mean| *mean > 1.0) || std.iter().any(|std| *std > WIDEST) =>
        {
            Err(Error::input(format!(
                "'{found}' are figures of pixels between 0 and 255, and those of pixels between 0 and 1 are to be said: '{}'",
                of_bytes(mean, std)
            )))
        }
        _ => Ok(found),
    }
}

fn mean_std(mean: &str, std: &str) -> Result<Normalisation> {
    let (mean, std) = (numbers(mean)?, numbers(std)?);
    match std.iter().find(|std| **std <= 0.0) {
        Some(bad) => Err(Error::input(format!("a standard deviation must be > 0, not {bad}"))),
        None => Ok(Normalisation::MeanStd { mean, std }),
    }
}

fn numbers(text: &str) -> Result<Vec<f64>> {
    let inner = text.trim().trim_start_matches(['[', '(']).trim_end_matches([']', ')']);
    let parse = |part: &str| match part.trim().parse::<f64>() {
        Ok(number) if number.is_finite() => Ok(number),
        _ => Err(Error::input(format!("'{text}' is no list of numbers such as 0.5,0.5,0.5"))),
    };
    inner.split(',').map(parse).collect()
}

impl FromStr for Normalisation {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let simple = [Self::AsIs, Self::ZeroToOne, Self::MinusOneToOne, Self::Bytes, Self::ImageNet];
        let trimmed = text.trim();
        if let Some(found) = simple.into_iter().find(|simple| simple.to_string().eq_ignore_ascii_case(trimmed)) {
            return Ok(found);
        }
        let parts: Vec<_> = trimmed.split(';').filter_map(|part| part.split_once('=')).collect();
        match parts[..] {
            [(mean, means), (std, stds)] if [mean.trim(), std.trim()] == MEAN_AND_STD => {
                mean_std(means, stds).and_then(said)
            }
            _ => Err(Error::input(format!(
                "'{text}' is no normalisation: as-is, zero-to-one, minus-one-to-one, bytes, imagenet, or mean=…;std=… \
                 such as mean=0.5,0.5,0.5;std=0.2,0.2,0.2"
            ))),
        }
    }
}

impl fmt::Display for Normalisation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |numbers: &[f64]| numbers.iter().map(f64::to_string).collect::<Vec<_>>().join(",");
        match self {
            Self::AsIs => f.write_str("as-is"),
            Self::ZeroToOne => f.write_str("zero-to-one"),
            Self::MinusOneToOne => f.write_str("minus-one-to-one"),
            Self::Bytes => f.write_str("bytes"),
            Self::ImageNet => f.write_str("imagenet"),
            Self::MeanStd { mean, std } => write!(f, "mean={};std={}", list(mean), list(std)),
        }
    }
}

impl TryFrom<String> for Normalisation {
    type Error = Error;
    fn try_from(text: String) -> Result<Self> {
        text.parse()
    }
}

impl From<Normalisation> for String {
    fn from(normalisation: Normalisation) -> String {
        normalisation.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scaled(text: &str, channel: usize, range: [f32; 2], x: f64) -> f32 {
        text.parse::<Normalisation>().unwrap().scales(3, Some(range)).unwrap()[channel].apply(x)
    }

    #[test]
    fn every_normalisation_is_written_as_it_is_read() {
        for text in ["as-is", "zero-to-one", "minus-one-to-one", "bytes", "imagenet", "mean=0.5,0.25,0;std=0.2"] {
            let read: Normalisation = text.parse().unwrap();
            assert_eq!(read.to_string(), text);
            let json = serde_json::to_string(&read).unwrap();
            assert_eq!(serde_json::from_str::<Normalisation>(&json).unwrap(), read);
        }
        for text in
            ["", "ImagNet", "mean=1", "mean=a;std=1", "mean=0;std=0", "mean=0;std=-1", "std=1;mean=0", "mean=0;std=inf"]
        {
            assert!(text.parse::<Normalisation>().is_err(), "{text}");
        }
        for (bytes, unit) in [("mean=127.5;std=51", "'mean=0.5;std=0.2'"), ("mean=0,0,0;std=255", "'mean=0,0,0;std=1'")]
        {
            let cause = bytes.parse::<Normalisation>().unwrap_err().to_string();
            assert!(cause.contains("between 0 and 255") && cause.contains(unit), "{cause}");
        }
        assert!("mean=1;std=10".parse::<Normalisation>().is_ok());
    }

    #[test]
    fn a_normalisation_means_the_same_in_every_range_of_pixels() {
        for (text, channel, at_zero, at_one) in [
            ("zero-to-one", 0, 0.0, 1.0),
            ("minus-one-to-one", 1, -1.0, 1.0),
            ("bytes", 2, 0.0, 255.0),
            ("imagenet", 2, -0.406 / 0.225, (1.0 - 0.406) / 0.225),
            ("mean=0.5,0.1,0;std=0.5,0.2,1", 1, -0.5, 4.5),
        ] {
            for range in [[0.0, 1.0], [-1.0, 1.0], [0.0, 255.0]] {
                let ends = range.map(|x| scaled(text, channel, range, f64::from(x)));
                for (got, want) in ends.iter().zip([at_zero, at_one]) {
                    assert!((f64::from(*got) - want).abs() < 1e-5, "{text} {range:?}: {got} {want}");
                }
            }
        }
        assert_eq!(scaled("as-is", 0, [-1.0, 1.0], 0.3), 0.3);
    }

    #[test]
    fn figures_for_other_channels_are_refused() {
        let cause = Normalisation::ImageNet.scales(1, Some([0.0, 1.0])).unwrap_err().to_string();
        assert!(cause.contains("3 means") && cause.contains("1 channel"), "{cause}");
        assert!(Normalisation::ImageNet.scales(3, Some([1.0, 1.0])).is_err());
    }

    /// A world with Gaussian noise has pixels from -1 to 1: [0, 1] is not to be guessed.
    #[test]
    fn without_a_range_only_images_as_they_are_enter() {
        for text in ["zero-to-one", "minus-one-to-one", "bytes", "imagenet", "mean=0.5;std=0.2"] {
            let cause = text.parse::<Normalisation>().unwrap().scales(3, None).unwrap_err().to_string();
            assert!(cause.contains(text) && cause.contains("dataset.json"), "{cause}");
        }
        assert_eq!(Normalisation::AsIs.scales(3, None).unwrap()[2].apply(0.3), 0.3);
    }

    #[test]
    fn metadata_are_read_in_either_form() {
        let read = |pairs: &'static [(&str, &str)]| {
            Normalisation::of_metadata(|key| pairs.iter().find(|(k, _)| *k == key).map(|(_, v)| *v))
        };
        assert_eq!(read(&[]).unwrap(), None);
        assert_eq!(read(&[(KEY, "imagenet"), ("mean", "x")]).unwrap(), Some(Normalisation::ImageNet));
        let both = read(&[("mean", "[0.5, 0.25]"), ("std", "1,.2")]).unwrap();
        assert_eq!(both, Some(Normalisation::MeanStd { mean: vec![0.5, 0.25], std: vec![1.0, 0.2] }));
        assert!(read(&[("std", "1")]).unwrap_err().to_string().contains("'std' without 'mean'"));
        assert!(read(&[(KEY, "imagenot")]).is_err());
        // As of pixels between 0 and 255, and what has to be said instead.
        let cause = read(&[("mean", "[123.675, 116.28, 103.53]"), ("std", "[58.395, 57.12, 57.375]")]).unwrap_err();
        let said = "--normalisation 'mean=0.485,0.456,0.406;std=0.229,0.224,0.225'";
        assert!(cause.to_string().contains(said), "{cause}");
        for wrong in ["mean=0.5;std=1.5", "mean=1.5;std=1", "mean=-0.5;std=1"] {
            let value = |key: &str| (key == KEY).then_some(wrong);
            assert!(Normalisation::of_metadata(value).is_err(), "{wrong}");
        }
    }
}
