//! What was drawn of worlds, in the program's cache folder: the next question goes on with the draws of
//! the last one, and the figures shown last are there at once.
//!
//! ```text
//! bayes/KEY/            a world, its prior and the seed of its draws: KEY is the SHA-256 of them
//!                       and of the program's version: another one may have other kernels
//!     figures.json      what was last found over τ
//!     DEVICE/           draws, a folder for each device: others round differently
//! ```
//!
//! The cache is a convenience: what cannot be read or written is logged, and computed again.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use super::survey::Survey;
use crate::data::{folder_size, read_json, sha256, write_json};
use crate::error::{Error, Result};
use crate::kernels::instruction_set;
use crate::oracle::posterior::Prior;
use crate::units::Seed;

/// Raised when draws, or what is written of them, change: what older programs kept is not used.
const FORMAT: u32 = 1;
/// Bytes that are kept, all worlds together.
const MOST_BYTES: u64 = 256 << 20;
/// Of a world.
const FIGURES: &str = "figures.json";

/// What draws depend on besides the device.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DrawKey {
    /// The world (`OracleInfo::world_id`).
    #[serde(rename = "weights_sha256")]
    pub world: String,
    /// Class prior π.
    pub prior: Prior,
    /// Seed of the draws.
    pub seed: Seed,
}

/// The figures of a world, with their key beside them: a file that was moved is found out.
#[derive(Serialize, Deserialize)]
struct KeptSurvey {
    format: u32,
    key: DrawKey,
    survey: Survey,
}

/// The folder of all worlds; without one nothing is kept.
#[derive(Debug, Clone)]
pub struct Cache {
    root: Option<PathBuf>,
    most: u64,
}

impl Cache {
    /// The cache in the user's cache folder; without such a folder it keeps nothing.
    pub fn of_user() -> Self {
        let dirs = directories::ProjectDirs::from("", "", "bayescope");
        Self { root: dirs.map(|dirs| dirs.cache_dir().join("bayes")), most: MOST_BYTES }
    }

    /// One in a folder that keeps at most so many bytes.
    pub fn within(root: &Path, most: u64) -> Self {
        Self { root: Some(root.to_owned()), most }
    }

    /// One that keeps nothing.
    pub fn none() -> Self {
        Self { root: None, most: 0 }
    }

    fn folder(&self, key: &DrawKey) -> Option<PathBuf> {
        let text = serde_json::to_string(&(FORMAT, env!("CARGO_PKG_VERSION"), key)).ok()?;
        Some(self.root.as_ref()?.join(sha256(text.as_bytes())))
    }

    /// What was last found of a world, if anything.
    pub fn survey(&self, key: &DrawKey) -> Option<Survey> {
        let path = self.folder(key)?.join(FIGURES);
        match read_json::<KeptSurvey>(&path) {
            Ok(Some(kept)) if kept.format == FORMAT && kept.key == *key => Some(kept.survey),
            Ok(Some(_)) => {
                tracing::warn!("{}: figures of another world or program; they are not used", path.display());
                None
            }
            Ok(None) => None,
            Err(error) => {
                tracing::warn!("figures that were kept are not used: {error}");
                None
            }
        }
    }

    /// Keeps what was found of a world, unless what is there comes of more draws.
    pub fn keep_survey(&self, key: &DrawKey, survey: &Survey) {
        let Some(folder) = self.folder(key) else { return };
        if self.survey(key).is_some_and(|kept| kept.samples() > survey.samples()) {
            return;
        }
        let kept = KeptSurvey { format: FORMAT, key: key.clone(), survey: survey.clone() };
        let written = create(&folder).and_then(|()| write_json(&folder.join(FIGURES), &kept));
        if let Err(error) = written {
            // Nothing is lost but a repetition.
            tracing::warn!("the figures of this world could not be kept: {error}");
        }
    }

    /// The folder of a world's draws on a device, and how many bytes it may grow by. Worlds that were not
    /// asked for the longest make room for it.
    pub(super) fn draws(&self, key: &DrawKey, device: &str) -> Option<(PathBuf, u64)> {
        let own = self.folder(key)?;
        let device: String =
            device.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' }).collect();
        let room = self.make_room(&own);
        Some((own.join(format!("{device}-{}", instruction_set())), room))
    }

