//! A small work disturbed in every way, and who is refused.

use std::collections::BTreeSet;

use rand::RngExt;

use super::*;
use crate::data::{machine, write_atomically};
use crate::units::Seed;

const KIND: StoreKind =
    StoreKind { ticket: "count.json", work: "count", result: "list of numbers", folder: Some(FolderKind::Dataset) };
const RESULT: &str = "numbers.bin";

/// The numbers of a range as the file of a piece.
fn numbers(range: Range<usize>) -> Vec<u8> {
    range.flat_map(|i| (i as u64 * i as u64).to_le_bytes()).collect()
}

fn pieces(folder: &Path, items: usize) -> Pieces {
    Pieces { folder: folder.join(PARTS), prefix: "squares-".into(), digits: 3, items, each: 7 }
}

/// Lists the first squares and their number, stopped after so many pieces; how many were made.
fn count(folder: &Path, items: usize, most: usize) -> Result<usize> {
    let store = Store::begin(folder, &KIND, &Ticket { world: "weights".into(), spec: items })?;
    let lock = store.lock()?;
    let (result, mut made) = (folder.join(RESULT), 0);
    if !result.is_file() {
        let pieces = pieces(folder, items);
        let read = |path: &Path| std::fs::read(path).unwrap();
        for range in pieces.missing("bin", |path, items| read(path).len() == 8 * items) {
            if made == most {
                return Err(Error::Cancelled);
            }
            made += 1;
            write_atomically(&pieces.file(&range, "bin"), |out| out.write_all(&numbers(range)))?;
        }
        let mut all: Vec<u8> = pieces.ranges().flat_map(|range| read(&pieces.file(&range, "bin"))).collect();
        all.extend(store.value("items.json", || Ok(items))?.to_le_bytes());
        write_atomically(&result, |out| out.write_all(&all))?;
    }
    drop(lock);
    store.finish();
    Ok(made)
}

fn names(folder: &Path) -> BTreeSet<String> {
    std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

/// Takes away pieces, tears others, and leaves what a process leaves that dies while it writes one.
fn disturb(pieces: &Pieces, rng: &mut impl RngExt) {
    for range in pieces.ranges() {
        let file = pieces.file(&range, "bin");
        match rng.random_range(0..6) {
            0 => drop(std::fs::remove_file(&file)),
            1 if file.is_file() => {
                let length = rng.random_range(0..8 * range.len() as u64);
                File::options().write(true).open(&file).unwrap().set_len(length).unwrap();
            }
            2 => {
                let name = format!(".{}.{}.{}.Xy12Zq.part", range.start, machine(), u32::MAX);
                std::fs::write(pieces.folder.join(name), [1; 9]).unwrap();
            }
            _ => {}
        }
    }
    if rng.random_bool(0.3) {
        std::fs::write(pieces.folder.join("items.json"), "{").unwrap();
    }
}

#[test]
fn whatever_happens_on_the_way_the_end_is_the_same() {
    for trial in 0..40 {
        let place = tempfile::tempdir().unwrap();
        let (folder, mut rng) = (place.path().join("out"), Seed(1).rng(trial));
        let items = rng.random_range(1..60);
        for _ in 0..rng.random_range(0..5) {
            let stopped = count(&folder, items, rng.random_range(0..4));
            assert!(matches!(stopped, Ok(_) | Err(Error::Cancelled)), "{stopped:?}");
            if stopped.is_err() {
                disturb(&pieces(&folder, items), &mut rng);
            }
        }
        let both = rayon::join(|| count(&folder, items, usize::MAX), || count(&folder, items, usize::MAX));
        assert!(both.0.is_ok() || both.1.is_ok(), "{both:?}");
        assert_eq!(count(&folder, items, 0).unwrap(), 0);
        let whole = [numbers(0..items), items.to_le_bytes().to_vec()].concat();
        assert_eq!(std::fs::read(folder.join(RESULT)).unwrap(), whole, "trial {trial}");
        assert_eq!(names(&folder), [KIND.ticket, RESULT].map(str::to_owned).into());
    }
}

#[test]
fn no_sound_piece_is_made_again() {
    let place = tempfile::tempdir().unwrap();
    assert!(count(place.path(), 30, 3).is_err());
    assert_eq!(count(place.path(), 30, usize::MAX).unwrap(), 2, "three of five pieces were there");
}

#[test]
fn another_work_and_another_process_are_refused() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("out");
    let refused = |folder: &Path, items| count(folder, items, 0).unwrap_err().to_string();
    assert_eq!(refused(&folder, 8), "cancelled");
    let said = refused(&folder, 9);
    assert!(said.contains("count.json") && said.contains("holds another count (spec is 8 there, 9 here)"), "{said}");
    let foreign = place.path().join("foreign");
    std::fs::create_dir(&foreign).unwrap();
    std::fs::write(foreign.join(KIND.ticket), "{}").unwrap();
    let said = refused(&foreign, 8);
    assert!(said.contains("count.json: cannot be read") && said.contains("choose another folder"), "{said}");
    let lock = Store::of(Some(&folder), &KIND).lock().unwrap();
    let said = refused(&folder, 8);
    assert!(said.contains(PARTS) && said.contains("another process is writing this list of numbers"), "{said}");
    drop(lock);
    assert_eq!(refused(&folder, 8), "cancelled");
    // Pieces without a ticket are nobody's.
    std::fs::remove_file(folder.join(KIND.ticket)).unwrap();
    assert!(refused(&folder, 8).contains("is not empty; choose a new folder for the list of numbers"));
    std::fs::remove_dir_all(folder.join(PARTS)).unwrap();
    std::fs::write(folder.join("mine.txt"), "mine").unwrap();
    assert!(refused(&folder, 8).contains("is not empty"));
    std::fs::remove_file(folder.join("mine.txt")).unwrap();
    // What a process killed in its first moment leaves is in nobody's way.
    std::fs::write(folder.join(".count.json.here.7.Xy12Zq.part"), "{").unwrap();
    assert_eq!(refused(&folder, 8), "cancelled");
    let oracle = place.path().join("oracle");
    std::fs::create_dir(&oracle).unwrap();
    std::fs::write(oracle.join("oracle.json"), "{}").unwrap();
    assert!(refused(&oracle, 8).contains("holds an oracle"));
}

#[test]
fn without_a_folder_nothing_is_kept() {
    let store = Store::of(None, &KIND);
    assert!(store.lock().unwrap().is_none());
    assert_eq!((store.value("a", || Ok(1)).unwrap(), store.value("a", || Ok(2)).unwrap()), (1, 2));
    store.finish();
}
