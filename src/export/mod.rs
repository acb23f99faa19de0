//! A dataset of a world to take away: images of it at one temperature with their exact posteriors, as arrays, as pictures, or both.
//!
//! The float tensors are the reference: for them alone posteriors are exact (theory §1). Pictures have 16 bits a value, which hardly
//! change a posterior, or 8, which may lose it: beside them stand the posteriors of the rounded images, and how far these are from the
//! exact ones.
//!
//! An export is made of pieces of a few thousand images, each written whole. A killed one goes on with the first piece that is missing;
//! the files of the dataset are put together at the end, piece by piece, so that no more than one is ever in memory. `dataset.json` is
//! written last: where it is, the dataset is complete.
//!
//! | file | what |
//! |---|---|
//! | `spec` | what is asked for, and what is told meanwhile |
//! | `mod` | the order of the work |
//! | `pieces` | images drawn and kept piece by piece |
//! | `rounded`, `depth` | pictures of samples and what rounding does to posteriors; the same over all depths |
//! | `arrays`, `parquet`, `pictures` | the files |
//! | `manifest` | `dataset.json` and the card beside it |
//! | `task` | what the window and the command line run |

mod arrays;
mod depth;
mod manifest;
mod parquet;
mod pictures;
mod pieces;
mod rounded;
mod spec;
mod task;

use std::path::Path;

use crate::data::{Kind, Levels, Store, StoreKind, Ticket, bytes_within, joined, range_of, room_for};
use crate::error::Result;
use crate::events::Events;
use crate::experiment::Facts;
use crate::oracle::world::World;

pub use depth::{COSTLY_NATS, Depth, DepthCost, DepthCurve, depth_curve};
pub use manifest::{Manifest, SplitRecord};
pub use spec::{ExportEvent, ExportSpec, Format, Stage};
pub use task::{ExportDataset, MeasureDepth};

use pieces::SplitImages;
use spec::Work;

/// What its pieces are kept for.
const EXPORT: StoreKind =
    StoreKind { ticket: "export.json", work: "export", result: "dataset", folder: Some(Kind::Dataset) };

/// Makes a dataset of a world in a folder, or goes on with one that was stopped there; a complete one is returned as it is.
///
/// # Errors
/// When the spec cannot be made in this world, the folder holds something else, the device or the disk fails, or the caller stops: then
/// nothing already computed is lost.
pub fn export(
    world: &World,
    weights_sha256: &str,
    spec: &ExportSpec,
    folder: &Path,
    events: &mut dyn Events<ExportEvent>,
) -> Result<Manifest> {
    spec.validate()?;
    let work = Work { world, weights_sha256, spec, folder };
    let store = work.begin()?;
    let manifest = match Manifest::read(folder)? {
        Some(manifest) => manifest,
        None => work.make(&store, events)?,
    };
    // As large as the dataset itself, and of no more use.
    store.finish();
    Ok(manifest)
}

impl Work<'_> {
    /// Takes the folder: a new one, or one in which this very export was begun.
    fn begin(&self) -> Result<Store> {
        if !EXPORT.is_begun(self.folder) {
            // Refused before the folder is taken, so that it is free for a smaller one.
            self.room()?;
        }
        let ticket = Ticket { weights_sha256: self.weights_sha256.to_owned(), spec: self.spec.clone() };
        Store::begin(self.folder, &EXPORT, &ticket)
    }

    /// Draws what is missing, puts the files together, and writes `dataset.json`.
    fn make(&self, store: &Store, events: &mut dyn Events<ExportEvent>) -> Result<Manifest> {
        let _lock = store.lock()?;
        // Another process may have written the last file just before this one came in.
        if let Some(manifest) = Manifest::read(self.folder)? {
            return Ok(manifest);
        }
        self.room()?;
        for split in self.spec.splits() {
            SplitImages::new(self, split).draw(events)?;
        }
        let pictures = self.pictures(events)?;
        let facts = store.value("facts.json", || {
            let mut told = |progress| events.emit(ExportEvent { stage: Stage::Figures, progress });
            Facts::of(self.world, &self.spec.settings, self.spec.seed.split("figures"), &mut told)
        })?;
        let mut manifest = Manifest::of(self, facts);
        for split in self.spec.splits() {
            manifest.splits.insert(split.to_string(), SplitImages::new(self, split).record(&pictures)?);
        }
        for split in self.spec.splits() {
            let pieces = SplitImages::new(self, split);
            let written = self.spec.formats.iter().map(|&format| match format {
                Format::Npz => arrays::write(&pieces, events),
                Format::Png | Format::Png16 => pictures::list(&pieces, format, events),
                Format::Parquet => {
                    let bits = self.spec.parquet_bits();
                    let levels = pictures.iter().find(|levels| levels.bits == bits);
                    let costly = manifest.is_costly(bits);
                    levels.map_or(Ok(Vec::new()), |levels| parquet::write(&pieces, *levels, costly, events))
                }
            });
            let mut names: Vec<String> = written.collect::<Result<Vec<_>>>()?.into_iter().flatten().collect();
            for levels in &pictures {
                names.push(arrays::write_rounded(&pieces, levels.bits, manifest.is_costly(levels.bits))?);
            }
            manifest.hash(self, names.into_iter(), events)?;
        }
        manifest.write(self.folder)?;
        Ok(manifest)
    }

    /// Whether the disk holds what is still to be written.
    fn room(&self) -> Result<()> {
        let needed = self.spec.least_bytes(self.world.shape().dims(), self.world.class_names().len());
        room_for(self.folder, needed.saturating_sub(bytes_within(self.folder)))
    }

    /// Makes the pictures of every split and depth, over the range of all values.
    fn pictures(&self, events: &mut dyn Events<ExportEvent>) -> Result<Vec<Levels>> {
        let depths = self.spec.depths();
        if depths.is_empty() {
            return Ok(Vec::new());
        }
        let ranges = self.spec.splits().map(|split| SplitImages::new(self, split).range());
        let range = ranges.collect::<Result<Vec<_>>>()?.into_iter().fold(range_of(&[]), joined);
        let levels = depths.into_iter().map(|bits| Levels::new(bits, range)).collect::<Result<Vec<_>>>()?;
        for split in self.spec.splits() {
            for levels in &levels {
                SplitImages::new(self, split).round(*levels, events)?;
            }
        }
        Ok(levels)
    }
}
