//! Reading and writing of images and labels: IDX, CIFAR, downsampled ImageNet, image folders and
//! single images, npz; and corpora fetched by name.
//!
//! Two kinds of images exist and are never mixed. **Pixels** are 8-bit and come from outside.
//! **World-space** images are the float tensors a flow sees; only for these a posterior is exact
//! (theory §1). [`open`] reads any supported file or folder as one of the two.
//!
//! | file | what |
//! |---|---|
//! | `images` | 8-bit images with their labels |
//! | `open`, `reader` | detection of a path's format from the list of readers, and in words; the trait of a reader and what it reads |
//! | `source`, `names` | safe opening of files; class names beside data |
//! | `idx`, `cifar`, `batches`, `pickle`, `folder`, `tiff` | readers of pixels, one format each |
//! | `decode`, `losses`, `picture`, `treatment` | one image file decoded, and what of it a dataset does not have; any picture in the shape of a world's images; what was done to it |
//! | `npy`, `npy_file`, `archive`, `npz`, `stream`, `table` | NumPy files: one array read and written; archives as a whole, read in pieces, written in blocks |
//! | `world`, `pad`, `levels` | images in world space; padding and channels; pictures of real values |
//! | `classes` | matching the classes of a dataset and a model |
//! | `home` | which world images are opened in, and which they are of |
//! | `exported` | pictures and archives that an export of a world wrote |
//! | `fid_stats` | statistics of other programs |
//! | `fetch` | corpora by name |
//! | `folder_kind` | kinds of folders |
//! | `space` | free memory and disk space |
//! | `store`, `ticket`, `json` | resumable work: pieces, ticket; JSON files |
//! | `sheet`, `held_noise` | contact sheets, and their images taken out again; which noise a picture says it holds |
//! | `write`, `place`, `temp_files`, `lock`, `hash` | atomic files; what lies at their places; temporary files; lock files; SHA-256 |

mod archive;
mod batches;
mod cifar;
mod classes;
mod decode;
mod exported;
pub mod fetch;
mod fid_stats;
mod folder;
mod folder_kind;
mod hash;
mod held_noise;
mod home;
mod idx;
mod images;
mod json;
mod levels;
mod lock;
mod losses;
mod names;
mod npy;
mod npy_file;
mod npz;
mod open;
mod pad;
pub(crate) mod pickle;
mod picture;
mod place;
mod reader;
mod sheet;
mod source;
mod space;
mod store;
mod stream;
mod table;
mod temp_files;
mod ticket;
mod tiff;
mod treatment;
mod world;
mod write;

pub(crate) use archive::{Archive, table_bytes};
pub use batches::read_batches;
pub use cifar::{read_cifar10, read_cifar100};
pub use classes::{ClassMap, as_numbers, class_folders, class_of, listed, places};
pub use exported::{InWorld, in_world, labelled_in_world};
pub use fid_stats::{FidStatistics, read_fid_statistics};
pub use folder::{ImageFiles, is_image_name, read_folder, read_image_files};
pub use folder_kind::{DATASET, FolderKind, check_folder_kind, folder_kind};
pub use hash::{check_listed_hash, sha256, sha256_of_file, sha256_of_pieces};
pub use held_noise::{HeldNoise, HeldNoises, write_png_of_world};
pub use home::{Home, OfWorld, world_id};
pub use idx::read_idx;
use images::numbered;
pub use images::{Dataset, ImageShape, Split};
pub(crate) use json::parse_toml;
pub use json::{read_json, read_toml, write_json};
pub use levels::{Levels, range_of, union_range};
pub use lock::{lock_file, try_lock_file, wait_for_lock};
pub use losses::Losses;
pub(crate) use npy::{Array, Types, Values, read_npy, read_npy_file};
pub use npy_file::{NpyElement, put_npy, write_npy};
pub use npz::{read_array, read_logp, read_npz, read_rows};
pub use open::{
    dataset_formats, has_test, image_files, kind_of, left_unread, open, open_dataset, open_split, open_test,
};
pub use picture::{Fit, Fitted, Frame, Ground, Preview, Way, border, fit_picture, read_picture};
pub use place::{Taken, check_free, in_folder, taken};
pub use reader::Input;
pub use sheet::{contact_sheet, images_in, sheet_shape, split_sheet, write_sheet};
#[cfg(feature = "onnx")]
pub(crate) use source::open_bounded;
pub(crate) use source::{
    CUT_SHORT, TEXT, WHOLE, open_file, open_regular, read_bounded, read_bytes, read_text, read_text_bounded, said,
    with_way_out,
};
pub use space::{check_disk_space, check_memory, folder_size, least_png_size, size_notice};
pub use store::{PARTS, Pieces, Store, StoreKind};
pub use stream::{NpzImages, holds_images};
pub use table::{Column, Stored, write_table};
pub use temp_files::{host_name, is_vacant, machine, sweep_all_temp_files, sweep_temp_files};
pub use ticket::{Ticket, claim_text, claim_ticket, fields, ticket_conflict};
pub use treatment::{Colour, Cut, Scaling, Treatment, Turn};
pub use world::{WorldBatch, add_npz_in_pieces, write_npz, write_npz_in_pieces};
pub use write::{encode_png, encode_png16, write_atomically, write_named, write_png, write_whole};
