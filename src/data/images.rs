//! Images of 8 bits with their shape and labels.

use super::held_noise::HeldNoises;

/// Channels, height and width of every image of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct ImageShape {
    /// 1 for grey, 3 for RGB.
    pub channels: usize,
    /// Rows.
    pub height: usize,
    /// Columns.
    pub width: usize,
}

impl ImageShape {
    /// Number of dimensions D of one image.
    pub fn dims(self) -> usize {
        self.channels * self.height * self.width
    }
}

impl std::fmt::Display for ImageShape {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}×{}×{}", self.channels, self.height, self.width)
    }
}

/// 8-bit images, their labels where known, and their class names.
#[derive(Debug, Clone, PartialEq)]
pub struct Dataset {
    /// What to call it: the file or folder it came from.
    pub name: String,
    /// Shape of every image.
    pub shape: ImageShape,
    /// Pixels, NCHW, 0..=255.
    pub pixels: Vec<u8>,
    /// One class per image; `None` where the source has none.
    pub labels: Option<Vec<usize>>,
    /// Names of the classes; empty where the source has none.
    pub class_names: Vec<String>,
    /// A name per image for reports (file name or running number).
    pub ids: Vec<String>,
    /// What the pictures of which these images are, or a part, say of the noise they hold.
    pub noises: HeldNoises,
}

impl Dataset {
    /// Number of images.
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    /// Returns whether there is no image.
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// Pixels of image `i`, CHW.
    pub fn image(&self, i: usize) -> &[u8] {
        let dims = self.shape.dims();
        &self.pixels[i * dims..(i + 1) * dims]
    }
}

/// Which part of a corpus.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Split {
    /// Training images.
    Train,
    /// Held-out images.
    Test,
}

impl Split {
    /// The other split: test for train, train for test.
    pub fn other(self) -> Self {
        match self {
            Self::Train => Self::Test,
            Self::Test => Self::Train,
        }
    }
}

impl std::fmt::Display for Split {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Train => "train",
            Self::Test => "test",
        })
    }
}

/// `0`, `1`, … `n − 1`, as names of classes or images.
pub(super) fn numbered(n: usize) -> Vec<String> {
    (0..n).map(|i| i.to_string()).collect()
}
