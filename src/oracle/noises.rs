//! Whether pictures hold a world's noise already, as their files say or a record beside them, and what follows for their
//! dequantisation.

use std::path::PathBuf;

use crate::data::{HeldNoise, HeldNoises};
use crate::flow::preprocess::Dequantisation;
use crate::oracle::provenance::Record;
use crate::oracle::world::World;

/// What is known of the noise that the levels of images hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum NoiseHeld {
    /// Nothing is said of any.
    #[default]
    None,
    /// Those of all images hold a world's noise; with what is to be said where it is another world.
    All(Option<String>),
    /// Those of some do, or of all by a record; with what is to be said where the usual noise is added.
    Doubted(String),
}

impl NoiseHeld {
    /// How pixels become real numbers: as it is `asked` for, else with the `usual` noise unless they hold it; and what is to be
    /// said of that.
    pub fn settled(self, asked: Option<Dequantisation>, usual: Dequantisation) -> (Dequantisation, Option<String>) {
        match (self, asked) {
            (Self::All(note), asked) => (asked.unwrap_or(Dequantisation::Levels), note),
            (Self::Doubted(why), None) => (usual, Some(why)),
            (Self::None | Self::Doubted(_), asked) => (asked.unwrap_or(usual), None),
        }
    }
}

impl World {
    /// What is known of the noise of pictures in this world's shape: by what they say of themselves, else by a record beside
    /// `paths`, where they were read.
    pub fn noise_held(&self, said: &HeldNoises, paths: &[PathBuf]) -> NoiseHeld {
        let HeldNoises { pictures: all, holding: of, untouched, held, .. } = said;
        if *of == 0 {
            return if *all > 0 { self.by_a_record(paths) } else { NoiseHeld::None };
        }
        if of < all || !untouched {
            return NoiseHeld::Doubted(format!(
                "{of} of {all} pictures are of a world's own images and hold its noise; here they get noise a second time: read \
                 them apart from others, in their own size, and none is added"
            ));
        }
        // Of the same weights and another noise, too.
        let own = self.held_noise();
        let stranger = held.iter().find(|held| own.as_ref() != Some(*held));
        NoiseHeld::All(stranger.map(|HeldNoise { weights_sha256: weights, .. }| {
            let weights = weights.get(..12).unwrap_or(weights);
            format!(
                "pictures of images of another world (weights {weights}), whose levels are taken for levels of this one"
            )
        }))
    }

    /// Of pictures that a record beside them calls samples of this world, and that do not say so themselves: an older program
    /// wrote them, or another one has written them again.
    fn by_a_record(&self, paths: &[PathBuf]) -> NoiseHeld {
        let home = self.home();
        let (mut found, mut strangers) = (None, 0);
        for path in paths.iter().filter(|_| self.held_noise().is_some()) {
            match Record::of_samples(path, &home) {
                Some(record) => {
                    strangers += record.strangers;
                    found.get_or_insert(record.place);
                }
                None => strangers += usize::from(path.is_file()),
            }
        }
        found.map_or(NoiseHeld::None, |place| {
            let but = if strangers > 0 { format!(", all but {strangers} of them,") } else { String::new() };
            NoiseHeld::Doubted(format!(
                "{} calls these pictures{but} samples of this world, which hold its noise; they do not say so themselves, and get \
                 noise a second time. The dequantisation levels adds none",
                place.display()
            ))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Seed;

    #[test]
    fn what_is_asked_for_wins_and_a_second_dose_is_told_of_only_where_it_is_added() {
        let (usual, asked) = (Dequantisation::default(), Dequantisation::Seeded(Seed(7)));
        let said = || Some("said".to_owned());
        for (known, by_itself, when_asked) in [
            (NoiseHeld::None, (usual, None), None),
            (NoiseHeld::All(None), (Dequantisation::Levels, None), None),
            (NoiseHeld::All(said()), (Dequantisation::Levels, said()), said()),
            (NoiseHeld::Doubted("said".into()), (usual, said()), None),
        ] {
            assert_eq!(known.clone().settled(None, usual), by_itself, "{known:?}");
            assert_eq!(known.clone().settled(Some(asked), usual), (asked, when_asked), "{known:?}");
        }
    }
}
