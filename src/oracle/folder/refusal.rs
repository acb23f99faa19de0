//! What is said of a name or path that stands for no oracle.

use std::path::Path;

use super::{DESCRIPTION, FLOWS};
use crate::data::kind_of;
use crate::error::{Error, did_you_mean, in_line};
use crate::oracle::library;

/// Endings of files that may hold weights: what is wrong with one of these, its reader says.
const WEIGHTS: [&str; 7] = ["safetensors", "pth", "pt", "tar", "ckpt", "bin", "pkl"];

/// What is said of a name or path that stands for no oracle: what it is, and what could be given. `also`: what else
/// is taken in an oracle's place. `None` where it may be an oracle, whole or damaged.
pub fn refusal(oracle: &str, also: Option<&str>) -> Option<Error> {
    let (path, shown) = (Path::new(oracle), in_line(oracle));
    let ending = path.extension().map(|ending| ending.to_ascii_lowercase());
    let what = match () {
        () if library::find(oracle).is_some() => return None,
        () if path.is_dir() => {
            let described = [DESCRIPTION, FLOWS].iter().any(|name| path.join(name).exists());
            (!described).then(|| format!("'{shown}' is a folder without {DESCRIPTION} or {FLOWS}, no oracle"))?
        }
        () if path.is_file() => {
            let may_be = ending.is_some_and(|ending| WEIGHTS.iter().any(|weights| ending == *weights));
            (!may_be).then(|| kind_of(path)).flatten().map(|kind| format!("'{shown}' is {kind}, no oracle"))?
        }
        () => match library::former(oracle) {
            Some(where_now) => return Some(Error::input(format!("'{shown}' is no bundled oracle: {where_now}"))),
            None => format!("'{shown}' is no oracle{}", closest(oracle)),
        },
    };
    Some(Error::input(format!("{what}: give {}", taken(also))))
}

/// What was meant, if it can be told: a bundled name, or one of those that are bundled of a name with a hash.
fn closest(oracle: &str) -> String {
    let versions = oracle.split_once('@').map(|(name, _)| library::versions(name)).unwrap_or_default();
    match versions.is_empty() {
        true => did_you_mean(oracle, library::names()),
        false => format!(" (of that name there are {})", versions.join(" and ")),
    }
}

/// What can be given for an oracle, and `also` in its place.
fn taken(also: Option<&str>) -> String {
    let mut all = vec![
        format!("a bundled name ({})", library::names().join(", ")),
        "an oracle folder".into(),
        format!("a folder with {FLOWS}"),
        "a checkpoint file (.safetensors, .pth, .pth.tar)".into(),
    ];
    all.extend(also.map(str::to_owned));
    let last = all.pop().unwrap_or_default();
    format!("{}, or {last}", all.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::write_atomically;
    use crate::events::silent;
    use crate::oracle::folder::read_watched;

    #[test]
    fn what_is_no_oracle_is_named_and_what_may_be_one_is_left_to_its_reader() {
        let folder = tempfile::tempdir().unwrap();
        let said = |name: &str, bytes: &[u8]| {
            let path = folder.path().join(name);
            write_atomically(&path, |file| file.write_all(bytes)).unwrap();
            let read = read_watched(path.to_str().unwrap(), &mut silent()).err().unwrap().to_string();
            let refused = refusal(path.to_str().unwrap(), None).map(|error| error.to_string());
            assert!(refused.as_ref().is_none_or(|refused| *refused == read), "{refused:?} {read}");
            (read, refused)
        };
        let png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR";
        for (name, bytes, kind) in [
            ("a.png", &b"damaged"[..], "is a picture, no oracle"),
            ("picture", png, "is a picture, no oracle"),
            ("a.npz", b"PK\x03\x04\x14\0\0\0", "is a file of the format .npz"),
            ("train-images-idx3-ubyte", &[0, 0, 8, 3], "is a file of the format IDX"),
            ("numbers", &[0, 0, 8, 3, 0], "is a file of the format IDX"),
            ("README", "Zwei Flüsse".as_bytes(), "is a text"),
            ("problem.json", b"{}", "is a JSON file"),
            ("empty", b"", "is an empty file"),
        ] {
            let (read, refused) = said(name, bytes);
            assert!(read.contains(kind) && read.contains("give a bundled name (mnist") && refused.is_some(), "{read}");
        }
        for (name, bytes) in [
            ("a.safetensors", &png[..]),
            ("a.pth", b"no weights"),
            ("odd", b"\x80\x02\xff\0"),
            ("zip", b"PK\x03\x04\x14\0"),
        ] {
            let (read, refused) = said(name, bytes);
            assert!(refused.is_none() && !read.contains("bundled name"), "{name}: {read}");
        }
        let read = |oracle: &str| read_watched(oracle, &mut silent()).err().unwrap().to_string();
        assert!(read(folder.path().to_str().unwrap()).contains("is a folder without oracle.json or flows.json"));
        assert!(refusal("mnist", None).is_none());
        let [newest, earlier] = &library::versions("mnist")[..] else { unreachable!() };
        assert!(refusal(newest, None).is_none() && refusal(earlier, None).is_none());
        let unknown = refusal("mnist@00000000", None).unwrap().to_string();
        assert!(unknown.contains(&format!("of that name there are {newest} and {earlier}")), "{unknown}");
        // Too few digits to tell worlds apart.
        assert!(refusal(&earlier[..earlier.len() - 1], None).is_some());
        let also = refusal("nobody", Some("a class problem")).unwrap().to_string();
        assert!(also.ends_with("a checkpoint file (.safetensors, .pth, .pth.tar), or a class problem"), "{also}");
        assert!(
            refusal("mnits", None).unwrap().to_string().starts_with("'mnits' is no oracle (did you mean mnist?): give")
        );
    }
}
