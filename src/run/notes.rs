//! What people say of a run: a name of its own, notes and tags, in one small file of its folder. No number depends on it.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::files::{NOTES, SPEC};
use crate::data::{parse_toml, read_text_bounded, write_atomically};
use crate::error::{Error, Result};

/// Most bytes that it may have.
const MOST: u64 = 64 << 10;

/// What is said of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RunNotes {
    /// What it is called; empty for the name of its folder and spec.
    pub name: String,
    /// Words by which it is found.
    pub tags: Vec<String>,
    /// Anything else.
    pub notes: String,
}

impl RunNotes {
    /// Of what was typed: tags with commas between them. Blanks around names and tags, and tags said twice, say nothing.
    pub fn typed(name: &str, tags: &str, notes: &str) -> Self {
        Self { name: name.into(), tags: tags.split(',').map(str::to_owned).collect(), notes: notes.into() }.tidy()
    }

    fn tidy(mut self) -> Self {
        let mut tags: Vec<String> = Vec::new();
        for tag in self.tags.iter().map(|tag| tag.trim()) {
            if !tag.is_empty() && !tags.iter().any(|known| known == tag) {
                tags.push(tag.to_owned());
            }
        }
        (self.name, self.tags, self.notes) = (self.name.trim().to_owned(), tags, self.notes.trim().to_owned());
        self
    }

    /// What is said of the run in a folder; nothing where there is no file.
    ///
    /// # Errors
    /// Names a file that is there and cannot be read, or is too large.
    pub fn read(run: &Path) -> Result<Self> {
        let path = run.join(NOTES);
        match read_text_bounded(&path, MOST) {
            Ok(text) => parse_toml(&path, &text).map(Self::tidy),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(Self::default()),
            Err(e) => Err(Error::io(&path, e)),
        }
    }

    /// Writes it into the folder of a run, in place of what was said before.
    ///
    /// # Errors
    /// Where the folder holds no run, the text is longer than is read, or the file cannot be written.
    pub fn write(&self, run: &Path) -> Result<()> {
        let path = run.join(NOTES);
        if !run.join(SPEC).is_file() {
            return Err(Error::file(run, format!("is no run folder: it has no {SPEC}")));
        }
        let text = toml::to_string_pretty(self).map_err(|e| Error::file(&path, e.to_string()))?;
        if text.len() as u64 > MOST {
            return Err(Error::file(
                &path,
                format!("its text has {} bytes, and {MOST} is the most: shorten the notes", text.len()),
            ));
        }
        write_atomically(&path, |file| file.write_all(text.as_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(SPEC), "name = 'x'").unwrap();
        folder
    }

    #[test]
    fn what_was_said_is_read_again_whatever_is_in_it() {
        let folder = run();
        assert_eq!(RunNotes::read(folder.path()).unwrap(), RunNotes::default());
        for notes in ["", "a \"quoted\" line\nand '''another''', \\ and ü = [1]", "\t[table]\nname = 'no'"] {
            let said = RunNotes::typed(" My \"best\" run ", "first, zwölf ,, first", notes);
            assert_eq!(
                (said.name.as_str(), said.tags.as_slice()),
                ("My \"best\" run", &["first", "zwölf"].map(String::from)[..])
            );
            said.write(folder.path()).unwrap();
            assert_eq!(RunNotes::read(folder.path()).unwrap(), said);
        }
    }

    #[test]
    fn files_that_are_no_notes_are_named_and_stay_within_bounds() {
        let folder = run();
        let file = folder.path().join(NOTES);
        let endless = vec![b'#'; MOST as usize + 1];
        for bad in [&b"name = "[..], b"name = 3", b"colour = 'red'", b"notes = '\xff'", &endless[..]] {
            std::fs::write(&file, bad).unwrap();
            let why = RunNotes::read(folder.path()).unwrap_err().to_string();
            assert!(why.contains(NOTES), "{why}");
        }
        // What is refused takes nothing away.
        let before = std::fs::read(&file).unwrap();
        let long = RunNotes { notes: "x".repeat(MOST as usize), ..RunNotes::default() };
        assert!(long.write(folder.path()).unwrap_err().to_string().contains("shorten the notes"));
        assert_eq!(std::fs::read(&file).unwrap(), before);
        let nowhere = tempfile::tempdir().unwrap();
        assert!(RunNotes::default().write(nowhere.path()).is_err() && !nowhere.path().join(NOTES).exists());
    }
}
