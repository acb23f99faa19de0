//! One input under observation, and what the inputs of a reader came to.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, Once, PoisonError};
use std::time::{Duration, Instant};

use bayescope::error::Result;
use bayescope::units::Seed;
use peak_alloc::PeakAlloc;
use rand::RngExt;

use crate::forms::Form;

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// What no input may take.
const SLOW: Duration = Duration::from_secs(1);
/// What none comes back from: the process ends, and says which it was.
const HANGS: Duration = Duration::from_secs(30);
/// Memory of an input beyond 4 times its length, bytes.
const ROOM: usize = 64 << 20;
/// Kinds of failures after which a reader is given no more.
const KINDS: usize = 12;
/// Attempts at making an input that fails smaller.
const SMALLER: u64 = 400;

/// A whole file, from which inputs are made.
pub struct Whole {
    /// Its name, which may tell a reader what it is.
    pub name: String,
    pub form: Form,
    pub bytes: Vec<u8>,
    /// What lies beside it, as it is.
    pub beside: Vec<(String, Vec<u8>)>,
}

impl Whole {
    pub fn new(name: &str, form: Form, bytes: impl Into<Vec<u8>>) -> Self {
        Self { name: name.into(), form, bytes: bytes.into(), beside: Vec::new() }
    }

    pub fn beside(mut self, name: &str, bytes: impl Into<Vec<u8>>) -> Self {
        self.beside.push((name.into(), bytes.into()));
        self
    }
}

/// A reader and what it is given.
pub struct Reader<'a> {
    pub name: &'static str,
    pub wholes: Vec<Whole>,
    /// Inputs in an ordinary run of the tests.
    pub few: u64,
    /// Reads the file at a path.
    pub read: &'a dyn Fn(&Path) -> Result<()>,
}

/// What an input did.
struct Seen {
    refused: bool,
    took: Duration,
    memory: usize,
    /// What it must not have done: a word of one kind, and details.
    fault: Option<(String, String)>,
}

/// What is being read, since when.
static READING: Mutex<Option<(PathBuf, Instant)>> = Mutex::new(None);
/// One reader at a time: memory is counted of the whole process.
static ALONE: Mutex<()> = Mutex::new(());
/// What the last panic said, and where.
static SAID: Mutex<String> = Mutex::new(String::new());

fn put(reading: Option<(PathBuf, Instant)>) {
    *READING.lock().unwrap_or_else(PoisonError::into_inner) = reading;
}

/// Panics are told to us alone, and what never comes back ends the process.
fn guard() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let tell = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if READING.lock().unwrap_or_else(PoisonError::into_inner).is_some() {
                *SAID.lock().unwrap_or_else(PoisonError::into_inner) = panic.to_string();
            } else {
                tell(panic);
            }
        }));
        std::thread::spawn(|| {
            loop {
                std::thread::sleep(Duration::from_millis(500));
                let reading = READING.lock().unwrap_or_else(PoisonError::into_inner).clone();
                if let Some((path, since)) = reading.filter(|(_, since)| since.elapsed() > HANGS) {
                    println!("HANGS after {:?}: {}", since.elapsed(), path.display());
                    std::process::abort();
                }
            }
        });
    });
}

/// A folder in memory where there is one: every input is a file.
fn folder() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }.unwrap()
}

fn asked(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap())
}

