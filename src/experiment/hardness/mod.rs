//! Dataset hardness (EBO §4.3, table 1): one Glow for each corpus, the Bayes error of its world at
//! τ = 1, and the NLL of images it was not trained on.
//!
//! A Glow maps all classes with one invertible map: its Bayes error is an integral over Gaussians
//! (theory §3), exact for its world. Only the NLL hints at how near that world is to the corpus:
//! EBO §4.3 says that the Bayes error of a poor flow need not reflect the corpus.

mod class_order;
mod figures;
mod published;
mod ranking;
mod repeat;
mod spec;
mod worlds;

pub use class_order::{ClassOrder, OrderAt};
pub use published::{EBO_TABLE_1, Published, published};
pub use ranking::{CorpusResult, Evaluated, Ranking, Trouble};
pub use repeat::{LAMBDAS, RepeatSpec, Variant};
pub use spec::{Common, Corpus, HardnessSpec, ImagesSpec, Kind, PRESETS};
pub use worlds::{Tried, Worlds};
