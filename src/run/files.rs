//! Files of a run folder, of whatever kind.

use std::path::{Path, PathBuf};

use serde::Serialize;

use super::cell_lock::CellLock;
use crate::data::{FolderKind, PARTS, check_folder_kind, claim_text, is_vacant, write_atomically, write_json};
use crate::error::{Error, Result};

/// The spec of a run, of whatever kind: its ticket.
pub const SPEC: &str = "run.toml";
/// What all that is finished says.
pub const SUMMARY: [&str; 2] = ["summary.json", "summary.csv"];
/// Folder of the test images of an external run and what is known about them.
pub const TEST: &str = "test";
/// Its files: images, drawn labels, exact posteriors.
pub const TEST_FILES: [&str; 3] = ["x.npy", "y.npy", "posterior.npy"];
/// Folder of the records that another program writes.
pub const PREDICTIONS: &str = "predictions";
/// Said of a spec that is another run's.
const ANOTHER: &str = "this folder holds a run of another spec; choose another folder";
/// Said of a plan of the same spec.
pub const ANOTHER_PLAN: &str = "the cells of this run have other names: it was planned on another oracle, other data or weights, or by \
                                another version of the program; choose another folder";

/// What people say of a run.
pub const NOTES: &str = "notes.toml";
/// The cells of a run, a line each.
pub const PLAN: &str = "plan.jsonl";
/// The summary of a run that came with the program.
pub const EXAMPLE: &str = "example.json";
/// What is known about the dataset of a run that has one.
pub const DATA: &str = "data.json";
/// Hashes of the files of features of a run that has some.
pub const FEATURES: &str = "features.json";
/// Files that a grid consists of, besides its spec.
pub const FILES: &[&str] = &[SUMMARY[0], SUMMARY[1], DATA, FEATURES, EXAMPLE, PLAN];
/// Folders of runs whose contents have names of their own.
const FOLDERS: [&str; 4] = ["cells", "corpora", "pool", "worlds"];
/// Files that cells write, also in the folders of their rounds, tries and members.
const IN_CELLS: [&str; 12] = [
    "cell.lock",
    "images.json",
    "images.npz",
    "last.safetensors",
    "metrics-rest.json",
    "metrics.jsonl",
    "result.json",
    "round.json",
    "shifted.npz",
    "status.json",
    "try.json",
    "worst.json",
];

/// Whether a text can be the name of a cell's folder, and lead nowhere else.
pub fn is_id(id: &str) -> bool {
    id.len() == 16 && id.bytes().all(|c| c.is_ascii_hexdigit())
}

/// Whether a run has made what bears this name in a folder of it; unfinished files of killed processes, too.
fn is_made(folder: &str, name: &str) -> bool {
    let made = match folder {
        "cells" | "corpora" => is_id(name),
        "pool" => {
            let of_images = name.starts_with("train") || name.starts_with("test");
            of_images && [".npz", ".parts", ".rounding.json"].iter().any(|ending| name.ends_with(ending))
        }
        "worlds" => name.starts_with("tau-") && name.ends_with(".json"),
        TEST => TEST_FILES.contains(&name),
        PREDICTIONS => name.ends_with(".pred"),
        _ => false,
    };
    made || is_unfinished(name)
}

fn is_unfinished(name: &str) -> bool {
    name.starts_with('.') && name.ends_with(".part")
}

