//! Images that are trained on otherwise than a viewer shows them.

use serde::Serialize;

use crate::data::{Dataset, Losses};

/// Levels that images of photographs span at least; what is in fewer is hardly seen.
const SPAN: u8 = 32;

/// What training does not see of pictures, or sees in a few levels only.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AsRead {
    /// All pictures of the corpus; 0 where images came from files of another kind.
    pub pictures: usize,
    /// Those that are not as a viewer shows them.
    #[serde(flatten)]
    pub losses: Losses,
    /// The lowest and the highest level of all training images, where they span few of the 256.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub levels: Option<[u8; 2]>,
}

impl AsRead {
    /// What is to be said of images to train on; the zeros of their padding are levels, too.
    pub fn of(train: &Dataset) -> Option<Self> {
        let (pictures, losses) = (train.noises.pictures, train.noises.losses);
        let highest = train.pixels.iter().copied().max()?;
        let lowest = train.pixels.iter().copied().min()?;
        let levels = (highest - lowest < SPAN).then_some([lowest, highest]);
        let Losses { transparent, turned, cut, enlarged, .. } = losses;
        (levels.is_some() || transparent + turned + cut + enlarged > 0).then_some(Self { pictures, losses, levels })
    }
}

impl std::fmt::Display for AsRead {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let levels = self.levels.map(|[low, high]| {
            let how = "values of 16 bits are divided by 257, so that files that use few of them come out dark";
            format!("all images lie between the levels {low} and {high} of 255: {how}")
        });
        let said: Vec<String> = self.losses.told(self.pictures).chain(levels).collect();
        f.write_str(&said.join("; "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{HeldNoises, ImageShape};

    fn corpus(pixels: Vec<u8>, losses: Losses) -> Dataset {
        let shape = ImageShape { channels: 1, height: 1, width: 2 };
        Dataset {
            name: "zoo".into(),
            shape,
            ids: (0..pixels.len() / 2).map(|i| i.to_string()).collect(),
            pixels,
            labels: None,
            class_names: Vec::new(),
            noises: HeldNoises { pictures: 9, losses, ..HeldNoises::default() },
        }
    }

    #[test]
    fn what_is_not_seen_is_said_with_its_number() {
        let none = Losses::default();
        assert_eq!(AsRead::of(&corpus(vec![0, 32, 5, 7], none)), None);
        let dark = AsRead::of(&corpus(vec![3, 34, 5, 7], none)).unwrap();
        assert_eq!((dark.levels, dark.to_string().contains("levels 3 and 34 of 255")), (Some([3, 34]), true));
        let said = |losses| AsRead::of(&corpus(vec![0, 255], losses)).unwrap().to_string();
        assert!(said(Losses { transparent: 4, ..none }).starts_with("4 of 9 pictures have transparent parts"));
        assert!(said(Losses { turned: 2, ..none }).starts_with("2 of 9 pictures are turned"));
        let cut = said(Losses { cut: 3, most_cut: 0.706, enlarged: 1, ..none });
        assert!(cut.starts_with("3 of 9 pictures lose more than a quarter, 71 % at most"), "{cut}");
        assert!(cut.contains("; 1 of 9 pictures are enlarged"), "{cut}");
        // A little that is cut off, as of photographs that are nearly squares, is not said.
        assert_eq!(AsRead::of(&corpus(vec![0, 255], Losses { most_cut: 0.2, ..none })), None);
    }
}
