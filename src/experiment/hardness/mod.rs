//! Dataset hardness (EBO §4.3, table 1): one Glow for each corpus, and the Bayes error of each trained world at τ = 1 beside the
//! NLL of images it was not trained on.
//!
//! A Glow maps all classes with one invertible map, so the Bayes error of its world is an integral over Gaussians (theory §3). It is
//! exact for that world. How near the world is to the corpus, only the NLL hints at: EBO §4.3 says of a flow that is no adequate
//! estimate that its Bayes error need not reflect the difficulty of the corpus.

mod figures;
mod published;
mod ranking;
mod spec;

pub use published::{EBO_TABLE_1, Published, published};
pub use ranking::{CorpusResult, Evaluated, Ranking, Trouble};
pub use spec::{Common, Corpus, HardnessSpec, ImagesSpec, Kind, KindName, PRESETS};
