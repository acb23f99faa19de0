//! Finished runs that come with the program: spec, plan and what came out, without images, networks and courses. Their specs
//! lie in `docs/results`, `docs/results/pack` makes the archives of their folders.

use std::io::Read;
use std::path::Path;

use flate2::read::GzDecoder;

use super::cells::Run;
use super::files::{EXAMPLE, PLAN, SPEC, SUMMARY, clear_parts, remove_file, spec_text};
use super::folder::RunFolder;
use crate::data::{read_bytes, write_atomically, write_json};
use crate::error::{Error, Result};
use crate::experiment::{ExperimentSpec, Summary};

/// What an archive holds: the spec, the plan and the summary.
const FILES: [&str; 3] = [SPEC, PLAN, EXAMPLE];
/// Bytes that a file may unpack to.
const LARGEST: u64 = 64 << 20;

/// A finished run, inside the program.
#[derive(Debug, Clone, Copy)]
pub struct Example {
    /// Its name.
    pub name: &'static str,
    /// What it shows, for a list.
    pub about: &'static str,
    archive: &'static [u8],
}

macro_rules! examples {
    ($($name:literal: $about:literal;)*) => {
        /// All of them.
        pub static EXAMPLES: &[Example] = &[$(Example {
            name: $name,
            about: $about,
            archive: include_bytes!(concat!("../../assets/examples/", $name, ".tar.gz")),
        }),*];
    };
}

examples! {
    "figure-4-fashion": "EBO figure 4 in the world of clothes: four networks on 60,000 images, beside the Bayes error";
    "figure-4-alexnet": "EBO figure 4 in the world of clothes: AlexNet on the same 60,000 images, scaled to 64×64";
    "temperature-60000": "EBO figure 3 in the world of digits: a ConvNet on 60,000 images at nine temperatures, beside the Bayes error";
    "scaling-cells": "BLC figure 2 in the world of blood cells: three networks, N to 10,000, three seeds";
    "soft-labels-cells": "BLC §4.2 in the world of blood cells: a ConvNet told four kinds of labels, N = 100 to 3,000, three seeds";
    "active-learning-cells": "BLC §4.4 in the world of blood cells: six strategies, 100 to 600 labels of 2,000 cells, three seeds";
}

impl Example {
    /// The example of that name.
    pub fn find(name: &str) -> Option<&'static Self> {
        EXAMPLES.iter().find(|example| example.name == name)
    }

    /// Writes its run folder, or finds it there. The example of an older program, whose spec was another, gives it its place.
    ///
    /// # Errors
    /// When the folder holds another run or something else, or cannot be written.
    pub fn unpack(&self, folder: &Path) -> Result<()> {
        let broken = |why: &str| Error::input(format!("the example {}: {why}", self.name));
        let mut archive = tar::Archive::new(GzDecoder::new(self.archive));
        let mut found: [Option<String>; 3] = Default::default();
        for entry in archive.entries().map_err(|e| broken(&e.to_string()))? {
            let entry = entry.map_err(|e| broken(&e.to_string()))?;
            let path = entry.path().map_err(|e| broken(&e.to_string()))?.into_owned();
            let place = FILES.iter().position(|name| Path::new(name) == path);
            let Some(text) = place.and_then(|place| found.get_mut(place)) else { continue };
            entry.take(LARGEST).read_to_string(text.insert(String::new())).map_err(|e| broken(&e.to_string()))?;
        }
        let [Some(spec), Some(plan), Some(summary)] = &found else { return Err(broken("a file is missing")) };
        let said: Summary = serde_json::from_slice(summary.as_bytes()).map_err(|e| broken(&e.to_string()))?;
        let spec: ExperimentSpec = toml::from_str(spec).map_err(|e| broken(&e.to_string()))?;
        let write =
            |name: &str, text: &str| write_atomically(&folder.join(name), |file| file.write_all(text.as_bytes()));
        make_way(folder, &spec)?;
        RunFolder::write_spec(folder, &spec)?;
        write(PLAN, plan)?;
        let run = RunFolder::open(folder)?;
        for result in &said.cells {
            let cell = run.cell(&result.id);
            std::fs::create_dir_all(&cell).map_err(|e| Error::io(&cell, e))?;
            write_json(&run.result_path(&result.id), result)?;
        }
        // Last: it says that all cells are finished.
        write(EXAMPLE, summary)
    }
}

/// Replaces the example of an older program, whose spec was another, by one without results; what people said of it stays.
/// Until the new spec is there, a folder in which this was interrupted is that of the older example.
fn make_way(folder: &Path, spec: &ExperimentSpec) -> Result<()> {
    let (file, example) = (folder.join(SPEC), folder.join(EXAMPLE));
    let text = spec_text(&file, spec)?;
    if !example.is_file() || read_bytes(&file).is_ok_and(|there| there == text.as_bytes()) {
        return Ok(());
    }
    clear_parts(folder, (&["cells"], &[PLAN, SUMMARY[0], SUMMARY[1]]))?;
    write_atomically(&file, |file| file.write_all(text.as_bytes()))?;
    remove_file(&example)
}

