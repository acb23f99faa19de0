//! Images and labels on the way in and out: IDX, CIFAR, downsampled ImageNet, image folders and single images, npz; and corpora
//! fetched by name.
//!
//! Two kinds of images exist and are never mixed. **Pixels** are 8-bit and come from outside; **world-space** images are
//! the float tensors a flow sees, for which alone a posterior is exact (theory §1). [`open`] reads any supported file or
//! folder as one of the two.
//!
//! | file | what |
//! |---|---|
//! | `open`, `source`, `names` | what a path holds; how a file is opened; class names beside it |
//! | `idx`, `cifar`, `batches`, `pickle`, `folder`, `tiff` | pixels from outside, a format each |
//! | `npy`, `archive`, `npz`, `stream`, `table` | NumPy's files: one array; archives, as a whole, piece by piece, written block by block |
//! | `world`, `pad`, `levels` | images in world space; images brought into the shape a model expects; pictures of real values |
//! | `classes` | which class of a model each class of a dataset is |
//! | `fid_stats` | statistics of other programs |
//! | `fetch` | corpora by name |
//! | `kinds` | what a folder is |
//! | `space` | what this machine has room for |
//! | `store`, `ticket`, `json` | works that are stopped and go on: their pieces, what they were begun with; JSON files |
//! | `write`, `parts`, `alone`, `hash` | whole files or none; temporary files; what only one process at a time may do; SHA-256 |

mod alone;
mod archive;
mod batches;
mod cifar;
mod classes;
pub mod fetch;
mod fid_stats;
mod folder;
mod hash;
mod idx;
mod json;
mod kinds;
mod levels;
mod names;
mod npy;
mod npz;
mod open;
mod pad;
mod parts;
pub(crate) mod pickle;
mod source;
mod space;
mod store;
mod stream;
mod table;
mod ticket;
mod tiff;
mod world;
mod write;

pub use alone::{alone, in_turn};
pub(crate) use archive::Archive;
pub use batches::read_batches;
pub use cifar::{read_cifar10, read_cifar100};
pub use classes::{listed, numerals, places};
pub use fid_stats::{FidStatistics, read_fid_statistics};
pub use folder::{read_folder, read_image_files};
pub use hash::{sha256, sha256_of_file};
pub use idx::read_idx;
pub use json::{read_json, write_json};
pub use kinds::{Kind, nothing_else_in};
pub use levels::{Levels, joined, range_of};
pub(crate) use npy::{Array, Types, Values, read_npy_file};
pub use npz::{read_array, read_logp, read_npz, read_rows};
pub use open::{open, open_dataset, open_dataset_within, open_split, open_test, open_test_within};
pub use parts::{host_name, machine, sweep_all_parts, sweep_parts};
pub(crate) use source::{CUT_SHORT, WHOLE, open_file, open_regular, read_bounded, read_bytes, read_text, said};
pub use space::{bytes_within, least_of_picture, memory_for, room_for, size_to_tell};
pub use store::{PARTS, Pieces, Store, StoreKind};
pub use stream::{NpzImages, holds_images};
pub use table::{Column, Stored, write_table};
pub use ticket::{Ticket, another, fields, settle, settle_text};
pub use world::{WorldBatch, add_npz_in_pieces, write_npz, write_npz_in_pieces};
pub use write::{contact_sheet, encode_png, encode_png16, write_atomically, write_named, write_png};

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

/// The file of a dataset folder that says which world its images are of.
pub const DATASET: &str = "dataset.json";

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
}

impl Dataset {
    /// Number of images.
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    /// Whether there is no image.
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
    /// What a model is trained on.
    Train,
    /// What is held out.
    Test,
}

impl Split {
    fn other(self) -> Self {
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
fn numbered(n: usize) -> Vec<String> {
    (0..n).map(|i| i.to_string()).collect()
}

/// What a file or folder turned out to hold.
#[derive(Debug, Clone)]
pub enum Input {
    /// 8-bit pixels, to be mapped into a world by its documented preprocessing.
    Pixels(Dataset),
    /// Tensors already in world space.
    World(WorldBatch),
}
