//! Records of an external run: a file a step, which appears whole by being renamed.

use std::cmp::Reverse;
use std::fs::Metadata;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

use super::spec::{ExternalSpec, HEAD};
use crate::data::{Types, put_npy, read_bounded, read_npy, said, write_whole};
use crate::error::{Error, Result};
use crate::judge::{Kind, log_q, look_like_probabilities};

/// Extension of a record; its stem is the step in decimal digits.
pub const EXTENSION: &str = "pred";
/// Longest first line.
const LINE: usize = 1 << 12;
/// Most files of the folder that are looked at.
const FILES: usize = 1 << 20;
/// Coarser than the clock of any file system: FAT counts by two seconds.
const COARSE: Duration = Duration::from_secs(5);

/// Said of a record whose softmax would be that of a softmax.
const NO_LOGITS: &str = "these look like probabilities; run.toml says logits: log the numbers before the softmax, or write \
                         predictions = \"probabilities\" into run.toml";

/// What the first line of a record says; all of it may be absent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Header {
    /// Epochs done; parts of one count.
    pub epoch: Option<f64>,
    /// Training images seen, each as often as it was.
    pub images: Option<u64>,
    /// Seconds since the training began.
    pub seconds: Option<f64>,
    /// Training loss, nats.
    pub train_loss: Option<f64>,
}

/// By what a record is known again: it is read anew when one of these has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Stamp {
    bytes: u64,
    changed: Option<SystemTime>,
    /// Number of the file, where the system has one: a renamed one brings its own, whatever the clock
    /// says.
    file: u64,
}

impl Stamp {
    /// Of a file, where it is there.
    pub fn of(path: &Path) -> Option<Self> {
        let of = |meta: Metadata| Self { bytes: meta.len(), changed: meta.modified().ok(), file: number(&meta) };
        std::fs::metadata(path).ok().map(of)
    }

    /// The same in a word, where there are millions.
    pub fn mark(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.hash(&mut hasher);
        hasher.finish()
    }

    /// Whether it was changed so long ago that one more change would show: clocks of files are coarse.
    pub fn is_settled(&self) -> bool {
        let since = self.changed.and_then(|changed| changed.elapsed().ok());
        since.is_some_and(|since| since > COARSE)
    }

    /// When the file was changed, seconds since 1970.
    pub fn seconds(&self) -> Option<f64> {
        let since = self.changed?.duration_since(SystemTime::UNIX_EPOCH).ok()?;
        Some(since.as_secs_f64())
    }
}

#[cfg(unix)]
fn number(meta: &Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::ino(meta)
}

#[cfg(not(unix))]
fn number(_: &Metadata) -> u64 {
    0
}

/// Files that end in `.pred` and are not called by a step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Misnamed {
    /// How many.
    pub count: usize,
    /// The first of their names in the order of the alphabet.
    pub first: String,
}

impl Misnamed {
    /// That they are not read.
    pub fn sentence(&self) -> String {
        let Self { count, first } = self;
        let (end, are) = if *count == 1 { ("file that ends", "is") } else { ("files that end", "are") };
        let why = match digits(Path::new(first)) {
            Some(_) => format!("not called by a step: the number of {first} is too large, {} is the most", u64::MAX),
            None => format!("not called by a step in digits, such as {first}"),
        };
        format!("Not read: {count} {end} in .{EXTENSION} but {are} {why}.")
    }
}

/// The files of the folder of records. Those without `.pred` (they are being written) are left out.
#[derive(Debug, Default)]
pub struct Listing {
    /// Steps with their files, by rising step; of several files of one step the newest.
    pub steps: Vec<(u64, PathBuf)>,
    /// Files whose step nobody knows.
    pub misnamed: Option<Misnamed>,
}

