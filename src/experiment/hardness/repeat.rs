//! How often a corpus is trained on: with which weights λ of the classification loss, and as how many worlds.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::oracle::train::TrainSpec;

/// λ among which EBO §4.1 chooses by least NLL.
pub const LAMBDAS: [f64; 4] = [0.01, 0.1, 1.0, 10.0];

/// Worlds and λ of a corpus, at most: all are planned at once.
const MOST: usize = 1000;

/// The flows that are trained on every corpus: one for each λ and world.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RepeatSpec {
    /// Weights λ of the classification loss; of each world the flow of least held-out NLL is kept. Where
    /// empty, `training.lambda` alone.
    pub lambdas: Vec<f64>,
    /// Worlds of each corpus: they differ in their seed, and in their training images where `bootstrap`; all hold out
    /// the same images.
    pub worlds: usize,
    /// Whether worlds after the first are trained on images drawn with replacement, of each class as many as
    /// there are.
    pub bootstrap: bool,
}

impl Default for RepeatSpec {
    fn default() -> Self {
        Self { lambdas: Vec::new(), worlds: 1, bootstrap: false }
    }
}

/// One of the flows of a corpus.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Variant {
    /// λ, where several are tried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lambda: Option<f64>,
    /// Number of the world, from 0.
    #[serde(default, skip_serializing_if = "is_first")]
    pub world: usize,
}

fn is_first(world: &usize) -> bool {
    *world == 0
}

impl RepeatSpec {
    /// Whether every corpus has one flow, as specs need not say.
    pub fn is_once(&self) -> bool {
        *self == Self::default()
    }

    /// Checks it.
    ///
    /// # Errors
    /// Says what is wrong.
    pub fn validate(&self) -> Result<()> {
        let Self { lambdas, worlds, bootstrap } = self;
        if !(1..=MOST).contains(worlds) || lambdas.len() > MOST {
            return Err(Error::input(format!(
                "repeat: worlds must lie between 1 and {MOST}, and as many lambdas at most"
            )));
        }
        if *bootstrap && *worlds < 3 {
            return Err(Error::input(
                "repeat.worlds must be at least 3 with repeat.bootstrap: the first has the images as they are, and one other has no spread",
            ));
        }
        if let Some(bad) = lambdas.iter().find(|lambda| !lambda.is_finite() || **lambda < 0.0) {
            return Err(Error::input(format!("repeat.lambdas: {bad} is no weight; use numbers of at least 0")));
        }
        match (1..lambdas.len()).find(|&i| lambdas[..i].contains(&lambdas[i])) {
            Some(i) => Err(Error::input(format!("repeat.lambdas: {} is named twice", lambdas[i]))),
            None => Ok(()),
        }
    }

    /// The flows of a corpus, world by world.
    pub fn variants(&self) -> Vec<Variant> {
        let lambdas: Vec<Option<f64>> = match self.lambdas.as_slice() {
            [] => vec![None],
            several => several.iter().copied().map(Some).collect(),
        };
        let of = |world| lambdas.iter().map(move |&lambda| Variant { lambda, world });
        (0..self.worlds).flat_map(of).collect()
    }

    /// The training of a flow from that of its corpus.
    pub fn train_spec(&self, variant: Variant, of: TrainSpec) -> TrainSpec {
        let mut spec = of;
        if let Some(lambda) = variant.lambda {
            spec.training.lambda = lambda;
        }
        if variant.world > 0 {
            spec.data.split.get_or_insert(spec.training.seed);
            let seed = spec.training.seed.split("world").split(&variant.world.to_string());
            spec.training.seed = seed;
            spec.data.bootstrap = self.bootstrap.then(|| seed.split("bootstrap"));
        }
        spec
    }
}

impl Variant {
    /// What is said of it beside the name of its corpus; empty for the only one.
    pub fn label(self) -> String {
        let lambda = self.lambda.map_or_else(String::new, |lambda| format!(", λ = {lambda}"));
        let world = if self.world > 0 { format!(", world {}", self.world + 1) } else { String::new() };
        lambda + &world
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn worlds_share_all_but_their_seed_and_their_images() {
        let of: TrainSpec = toml::from_str("name = 'x'\n[data]\npath = 'd'\n[training]\nseed = 3\n").unwrap();
        let once = RepeatSpec::default();
        assert_eq!(once.variants(), [Variant::default()]);
        assert_eq!(once.train_spec(Variant::default(), of.clone()), of);
        let repeat = RepeatSpec { lambdas: vec![0.1, 10.0], worlds: 3, bootstrap: true };
        let all: Vec<TrainSpec> =
            repeat.variants().into_iter().map(|variant| repeat.train_spec(variant, of.clone())).collect();
        assert_eq!(all.iter().map(|spec| spec.training.lambda).collect::<Vec<_>>(), [0.1, 10.0, 0.1, 10.0, 0.1, 10.0]);
        assert!(all[0].data.split.is_none() && all[2..].iter().all(|spec| spec.data.split == Some(of.training.seed)));
        // The first world is that of the corpus; all λ of a world share seed and images.
        assert!(all[0].data.bootstrap.is_none() && all[0].training.seed == of.training.seed);
        for world in 1..3 {
            let [one, other] = [&all[2 * world], &all[2 * world + 1]];
            assert!(one.data.bootstrap.is_some() && one.data.bootstrap == other.data.bootstrap);
            assert!(one.training.seed == other.training.seed && one.training.seed != of.training.seed);
        }
        assert_ne!(all[2].data.bootstrap, all[4].data.bootstrap);
        assert_eq!(repeat.variants()[3].label(), ", λ = 10, world 2");
        for (wrong, why) in [
            (RepeatSpec { worlds: 0, ..once.clone() }, "between 1 and 1000"),
            (RepeatSpec { worlds: usize::MAX, ..once.clone() }, "between 1 and 1000"),
            (RepeatSpec { worlds: 2, bootstrap: true, ..once.clone() }, "at least 3"),
            (RepeatSpec { lambdas: vec![1.0, -1.0], ..once.clone() }, "no weight"),
            (RepeatSpec { lambdas: vec![1.0, 1.0], ..once }, "named twice"),
        ] {
            assert!(wrong.validate().unwrap_err().to_string().contains(why), "{why}");
        }
        repeat.validate().unwrap();
    }
}