    /// Removes the worlds written the longest ago until half of the cache is free, but not `own`. Returns
    /// the bytes that are free.
    fn make_room(&self, own: &Path) -> u64 {
        let mut worlds: Vec<(SystemTime, u64, PathBuf)> =
            self.worlds().into_iter().map(|path| (last_written(&path), folder_size(&path), path)).collect();
        worlds.sort();
        let mut used: u64 = worlds.iter().map(|(_, bytes, _)| bytes).sum();
        for (_, bytes, path) in worlds.iter().filter(|(.., path)| path != own) {
            if used <= self.most / 2 {
                break;
            }
            match std::fs::remove_dir_all(path) {
                Ok(()) => used -= bytes,
                Err(error) => tracing::warn!("{}: draws that were kept cannot be removed: {error}", path.display()),
            }
        }
        self.most.saturating_sub(used)
    }

    /// The folders that are worlds by their names; all others are not ours.
    fn worlds(&self) -> Vec<PathBuf> {
        let entries = self.root.as_ref().and_then(|root| std::fs::read_dir(root).ok());
        let is_key = |name: &str| name.len() == 64 && name.bytes().all(|b| b.is_ascii_hexdigit());
        let named =
            |path: &PathBuf| path.is_dir() && path.file_name().and_then(|name| name.to_str()).is_some_and(is_key);
        entries.into_iter().flatten().flatten().map(|entry| entry.path()).filter(named).collect()
    }
}

fn create(folder: &Path) -> Result<()> {
    std::fs::create_dir_all(folder).map_err(|e| Error::io(folder, e))
}

/// When a world's figures or the folders of its draws were last written to.
fn last_written(world: &Path) -> SystemTime {
    let inside = std::fs::read_dir(world).into_iter().flatten().flatten().map(|entry| entry.path());
    let all = inside.flat_map(|path| [path.join(crate::data::PARTS), path]);
    let written = all.filter_map(|path| std::fs::metadata(path).ok()?.modified().ok());
    written.max().unwrap_or(SystemTime::UNIX_EPOCH)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bayes::sampling::survey::tests::survey_of;

    fn key(seed: u64) -> DrawKey {
        DrawKey { world: "abc".into(), prior: Prior::uniform(2), seed: Seed(seed) }
    }

    #[test]
    fn figures_come_back_as_they_were_and_fewer_draws_do_not_replace_them() {
        let place = tempfile::tempdir().unwrap();
        let cache = Cache::within(place.path(), 1 << 20);
        assert_eq!(cache.survey(&key(1)), None);
        let (coarse, fine) = (survey_of(64), survey_of(512));
        cache.keep_survey(&key(1), &fine);
        cache.keep_survey(&key(1), &coarse);
        assert_eq!(cache.survey(&key(1)), Some(fine.clone()));
        assert_eq!((cache.survey(&key(2)), Cache::none().survey(&key(1))), (None, None));
        // A torn file and that of another world are as none, and are replaced.
        let file = cache.folder(&key(1)).unwrap().join(FIGURES);
        let whole = std::fs::read(&file).unwrap();
        std::fs::write(&file, &whole[..whole.len() / 2]).unwrap();
        assert_eq!(cache.survey(&key(1)), None);
        cache.keep_survey(&key(1), &coarse);
        assert_eq!(cache.survey(&key(1)), Some(coarse));
        create(&cache.folder(&key(3)).unwrap()).unwrap();
        std::fs::copy(&file, cache.folder(&key(3)).unwrap().join(FIGURES)).unwrap();
        assert_eq!(cache.survey(&key(3)), None);
    }

    #[test]
    fn the_oldest_worlds_make_room_and_nothing_else_is_removed() {
        let place = tempfile::tempdir().unwrap();
        let cache = Cache::within(place.path(), 4096);
        let foreign = place.path().join("holiday");
        create(&foreign).unwrap();
        std::fs::write(foreign.join("picture"), [0; 9000]).unwrap();
        let mut folders = Vec::new();
        for seed in 0..4 {
            let (folder, room) = cache.draws(&key(seed), "a device").unwrap();
            assert!(room >= 1024, "{room}");
            create(&folder).unwrap();
            std::fs::write(folder.join("piece"), [0; 1500]).unwrap();
            let age = std::time::Duration::from_secs(1000 * (4 - seed));
            let world = folder.parent().unwrap().to_owned();
            for path in [&folder, &world] {
                std::fs::File::open(path).unwrap().set_modified(SystemTime::now() - age).unwrap();
            }
            folders.push(world);
        }
        let there: Vec<bool> = folders.iter().map(|folder| folder.is_dir()).collect();
        assert!(!there[0] && there[3] && foreign.join("picture").is_file(), "{there:?}");
    }
}
