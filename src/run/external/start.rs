//! The task that makes the folder of an external run.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};

use super::super::files::{SPEC, claim_spec, remove_file, take_folder};
use super::spec::{
    BEGUN, Contract, ExternalFolder, ExternalSpec, FILES, FORMAT, PREDICTIONS, TEST, TestRecord, TestTruth, WorldRecord,
};
use crate::data::{sha256_of_file, wait_for_lock, write_npy};
use crate::error::{Error, Result};
use crate::events::{Events, Progress, silent};
use crate::flow::Precision;
use crate::judge::Kind;
use crate::oracle::rounding::Rounding;
use crate::oracle::world::{SampleSpec, Settings, World};
use crate::provenance::{Badge, Made, Provenance};
use crate::task::{Done, Task, TaskContext};
use crate::units::Seed;

/// Makes the folder of an external run of the open oracle, with its test images. A folder that was
/// made for the same stays as it is.
#[derive(Debug, Clone, PartialEq)]
pub struct StartExternal {
    /// The folder.
    pub folder: PathBuf,
    /// Name of the run.
    pub name: String,
    /// The oracle by the name under which it is open.
    pub oracle: String,
    /// The world's knobs.
    pub settings: Settings,
    /// Arithmetic of its passes.
    pub precision: Precision,
    /// Test images.
    pub images: usize,
    /// They are the test images of `bayescope export` with this seed.
    pub seed: Seed,
    /// What the numbers of every record will be.
    pub predictions: Kind,
    /// Different images that the network is trained on; `None` of an endless stream.
    pub train_images: Option<u64>,
}

impl Task for StartExternal {
    type Event = ();
    type Live = ();
    type Report = ExternalSpec;

    fn title(&self) -> String {
        format!("Start external run {}", self.folder.display())
    }

    fn names_its_oracle(&self) -> bool {
        true
    }

    fn run(&self, cx: &mut TaskContext<'_, ()>) -> Result<Done<ExternalSpec>> {
        let open = cx.oracle()?;
        if open.name != self.oracle {
            return Err(Error::input(format!("{} is open, the run is to be one of {}", open.name, self.oracle)));
        }
        let folder = self.make(open.world, &open.info.weights_sha256, cx)?;
        let (spec, place) = (folder.spec, self.folder.display());
        let sentence = format!("{place} waits for predictions on {} test images", spec.test.images);
        let made = spec.made(&self.folder);
        Ok(Done::new(spec, sentence).made([made]))
    }
}

impl StartExternal {
    /// Makes the folder, or finds it: then test files that are missing or were changed are drawn anew. Waits while another
    /// process makes it.
    ///
    /// # Errors
    /// At τ = 0; when the folder holds something else, the world cannot draw the images, or not to the bytes that `run.toml`
    /// names, the device or the disk fails, or the caller stops. `run.toml` is written last: a folder with it was complete.
    pub fn make(
        &self,
        world: &World,
        weights_sha256: &str,
        events: &mut dyn Events<Progress>,
    ) -> Result<ExternalFolder> {
        self.settings.check_density()?;
        let mut spec = self.spec(world, weights_sha256);
        spec.check().map_err(Error::input)?;
        if self.folder.join(SPEC).is_file() {
            return self.found(spec, world, events);
        }
        let begun = self.folder.join(BEGUN);
        let lock = self.begin(&begun, events)?;
        // Another process may have made it meanwhile.
        let made = self.folder.join(SPEC).is_file();
        if !made {
            self.fill(world, &mut spec, events)?;
        }
        // Released first, since some systems do not remove open files: who comes now finds the run.
        drop(lock);
        remove_file(&begun)?;
        if made { self.found(spec, world, events) } else { ExternalFolder::open(&self.folder) }
    }

    /// Takes a new folder, or one in which this was begun: by a process that was killed, or is at work. Returns when no
    /// other is at work, with the lock on the file that says so until the folder is complete, where there are locks.
    fn begin(&self, begun: &Path, events: &mut dyn Events<Progress>) -> Result<Option<File>> {
        match take_folder(&self.folder) {
            // Looked for afterwards: another process may have come in, and may be done.
            Err(_) if begun.is_file() || self.folder.join(SPEC).is_file() => {}
            taken => taken?,
        }
        wait_for_lock(begun, &mut || events.report(Progress { done: 0, total: self.images }))
    }

