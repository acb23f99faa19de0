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
        description: include_bytes!("../../assets/oracles/mnist/oracle.json"),
        weights: include_bytes!("../../assets/oracles/mnist/weights.safetensors"),
    },
    Bundled {
        name: DEFAULT,
        description: include_bytes!("../../assets/oracles/cells/oracle.json"),
        weights: include_bytes!("../../assets/oracles/cells/weights.safetensors"),
    },
    Bundled {
        name: "fashion",
        description: include_bytes!("../../assets/oracles/fashion/oracle.json"),
        weights: include_bytes!("../../assets/oracles/fashion/weights.safetensors"),
    },
];

/// Names of the bundled oracles.
pub fn names() -> Vec<&'static str> {
    LIBRARY.iter().map(|bundled| bundled.name).collect()
}

/// The bundled oracle of that name.
pub fn find(name: &str) -> Option<&'static Bundled> {
    LIBRARY.iter().find(|bundled| bundled.name == name)
}

/// Where a world is now that was bundled once, for those whose specs, runs and settings name it.
pub fn former(name: &str) -> Option<&'static str> {
    FORMER.iter().find(|(former, _)| *former == name).map(|(_, where_now)| *where_now)
}

impl Bundled {
    /// Its description, without its weights.
    ///
    /// # Errors
    /// When the program was built with a broken description.
    pub fn info(&self) -> Result<OracleInfo> {
        let broken =
            |e: serde_json::Error| Error::file(format!("assets/oracles/{}/oracle.json", self.name), e.to_string());
        serde_json::from_slice(self.description).map_err(broken)
    }

    /// Its description and weights.
    ///
    /// # Errors
    /// When the program was built with weights that are not the ones described.
    pub fn read(&self) -> Result<(OracleInfo, Weights)> {
        let path = format!("assets/oracles/{}/weights.safetensors", self.name);
        let info = self.info()?;
        check_hash(path.as_ref(), &sha256(self.weights), &info)?;
        let checkpoint = checkpoint_from_bytes(path.as_ref(), self.weights)?;
        check_architecture(path.as_ref(), &checkpoint.inferred.architecture, &info)?;
        Ok((info, checkpoint.weights))
    }
}