impl RunFolder {
    /// Returns whether it came with the program, so that its summary is all there is.
    pub(super) fn is_example(&self) -> bool {
        self.path.join(EXAMPLE).is_file()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::PRESETS;
    use crate::run::RunNotes;

    #[test]
    fn an_example_opens_as_a_finished_run_and_says_what_its_summary_says() {
        let place = tempfile::tempdir().unwrap();
        for example in EXAMPLES {
            let folder = place.path().join(example.name);
            // Twice: it may be there already.
            for _ in 0..2 {
                example.unpack(&folder).unwrap();
            }
            let run = RunFolder::open(&folder).unwrap();
            let summary = run.summary().unwrap();
            let counted = (summary.planned, summary.finished);
            assert!(run.spec.name == example.name && counted == (run.plan.len(), run.plan.len()), "{counted:?}");
            assert!(run.look().unwrap().iter().all(|cell| cell.finished));
            for fits in summary.laws.iter().filter_map(|law| law.fits.as_ref()) {
                assert_eq!((fits.verdict, fits.sentence.clone()), fits.told_anew(), "{}: pack it anew", example.name);
            }
            let why = run.worst_images(&run.plan[0].id).unwrap_err().to_string();
            assert!(why.contains(&format!("bayescope run docs/results/{}.toml", example.name)), "{why}");
            // The world of the plan is bundled, so its figures say of which weights they are.
            assert!(run.world_sha256().is_some(), "{}", example.name);
            assert!(!run.figures(&summary, None).is_empty() && !summary.tables().is_empty());
            // Its spec is the one that makes it anew.
            let spec = Path::new("docs/results").join(format!("{}.toml", example.name));
            assert_eq!(ExperimentSpec::read(&spec).unwrap(), run.spec, "{}", example.name);
            RunFolder::delete(&folder).unwrap();
            assert!(!folder.exists());
        }
    }

    #[test]
    fn an_example_that_is_not_whole_is_summarised_and_says_so_itself_last() {
        let place = tempfile::tempdir().unwrap();
        let [whole, part] = ["whole", "part"].map(|name| place.path().join(name));
        EXAMPLES[0].unpack(&whole).unwrap();
        let run = RunFolder::open(&whole).unwrap();
        // With a file missing, the example still says that all is finished.
        std::fs::remove_file(run.result_path(&run.plan[0].id)).unwrap();
        assert_eq!(run.write_summary().unwrap().finished, run.plan.len());
        // Unpacking that fails on the way leaves a run that is not finished.
        RunFolder::write_spec(&part, &run.spec).unwrap();
        std::fs::write(part.join("cells"), "in the way").unwrap();
        EXAMPLES[0].unpack(&part).unwrap_err();
        assert!(part.join(PLAN).is_file() && !part.join(EXAMPLE).exists());
    }

    #[test]
    fn bands_of_laws_from_a_file_say_what_they_hold() {
        let place = tempfile::tempdir().unwrap();
        Example::find("scaling-cells").unwrap().unpack(place.path()).unwrap();
        let run = RunFolder::open(place.path()).unwrap();
        let figures = run.figures(&run.summary().unwrap(), None);
        let caption = &figures.iter().find(|figure| figure.id == "scaling-loss").unwrap().caption;
        let said =
            ["draws the test images anew", "bands are those of laws read from a file", "counts as one of all runs"];
        assert!(said.iter().all(|said| caption.contains(said)), "{caption}");
    }

    #[test]
    fn an_example_takes_the_place_of_an_older_one_and_of_no_other_run() {
        let place = tempfile::tempdir().unwrap();
        RunFolder::write_spec(place.path(), &PRESETS[0].spec().unwrap()).unwrap();
        let before = std::fs::read(place.path().join(SPEC)).unwrap();
        assert!(EXAMPLES[0].unpack(place.path()).unwrap_err().to_string().contains("another spec"));
        assert_eq!(std::fs::read(place.path().join(SPEC)).unwrap(), before);
        assert!(!place.path().join(EXAMPLE).exists());
        // But what an older program unpacked there goes, and what people said of it stays.
        // Where that was interrupted there is no plan.
        for (name, text) in [("figure.pdf", "mine"), (EXAMPLE, "{}")] {
            std::fs::write(place.path().join(name), text).unwrap();
        }
        let said = RunNotes::typed("Mine", "paper, clothes", "for chapter 3");
        said.write(place.path()).unwrap();
        EXAMPLES[0].unpack(place.path()).unwrap();
        assert_eq!(RunFolder::open(place.path()).unwrap().spec.name, EXAMPLES[0].name);
        assert_eq!(RunNotes::read(place.path()).unwrap(), said);
        assert!(place.path().join("figure.pdf").is_file() && RunFolder::open(place.path()).unwrap().is_example());
    }
}
