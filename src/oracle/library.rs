//! The oracles that come with the program.

use crate::data::sha256;
use crate::error::{Error, Result};
use crate::flow::import::checkpoint_from_bytes;
use crate::flow::weights::Weights;
use crate::oracle::folder::{OracleInfo, check_architecture, check_hash};

/// One bundled oracle folder, inside the program.
#[derive(Debug, Clone, Copy)]
pub struct Bundled {
    /// Its name.
    pub name: &'static str,
    /// Where it lies in the source code.
    folder: &'static str,
    description: &'static [u8],
    weights: &'static [u8],
}

/// What the window opens on: of the worlds whose Bayes error follows the dial while it is moved, the
/// one whose samples a person recognises at a glance, and keep their posteriors in pictures of 8 bits
/// (docs/oracles.md).
pub const DEFAULT: &str = "cells";

/// Worlds that were bundled once, and what is to be done without them.
const FORMER: [(&str, &str); 1] = [(
    "animals",
    "it comes with the program no more. Its folder is tests/worlds/animals of the source code: give that path, or copy the folder \
     as `animals` to where the command starts. Or train it anew by assets/specs/oracle-animals.toml (`bayescope oracle train`, 1.5 \
     hours on two cores); `cells` is the bundled world of photographs",
)];

static LIBRARY: &[Bundled] = &[
    Bundled {
        name: "mnist",
        folder: "mnist",
        description: include_bytes!("../../assets/oracles/mnist/oracle.json"),
        weights: include_bytes!("../../assets/oracles/mnist/weights.safetensors"),
    },
    Bundled {
        name: DEFAULT,
        folder: "cells",
        description: include_bytes!("../../assets/oracles/cells/oracle.json"),
        weights: include_bytes!("../../assets/oracles/cells/weights.safetensors"),
    },
    Bundled {
        name: "fashion",
        folder: "fashion",
        description: include_bytes!("../../assets/oracles/fashion/oracle.json"),
        weights: include_bytes!("../../assets/oracles/fashion/weights.safetensors"),
    },
];

/// Worlds whose place newer ones of the same name have taken: specs, runs and tests that need their numbers
/// name them `NAME@HASH`.
static EARLIER: &[Bundled] = &[Bundled {
    name: "mnist",
    folder: "mnist-9b44f254",
    description: include_bytes!("../../assets/oracles/mnist-9b44f254/oracle.json"),
    weights: include_bytes!("../../assets/oracles/mnist-9b44f254/weights.safetensors"),
}];

/// Hexadecimal digits of a hash that tell worlds of one name apart.
const DIGITS: usize = 8;

/// Names of the bundled oracles.
pub fn names() -> Vec<&'static str> {
    LIBRARY.iter().map(|bundled| bundled.name).collect()
}

/// The bundled oracle of that name, or of `NAME@HASH`, where HASH is how the SHA-256 of its weights begins, by at
/// least eight digits: the same world in every version of the program that still has it.
pub fn find(name: &str) -> Option<&'static Bundled> {
    let Some((name, hash)) = name.split_once('@') else {
        return LIBRARY.iter().find(|bundled| bundled.name == name);
    };
    let of_hash = |bundled: &&Bundled| bundled.described().is_ok_and(|info| info.weights_sha256.starts_with(hash));
    let (named, digits) = (|bundled: &&Bundled| bundled.name == name, hash.len() >= DIGITS);
    LIBRARY.iter().chain(EARLIER).filter(named).filter(|_| digits).find(of_hash)
}

/// The bundled oracle of these weights.
pub fn of_weights(sha256: &str) -> Option<&'static Bundled> {
    LIBRARY.iter().chain(EARLIER).find(|bundled| bundled.described().is_ok_and(|info| info.weights_sha256 == sha256))
}

/// `NAME@HASH` of all worlds of a name that are bundled, the one of the bare name first.
pub fn versions(name: &str) -> Vec<String> {
    let of_name = LIBRARY.iter().chain(EARLIER).filter(|bundled| bundled.name == name);
    of_name.filter_map(|bundled| Some(pinned(name, &bundled.described().ok()?.weights_sha256))).collect()
}

/// What opens the world of a name and of these weights, as far as the program knows: `NAME@HASH` where a newer
/// bundled world has the bare name.
pub fn opening(name: &str, weights_sha256: &str) -> String {
    let pinned = pinned(name, weights_sha256);
    let newer = find(name).and_then(|bundled| bundled.described().ok());
    let earlier = newer.is_some_and(|info| info.weights_sha256 != weights_sha256) && find(&pinned).is_some();
    if earlier { pinned } else { name.to_owned() }
}

fn pinned(name: &str, weights_sha256: &str) -> String {
    format!("{name}@{}", weights_sha256.get(..DIGITS).unwrap_or(weights_sha256))
}

/// Where a world is now that was bundled once, for those whose specs, runs and settings name it.
pub fn former(name: &str) -> Option<&'static str> {
    FORMER.iter().find(|(former, _)| *former == name).map(|(_, where_now)| *where_now)
}