    /// Draws and writes the test images, and the spec with what was found out of them.
    fn fill(&self, world: &World, spec: &mut ExternalSpec, events: &mut dyn Events<Progress>) -> Result<()> {
        for name in [TEST, PREDICTIONS] {
            let inner = self.folder.join(name);
            std::fs::create_dir_all(&inner).map_err(|e| Error::io(&inner, e))?;
        }
        let place = self.folder.join(TEST);
        spec.test.rounding = self.write_test(world, &FILES.map(|name| place.join(name)), events)?;
        for name in FILES {
            spec.test.files.insert(name.to_owned(), sha256_of_file(&place.join(name), &mut silent())?);
        }
        claim_spec(&self.folder, spec).map(drop)
    }

    /// Draws the test images, and writes them, their labels and their posteriors into three files.
    fn write_test(&self, world: &World, files: &[PathBuf; 3], events: &mut dyn Events<Progress>) -> Result<Rounding> {
        let [images, labels, posterior] = files;
        let (truth, rounding) = self.draw(world, images, events)?;
        let y: Vec<i64> = truth.labels.iter().map(|&label| label as i64).collect();
        write_npy::<i64>(labels, &[self.images], |put| put(&y))?;
        write_npy::<f64>(posterior, &[self.images, world.class_names().len()], |put| put(&truth.posterior))?;
        Ok(rounding)
    }

    /// Makes the test files of the run that is there whole: what is missing, or is not what `run.toml` names, is drawn anew.
    /// One process at a time, as when the folder is made.
    fn mend(&self, world: &World, folder: &ExternalFolder, events: &mut dyn Events<Progress>) -> Result<()> {
        if folder.wrong_files()?.is_empty() {
            return Ok(());
        }
        let begun = self.folder.join(BEGUN);
        let lock = wait_for_lock(&begun, &mut || events.report(Progress { done: 0, total: self.images }))?;
        let mended = self.replace_wrong(world, folder, events);
        drop(lock);
        remove_file(&begun)?;
        mended
    }

    /// Draws all test files beside those that are there, and puts them in the place of the wrong ones if they have the bytes
    /// that `run.toml` names. Otherwise all stays as it is: a changed file may be the only one from which the right one can
    /// be restored.
    fn replace_wrong(&self, world: &World, folder: &ExternalFolder, events: &mut dyn Events<Progress>) -> Result<()> {
        let place = self.folder.join(TEST);
        std::fs::create_dir_all(&place).map_err(|e| Error::io(&place, e))?;
        let drawn = FILES.map(|name| place.join(format!(".again-{name}.part")));
        let replaced = self.write_test(world, &drawn, events).and_then(|_| {
            // Asked again: another process may have mended them meanwhile.
            let wrong = folder.wrong_files()?;
            let pairs: Vec<_> = FILES.into_iter().zip(&drawn).filter(|(name, _)| wrong.contains(name)).collect();
            for (name, path) in &pairs {
                if !folder.names(name, &sha256_of_file(path, &mut silent())?) {
                    return Err(Error::file(
                        place.join(name),
                        format!(
                            "is missing or is not the file that {SPEC} names, and what this device and version of the program \
                             draw in its place has other bytes: restore the file, start again on the device that made the \
                             folder, or choose another folder"
                        ),
                    ));
                }
            }
            pairs.into_iter().try_for_each(|(name, path)| {
                std::fs::rename(path, place.join(name)).map_err(|e| Error::io(place.join(name), e))
            })
        });
        for path in drawn.iter().filter(|path| path.exists()) {
            remove_file(path)?;
        }
        replaced
    }

    fn spec(&self, world: &World, weights_sha256: &str) -> ExternalSpec {
        let (Settings { tau, smoothing, prior, label_noise }, precision) = (self.settings.clone(), self.precision);
        let made_by = format!("bayescope {}", env!("CARGO_PKG_VERSION"));
        let (oracle, weights_sha256) = (self.oracle.clone(), weights_sha256.to_owned());
        let assumed_pixels = world.assumed_pixels().map(str::to_owned);
        ExternalSpec {
            name: self.name.clone(),
            external: Contract {
                format: FORMAT,
                predictions: self.predictions,
                made_by,
                train_images: self.train_images,
            },
            world: WorldRecord {
                oracle,
                weights_sha256,
                assumed_pixels,
                tau,
                smoothing,
                prior,
                label_noise,
                precision,
            },
            test: TestRecord {
                images: self.images,
                seed: self.seed,
                classes: world.class_names().to_vec(),
                shape: world.shape(),
                rounding: Rounding::default(),
                files: BTreeMap::new(),
            },
        }
    }

