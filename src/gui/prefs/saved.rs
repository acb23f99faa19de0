//! Preferences as the window's settings file has them: a value that cannot be read costs itself, and not all others.

use eframe::Storage;
use serde::de::DeserializeOwned;

use super::Prefs;

/// Where they are kept.
const KEY: &str = "prefs";

/// What was read.
#[derive(Debug, Default, PartialEq)]
pub struct SavedPrefs {
    pub prefs: Prefs,
    /// Names of the fields that could not be read and are as in a new window; all that is there where no field could be told from
    /// another.
    pub lost: Vec<String>,
}

impl SavedPrefs {
    /// The preferences of the last time; those of a new window where there are none.
    pub fn in_storage(storage: Option<&dyn Storage>) -> Self {
        storage.and_then(|storage| storage.get_string(KEY)).map(|text| Self::of(&text)).unwrap_or_default()
    }

    fn of(text: &str) -> Self {
        if let Some(prefs) = decode(text) {
            return Self { prefs, lost: Vec::new() };
        }
        let (good, bad): (Vec<&str>, Vec<&str>) =
            fields(text).into_iter().partition(|field| decode::<Prefs>(&format!("({field})")).is_some());
        let name = |field: &&str| field.split(':').next().unwrap_or_default().trim().to_owned();
        match decode(&format!("({})", good.join(","))) {
            Some(prefs) if !bad.is_empty() => Self { prefs, lost: bad.iter().map(name).collect() },
            _ => Self { prefs: Prefs::default(), lost: vec!["all of them".into()] },
        }
    }
}

/// Keeps preferences for the next time.
pub fn save(storage: &mut dyn Storage, prefs: &Prefs) {
    eframe::set_value(storage, KEY, prefs);
}

/// What eframe reads of a text.
pub(super) fn decode<T: DeserializeOwned>(text: &str) -> Option<T> {
    eframe::get_value(&Piece(text), KEY)
}

/// The fields of a struct as RON writes it, `(tau:1.0,world:"mnist")`: what stands between commas outside brackets and strings.
fn fields(text: &str) -> Vec<&str> {
    let inner = text.trim().strip_prefix('(').and_then(|text| text.strip_suffix(')')).unwrap_or_default();
    let (mut depth, mut quoted, mut escaped) = (0_usize, false, false);
    let apart = |c: char| {
        let inside = quoted;
        match c {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            _ if quoted => {}
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ',' && depth == 0 && !inside
    };
    inner.split(apart).filter(|field| !field.trim().is_empty()).collect()
}

/// A text as eframe reads it from its file.
struct Piece<'a>(&'a str);

impl Storage for Piece<'_> {
    fn get_string(&self, _: &str) -> Option<String> {
        Some(self.0.to_owned())
    }

    fn set_string(&mut self, _: &str, _: String) {}

    fn remove_string(&mut self, _: &str) {}

    fn flush(&mut self) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gui::prefs::Sort;

    /// A file in memory.
    #[derive(Default)]
    struct File(String);

    impl Storage for File {
        fn get_string(&self, _: &str) -> Option<String> {
            Some(self.0.clone()).filter(|text| !text.is_empty())
        }

        fn set_string(&mut self, _: &str, value: String) {
            self.0 = value;
        }

        fn remove_string(&mut self, _: &str) {}

        fn flush(&mut self) {}
    }

    #[test]
    fn a_value_that_cannot_be_read_costs_itself_alone() {
        let mut file = File::default();
        assert_eq!(SavedPrefs::in_storage(Some(&file)), SavedPrefs::default());
        let prefs = Prefs {
            tau: 1.25,
            world: "a, \"b\" (c: d".into(),
            sort: Sort::Entropy,
            prior: vec![0.25, 0.75],
            runs: vec!["/runs/a,b".into()],
            ..Prefs::default()
        };
        save(&mut file, &prefs);
        assert_eq!(SavedPrefs::in_storage(Some(&file)), SavedPrefs { prefs: prefs.clone(), lost: Vec::new() });
        let whole = file.0.clone();
        let damage = |from: &str, to: &str| {
            assert!(whole.contains(from), "{whole}");
            File(whole.replace(from, to))
        };
        let found = SavedPrefs::in_storage(Some(&damage("sort:Entropy", "sort:Entropie")));
        assert_eq!(
            found,
            SavedPrefs { prefs: Prefs { sort: Sort::Index, ..prefs.clone() }, lost: vec!["sort".into()] }
        );
        let found = SavedPrefs::in_storage(Some(&damage("prior:[0.25,0.75]", "prior:[0.25,\"much\"]")));
        assert_eq!(found, SavedPrefs { prefs: Prefs { prior: Vec::new(), ..prefs }, lost: vec!["prior".into()] });
        // A file that was cut off is no list of fields.
        let found = SavedPrefs::in_storage(Some(&File(whole[..whole.len() / 2].to_owned())));
        assert_eq!(found, SavedPrefs { prefs: Prefs::default(), lost: vec!["all of them".into()] });
    }
}
