//! What is recorded of an answer: JSON as it is, text by lines, arrays and pictures by shapes and figures. What differs from run to
//! run or from machine to machine (times, dates, folders, processors, hashes of rounded numbers, the version) becomes `…`.

use std::fs::File;
use std::path::{Path, PathBuf};

use npyz::{Deserialize, NpyFile};
use parquet::file::reader::{FileReader, SerializedFileReader};
use serde_json::{Map, Value, json};

/// Keys whose values are no answers.
const PASSING: [&str; 12] = [
    "seconds",
    "time_s",
    "finished",
    "device",
    "instructions",
    "started",
    "elapsed",
    "threads",
    "wall_s",
    "created",
    "process",
    "machine",
];
/// Keys of what a rounding can flip: which bin an image falls into, which image is bought, which of two equal classes is decided for.
const FLIPPING: [&str; 7] = ["bins", "bought", "basket", "halves", "bounded", "enclosed", "decision"];
/// Keys of 95 % intervals, `[low, high]`.
const INTERVALS: [&str; 3] = ["interval", "over_images", "over_seeds"];
/// Units of what differs from run to run or from machine to machine.
const UNITS: [&str; 8] = ["s", "ms", "µs", "min", "h", "days", "core", "cores"];
/// Instruction sets.
const INSTRUCTIONS: [&str; 4] = ["avx512", "avx2", "neon", "portable"];
/// Longer lists of numbers are recorded by their figures.
const LIST: usize = 4;

/// Makes digests of what commands in a folder printed and wrote.
pub struct Digest {
    folder: PathBuf,
    /// What is known of oracles that are files of the source code: hashes in it are the same everywhere.
    known: String,
}

impl Digest {
    /// For commands that run in this folder.
    pub fn new(folder: &Path) -> Self {
        let folders =
            ["assets/oracles/mnist", "assets/oracles/mnist-9b44f254", "assets/oracles/cells", "tests/worlds/animals"];
        let read = |folder: &str| std::fs::read_to_string(format!("{folder}/oracle.json")).unwrap();
        Self { folder: folder.to_owned(), known: folders.map(read).concat() }
    }

    /// Printed text: a JSON document, one a line, or lines.
    pub fn text(&self, text: &str) -> Value {
        if let Ok(value) = serde_json::from_str::<Value>(text) {
            return self.masked(value);
        }
        let documents: Result<Vec<Value>, _> = text.lines().map(serde_json::from_str).collect();
        match documents {
            Ok(documents) => Value::Array(documents.into_iter().map(|value| self.masked(value)).collect()),
            Err(_) => Value::Array(text.lines().map(|line| json!(self.line(line))).collect()),
        }
    }

    /// A file that was written, or the names of those in a folder.
    pub fn file(&self, path: &Path) -> Value {
        if path.is_dir() {
            let mut names = Vec::new();
            list(path, path, &mut names);
            names.sort();
            return json!(names);
        }
        let text = || std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        match path.extension().and_then(|e| e.to_str()).unwrap_or_default() {
            "json" | "jsonl" | "csv" | "toml" | "md" | "sha256" => self.text(&text()),
            "svg" => drawing(&text()),
            "npz" => arrays(path),
            "parquet" => columns(path),
            "png" => picture(path),
            other => panic!("{}: nothing is known of .{other}", path.display()),
        }
    }

    /// Whether a line of stderr tells of progress: which of those are printed depends on the time that the command takes.
    pub fn is_progress(&self, line: &str) -> bool {
        self.line(line) != line
            || [": epoch ", ": step ", ": measuring ", ": choosing "].iter().any(|step| line.contains(step))
    }

    /// A line of text without what is no answer.
    fn line(&self, line: &str) -> String {
        let program = env!("CARGO_BIN_EXE_bayescope");
        let line = line.replace(&*self.folder.to_string_lossy(), "…").replace(program, "…/bayescope");
        let line = line.replace(concat!("bayescope ", env!("CARGO_PKG_VERSION")), "bayescope …");
        let mut out = String::new();
        let mut words = line.split_inclusive(' ').peekable();
        while let Some(word) = words.next() {
            let core = word.trim_matches(|c| " ,;:.()~\"".contains(c));
            let next = words.peek().map_or("", |next| next.trim_matches(|c| " ,;:.()".contains(c)));
            let passing = UNITS.contains(&next) && core.parse::<f64>().is_ok()
                || INSTRUCTIONS.contains(&core)
                || self.is_passing_hash(core);
            out += &if passing { word.replace(core, "…") } else { word.to_owned() };
        }
        out
    }

