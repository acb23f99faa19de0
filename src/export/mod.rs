//! Exports a dataset of a world: images with their exact posteriors, as arrays or pictures.
//!
//! The float tensors are the reference: only for them posteriors are exact (theory §1). Pictures
//! have 16 bits a value, which hardly change a posterior, or 8, which may. Beside them stand the
//! posteriors of the rounded images and their distance from the exact ones.
//!
//! An export consists of pieces of a few thousand images, each written atomically. A killed one
//! continues with the first missing piece. At the end the files are assembled piece by piece, so at
//! most one piece is in memory. `dataset.json` is written last: a folder with it is complete.
//!
//! | file | what |
//! |---|---|
//! | `spec` | spec and events |
//! | `mod` | the order of the work |
//! | `pieces` | images drawn and stored in pieces |
//! | `rounded`, `depth` | pictures of samples and what rounding does to posteriors; the same over all depths |
//! | `arrays`, `parquet`, `pictures` | the files |
//! | `manifest` | `dataset.json` and the card beside it |
//! | `task` | tasks of the window and the command line |

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

use crate::data::{FolderKind, Levels, Store, StoreKind, Ticket, check_disk_space, folder_size, range_of, union_range};
use crate::error::Result;
use crate::events::Events;
use crate::experiment::{Drawing, Facts};
use crate::oracle::folder::OracleInfo;
use crate::oracle::world::World;

pub use depth::{COSTLY_NATS, Depth, DepthCost, DepthCurve, depth_curve};
pub use manifest::{Manifest, SplitRecord};
pub use spec::{ExportEvent, ExportSpec, Format, KeptDraws, Stage};
pub use task::{ExportDataset, MeasureDepth};

use pieces::SplitImages;
use spec::Work;

/// What its pieces are kept for.
const EXPORT: StoreKind =
    StoreKind { ticket: "export.json", work: "export", result: "dataset", folder: Some(FolderKind::Dataset) };

/// Draws for the figures of a world without integrals, at least and at most. They are kept, so that
/// the next export of this world at this τ has them.
const LEAST_DRAWS: usize = 1 << 10;
const MOST_DRAWS: usize = 20 << 10;
/// Images of an export to each of these draws: with 16-bit pictures, which are scored once more, it
/// takes no more than twice the time of its images.
const IMAGES_PER_DRAW: usize = 4;

/// Exports a dataset into a folder, or continues there. Returns a complete one as it is, when its
/// files are those that were written.
///
/// # Errors
/// When the world cannot fulfil the spec, the folder holds something else, files of a complete
/// dataset are missing or changed, the device or the disk fails, or the caller stops. Finished pieces
/// are kept.
pub fn export(
    world: &World,
    info: &OracleInfo,
    spec: &ExportSpec,
    folder: &Path,
    kept: &KeptDraws<'_>,
    events: &mut dyn Events<ExportEvent>,
) -> Result<Manifest> {
    spec.validate()?;
    let work = Work { world, info, spec, folder, kept };
    let store = work.begin()?;
    let manifest = match Manifest::read(folder)? {
        Some(manifest) => {
            manifest.check_files(folder, events)?;
            manifest
        }
        None => work.make(&store, events)?,
    };
    // The pieces are as large as the dataset.
    store.finish();
    Ok(manifest)
}

impl Work<'_> {
    /// Takes a new folder, or one in which this export was begun.
    fn begin(&self) -> Result<Store> {
        if !EXPORT.is_begun(self.folder) {
            // Refused before the folder is taken, so that it is free for a smaller one.
            self.check_space()?;
        }
        let ticket = Ticket { world: self.info.world_id(), spec: self.spec.clone() };
        Store::begin(self.folder, &EXPORT, &ticket)
    }

    /// Draws what is missing, puts the files together, and writes `dataset.json`.
    fn make(&self, store: &Store, events: &mut dyn Events<ExportEvent>) -> Result<Manifest> {
        let _lock = store.lock()?;
        // Another process may have written the last file just before this one came in.
        if let Some(manifest) = Manifest::read(self.folder)? {
            return Ok(manifest);
        }
        self.check_space()?;
        for split in self.spec.splits() {
            SplitImages::new(self, split).draw(events)?;
        }
        let pictures = self.pictures(events)?;
        let facts = store.value("facts.json", || self.facts(events))?;
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

    /// The figures of the world.
    fn facts(&self, events: &mut dyn Events<ExportEvent>) -> Result<Facts> {
        let drawing = Drawing {
            draws: draws_of(self.spec.train.saturating_add(self.spec.test)),
            cache: self.kept.cache,
            world_id: &self.info.world_id(),
            device: self.kept.device,
        };
        let mut forward = |progress| events.emit(ExportEvent { stage: Stage::Figures, progress });
        Facts::of(self.world, &self.spec.settings, self.spec.seed.split("figures"), &drawing, &mut forward)
    }

    /// Refuses when the disk has no room for what is still to be written.
    fn check_space(&self) -> Result<()> {
        let needed = self.spec.least_bytes(self.world.shape().dims(), self.world.class_names().len());
        check_disk_space(self.folder, needed.saturating_sub(folder_size(self.folder)))
    }

    /// Makes the pictures of every split and depth, over the range of all values.
    fn pictures(&self, events: &mut dyn Events<ExportEvent>) -> Result<Vec<Levels>> {
        let depths = self.spec.depths();
        if depths.is_empty() {
            return Ok(Vec::new());
        }
        let ranges = self.spec.splits().map(|split| SplitImages::new(self, split).range());
        let range = ranges.collect::<Result<Vec<_>>>()?.into_iter().fold(range_of(&[]), union_range);
        let levels = depths.into_iter().map(|bits| Levels::new(bits, range)).collect::<Result<Vec<_>>>()?;
        for split in self.spec.splits() {
            for levels in &levels {
                SplitImages::new(self, split).round(*levels, events)?;
            }
        }
        Ok(levels)
    }
}

/// Draws for the figures of the world of so many exported images: of these alone, so that the same
/// export says the same, whatever the cache has.
fn draws_of(images: usize) -> usize {
    // Whole multiples of the least: what a smaller export has kept serves a larger one.
    images.div_ceil(IMAGES_PER_DRAW).clamp(LEAST_DRAWS, MOST_DRAWS) / LEAST_DRAWS * LEAST_DRAWS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_of_a_world_take_a_part_of_the_images_between_their_ends() {
        for images in [1, 110, 4096, 12_000, 60_000, 10_000_000, usize::MAX] {
            let draws = draws_of(images);
            assert!(
                (LEAST_DRAWS..=MOST_DRAWS).contains(&draws) && draws.is_multiple_of(LEAST_DRAWS),
                "{images}: {draws}"
            );
            assert!(draws == LEAST_DRAWS || draws <= images / IMAGES_PER_DRAW + 1, "{images}: {draws}");
        }
        assert!(draws_of(12_000) > LEAST_DRAWS && draws_of(usize::MAX) == MOST_DRAWS);
    }
}