impl Bundled {
    fn described(&self) -> Result<OracleInfo> {
        let broken =
            |e: serde_json::Error| Error::file(format!("assets/oracles/{}/oracle.json", self.folder), e.to_string());
        serde_json::from_slice(self.description).map_err(broken)
    }

    /// Its description, without its weights. An earlier world is called by the name that opens it.
    ///
    /// # Errors
    /// When the program was built with a broken description.
    pub fn info(&self) -> Result<OracleInfo> {
        let mut info = self.described()?;
        if EARLIER.iter().any(|earlier| earlier.folder == self.folder) {
            info.name = pinned(self.name, &info.weights_sha256);
        }
        Ok(info)
    }

    /// Its description and weights.
    ///
    /// # Errors
    /// When the program was built with weights that are not the ones described.
    pub fn read(&self) -> Result<(OracleInfo, Weights)> {
        let path = format!("assets/oracles/{}/weights.safetensors", self.folder);
        let info = self.info()?;
        check_hash(path.as_ref(), &sha256(self.weights), &info)?;
        let checkpoint = checkpoint_from_bytes(path.as_ref(), self.weights)?;
        check_architecture(path.as_ref(), &checkpoint.inferred.architecture, &info)?;
        Ok((info, checkpoint.weights))
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::flow::preprocess::Preprocessing;
    use crate::oracle::folder;
    use crate::oracle::train::PRESETS;

    #[test]
    fn a_bundled_world_is_told_from_others_by_its_weights_alone() {
        for bundled in LIBRARY.iter().chain(EARLIER) {
            let info = bundled.info().unwrap();
            assert_eq!(info.world_id(), info.weights_sha256, "{}", info.name);
        }
    }

    #[test]
    fn a_bundled_world_is_what_its_spec_makes() {
        for name in names() {
            let (info, _) = find(name).unwrap().read().unwrap();
            assert!(info.name == name && former(name).is_none());
            let preset = PRESETS.iter().find(|preset| preset.name.starts_with(name)).unwrap().spec().unwrap();
            let mut spec = info.training.unwrap().spec;
            spec.data.path = preset.data.path.clone();
            assert_eq!(spec, preset, "{name}");
        }
    }

    /// The digits whose place noisy ones took, by their hash.
    const DIGITS_OF_BEFORE: &str = "mnist@9b44f254";

    #[test]
    fn a_bundled_world_has_a_name_that_stays_its_own() {
        let (info, weights) = folder::read(DIGITS_OF_BEFORE).unwrap();
        assert_eq!(info.name, DIGITS_OF_BEFORE);
        assert!(
            info.weights_sha256.starts_with("9b44f254a849e56912d37bb88cfaaa64")
                && info.pixels == Preprocessing::Uniform
        );
        let (newest, others) = folder::read("mnist").unwrap();
        assert!(newest.name == "mnist" && newest.weights_sha256 != info.weights_sha256);
        assert!(weights.0 != others.0);
        let of_digits = versions("mnist");
        assert_eq!(of_digits, [format!("mnist@{}", &newest.weights_sha256[..8]), DIGITS_OF_BEFORE.to_owned()]);
        let whole = format!("mnist@{}", newest.weights_sha256);
        assert_eq!(folder::read(&whole).unwrap().0.weights_sha256, newest.weights_sha256);
        assert!(find("cells@9b44f254").is_none() && versions("animals").is_empty());
        let open = |sha256: &str| opening("mnist", sha256);
        assert_eq!([open(&info.weights_sha256), open(&newest.weights_sha256)], [DIGITS_OF_BEFORE, "mnist"]);
        // Weights that no bundled world has ever had; a world that is not bundled.
        assert_eq!([open("00000000ff"), opening("a/folder", "00000000ff")], ["mnist", "a/folder"]);
    }

    #[test]
    fn what_the_images_of_blood_cells_ask_for_stands_in_the_oracle() {
        let info = find("cells").unwrap().info().unwrap();
        let notice = info.notice().unwrap();
        for words in ["Acevedo", "10.17632/snkd93bnjr.1", "CC BY 4.0", "Not for diagnosis"] {
            assert!(notice.contains(words), "{words}: {notice}");
        }
    }

    /// Specs, runs and settings of before name it.
    #[test]
    fn a_world_that_was_bundled_once_is_said_to_be_elsewhere() {
        let refused = |name: &str| folder::read(name).map(drop).unwrap_err().to_string();
        let why = refused("animals");
        assert!(why.contains("tests/worlds/animals") && why.contains("assets/specs/oracle-animals.toml"), "{why}");
        let (info, _) = folder::read("tests/worlds/animals").unwrap();
        assert!(info.name == "animals" && Path::new("assets/specs/oracle-animals.toml").is_file());
        assert!(refused("nobody").contains("mnist, cells"));
    }
}