    /// The run that is there, where it is the one that is asked for, with its test files.
    fn found(
        &self,
        mut asked: ExternalSpec,
        world: &World,
        events: &mut dyn Events<Progress>,
    ) -> Result<ExternalFolder> {
        let folder = ExternalFolder::open(&self.folder).map_err(|error| {
            Error::file(&self.folder, format!("holds another run ({error}); choose another folder"))
        })?;
        let there = &folder.spec;
        // What was found out when it was made, and by which version.
        asked.test = TestRecord { rounding: there.test.rounding, files: there.test.files.clone(), ..asked.test };
        asked.external.made_by.clone_from(&there.external.made_by);
        asked.world.oracle.clone_from(&there.world.oracle);
        if asked == *there {
            self.mend(world, &folder, events)?;
            return Ok(folder);
        }
        let differs = [
            ("another name", asked.name != there.name),
            ("another kind of predictions", asked.external.predictions != there.external.predictions),
            ("another number of training images", asked.external.train_images != there.external.train_images),
            ("another precision", asked.world.precision != there.world.precision),
            ("another world", asked.world != there.world),
            ("other test images", asked.test != there.test),
        ];
        let differs: Vec<&str> = differs.into_iter().filter(|(_, differs)| *differs).map(|(what, _)| what).collect();
        let why = format!("holds an external run with {}; choose another folder", differs.join(", "));
        Err(Error::file(&self.folder, why))
    }

    /// Draws the test images into `file`, batch by batch; returns what is known of them.
    fn draw(&self, world: &World, file: &Path, events: &mut dyn Events<Progress>) -> Result<(TestTruth, Rounding)> {
        let (total, shape) = (self.images, world.shape());
        let spec = SampleSpec::new(total, self.seed.split("export").split("test"));
        let mut truth = TestTruth { posterior: Vec::new(), labels: Vec::new() };
        let mut rounding = Rounding::default();
        let dims = [total, shape.channels, shape.height, shape.width];
        write_npy::<f32>(file, &dims, |put| {
            for first in (0..total).step_by(world.batch().max(1)) {
                let now = Progress { done: first, total };
                events.report(now)?;
                let indices: Vec<usize> = (first..total.min(first + world.batch().max(1))).collect();
                let drawn = world.sample_watched(&spec, &self.settings, &indices, &mut |_| events.emit(now))?;
                rounding.add(&world.rounding(&drawn, &self.settings)?);
                for sample in drawn {
                    put(&sample.x)?;
                    truth.posterior.extend(&sample.posterior.probabilities);
                    truth.labels.push(sample.label);
                }
            }
            events.report(Progress { done: total, total })
        })?;
        Ok((truth, rounding))
    }
}

impl ExternalSpec {
    /// World, knobs and test images by name: what stands under its figures.
    pub(super) fn chain(&self) -> Vec<(String, String)> {
        let Self { name, external, world, test } = self;
        let noise = world.label_noise.as_ref().map(|noise| ("label noise", noise.describe()));
        let chain = [
            ("run", name.clone()),
            ("predictions", format!("{}, logged by another program", external.predictions.describe())),
            ("oracle", world.oracle.clone()),
            ("weights SHA-256", world.weights_sha256.clone()),
            ("τ", world.tau.get().to_string()),
            ("T", world.smoothing.get().to_string()),
            ("class prior π", world.prior.describe()),
            ("test images", test.images.to_string()),
            ("test seed", test.seed.0.to_string()),
        ];
        let trained = external.train_images.map(|images| ("training images N", images.to_string()));
        chain.into_iter().chain(noise).chain(trained).map(|(name, value)| (name.to_owned(), value)).collect()
    }

    /// The folder as a line of the exactness ledger.
    fn made(&self, folder: &Path) -> Made {
        let mut provenance = Provenance::new(Badge::Exact);
        for (name, value) in self.chain() {
            provenance = provenance.with(&name, &value);
        }
        Made { what: "external run".into(), place: Some(folder.display().to_string()), provenance }
    }
}
