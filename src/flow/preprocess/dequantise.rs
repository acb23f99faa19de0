//! Which noise makes 8-bit pixels real numbers.

use std::fmt::{self, Display};
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::error::{Error, Result};
use crate::units::Seed;

/// Whether and how often the noise is drawn: a data step, never part of `log_prob`. As text:
/// `seed:N`, `midpoint`, `mean:R`, `levels`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Dequantisation {
    /// u = ½, no Gaussian noise: no typical image of a world of dequantised pixels.
    MidPoint,
    /// Noise of this seed, for each image its own.
    Seeded(Seed),
    /// A place within the level of each pixel: for pictures of a world's own images, which hold its noise already. Black and
    /// white stand for all values beyond them, too: there it is as far as the world's noise (of seed 0) goes.
    Levels,
    /// So many draws of that noise, the first that of seed 0: their mean density estimates
    /// P(pixels|y) (theory §1).
    Mean(usize),
}

/// Noise of seed 0: what a world was trained with, whatever its family.
impl Default for Dequantisation {
    fn default() -> Self {
        Self::Seeded(Seed(0))
    }
}

impl Dequantisation {
    /// The seed of its only or first draw.
    pub fn seed(self) -> Option<Seed> {
        match self {
            Self::MidPoint => None,
            Self::Seeded(seed) => Some(seed),
            Self::Mean(_) | Self::Levels => Some(Seed(0)),
        }
    }

    /// The draws after the first, each by itself.
    pub fn further(self) -> impl Iterator<Item = Self> {
        let draws = if let Self::Mean(draws) = self { draws } else { 1 };
        (1..draws).map(|draw| Self::Seeded(Seed(0).split(&format!("draw {draw} of the cell"))))
    }

    /// Itself, where one tensor an image is all there is room for.
    ///
    /// # Errors
    /// Says that `who` takes no mean of several draws.
    pub fn single(self, who: &str) -> Result<Self> {
        match self {
            Self::Mean(_) => {
                Err(Error::input(format!("{who} is of one tensor an image: seed:N, midpoint or levels, not {self}")))
            }
            single => Ok(single),
        }
    }

    /// What became of 8-bit pixels, in words after their name.
    pub fn describe(self) -> String {
        match self {
            Self::Levels => {
                "that hold the world's noise: each within its level, noise beyond black and white drawn anew \
                             (levels)"
                    .into()
            }
            noise => format!("dequantised by {noise}"),
        }
    }

    /// For serde's `serialize_with`: the text that specs and command lines have.
    ///
    /// # Errors
    /// As the serialiser.
    pub fn serialize_text<S: Serializer>(how: &Option<Self>, to: S) -> std::result::Result<S::Ok, S::Error> {
        match how {
            Some(how) => to.collect_str(how),
            None => to.serialize_none(),
        }
    }

    /// For serde's `deserialize_with`.
    ///
    /// # Errors
    /// When it is none of the texts.
    pub fn deserialize_text<'de, D: Deserializer<'de>>(from: D) -> std::result::Result<Option<Self>, D::Error> {
        String::deserialize(from)?.parse().map(Some).map_err(serde::de::Error::custom)
    }
}

impl Display for Dequantisation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MidPoint => write!(f, "midpoint"),
            Self::Seeded(seed) => write!(f, "seed:{}", seed.0),
            Self::Mean(draws) => write!(f, "mean:{draws}"),
            Self::Levels => write!(f, "levels"),
        }
    }
}

impl FromStr for Dequantisation {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let number = |kind: &str| text.strip_prefix(kind).and_then(|n| n.strip_prefix(':'));
        let found = match (text, number("seed"), number("mean")) {
            ("midpoint", ..) => Some(Self::MidPoint),
            ("levels", ..) => Some(Self::Levels),
            (_, Some(seed), _) => seed.parse().ok().map(|seed| Self::Seeded(Seed(seed))),
            // One draw has no error: ask for it by its seed.
            (_, _, Some(draws)) => draws.parse().ok().filter(|draws| *draws >= 2).map(Self::Mean),
            _ => None,
        };
        found.ok_or_else(|| {
            Error::input(format!("{text:?} is none of seed:N, midpoint, levels, mean:R (R of 2 or more)"))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::preprocess::Preprocessing;

    #[test]
    fn texts_name_what_they_are_and_nothing_else() {
        for (text, how) in [
            ("seed:7", Dequantisation::Seeded(Seed(7))),
            ("midpoint", Dequantisation::MidPoint),
            ("mean:16", Dequantisation::Mean(16)),
            ("levels", Dequantisation::Levels),
        ] {
            assert_eq!((text.parse::<Dequantisation>().unwrap(), how.to_string().as_str()), (how, text));
        }
        for text in ["", "7", "seed", "seed:x", "mean:0", "mean:1", "mean:-1", "midpoint:2", "mid-point"] {
            assert!(text.parse::<Dequantisation>().is_err(), "{text}");
        }
    }

    #[test]
    fn the_default_is_noise_for_every_family_and_the_first_of_several_draws() {
        let how = Dequantisation::default();
        let pixels = [0, 9, 9, 255];
        for family in [Preprocessing::Uniform, Preprocessing::UniformSymmetric, Preprocessing::Gaussian { std: 0.1 }] {
            let x = |how| family.map_in(&pixels, 2, 0, how);
            assert_ne!(x(how), x(Dequantisation::MidPoint));
            assert_ne!(x(how)[1], x(how)[2], "images have their own noise");
            assert_eq!(x(Dequantisation::Mean(3)), x(how));
            let all: Vec<Vec<f32>> = Dequantisation::Mean(3).further().map(x).collect();
            assert!(all.len() == 2 && all[0] != all[1] && all[0] != x(how));
        }
        assert_eq!(how.further().count(), 0);
    }
}
