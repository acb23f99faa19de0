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

/// What the window opens on.
pub const DEFAULT: &str = "mnist";

static LIBRARY: &[Bundled] = &[
    Bundled {
        name: DEFAULT,
        description: include_bytes!("../../assets/oracles/mnist/oracle.json"),
        weights: include_bytes!("../../assets/oracles/mnist/weights.safetensors"),
    },
    Bundled {
        name: "animals",
        description: include_bytes!("../../assets/oracles/animals/oracle.json"),
        weights: include_bytes!("../../assets/oracles/animals/weights.safetensors"),
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
