//! Paths as they are kept for the next time: a relative one is of the directory the program was started in.

use std::path::{Path, PathBuf};

use crate::experiment::form::typed_path;
use crate::oracle::library;
use crate::oracle::train::ORACLE;

/// An oracle as it was asked for. Names of bundled worlds are no paths.
pub fn oracle(name: &str) -> String {
    if name.is_empty() || library::find(name).is_some() {
        return name.to_owned();
    }
    folder(Path::new(name)).display().to_string()
}

/// A folder or a file.
pub fn folder(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// A path as somebody typed it in a field, `~/` being the home folder; empty where nothing was typed.
pub fn typed(text: &str) -> PathBuf {
    typed_path(text).unwrap_or_else(|_| text.trim().into())
}

/// How a list of files, folders and bundled worlds calls one of them: by its last part, and an oracle that lies where a
/// training wrote it by the folder of the training, too.
pub fn short(path: &str) -> String {
    let part = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned());
    let whole = Path::new(path);
    match (part(whole), whole.parent().and_then(part)) {
        (Some(last), Some(run)) if last == ORACLE => Path::new(&run).join(last).display().to_string(),
        (Some(last), _) => last,
        (None, _) => path.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_kept_whole_and_names_of_bundled_worlds_as_they_are() {
        let here = std::env::current_dir().unwrap();
        assert_eq!(oracle("worlds/mine"), here.join("worlds/mine").display().to_string());
        assert_eq!(folder(Path::new("runs/a")), here.join("runs/a"));
        for name in ["", "mnist", "/worlds/mine"] {
            assert_eq!(oracle(name), name);
        }
        assert_eq!(folder(Path::new("/runs/a")), Path::new("/runs/a"));
        if let Some(home) = std::env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_absolute()) {
            assert_eq!((typed(" ~/digits "), typed("~")), (home.join("digits"), home));
        }
        assert_eq!((typed("runs/a"), typed("~me/a"), typed(" ")), (here.join("runs/a"), here.join("~me/a"), "".into()));
    }

    #[test]
    fn worlds_of_trainings_are_told_apart() {
        let run = Path::new("forms").join("oracle").display().to_string();
        assert_eq!(
            ["/w/forms/oracle", "forms/oracle", "oracle", "mnist", "/w/a.pth", "/"].map(short),
            [run.as_str(), run.as_str(), "oracle", "mnist", "a.pth", "/"]
        );
    }
}