/// Lists the folder of records; nothing where there is none.
///
/// # Errors
/// Names the folder that cannot be listed, or holds more than a million files.
pub fn list(folder: &Path) -> Result<Listing> {
    let entries = match std::fs::read_dir(folder) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Listing::default()),
        entries => entries.map_err(|e| Error::io(folder, e))?,
    };
    let (mut found, mut strangers) = (Vec::new(), Vec::new());
    for (i, entry) in entries.enumerate() {
        if i == FILES {
            return Err(Error::file(folder, format!("holds more than {FILES} files: log fewer steps")));
        }
        let path = entry.map_err(|e| Error::io(folder, e))?.path();
        if path.extension().is_none_or(|extension| extension != EXTENSION) {
            continue;
        }
        match step_of(&path) {
            Some(step) => found.push((step, path)),
            None => strangers.extend(path.file_name().map(|name| name.to_string_lossy().into_owned())),
        }
    }
    found.sort();
    // 7.pred and 007.pred: a step that is logged again replaces itself.
    found.dedup_by(|other, kept| {
        let is_same = other.0 == kept.0;
        if is_same && rank(&other.1) > rank(&kept.1) {
            std::mem::swap(other, kept);
        }
        is_same
    });
    let count = strangers.len();
    let misnamed = strangers.into_iter().min().map(|first| Misnamed { count, first });
    Ok(Listing { steps: found, misnamed })
}

/// Of records of one step the one with the highest rank counts: the newest, of those as new the shortest name.
fn rank(path: &Path) -> (Option<SystemTime>, Reverse<usize>) {
    (Stamp::of(path).and_then(|stamp| stamp.changed), Reverse(path.as_os_str().len()))
}

/// The step that a file is called by.
fn step_of(path: &Path) -> Option<u64> {
    digits(path)?.parse().ok()
}

/// The name of a file without its extension, where it is digits and nothing else.
fn digits(path: &Path) -> Option<&str> {
    path.file_stem()?.to_str().filter(|stem| stem.bytes().all(|c| c.is_ascii_digit()))
}

/// Writes the record of a step, whole or not at all; one that is there is replaced.
///
/// # Errors
/// When there are not n·K numbers, or they are none that [`answers`] takes: nothing is written then. Names the file that cannot
/// be written.
pub fn write(folder: &Path, step: u64, header: &Header, spec: &ExternalSpec, values: &[f32]) -> Result<()> {
    let path = folder.join(format!("{step:09}.{EXTENSION}"));
    let (n, classes) = (spec.test.images, spec.test.classes.len());
    if values.len() != spec.values() {
        let given = values.len();
        return Err(Error::input(format!("{given} predictions are not those of {n} images and {classes} classes")));
    }
    answers(values.iter().map(|&value| f64::from(value)).collect(), spec).map_err(Error::input)?;
    let line = serde_json::to_string(header).map_err(|e| Error::file(&path, e.to_string()))?;
    write_whole(&path, |file| {
        writeln!(file, "{line}").map_err(|e| Error::io(&path, e))?;
        put_npy(file, &[n, classes], values).map_err(|e| Error::io(&path, e))
    })
}

/// The first line of a record, and its numbers [n, K] as they are written.
///
/// # Errors
/// Says what is wrong with the file: torn, too large, of another form, of another shape.
pub fn read(path: &Path, spec: &ExternalSpec) -> Result<(Header, Vec<f64>), String> {
    let bytes = read_bounded(path, HEAD + 8 * spec.values() as u64).map_err(|e| said(&e))?;
    let end = bytes.iter().take(LINE).position(|&c| c == b'\n');
    let Some(end) = end.filter(|_| bytes.first() == Some(&b'{')) else {
        return Err("is no record: those begin with a line of JSON, {…}".into());
    };
    let header: Header = serde_json::from_slice(&bytes[..end]).map_err(|e| {
        format!(
            "its first line is not understood ({e}); images is a whole number; numbers that are not finite are left out, or null"
        )
    })?;
    let array = &bytes[end + 1..];
    let array =
        read_npy(&mut &*array, array.len() as u64, Types::All).map_err(|cause| format!("its array: {cause}"))?;
    let (n, classes) = (spec.test.images, spec.test.classes.len());
    let (shape, descr) = (array.shape, array.descr);
    match array.values.floats().filter(|_| shape == [n, classes]) {
        Some(values) => Ok((header, values)),
        None => Err(format!(
            "its array is of type {descr} and shape {shape:?}; floating-point numbers of shape [{n}, {classes}] are needed"
        )),
    }
}

