//! The one error type of the engine. Every message names the file or the cause, and the way out where there is one. Panics of other
//! crates are caught here and become errors.

use std::any::Any;
use std::backtrace::Backtrace;
use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind, resume_unwind, set_hook, take_hook};
use std::path::{Path, PathBuf};

/// Result of every fallible function of the engine.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What can go wrong, sorted by what a user would do about it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The operating system refused to read or write a file (missing, permission, full disk).
    #[error("{}: {source}{}", shown_path(path), hint(source))]
    Io {
        /// The file in question.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A file was read but is not what it should be.
    #[error("{}: {cause}", shown_path(path))]
    File {
        /// The file in question.
        path: PathBuf,
        /// What is wrong with it, with offset or entry where that is known.
        cause: String,
    },
    /// A number, name or combination the user gave cannot be used.
    #[error("{0}")]
    Input(String),
    /// The computing device failed or is missing.
    #[error("device: {0}")]
    Device(String),
    /// The device is gone. What is on disk is whole: work resumes on another device, or a new one
    /// of the same adapter.
    #[error("device: {device} was lost ({why})")]
    DeviceLost {
        /// Its name.
        device: String,
        /// What its driver said.
        why: String,
    },
    /// The device had no memory for what it was given at once.
    #[error("device: {device} has not enough memory ({why}); take another one, such as --device cpu")]
    OutOfMemory {
        /// Its name.
        device: String,
        /// For what, and what was said.
        why: String,
    },
    /// A computation left the finite numbers.
    #[error("{0}")]
    Numeric(String),
    /// An image left the finite numbers inside a flow.
    #[error("{}", overflow(*image, *tau))]
    Overflow {
        /// Its number: among the images given to the flow, until whoever knows more puts in that of a file or of a sample.
        image: usize,
        /// The temperature τ it was drawn at, where it is a sample.
        tau: Option<f64>,
    },
    /// The user asked to stop.
    #[error("cancelled")]
    Cancelled,
    /// A signal asked to stop, everything is on disk, and the text says how to go on.
    #[error("{0}")]
    Stopped(String),
}

impl Error {
    /// A file that cannot be used, and why.
    pub fn file(path: impl AsRef<Path>, cause: impl Into<String>) -> Self {
        Self::File { path: path.as_ref().to_owned(), cause: cause.into() }
    }

    /// An operating-system error on `path`.
    pub fn io(path: impl AsRef<Path>, source: std::io::Error) -> Self {
        Self::Io { path: path.as_ref().to_owned(), source }
    }

    /// A value the user gave that cannot be used.
    pub fn input(cause: impl Into<String>) -> Self {
        Self::Input(cause.into())
    }

    /// Returns whether a computation left the finite numbers, as flows do far from τ = 1.
    pub fn is_numeric(&self) -> bool {
        matches!(self, Self::Numeric(_) | Self::Overflow { .. })
    }
}

/// Which image, and the way out where there is one.
fn overflow(image: usize, tau: Option<f64>) -> String {
    match tau {
        None => format!("image {image} {OVERFLOW}"),
        Some(tau) => format!("sample {image} {OVERFLOW} at τ = {tau}: lower τ"),
    }
}

/// What is said of an image after its name.
pub const OVERFLOW: &str = "leaves the finite numbers inside the flow";

/// What a panic said.
pub fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|s| (*s).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".into())
}

thread_local! {
    /// How many [`catch`]es this thread is in.
    static CATCHING: Cell<usize> = const { Cell::new(0) };
    /// The panic on its way to one of them.
    static UNTOLD: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// From now on a panic inside [`catch`] is not printed as a crash. A hook for the whole program, to be set at its start.
pub fn leave_caught_panics_untold() {
    let tell = take_hook();
    set_hook(Box::new(move |panic| {
        if CATCHING.get() == 0 || !keep(panic) {
            tell(panic);
        }
    }));
}

/// Keeps the panic's text. Returns whether it is the only panic under way: two end the program, and
/// both are printed.
fn keep(panic: &PanicHookInfo<'_>) -> bool {
    match UNTOLD.take() {
        None => UNTOLD.set(Some(format!("{panic}\n{}", Backtrace::capture()))),
        Some(first) => {
            tracing::error!("{first}");
            return false;
        }
    }
    true
}

/// A panic that was caught.
pub struct Caught {
    panic: Box<dyn Any + Send>,
    untold: Option<String>,
}

impl Caught {
    /// What it said.
    pub fn message(&self) -> String {
        panic_message(&*self.panic)
    }

    /// Continues the panic.
    pub fn resume(self) -> ! {
        match self.untold {
            Some(text) if CATCHING.get() == 0 => tracing::error!("{text}"),
            untold => UNTOLD.set(untold),
        }
        resume_unwind(self.panic)
    }
}

/// `work`, or the panic that ended it.
///
/// # Errors
/// The panic.
pub fn catch<T>(work: impl FnOnce() -> T) -> Result<T, Caught> {
    CATCHING.set(CATCHING.get() + 1);
    let done = catch_unwind(AssertUnwindSafe(work));
    CATCHING.set(CATCHING.get() - 1);
    let untold = UNTOLD.take();
    done.map_err(|panic| {
        tracing::debug!("caught: {}", untold.as_deref().unwrap_or("a panic"));
        Caught { panic, untold }
    })
}

/// [`catch`] with the panic's message. Readers of other crates may panic at hostile files.
///
/// # Errors
/// What the panic said.
pub fn caught<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    catch(work).map_err(|panic| panic.message())
}