    /// SHA-256 of something that holds rounded numbers.
    fn is_passing_hash(&self, word: &str) -> bool {
        word.len() == 64 && word.bytes().all(|b| b.is_ascii_hexdigit()) && !self.known.contains(word)
    }

    /// JSON without what is no answer, and in few lines.
    fn masked(&self, value: Value) -> Value {
        match value {
            Value::Object(map) => {
                let of = |(name, value): (String, Value)| {
                    let value = match name.as_str() {
                        passing if PASSING.contains(&passing) && !value.is_null() => json!("…"),
                        flipping if FLIPPING.contains(&flipping) => names_only(self.masked(value)),
                        "corpora" => self.masked(without_ids(value)),
                        interval if INTERVALS.contains(&interval) => self.masked(ends_apart(value)),
                        "intervals" => self.masked(columns_apart(value)),
                        _ => self.masked(value),
                    };
                    (name, value)
                };
                Value::Object(map.into_iter().map(of).collect())
            }
            Value::Array(values) => self.listed(values),
            Value::String(text) => json!(self.line(&text)),
            Value::Number(number) if number.is_f64() => rounded(number.as_f64().unwrap()),
            other => other,
        }
    }

    /// A list: objects as a table by columns, lists one behind the other, numbers by their figures, words in a line.
    fn listed(&self, values: Vec<Value>) -> Value {
        if values.len() > 1 && values.iter().all(Value::is_object) {
            return self.masked(Value::Object(columns_of(values)));
        }
        if values.len() > 1 && values.iter().all(Value::is_array) {
            let rows: Vec<Vec<Value>> = values.into_iter().filter_map(|row| row.as_array().cloned()).collect();
            let lengths: Vec<String> = rows.iter().map(|row| row.len().to_string()).collect();
            return json!({ "lengths": lengths.join(" "), "entries": self.listed(rows.concat()) });
        }
        if values.iter().any(|value| value.is_object() || value.is_array()) {
            return Value::Array(values.into_iter().map(|value| self.masked(value)).collect());
        }
        if values.len() > LIST && values.iter().all(Value::is_number) && values.iter().any(Value::is_f64) {
            return json!(figures(&values.iter().filter_map(Value::as_f64).collect::<Vec<_>>(), LIST));
        }
        let words: Vec<String> = values.into_iter().map(|value| self.masked(value)).map(|value| word(&value)).collect();
        match words.iter().map(String::len).sum::<usize>() {
            0..200 => json!(format!("[{}]", words.join(", "))),
            _ => json!(words),
        }
    }
}

/// Keys without their values.
fn names_only(value: Value) -> Value {
    match value {
        Value::Object(map) => Value::Object(map.into_iter().map(|(name, value)| (name, names_only(value))).collect()),
        _ => json!("…"),
    }
}

/// Corpora without the names of their cells, which depend on the folder that holds the pictures.
fn without_ids(mut corpora: Value) -> Value {
    for id in corpora.as_array_mut().into_iter().flatten().filter_map(|corpus| corpus.get_mut("id")) {
        *id = json!("…");
    }
    corpora
}

/// Of a list of intervals the lower ends and the upper ends, so that figures of neither hide the other.
fn ends_apart(value: Value) -> Value {
    let is_end = |end: &Value| end.is_number() || end.is_null();
    let is_pair = |of: &Value| of.as_array().is_some_and(|ends| ends.len() == 2 && ends.iter().all(is_end));
    match value.as_array() {
        Some(all) if all.len() > 1 && all.iter().all(is_pair) => {
            let [low, high] = [0, 1].map(|end| all.iter().map(|of| of[end].clone()).collect::<Vec<_>>());
            json!({ "low": low, "high": high })
        }
        _ => value,
    }
}

/// The same of every column of a table of intervals.
fn columns_apart(value: Value) -> Value {
    match value {
        Value::Array(rows) if rows.len() > 1 && rows.iter().all(Value::is_object) => {
            Value::Object(columns_of(rows).into_iter().map(|(name, all)| (name, ends_apart(all))).collect())
        }
        other => other,
    }
}

fn word(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// The columns of a table whose rows are objects; nothing where a row lacks a column.
fn columns_of(rows: Vec<Value>) -> Map<String, Value> {
    let names: std::collections::BTreeSet<String> =
        rows.iter().filter_map(Value::as_object).flat_map(Map::keys).cloned().collect();
    let column = |name: &str| rows.iter().map(|row| row.get(name).cloned().unwrap_or_default()).collect();
    names.iter().map(|name| (name.clone(), Value::Array(column(name)))).collect()
}

fn list(root: &Path, folder: &Path, names: &mut Vec<String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => list(root, &path, names),
            false => names.push(path.strip_prefix(root).unwrap().to_string_lossy().replace('\\', "/")),
        }
    }
}

