//! What was open lately, in a file that all windows of a user share. A window that closes writes its other settings over those of
//! the windows before it; of these lists it writes what it added and removed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::prefs::Prefs;
use crate::data::{read_json, write_json};
use crate::device::DeviceChoice;
use crate::error::Result;

/// Its name beside the window's other settings.
const FILE: &str = "lists.json";

/// The lists among the preferences.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
struct Lists {
    runs: Vec<PathBuf>,
    oracles: Vec<String>,
    machines: Vec<DeviceChoice>,
    taus: BTreeMap<String, f64>,
}

impl Lists {
    fn of(prefs: &Prefs) -> Self {
        let Prefs { runs, oracles, machines, taus, .. } = prefs.clone();
        Self { runs, oracles, machines, taus }
    }

    /// These, with what others have put into the file since `before`, and without what they have taken out.
    fn with_those_of_others(mut self, file: Self, before: &Self) -> Self {
        merge(&mut self.runs, file.runs, &before.runs);
        merge(&mut self.oracles, file.oracles, &before.oracles);
        merge(&mut self.machines, file.machines, &before.machines);
        for (oracle, tau) in file.taus {
            let unchanged = self.taus.get(&oracle) == before.taus.get(&oracle);
            if unchanged {
                self.taus.insert(oracle, tau);
            }
        }
        self
    }
}

/// Removes what `before` had and `file` lacks: another window removed it. Adds what `file` has and neither `ours` nor `before` had:
/// what only `before` had was removed here.
fn merge<T: PartialEq>(ours: &mut Vec<T>, file: Vec<T>, before: &[T]) {
    ours.retain(|one| file.contains(one) || !before.contains(one));
    for one in file {
        if !ours.contains(&one) && !before.contains(&one) {
            ours.push(one);
        }
    }
}

/// The file, and what this window had when it last read or wrote it.
#[derive(Debug)]
pub struct SharedLists {
    file: Option<PathBuf>,
    before: Lists,
}

impl SharedLists {
    /// Reads the lists into `prefs` from the folder of the window's settings, if there is one; settings of a version without
    /// the file keep theirs.
    pub fn read(folder: Option<PathBuf>, prefs: &mut Prefs) -> Self {
        let file = folder.map(|folder| folder.join(FILE));
        match file.as_deref().map(read_json::<Lists>).transpose() {
            Ok(Some(Some(Lists { runs, oracles, machines, taus }))) => {
                *prefs = Prefs { runs, oracles, machines, taus, ..prefs.clone() };
            }
            Ok(_) => {}
            Err(error) => tracing::warn!("{error}: the lists are those of this window alone"),
        }
        Self { file, before: Lists::of(prefs) }
    }

    /// Writes what has changed, and takes out of `prefs` what another window removed, but for runs that are `computed` here:
    /// like what is opened here again, these are new.
    pub fn save(&mut self, prefs: &mut Prefs, computed: &[PathBuf]) {
        let ours = Lists::of(prefs);
        let Some(file) = self.file.as_deref().filter(|_| ours != self.before) else { return };
        match write(file, ours, &self.before) {
            Ok(Lists { runs, oracles, machines, .. }) => {
                prefs.runs.retain(|run| runs.contains(run) || computed.contains(run));
                prefs.oracles.retain(|oracle| oracles.contains(oracle));
                prefs.machines.retain(|machine| machines.contains(machine));
                self.before = Lists::of(prefs);
                self.before.runs.retain(|run| runs.contains(run));
            }
            Err(error) => tracing::warn!("what was open lately is not kept: {error}"),
        }
    }
}

/// Returns what was written.
fn write(file: &Path, ours: Lists, before: &Lists) -> Result<Lists> {
    // What cannot be read, or is not there yet, is written anew: nobody has removed anything.
    let all = match read_json(file) {
        Ok(Some(there)) => ours.with_those_of_others(there, before),
        _ => ours,
    };
    write_json(file, &all)?;
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_two_windows_none_takes_away_what_the_other_added() {
        let folder = tempfile::tempdir().unwrap();
        let open = |prefs: Prefs| {
            let mut prefs = prefs;
            let lists = SharedLists::read(Some(folder.path().to_owned()), &mut prefs);
            (prefs, lists)
        };
        let old = Prefs { runs: vec!["/a".into(), "/b".into()], ..Prefs::default() };
        let (mut first, mut of_first) = open(old.clone());
        first.taus.insert("cells".into(), 0.5);
        of_first.save(&mut first, &[]);
        let (mut second, mut of_second) = open(Prefs::default());
        assert_eq!((&second.runs, &second.taus), (&first.runs, &first.taus));
        second.runs.push("/c".into());
        second.oracles = vec!["/o".into()];
        second.taus.insert("cells".into(), 0.25);
        of_second.save(&mut second, &[]);
        // The first one removes a run, and knows nothing of the second one's.
        first.runs.remove(0);
        first.taus.insert("mnist".into(), 2.0);
        of_first.save(&mut first, &[]);
        let (third, _) = open(Prefs::default());
        assert_eq!(third.runs, [PathBuf::from("/b"), "/c".into()]);
        assert_eq!(third.oracles, ["/o"]);
        assert_eq!(third.taus, BTreeMap::from([("cells".into(), 0.25), ("mnist".into(), 2.0)]));
        // What another window removed stays away, whatever is saved here.
        second.runs.push("/e".into());
        of_second.save(&mut second, &[]);
        assert_eq!(open(Prefs::default()).0.runs, [PathBuf::from("/b"), "/c".into(), "/e".into()]);
        second.taus.insert("mnist".into(), 1.5);
        of_second.save(&mut second, &[]);
        assert_eq!(open(Prefs::default()).0.runs, [PathBuf::from("/b"), "/c".into(), "/e".into()]);
        // Unless it is opened here again.
        second.runs.push("/a".into());
        of_second.save(&mut second, &[]);
        assert_eq!(open(Prefs::default()).0.runs, [PathBuf::from("/b"), "/c".into(), "/e".into(), "/a".into()]);
        let (mut third, mut of_third) = open(Prefs::default());
        // A run that another window forgot is this one's as long as it is computed here.
        second.runs.retain(|run| run != Path::new("/e"));
        of_second.save(&mut second, &[]);
        third.taus.insert("cells".into(), 0.7);
        of_third.save(&mut third, &["/e".into()]);
        assert!(third.runs.contains(&"/e".into()) && !open(Prefs::default()).0.runs.contains(&"/e".into()));
        of_third.save(&mut third, &["/e".into()]);
        assert!(open(Prefs::default()).0.runs.contains(&"/e".into()));
        // A damaged file is told of, and written anew with the next change.
        std::fs::write(folder.path().join(FILE), "{").unwrap();
        let (mut fourth, mut of_fourth) = open(old);
        fourth.runs.push("/d".into());
        of_fourth.save(&mut fourth, &[]);
        assert_eq!(open(Prefs::default()).0.runs, [PathBuf::from("/a"), "/b".into(), "/d".into()]);
    }
}