/// Text that may hold names from files, for a terminal: control signs other than ends of lines and
/// tabs, and signs that turn the direction of writing, become `\u{…}`.
pub fn shown(text: &str) -> Cow<'_, str> {
    escaped(text, |c| matches!(c, '\n' | '\t') || !commands(c), unicode)
}

/// JSON for a terminal: the same document, in which signs that [`shown`] would change are escapes of JSON. They
/// stand in its strings alone.
pub fn shown_json(json: &str) -> Cow<'_, str> {
    let harmless = |c| matches!(c, '\n' | '\t') || !commands(c);
    // Two units of UTF-16 where one is not enough.
    let escape = |c: char| c.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}")).collect();
    escaped(json, harmless, escape)
}

/// A name for the inside of a line: as [`shown`], but ends of lines and tabs become `\u{…}`, too,
/// so that no name begins a line.
pub fn in_line(name: &str) -> Cow<'_, str> {
    escaped(name, |c| !commands(c), unicode)
}

/// A path for the inside of a line; of one that no disk has (more than 4,096 signs), begin and end.
fn shown_path(path: &Path) -> String {
    let path = path.display().to_string();
    let signs = path.chars().count();
    if signs <= LONGEST_PATH {
        return in_line(&path).into_owned();
    }
    let begin: String = path.chars().take(NAME).collect();
    let end: String = path.chars().skip(signs - NAME).collect();
    format!("{}…{}", in_line(&begin), in_line(&end))
}

/// Most signs of a path that is shown as a whole: as many as a disk takes.
const LONGEST_PATH: usize = 4096;

/// Most bytes of a name: class names become names of folders.
const NAME: usize = 200;

/// Whether a name from a file can stand in a line and in a table: short, and without signs that
/// command a terminal or end a line.
///
/// # Errors
/// Says what is wrong, with how the name begins.
pub fn check_name(name: &str) -> Result<(), String> {
    if name.len() <= NAME && !name.chars().any(commands) {
        return Ok(());
    }
    Err(format!("a name is longer than {NAME} bytes, or has control signs: {}", begin(name)))
}

/// Whether words from a file can stand in a line: as [`check_name`], of any length.
///
/// # Errors
/// Says what is wrong, with how the words begin.
pub fn check_words(words: &str) -> Result<(), String> {
    if !words.chars().any(commands) {
        return Ok(());
    }
    Err(format!("words that belong into one line have control signs or ends of lines: {}", begin(words)))
}

/// The first signs of a text that cannot be shown as it is.
fn begin(text: &str) -> String {
    text.chars().take(40).flat_map(char::escape_debug).chain(['…']).collect()
}

fn unicode(c: char) -> String {
    c.escape_unicode().to_string()
}

fn escaped(text: &str, harmless: impl Fn(char) -> bool, escape: impl Fn(char) -> String) -> Cow<'_, str> {
    if text.chars().all(&harmless) {
        return Cow::Borrowed(text);
    }
    let one = |c: char| if harmless(c) { c.to_string() } else { escape(c) };
    Cow::Owned(text.chars().map(one).collect())
}

