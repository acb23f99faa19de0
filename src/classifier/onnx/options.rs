//! What a user may say about a network in an ONNX file, and what is reported about one. Also built
//! where ONNX files cannot be run.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::normalisation::Normalisation;
use crate::data::ImageShape;
use crate::error::{Error, Result};

/// What a user may say about a network beside its file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct OnnxOptions {
    /// How images are scaled. What the file says, where absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<Normalisation>,
    /// Ends of the range of pixels in world space: of the flow, not of the network. Without it images enter as they are or
    /// not at all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub range: Option<[f32; 2]>,
    /// Grey images may enter a network of several channels, the same in each.
    pub repeat_channels: bool,
    /// Images of another size are scaled to the network's, bilinearly (as PyTorch's `interpolate`, corners not aligned).
    pub resize: bool,
    /// Images of one pass, where the file leaves that open. Scores may differ between sizes by rounding.
    pub batch: usize,
    /// Order of its axes. What the sizes of its input or running it tell, where absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub layout: Option<Layout>,
    /// The output to read; the only one, where absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    /// What the output is; found out, where absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scores: Option<Scores>,
}

impl Default for OnnxOptions {
    fn default() -> Self {
        Self {
            input: None,
            range: None,
            repeat_channels: false,
            resize: false,
            batch: 8,
            layout: None,
            output: None,
            scores: None,
        }
    }
}

/// What a network gives for each image, [K].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scores {
    /// Logits: log-probabilities up to a number for each image.
    Logits,
    /// Probabilities, which add up to 1.
    Probabilities,
    /// Natural logarithms of probabilities, where somebody says so: they must be of such as add up to 1.
    LogProbabilities,
}

impl std::str::FromStr for Scores {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text {
            "logits" => Ok(Self::Logits),
            "probabilities" => Ok(Self::Probabilities),
            "log-probabilities" => Ok(Self::LogProbabilities),
            _ => Err(Error::input(format!("'{text}' is neither logits nor probabilities nor log-probabilities"))),
        }
    }
}

/// By what it is known what a network gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum KnownBy {
    /// The numbers that it gives for noise images: neither its graph nor the user says it.
    Numbers,
    /// The softmax, or logarithm of one, in which its graph ends, whatever the user says.
    Softmax,
    /// The user.
    User,
}

/// Order of a network's axes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Layout {
    /// [N, C, H, W], as PyTorch has it.
    Nchw,
    /// [N, H, W, C], as TensorFlow has it.
    Nhwc,
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Nchw => "[N, C, H, W]",
            Self::Nhwc => "[N, H, W, C]",
        })
    }
}

/// A network that was opened, and how its images and its scores are understood.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NetworkInfo {
    /// Numbers in its floating-point arrays.
    pub parameters: u64,
    /// Program that wrote the file; empty where the file does not say.
    pub producer: String,
    /// Version of its operators.
    pub opset: i64,
    /// Shape of the images it sees, and the order of its axes.
    pub sees: (ImageShape, Layout),
    /// Whether that order was found by running it in both, for its input is open in size and nobody says it.
    #[serde(default)]
    pub tried: bool,
    /// How images are scaled before they enter.
    pub normalisation: Normalisation,
    /// What its scores are taken for.
    pub scores: Scores,
    /// By what that is known.
    pub known_by: KnownBy,
}