/// What the numbers [n, K] of a record say: log q, nats, and how many probabilities were 0.
///
/// # Errors
/// Says why they are none of the kind that the run holds, with the image.
pub fn answers(values: Vec<f64>, spec: &ExternalSpec) -> Result<(Vec<f64>, usize), String> {
    let (classes, kind) = (spec.test.classes.len(), spec.external.predictions);
    if kind == Kind::Logits && look_like_probabilities(&values, classes) {
        return Err(NO_LOGITS.into());
    }
    log_q(values, classes, kind)
        .map_err(|cause| format!("{cause}; run.toml says that predictions are {}", kind.describe()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As a softmax in bfloat16 gives them: their softmax would be taken for the classifier's.
    #[test]
    fn rounded_probabilities_and_per_cent_are_no_logits() {
        let image = |row: [f64; 3]| row.repeat(2);
        let (exact, rounded, cent) = (image([0.2, 0.3, 0.5]), image([0.2, 0.3, 0.498]), image([20.0, 30.0, 50.0]));
        for values in [&exact, &rounded, &cent] {
            assert!(look_like_probabilities(values, 3), "{values:?}");
        }
        for logits in [[0.0; 3], [0.2, 0.3, 0.9], [0.2, 0.9, -0.1], [20.0, 30.0, 56.0]] {
            assert!(!look_like_probabilities(&image(logits), 3), "{logits:?}");
        }
        // Called what they are, they are told how to be written.
        let told = log_q(rounded, 3, Kind::Probabilities).unwrap_err();
        assert!(
            told.starts_with("image 0: the probabilities add up to 0.998") && told.contains("more digits"),
            "{told}"
        );
    }

    #[test]
    fn a_step_in_another_spelling_is_replaced_by_the_newest_record() {
        let folder = tempfile::tempdir().unwrap();
        let put = |name: &str, seconds: u64| {
            let file = std::fs::File::create(folder.path().join(name)).unwrap();
            file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)).unwrap();
        };
        put("0029.pred", 1_000);
        put("29.pred", 2_000);
        put("007.pred", 2_000);
        put("7.pred", 1_000);
        put("0003.pred", 1_000);
        put("3.pred", 1_000);
        let named = |name: &str| folder.path().join(name);
        let expected = [(3_u64, named("3.pred")), (7, named("007.pred")), (29, named("29.pred"))];
        assert_eq!(list(folder.path()).unwrap().steps, expected);
    }

    #[test]
    fn files_that_are_not_called_by_a_step_are_counted() {
        let folder = tempfile::tempdir().unwrap();
        let put = |name: &str| drop(std::fs::File::create(folder.path().join(name)).unwrap());
        ["16.pred", ".16.pred.tmp", "notes.txt"].into_iter().for_each(put);
        assert_eq!(list(folder.path()).unwrap().misnamed, None);
        ["step16.pred", "epoch_3.pred", "-1.pred"].into_iter().for_each(put);
        let found = list(folder.path()).unwrap();
        assert_eq!(found.misnamed, Some(Misnamed { count: 3, first: "-1.pred".into() }));
        assert_eq!(found.steps.len(), 1);
        let told = |count: usize, first: &str| Misnamed { count, first: first.into() }.sentence();
        assert_eq!(
            told(3, "-1.pred"),
            "Not read: 3 files that end in .pred but are not called by a step in digits, such as -1.pred."
        );
        put("99999999999999999999999.pred");
        std::fs::remove_file(folder.path().join("-1.pred")).unwrap();
        let Misnamed { count, first } = list(folder.path()).unwrap().misnamed.unwrap();
        let why = format!("the number of 99999999999999999999999.pred is too large, {} is the most", u64::MAX);
        let ends = "Not read: 3 files that end in .pred but are not called by a step";
        assert_eq!(told(count, &first), format!("{ends}: {why}."));
    }

    #[test]
    fn python_warns_at_the_bounds_of_this_program() {
        let python = std::fs::read_to_string("python/bayescope/_run.py").unwrap();
        let line = python.lines().find_map(|line| line.strip_prefix("_STEPS, _FILES = ")).unwrap();
        let bounds: Vec<usize> = line.split(", ").map(|bound| bound.replace('_', "").parse().unwrap()).collect();
        assert_eq!(bounds, [crate::run::external::STEPS, FILES]);
    }
}