impl Reader<'_> {
    fn once(&self, path: &Path) -> Seen {
        put(Some((path.to_owned(), Instant::now())));
        MEMORY.reset_peak_usage();
        let before = MEMORY.current_usage();
        let begun = Instant::now();
        let read = catch_unwind(AssertUnwindSafe(|| (self.read)(path)));
        let took = begun.elapsed();
        let memory = MEMORY.peak_usage().saturating_sub(before);
        put(None);
        let refused = !matches!(read, Ok(Ok(())));
        let fault = match read {
            Err(_) => {
                let said = SAID.lock().unwrap_or_else(PoisonError::into_inner).clone();
                let place = said.lines().next().unwrap_or_default().to_owned();
                Some((format!("panic: {place}"), said))
            }
            Ok(Err(error)) => {
                let said = error.to_string();
                let named = said.contains(path.parent().unwrap().to_str().unwrap());
                // What differs from input to input is no kind of its own.
                let kind: String = said.chars().map(|c| if c.is_ascii_digit() { '#' } else { c }).take(50).collect();
                (!named).then(|| (format!("no file named: {kind}"), said))
            }
            Ok(Ok(())) => None,
        };
        Seen { refused, took, memory, fault }
    }

    /// One input. What took long is read again: others work on this machine.
    fn observe(&self, path: &Path, bytes: &[u8]) -> Seen {
        std::fs::write(path, bytes).unwrap();
        let mut seen = self.once(path);
        for _ in 0..2 {
            if seen.took > SLOW / 4 {
                seen.took = seen.took.min(self.once(path).took);
            }
        }
        let most = 4 * bytes.len() + ROOM;
        if seen.fault.is_none() && seen.took > SLOW {
            seen.fault = Some(("slow".into(), format!("{:?}", seen.took)));
        }
        if seen.fault.is_none() && seen.memory > most {
            seen.fault = Some(("memory".into(), format!("{} bytes for a file of {}", seen.memory, bytes.len())));
        }
        seen
    }

    /// A shorter input with the same fault.
    fn shrunk(&self, path: &Path, mut bytes: Vec<u8>, kind: &str) -> Vec<u8> {
        let mut rng = Seed(2).rng(bytes.len() as u64);
        for _ in 0..SMALLER {
            if bytes.len() < 8 {
                break;
            }
            let at = rng.random_range(0..bytes.len());
            let most = (bytes.len() / 2).min(1 << rng.random_range(0..12));
            let to = (at + rng.random_range(0..=most) + 1).min(bytes.len());
            let mut fewer = bytes.clone();
            fewer.drain(at..to);
            if self.observe(path, &fewer).fault.is_some_and(|(found, _)| found == kind) {
                bytes = fewer;
            }
        }
        bytes
    }

    /// The inputs that were found once, by the whole file they were made of.
    fn found(&self) -> Vec<(String, Vec<u8>)> {
        let folder = Path::new("tests/fuzz/found").join(self.name);
        let mut paths: Vec<PathBuf> =
            std::fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        let name = |path: &Path| path.file_name().unwrap().to_str().unwrap().to_owned();
        paths.iter().map(|path| (name(path), std::fs::read(path).unwrap())).collect()
    }

    /// Gives the reader its inputs.
    pub fn run(self) {
        let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        guard();
        let folder = folder();
        let path = |at: usize| {
            let inner = folder.path().join(at.to_string());
            std::fs::create_dir_all(&inner).unwrap();
            inner.join(&self.wholes[at].name)
        };
        let mut sums = Sums::default();
        for (at, whole) in self.wholes.iter().enumerate() {
            let path = path(at);
            for (name, bytes) in &whole.beside {
                std::fs::write(path.with_file_name(name), bytes).unwrap();
            }
            // Else nothing of what comes would reach beyond its first lines.
            let seen = self.observe(&path, &whole.bytes);
            let said = (self.read)(&path).map_or_else(|e| e.to_string(), |()| "reads".into());
            assert!(!seen.refused && seen.fault.is_none(), "{} {}: {said}", self.name, whole.name);
        }
        for (name, bytes) in self.found() {
            // NUMBER-NAME, or WHAT-NAME, where NAME is that of the whole file it was made of.
            let at = self.wholes.iter().position(|whole| name.ends_with(&format!("-{}", whole.name))).unwrap();
            let seen = self.observe(&path(at), &bytes);
            assert!(seen.fault.is_none(), "{} {name}: {:?}", self.name, seen.fault);
        }
        let begun = Instant::now();
        let (first, last) = (asked("BAYESCOPE_FUZZ_FROM").unwrap_or(0), asked("BAYESCOPE_FUZZ_SECONDS"));
        for input in first..first + asked("BAYESCOPE_FUZZ").unwrap_or(self.few) {
            if last.is_some_and(|last| begun.elapsed().as_secs() >= last) {
                break;
            }
            let mut rng = Seed(0).split(self.name).rng(input);
            let at = rng.random_range(0..self.wholes.len());
            let whole = &self.wholes[at];
            let same: Vec<&Whole> = self.wholes.iter().filter(|other| other.form == whole.form).collect();
            let other = same[rng.random_range(0..same.len())];
            let bytes = whole.form.mutated(&mut rng, &whole.bytes, &other.bytes);
            let seen = self.observe(&path(at), &bytes);
            sums.add(&seen, bytes.len());
            if let Some((kind, details)) = seen.fault
                && !sums.faults.contains_key(&kind)
            {
                let bytes = self.shrunk(&path(at), bytes, &kind);
                let kept = keep(self.name, &format!("{input}-{}", whole.name), &bytes);
                sums.faults.insert(kind, format!("input {input}, kept as {}: {details}", kept.display()));
                if sums.faults.len() >= KINDS {
                    break;
                }
            }
        }
        sums.tell(self.name, begun.elapsed());
        assert!(sums.faults.is_empty(), "{}: {:#?}", self.name, sums.faults);
    }
}

fn keep(reader: &str, name: &str, bytes: &[u8]) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("fuzz").join(reader);
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join(name);
    std::fs::write(&path, bytes).unwrap();
    path
}

#[derive(Default)]
struct Sums {
    inputs: u64,
    refused: u64,
    slowest: Duration,
    /// Most memory, and the length of that file.
    memory: (usize, usize),
    faults: BTreeMap<String, String>,
}

impl Sums {
    fn add(&mut self, seen: &Seen, length: usize) {
        self.inputs += 1;
        self.refused += u64::from(seen.refused);
        self.slowest = self.slowest.max(seen.took);
        self.memory = self.memory.max((seen.memory, length));
    }

    fn tell(&self, reader: &str, took: Duration) {
        let mib = |bytes: usize| bytes as f64 / f64::from(1 << 20);
        println!(
            "{reader}: {} inputs in {:.0} s, {} refused; slowest {:.1} ms; most memory {:.2} MiB, for a file of {} bytes; {} faults",
            self.inputs,
            took.as_secs_f64(),
            self.refused,
            1e3 * self.slowest.as_secs_f64(),
            mib(self.memory.0),
            self.memory.1,
            self.faults.len()
        );
    }
}