/// Seven digits: those behind them say nothing on another machine, and make differences long.
fn rounded(value: f64) -> Value {
    json!(format!("{value:.6e}").parse::<f64>().unwrap_or(value))
}

fn mean(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    let n = values.len().max(1) as f64;
    values.sum::<f64>() / n
}

/// Number of values, the first ones, mean, spread around it, and a weighted mean that tells their order.
fn figures(values: &[f64], first: usize) -> String {
    let finite: Vec<f64> = values.iter().copied().filter(|v| v.is_finite()).collect();
    let middle = mean(finite.iter().copied());
    let spread = mean(finite.iter().map(|v| (v - middle).abs()));
    let order = mean(finite.iter().enumerate().map(|(i, v)| (v - middle) * (i as f64 + 1.0).sin()));
    // Differences of large values have fewer digits than these.
    let unit = 10f64.powf((1e-5 * middle.abs()).max(1e-12).log10().floor());
    let around = |value: f64| (value / unit).round() * unit;
    let first: String = finite.iter().take(first).map(|v| format!("{} ", rounded(*v))).collect();
    let [middle, spread, order] = [middle, around(spread), around(order)].map(rounded);
    let [all, infinite] = [values.len(), values.len() - finite.len()];
    format!("{all} values, {infinite} infinite: {first}… mean {middle} spread {spread} order {order}")
}

/// Type, shape and figures of every array of an archive.
fn arrays(path: &Path) -> Value {
    let mut archive = zip::ZipArchive::new(File::open(path).unwrap()).unwrap();
    let mut all = Map::new();
    for entry in 0..archive.len() {
        let file = archive.by_index(entry).unwrap();
        let name = file.name().unwrap().into_owned();
        let array = NpyFile::new(file).unwrap();
        let kind = array.dtype().descr().trim_matches('\'').to_owned();
        let shape = array.shape().to_vec();
        let values = match kind.as_str() {
            "<f4" => numbers::<f32, _>(array),
            "<f8" => numbers::<f64, _>(array),
            "<i8" => numbers::<i64, _>(array),
            "<i4" => numbers::<i32, _>(array),
            "|u1" => numbers::<u8, _>(array),
            "<u2" => numbers::<u16, _>(array),
            other => panic!("{}: {name} has the type {other}", path.display()),
        };
        all.insert(name, json!(format!("{kind} {shape:?}, {}", figures(&values, LIST))));
    }
    Value::Object(all)
}

fn numbers<T: Deserialize + Number, R: std::io::Read>(array: NpyFile<R>) -> Vec<f64> {
    array.into_vec::<T>().unwrap().into_iter().map(Number::wide).collect()
}

/// What becomes a 64-bit number.
trait Number {
    fn wide(self) -> f64;
}
macro_rules! number {
    ($($kind:ty)*) => { $(impl Number for $kind { fn wide(self) -> f64 { self as f64 } })* };
}
number!(f32 f64 i64 i32 u8 u16);

/// Rows and columns of a parquet file.
fn columns(path: &Path) -> Value {
    let reader = SerializedFileReader::new(File::open(path).unwrap()).unwrap();
    let about = reader.metadata().file_metadata();
    let columns = about.schema_descr().columns().iter();
    let columns: Vec<String> = columns.map(|c| format!("{}: {}", c.path().string(), c.physical_type())).collect();
    json!({ "rows": about.num_rows(), "columns": columns })
}

/// Sides, colours and grey values of a picture. Single values may round to a neighbour: they are not recorded.
fn picture(path: &Path) -> Value {
    let picture = image::open(path).unwrap();
    let values: Vec<f64> = picture.to_luma8().into_raw().into_iter().map(f64::from).collect();
    json!(format!("{}×{} {:?}, {}", picture.width(), picture.height(), picture.color(), figures(&values, 0)))
}

/// Words of a drawing, and how many elements of every kind it has.
fn drawing(text: &str) -> Value {
    let document = roxmltree::Document::parse(text).unwrap();
    let mut kinds = std::collections::BTreeMap::<&str, usize>::new();
    let elements = document.descendants().filter(roxmltree::Node::is_element);
    elements.for_each(|element| *kinds.entry(element.tag_name().name()).or_default() += 1);
    let words: Vec<&str> =
        document.descendants().filter(|n| n.is_text()).filter_map(|n| n.text()).map(str::trim).collect();
    json!({ "elements": kinds, "words": words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>() })
}
