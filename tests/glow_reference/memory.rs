//! Files of hundreds of megabytes to several gigabytes open in the memory of what is taken from them. The files are holes:
//! they take no disk. Memory is the kernel's count of a process of its own.

use std::path::Path;

use bayescope::flow::weights::WeightFile;

use crate::forge::{self, Content, dict, tensor};

/// Tells this test binary, started again, which file to read.
const FILE: &str = "BAYESCOPE_TEST_WEIGHT_FILE";
/// Bytes of an array that nobody wants, and of each that is read in turn.
const UNWANTED: u64 = 400 << 20;
const BLOCK: u64 = 16 << 20;
const BLOCKS: usize = 12;
/// Pieces, directory and what the allocator keeps.
const SPARE_KIB: u64 = 8 << 10;

/// Most memory this process has had, KiB.
fn peak_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches("kB").trim().parse().unwrap()
}

/// Not a test by itself: what the process of its own does.
#[test]
fn in_a_process_of_its_own() {
    let Some(path) = std::env::var_os(FILE) else { return };
    let before = peak_kib();
    let mut file = WeightFile::open(Path::new(&path)).unwrap();
    let opened = peak_kib();
    assert_eq!(file.take("small").unwrap(), [1.0, 2.0]);
    let small = peak_kib();
    assert_eq!(file.shape("unwanted"), Some(&[UNWANTED as usize / 4][..]));
    for block in 0..BLOCKS {
        let name = format!("block{block}");
        assert_eq!(file.take(&name).unwrap().len(), BLOCK as usize / 4);
    }
    println!("memory {} {} {} {}", before, opened - before, small - before, peak_kib() - before);
}

/// Memory in KiB: of the process before, and how much more it took to open the file, take a small array, and take the
/// blocks one by one.
fn measure(path: &Path) -> [u64; 4] {
    let mut command = std::process::Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "memory::in_a_process_of_its_own", "--nocapture", "--test-threads=1"]).env(FILE, path);
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
    let line = text.lines().find_map(|line| line.split("memory ").nth(1)).unwrap();
    let numbers: Vec<u64> = line.split_whitespace().map(|n| n.parse().unwrap()).collect();
    numbers.try_into().unwrap()
}

fn check(path: &Path) {
    let [before, open, small, blocks] = measure(path);
    let name = path.file_name().unwrap().display();
    let size = std::fs::metadata(path).unwrap().len() >> 10;
    println!("{name}: {size} KiB; process {before} KiB, + {open} open, + {small} one array, + {blocks} block by block");
    assert!(open < SPARE_KIB && small < SPARE_KIB, "{name}");
    assert!(blocks < SPARE_KIB + (BLOCK >> 10), "{name}");
}

fn names() -> Vec<String> {
    (0..BLOCKS).map(|block| format!("block{block}")).collect()
}

/// (name, bytes, content) of every array.
fn arrays(names: &[String], unwanted: u64) -> Vec<(&str, Content)> {
    let blocks = names.iter().map(|name| (name.as_str(), Content::Hole(BLOCK)));
    let unwanted = ("unwanted", Content::Hole(unwanted));
    [unwanted].into_iter().chain(blocks).chain([("small", Content::floats(&[1.0, 2.0]))]).collect()
}

/// Each array in the storage of its name.
fn object(arrays: &[(&str, Content)]) -> Vec<u8> {
    let tensors: Vec<_> = arrays
        .iter()
        .map(|(name, content)| {
            let length = content.len() as usize / 4;
            (*name, tensor("Float", name, length, 0, &[length], &[1]))
        })
        .collect();
    dict(&tensors)
}

fn skipped() -> bool {
    let skipped = !cfg!(target_os = "linux");
    if skipped {
        println!("skipped: only Linux says how much memory a process has had at most");
    }
    skipped
}

#[test]
fn large_files_open_in_little_memory() {
    if skipped() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let names = names();
    let arrays = arrays(&names, UNWANTED);
    let path = folder.path().join("large.safetensors");
    forge::safetensors(&path, &arrays);
    check(&path);
    let path = folder.path().join("large.pth");
    // 21 characters, with which the reader of other crates looks for the directory in the wrong place.
    forge::zip_checkpoint(&path, "a_name_of_21_characte", &object(&arrays), &arrays, false);
    check(&path);
    let path = folder.path().join("large_legacy.pth");
    let parts: Vec<_> = arrays.iter().map(|(name, content)| (*name, 4, content.clone())).collect();
    forge::legacy_checkpoint(&path, &forge::machine(b"N"), &object(&arrays), &parts);
    check(&path);
}

/// Beyond 4 GiB the directory of a zip file needs its 64-bit records.
#[test]
fn a_zip_file_beyond_four_gibibytes() {
    if skipped() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("huge.pth");
    let gib = 1 << 30;
    let storages = [("a", Content::Hole(5 * gib)), ("b", Content::Hole(gib)), ("c", Content::floats(&[3.0]))];
    let lengths = [5 << 28, 1 << 28, 1];
    let tensors: Vec<_> =
        storages.iter().zip(lengths).map(|((name, _), n)| (*name, tensor("Float", name, n, 0, &[n], &[1]))).collect();
    forge::zip_checkpoint(&path, "huge", &dict(&tensors), &storages, false);
    let mut file = WeightFile::open(&path).unwrap();
    assert_eq!(file.shape("a"), Some(&[5 << 28][..]));
    assert_eq!(file.take("c").unwrap(), [3.0]);
}