/// Whether a sign commands a terminal, ends a line or turns the direction of writing.
fn commands(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// ` (did you mean x?)` for the known word that is closest to one that is not known, in whatever
/// case; empty where none is close: one sign in three may be missing, too many, wrong, or have
/// changed places with the next.
pub fn did_you_mean<S: AsRef<str>>(word: &str, known: impl IntoIterator<Item = S>) -> String {
    let lower = |text: &str| text.to_lowercase().chars().take(NAME).collect::<Vec<char>>();
    let word = lower(word);
    let most = (word.len() / 3).max(1);
    let far = |known: &S| distance(&word, &lower(known.as_ref()));
    let closest = known.into_iter().map(|known| (far(&known), known)).min_by_key(|(far, _)| *far);
    match closest.filter(|(far, _)| *far <= most && *far < word.len()) {
        Some((_, known)) => format!(" (did you mean {}?)", in_line(known.as_ref())),
        None => String::new(),
    }
}

/// How many signs must be added, taken away, changed or exchanged with the next.
fn distance(a: &[char], b: &[char]) -> usize {
    let mut before: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let changed = above[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut least = changed.min(above[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                least = least.min(before[j - 2] + 1);
            }
            row.push(least);
        }
        before = std::mem::replace(&mut above, row);
    }
    above[b.len()]
}

/// The way out of the system errors users meet most.
fn hint(source: &std::io::Error) -> &'static str {
    use std::io::ErrorKind as Kind;
    match source.kind() {
        Kind::StorageFull | Kind::QuotaExceeded => " (free some space and start again: what was finished is kept)",
        Kind::FileTooLarge => " (raise the limit of `ulimit -f`, or choose a disk that takes larger files)",
        Kind::PermissionDenied => " (choose another place, or change its permissions)",
        Kind::NotADirectory => " (a part of the path is a file)",
        Kind::ReadOnlyFilesystem => " (choose another folder)",
        Kind::NotFound => " (is the path spelled right? One without a leading / counts from the present folder)",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn what_stands_in_a_line_begins_no_other() {
        assert_eq!(Error::file("a\nb\u{1b}", "is odd").to_string(), "a\\u{a}b\\u{1b}: is odd");
        let long = Error::file(format!("/{}/end", "x".repeat(5000)), "is odd").to_string();
        assert!(long.chars().count() < 420 && long.ends_with("x/end: is odd"), "{long}");
        assert_eq!((check_name("fünf\u{301}"), check_words(&"x ".repeat(500))), (Ok(()), Ok(())));
        for name in ["a\nb", "a\tb", "a\u{2028}b", "a\u{202e}b", "\u{1b}[2J", &"x".repeat(201)] {
            let why = check_name(name).unwrap_err();
            assert!(!why.chars().any(commands) && why.len() < 400, "{why}");
        }
    }

    #[test]
    fn json_stays_the_same_json() {
        let value = vec!["a\u{200e}b", "\u{1b}[2J\n", "\u{85}\u{202e}", "c:\\u", "plain ü 😀"];
        for json in [serde_json::to_string(&value).unwrap(), serde_json::to_string_pretty(&value).unwrap()] {
            let told = shown_json(&json);
            assert!(!told.chars().any(|c| c != '\n' && commands(c)), "{told}");
            assert_eq!(serde_json::from_str::<Vec<String>>(&told).unwrap(), value);
        }
        assert_eq!(shown_json("[\"\u{200e}\"]"), "[\"\\u200e\"]");
    }

    #[test]
    fn a_word_is_found_by_its_mistakes_and_a_stranger_is_not() {
        let known = ["sample", "posterior", "mnist", "scaling-quick", "monocyte"];
        let found = |word: &str| did_you_mean(word, known);
        for (word, meant) in [
            ("sampel", "sample"),
            ("MNIST", "mnist"),
            ("mnits", "mnist"),
            ("scaling-quik", "scaling-quick"),
            ("posteriors", "posterior"),
            ("monocytes", "monocyte"),
        ] {
            assert_eq!(found(word), format!(" (did you mean {meant}?)"));
        }
        for word in ["", "x", "cifar10", "atlantis", "nobody", "3"] {
            assert_eq!(found(word), "", "{word}");
        }
        // The distance is a metric on what people type: symmetric, and 0 for the same word alone.
        let signs = |word: &str| word.chars().collect::<Vec<char>>();
        for a in known {
            for b in known {
                let (there, back) = (distance(&signs(a), &signs(b)), distance(&signs(b), &signs(a)));
                assert!(there == back && (there == 0) == (a == b), "{a} {b}");
            }
        }
    }

    /// A hook is the whole program's, so this is a program of its own: the test started once more, alone.
    #[test]
    fn a_panic_is_told_by_whom_it_ends() {
        const INSIDE: &str = "BAYESCOPE_TEST_PANICS";
        if std::env::var_os(INSIDE).is_some() {
            tracing_subscriber::fmt().with_ansi(false).with_writer(std::io::stderr).init();
            leave_caught_panics_untold();
            assert_eq!(caught(|| panic!("ends here")), Err::<(), _>("ends here".into()));
            let further_out = caught(|| catch(|| panic!("ends further out")).unwrap_or_else(|inner| inner.resume()));
            assert_eq!(further_out, Err::<(), _>("ends further out".into()));
            catch(|| panic!("a mistake of ours")).unwrap_or_else(|mistake| mistake.resume())
        }
        let mut again = Command::new(std::env::current_exe().unwrap());
        again.args(["--exact", "error::tests::a_panic_is_told_by_whom_it_ends", "--nocapture"]);
        let ended = again.env(INSIDE, "1").output().unwrap();
        let told = String::from_utf8_lossy(&ended.stderr);
        assert!(!ended.status.success(), "{told}");
        assert_eq!(told.matches("panicked at").count(), 1, "{told}");
        assert_eq!(told.matches("a mistake of ours").count(), 1, "{told}");
        assert!(!told.contains("ends here") && !told.contains("ends further out"), "{told}");
    }
}
