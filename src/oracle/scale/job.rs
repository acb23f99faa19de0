//! What a job is: written first, and compared with what a later start asks for.

use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::data::{Kind, nothing_else_in, read_bytes, write_atomically};
use crate::error::{Error, Result};
use crate::flow::Precision;
use crate::flow::preprocess::Dequantisation;
use crate::oracle::folder::sha256;
use crate::oracle::world::Settings;

/// Name of the description inside a job folder.
pub const JOB: &str = "job.json";
/// Version of the folder's layout.
const FORMAT: u32 = 1;
/// What may change between two starts of the same job: names, not contents.
const NAMES: [&str; 2] = ["oracle", "input.name"];

/// The content of `job.json`: everything the numbers depend on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Job {
    /// Version of the folder's layout.
    pub format: u32,
    /// Name of the oracle.
    pub oracle: String,
    /// SHA-256 of its weights.
    pub weights_sha256: String,
    /// Names of its K classes.
    pub classes: Vec<String>,
    /// τ, T and π.
    pub settings: Settings,
    /// Arithmetic of the passes.
    pub precision: Precision,
    /// The images.
    pub input: InputRecord,
    /// Images of one pass: shards begin and end between passes.
    pub images_per_pass: usize,
    /// Number of shards; each has a contiguous part of the passes.
    pub shards: usize,
}

/// Which images, and how they become world-space x.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InputRecord {
    /// File or folder.
    pub name: String,
    /// Number of images N.
    pub images: usize,
    /// `world-space` (float32 x) or `pixels` (8-bit, as padded).
    pub kind: String,
    /// SHA-256 of those numbers, NCHW, little-endian.
    pub sha256: String,
    /// How pixels were dequantised; absent for world-space x.
    pub dequantisation: Option<Dequantisation>,
}

impl Job {
    /// A job of the present format.
    pub fn new(mut job: Self) -> Self {
        job.format = FORMAT;
        job
    }

    /// The job in its folder: made with it where there is none.
    ///
    /// # Errors
    /// When the folder holds another job (says what differs) or something else, is the one that the images are read from, or the
    /// system refuses.
    pub fn settle(&self, folder: &Path) -> Result<()> {
        nothing_else_in(folder, Some(Kind::Posteriors))?;
        if !folder.join(JOB).exists() && self.is_read_from(folder) {
            return Err(Error::file(
                folder,
                "is the folder that the images are read from; choose another folder for --out",
            ));
        }
        std::fs::create_dir_all(folder).map_err(|e| Error::io(folder, e))?;
        let path = folder.join(JOB);
        if !path.exists() {
            let text = serde_json::to_vec_pretty(self).map_err(|e| Error::file(&path, e.to_string()))?;
            return write_atomically(&path, |file| file.write_all(&text));
        }
        let found = Self::read(folder)?;
        let differences = found.differences(self);
        if differences.is_empty() {
            return Ok(());
        }
        let what = differences.join("; ");
        Err(Error::file(
            path,
            format!("is of another job ({what}): give --out another folder, or ask for the same again"),
        ))
    }

    /// Whether the images lie in this very folder, by whatever name it is called.
    fn is_read_from(&self, folder: &Path) -> bool {
        let place = |path: &Path| path.canonicalize().ok();
        place(folder).is_some_and(|folder| place(Path::new(&self.input.name)) == Some(folder))
    }

    /// Reads the description of a job folder.
    ///
    /// # Errors
    /// Names the file and the cause.
    pub fn read(folder: &Path) -> Result<Self> {
        let path = folder.join(JOB);
        let text = read_bytes(&path).map_err(|e| Error::io(&path, e))?;
        let job: Self = serde_json::from_slice(&text).map_err(|e| Error::file(&path, e.to_string()))?;
        if job.format == FORMAT {
            return Ok(job);
        }
        Err(Error::file(path, format!("has format {}, this program reads {FORMAT}", job.format)))
    }

    /// Identifies the job: SHA-256 of everything but names.
    pub fn id(&self) -> String {
        let fields: Vec<(String, String)> = self.fields();
        sha256(format!("{fields:?}").as_bytes())
    }

    /// Every field by its dotted path, without the names.
    fn fields(&self) -> Vec<(String, String)> {
        let mut fields = Vec::new();
        // A struct of numbers, strings and lists always has a JSON form.
        flatten("", &serde_json::to_value(self).unwrap_or_default(), &mut fields);
        fields.retain(|(name, _)| !NAMES.contains(&name.as_str()));
        fields.sort();
        fields
    }

    fn differences(&self, asked: &Self) -> Vec<String> {
        let (found, asked) = (self.fields(), asked.fields());
        let value = |fields: &[(String, String)], name: &str| {
            let found = fields.iter().find(|(field, _)| field == name);
            found.map_or_else(|| "nothing".to_owned(), |(_, value)| short(value))
        };
        let mut names: Vec<&String> = found.iter().chain(&asked).map(|(name, _)| name).collect();
        names.sort();
        names.dedup();
        let differs = |name: &&String| {
            let of = |fields: &[(String, String)]| fields.iter().find(|(field, _)| field == *name).cloned();
            of(&found) != of(&asked)
        };
        let tell = |name: &String| format!("{name} is {} there, {} here", value(&found, name), value(&asked, name));
        names.into_iter().filter(differs).map(tell).collect()
    }
}

/// Objects become dotted paths; everything else, lists too, one value.
fn flatten(prefix: &str, value: &Value, fields: &mut Vec<(String, String)>) {
    match value {
        Value::Object(entries) => {
            for (name, value) in entries {
                let path = if prefix.is_empty() { name.clone() } else { format!("{prefix}.{name}") };
                flatten(&path, value, fields);
            }
        }
        value => fields.push((prefix.to_owned(), value.to_string())),
    }
}

fn short(text: &str) -> String {
    const SHOWN: usize = 40;
    if text.chars().count() <= SHOWN { text.to_owned() } else { text.chars().take(SHOWN).chain(['…']).collect() }
}