/// Whether runs have made all that lies in a folder of a cell or of parts of images, and in the folders within.
fn is_made_throughout(folder: &Path) -> Result<bool> {
    let number = |text: &str| !text.is_empty() && text.bytes().all(|c| c.is_ascii_digit());
    for (name, is_folder) in entries(folder)? {
        let made = if is_folder {
            let counted = |what: &str| name.strip_prefix(what).is_some_and(number);
            let made = name == "shifted.parts" || ["member-", "round-", "try-"].into_iter().any(counted);
            made && is_made_throughout(&folder.join(&name))?
        } else {
            let part = name.strip_suffix(".npz").is_some_and(number);
            part || is_unfinished(&name) || IN_CELLS.contains(&name.as_str())
        };
        if !made {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Names in a folder, and whether each is a folder; none where there is no folder.
fn entries(folder: &Path) -> Result<Vec<(String, bool)>> {
    let failed = |e| Error::io(folder, e);
    let listed = match std::fs::read_dir(folder) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        listed => listed.map_err(failed)?,
    };
    let entry = |entry: std::io::Result<std::fs::DirEntry>| {
        let entry = entry.map_err(failed)?;
        Ok((entry.file_name().to_string_lossy().into_owned(), entry.file_type().map_err(failed)?.is_dir()))
    };
    listed.map(entry).collect()
}

/// What lies in a folder of a run, and whether each is a folder; `None` where runs have not made all of it. What lies within
/// corpora is not looked at.
fn made_in(run: &Path, folder: &str) -> Result<Option<Vec<(PathBuf, bool)>>> {
    let mut made = Vec::new();
    for (name, is_folder) in entries(&run.join(folder))? {
        let path = run.join(folder).join(&name);
        let as_made = is_made(folder, &name) && is_folder == (is_id(&name) || name.ends_with(".parts"));
        if !as_made || (is_folder && folder != "corpora" && !is_made_throughout(&path)?) {
            return Ok(None);
        }
        made.push((path, is_folder));
    }
    Ok(Some(made))
}

/// What a run left whose spec is gone and another would take for its own, and whether each is a folder: it was deleted under a
/// process that went on writing. `None` where the folder holds anything else. Cells and corpora stay: those of another spec have
/// other names, and what is finished is worth keeping.
///
/// # Errors
/// Where a process still computes one of the cells, which it names.
fn remains(run: &Path) -> Result<Option<Vec<(PathBuf, bool)>>> {
    let (mut left, mut begun) = (Vec::new(), false);
    for (name, is_folder) in entries(run)?.into_iter().filter(|(name, _)| !name.starts_with('.')) {
        if is_folder && FOLDERS.contains(&name.as_str()) {
            let Some(made) = made_in(run, &name)? else { return Ok(None) };
            if name != "cells" && name != "corpora" {
                left.extend(made);
                continue;
            }
            for (cell, _) in made.iter().filter(|(_, is_folder)| *is_folder) {
                begun = true;
                if let Some(holder) = CellLock::held_by(cell)? {
                    let why = "still computes here for a run that was deleted; stop it first, or choose another folder";
                    return Err(Error::file(run, format!("{holder} {why}")));
                }
            }
        } else if !is_folder && SUMMARY.contains(&name.as_str()) {
            left.push((run.join(&name), false));
        } else {
            return Ok(None);
        }
    }
    // Without cells, images and files of these names may be anybody's.
    Ok(Some(left).filter(|left| begun || left.is_empty()))
}

/// Takes a folder for a run, and makes it: it is new, or a run is there. Images and Bayes errors that a deleted run left are
/// deleted: they have the names of the new one's, and may be those of another world.
///
/// # Errors
/// When it holds something else, a process still computes in it, or it cannot be made.
pub fn take_folder(run: &Path) -> Result<()> {
    check_folder_kind(run, Some(FolderKind::Run))?;
    std::fs::create_dir_all(run).map_err(|e| Error::io(run, e))?;
    // In this order: another process may come in, and writes its spec first.
    if is_vacant(run, PARTS)? || run.join(SPEC).is_file() {
        return Ok(());
    }
    let left = remains(run)?;
    // Looked for again: what was found may be the other process's.
    if run.join(SPEC).is_file() {
        return Ok(());
    }
    let Some(left) = left else {
        return Err(Error::file(run, "is not empty and holds no run; choose a new folder for the run"));
    };
    for (path, is_folder) in left {
        // What stays would be taken, so that every other error ends this.
        if let Err(e) = delete(&path, is_folder)
            && e.kind() != std::io::ErrorKind::NotFound
        {
            return Err(Error::io(&path, e));
        }
    }
    Ok(())
}

/// Writes the spec of a run into its folder, which is made with it, or finds the same spec there.
pub fn write_spec(run: &Path, spec: &impl Serialize) -> Result<PathBuf> {
    take_folder(run)?;
    claim_spec(run, spec)
}

/// [`write_spec`] in a folder that was taken.
pub fn claim_spec(run: &Path, spec: &impl Serialize) -> Result<PathBuf> {
    let file = run.join(SPEC);
    claim_text(&file, &spec_text(&file, spec)?, ANOTHER)?;
    Ok(file)
}

/// What the spec of a run in `file` reads.
pub fn spec_text(file: &Path, spec: &impl Serialize) -> Result<String> {
    toml::to_string_pretty(spec).map_err(|e| Error::file(file, e.to_string()))
}

/// Deletes what runs write in these folders and files of a run, its spec last, and every folder that is empty then:
/// what else somebody keeps there stays.
///
/// # Errors
/// Names what cannot be deleted.
pub fn delete_parts(run: &Path, parts: (&[&str], &[&str])) -> Result<()> {
    clear_parts(run, parts)?;
    remove_file(&run.join(NOTES))?;
    remove_file(&run.join(SPEC))?;
    gone(run, std::fs::remove_dir(run))
}

/// Deletes what runs write in these folders of a run, and these files; its spec and notes stay.
///
/// # Errors
/// Names what cannot be deleted.
pub fn clear_parts(run: &Path, (folders, files): (&[&str], &[&str])) -> Result<()> {
    for folder in folders {
        let inner = run.join(folder);
        for (name, is_folder) in entries(&inner)?.into_iter().filter(|(name, _)| is_made(folder, name)) {
            let path = inner.join(name);
            gone(&path, delete(&path, is_folder))?;
        }
        gone(&inner, std::fs::remove_dir(&inner))?;
    }
    files.iter().try_for_each(|name| remove_file(&run.join(name)))
}

fn delete(path: &Path, is_folder: bool) -> std::io::Result<()> {
    if is_folder { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) }
}

/// Removes a file that may be gone already.
///
/// # Errors
/// Names it.
pub fn remove_file(file: &Path) -> Result<()> {
    gone(file, std::fs::remove_file(file))
}

/// What was to be deleted is gone, or is a folder in which somebody keeps something.
fn gone(path: &Path, done: std::io::Result<()>) -> Result<()> {
    use std::io::ErrorKind;
    match done {
        Err(e) if !matches!(e.kind(), ErrorKind::NotFound | ErrorKind::DirectoryNotEmpty) => Err(Error::io(path, e)),
        _ => Ok(()),
    }
}

/// Writes what is finished of a run as JSON and CSV.
pub fn write_summary(run: &Path, found: &impl Serialize, csv: &str) -> Result<()> {
    let [json, table] = SUMMARY.map(|name| run.join(name));
    write_json(&json, found)?;
    write_atomically(&table, |file| file.write_all(csv.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(file: &Path) {
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, "mine").unwrap();
    }

    #[test]
    fn a_run_begins_in_no_folder_of_somebody_else() {
        let place = tempfile::tempdir().unwrap();
        let taken = |name: &str, files: &[&str]| {
            let run = place.path().join(name);
            files.iter().for_each(|file| write(&run.join(file)));
            take_folder(&run).map_err(|error| error.to_string())
        };
        let cell = "cells/0123456789abcdef/status.json";
        assert_eq!(taken("new/one", &[]), Ok(()));
        assert_eq!(taken("hidden", &[".run.toml.x.part", ".DS_Store"]), Ok(()));
        assert_eq!(taken("begun", &["run.toml"]), Ok(()));
        assert_eq!(taken("deleted", &[cell, "pool/test.npz", "summary.json"]), Ok(()));
        for (name, files) in [
            ("results", &["summary.json", "summary.csv"][..]),
            ("arrays", &["test/x.npy"]),
            ("thesis", &[cell, "thesis.tex"]),
            ("cells of others", &["cells/monocyte/1.png"]),
            ("images of others", &["pool/train.npz", "pool/test.npz"]),
            ("notes", &[cell, "pool/test.npz", "pool/testament.txt"]),
            ("notes in a cell", &[cell, "cells/0123456789abcdef/round-1/notes.txt"]),
            ("notes among parts", &[cell, "pool/test.parts/00000000.npz", "pool/test.parts/notes.txt"]),
            // Nobody deleted this run: a plan goes before the spec.
            ("planned", &[cell, "plan.jsonl"]),
        ] {
            let why = taken(name, files).unwrap_err();
            assert!(why.contains(name) && why.contains("choose a new folder"), "{why}");
            assert!(files.iter().all(|file| place.path().join(name).join(file).is_file()), "{name}");
        }
    }

    #[test]
    fn what_a_deleted_run_left_is_gone_before_another_one_begins() {
        let place = tempfile::tempdir().unwrap();
        let run = place.path().join("run");
        let left = [
            "cells/0123456789abcdef/status.json",
            "cells/0123456789abcdef/round-0/member-1/last.safetensors",
            "pool/test.npz",
            "pool/test.rounding.json",
            "pool/train-0-tau-1.3.parts/00000256.npz",
            "pool/.train-0.npz.machine.7.Xy12Zq.part",
            "summary.json",
            "worlds/tau-1.json",
        ];
        left.iter().chain(&[".DS_Store"]).for_each(|file| write(&run.join(file)));
        // Of a run that is there everything is kept.
        write(&run.join(SPEC));
        take_folder(&run).unwrap();
        assert!(left.iter().all(|file| run.join(file).is_file()));
        std::fs::remove_file(run.join(SPEC)).unwrap();
        take_folder(&run).unwrap();
        // Cells of another spec have other names.
        for (folder, names) in [
            ("", &[".DS_Store", "cells", "pool", "worlds"][..]),
            ("cells", &["0123456789abcdef"]),
            ("pool", &[]),
            ("worlds", &[]),
        ] {
            let mut there: Vec<String> =
                entries(&run.join(folder)).unwrap().into_iter().map(|(name, _)| name).collect();
            there.sort();
            assert_eq!(there, names, "{folder}");
        }
    }

    #[test]
    fn no_run_begins_where_a_process_computes_for_a_deleted_one() {
        let place = tempfile::tempdir().unwrap();
        let (run, pool) = (place.path().join("run"), place.path().join("run/pool/test.npz"));
        let lock = CellLock::take(&run.join("cells/0123456789abcdef")).unwrap().unwrap();
        write(&pool);
        let why = take_folder(&run).unwrap_err().to_string();
        assert!(why.contains(&format!("process {}", std::process::id())) && why.contains("stop it first"), "{why}");
        assert!(pool.is_file());
        drop(lock);
        take_folder(&run).unwrap();
        assert!(!pool.exists());
    }

    #[test]
    fn only_what_runs_write_is_deleted() {
        let place = tempfile::tempdir().unwrap();
        let run = place.path().join("run");
        let ours = ["run.toml", "notes.toml", "plan.jsonl", "cells/0123456789abcdef/result.json", "pool/train-0.npz"];
        let theirs = ["pool/thesis.tex", "worlds/map.png", "letter.txt"];
        ours.iter().chain(&theirs).for_each(|file| write(&run.join(file)));
        delete_parts(&run, (&["cells", "pool", "worlds"], FILES)).unwrap();
        assert!(ours.iter().all(|file| !run.join(file).exists()) && !run.join("cells").exists());
        assert!(theirs.iter().all(|file| run.join(file).exists()));
        theirs.iter().for_each(|file| std::fs::remove_file(run.join(file)).unwrap());
        delete_parts(&run, (&["cells", "pool", "worlds"], FILES)).unwrap();
        assert!(!run.exists());
    }
}
