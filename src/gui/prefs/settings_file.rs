//! The file in which eframe keeps the window's settings. What cannot be read there is kept beside it, and told.

use std::collections::HashMap;
use std::io::ErrorKind;
use std::path::Path;

use super::saved::decode;
use crate::data::read_text;

/// Its name in the folder of the settings.
const FILE: &str = "app.ron";
/// What a file is kept as with which there is something wrong.
const ASIDE: &str = "app.ron.broken";
/// Scales at which a window can be opened.
const ZOOMS: std::ops::RangeInclusive<f32> = 0.01..=10.0;

/// Renames a file that cannot be read, or that has a scale at which eframe panics, before a window opens. Returns what is to be said of
/// it.
pub fn set_aside(folder: &Path) -> Option<String> {
    let (file, aside) = (folder.join(FILE), folder.join(ASIDE));
    let why = match read_text(&file) {
        Err(e) if e.kind() == ErrorKind::NotFound => return None,
        Err(e) => e.to_string(),
        Ok(text) if has_impossible_zoom(&text) => "it has a scale at which no window opens".into(),
        // eframe's own map of texts.
        Ok(text) if decode::<HashMap<String, String>>(&text).is_none() => "it is damaged or cut off".into(),
        Ok(_) => return None,
    };
    let told = format!("The settings of the last time cannot be read ({}): {why}.", file.display());
    let told = match std::fs::rename(&file, &aside) {
        Ok(()) => format!("{told} The window is a new one; the file is kept as {}.", aside.display()),
        Err(e) => format!("{told} The file cannot be renamed ({e}): delete it where the window does not open."),
    };
    tracing::warn!("{told}");
    Some(told)
}

fn has_impossible_zoom(settings: &str) -> bool {
    settings.split("zoom_factor:").skip(1).any(|rest| {
        let number = rest.split([',', ')']).next().unwrap_or_default().trim();
        number.parse().is_ok_and(|zoom: f32| !ZOOMS.contains(&zoom))
    })
}

/// What is said of single settings that could not be read. Their file is kept as it was: the next one is written over it.
pub fn kept(lost: &[String], folder: Option<&Path>) -> Option<String> {
    if lost.is_empty() {
        return None;
    }
    let told = format!("Settings that could not be read are as in a new window: {}.", lost.join(", "));
    let aside = folder.map(|folder| (folder.join(FILE), folder.join(ASIDE)));
    let aside = aside.filter(|(file, aside)| std::fs::copy(file, aside).is_ok());
    Some(aside.map_or_else(
        || told.clone(),
        |(_, aside)| format!("{told} The file of before is kept as {}.", aside.display()),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_with_which_no_window_opens_is_set_aside_and_told() {
        let folder = tempfile::tempdir().unwrap();
        let (file, aside) = (folder.path().join(FILE), folder.path().join(ASIDE));
        assert_eq!(set_aside(folder.path()), None);
        let with =
            |zoom: &str| format!("{{\"egui\": \"(options:(zoom_factor:{zoom},other:1))\",\"prefs\": \"(tau:1.0)\"}}");
        for zoom in ["1.0", "0.5", "2"] {
            std::fs::write(&file, with(zoom)).unwrap();
            assert_eq!(set_aside(folder.path()), None, "{zoom}");
            assert!(file.exists() && !aside.exists(), "{zoom}");
        }
        let impossible = ["0.0", "-1.0", "NaN", "1e9", "inf"].map(with);
        let whole = with("1.0");
        let cut = (0..whole.len()).map(|end| whole[..end].to_owned());
        for text in impossible.into_iter().chain(cut) {
            std::fs::write(&file, &text).unwrap();
            let told = set_aside(folder.path()).unwrap();
            assert!(told.contains(&aside.display().to_string()), "{told}");
            assert!(!file.exists());
            assert_eq!(std::fs::read_to_string(&aside).unwrap(), text);
            std::fs::remove_file(&aside).unwrap();
        }
        std::fs::create_dir(&file).unwrap();
        assert!(set_aside(folder.path()).is_some());
        assert!(!file.exists() && aside.exists(), "a folder");
    }

    #[test]
    fn single_settings_that_are_lost_are_told_and_kept() {
        assert_eq!(kept(&[], None), None);
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(FILE), "as it was").unwrap();
        let told = kept(&["sort".into()], Some(folder.path())).unwrap();
        let aside = folder.path().join(ASIDE);
        assert!(told.contains("new window: sort.") && told.contains(&aside.display().to_string()), "{told}");
        assert_eq!(std::fs::read_to_string(aside).unwrap(), "as it was");
    }
}
