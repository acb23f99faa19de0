//! What of pictures is not in the images that a dataset has of them.

use image::DynamicImage;
use image::metadata::Orientation;
use serde::Serialize;

/// The share of a picture beyond which it counts as cut.
const CUT: f64 = 0.25;

/// How many pictures of a dataset are not as a viewer shows them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Losses {
    /// Those with transparent parts, which are read as the colours beneath.
    pub transparent: usize,
    /// Those that are to be turned or mirrored by their EXIF data, and are read as they are stored.
    pub turned: usize,
    /// Those that were scaled to a square.
    pub scaled: usize,
    /// Those of which more than a quarter was cut off, so that a square is left.
    pub cut: usize,
    /// The largest share of a picture that was cut off.
    pub most_cut: f64,
    /// Those of which a side is below that of the square they were scaled to.
    pub enlarged: usize,
}

impl Losses {
    /// Of one picture that is to be turned so, and scaled to a square of `side` pixels where one is given.
    pub(super) fn of(image: &DynamicImage, orientation: Orientation, side: Option<u32>) -> Self {
        let [shorter, longer] = [image.width().min(image.height()), image.width().max(image.height())];
        let most_cut = side.map_or(0.0, |_| 1.0 - f64::from(shorter) / f64::from(longer.max(1)));
        let is_seen_through = || image.to_rgba8().pixels().any(|pixel| pixel[3] < u8::MAX);
        Self {
            transparent: usize::from(image.color().has_alpha() && is_seen_through()),
            turned: usize::from(orientation != Orientation::NoTransforms),
            scaled: usize::from(side.is_some()),
            cut: usize::from(most_cut > CUT),
            most_cut,
            enlarged: usize::from(side.is_some_and(|side| shorter < side)),
        }
    }

    /// Of these and others.
    pub(super) fn and(self, other: Self) -> Self {
        Self {
            transparent: self.transparent + other.transparent,
            turned: self.turned + other.turned,
            scaled: self.scaled + other.scaled,
            cut: self.cut + other.cut,
            most_cut: self.most_cut.max(other.most_cut),
            enlarged: self.enlarged + other.enlarged,
        }
    }

    /// What is to be said of them, where they are of so many pictures. That some are scaled is none of it: with
    /// `data.resize` all are.
    pub fn told(&self, pictures: usize) -> impl Iterator<Item = String> + use<> {
        let Self { transparent, turned, cut, most_cut, enlarged, .. } = *self;
        let most = 100.0 * most_cut;
        let said = [
            (transparent, "have transparent parts, which are read in the colours that lie beneath".to_owned()),
            (turned, "are turned by their EXIF data in viewers, and read as they are stored".to_owned()),
            (cut, format!("lose more than a quarter, {most:.0} % at most: the square in the middle is kept")),
            (enlarged, "are enlarged: a side is below that of the square they are scaled to".to_owned()),
        ];
        let some = said.into_iter().filter(|(count, _)| *count > 0);
        some.map(move |(count, what)| format!("{count} of {pictures} pictures {what}"))
    }
}

#[cfg(test)]
mod tests {
    use image::{GrayImage, Rgba, RgbaImage};

    use super::super::{Split, open_dataset};
    use super::*;

    #[test]
    fn a_folder_counts_pictures_that_are_seen_through_cut_or_enlarged() {
        let place = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(place.path().join("a")).unwrap();
        let save = |name: &str, image: &RgbaImage| image.save(place.path().join("a").join(name)).unwrap();
        let opaque = RgbaImage::from_pixel(4, 20, Rgba([10, 20, 30, 255]));
        let mut hole = opaque.clone();
        hole.put_pixel(3, 19, Rgba([99, 98, 97, 0]));
        save("0.png", &opaque);
        save("1.png", &hole);
        let read = |side| open_dataset(place.path(), Split::Train, side).unwrap();
        // What lies beneath is what is read.
        let last: Vec<u8> = read(None).image(1).chunks(80).map(|plane| plane[79]).collect();
        assert_eq!(last, [99, 98, 97]);
        let of = |side| read(side).noises.losses;
        assert_eq!(of(None), Losses { transparent: 1, ..Losses::default() });
        assert_eq!(of(Some(4)), Losses { transparent: 1, scaled: 2, cut: 2, most_cut: 0.8, ..Losses::default() });
        assert_eq!(of(Some(5)), Losses { enlarged: 2, ..of(Some(4)) });
        assert_eq!(of(Some(20)), of(None));
        let square = DynamicImage::ImageLuma8(GrayImage::new(8, 8));
        let scaled = Losses { scaled: 1, ..Losses::default() };
        assert_eq!(Losses::of(&square, Orientation::NoTransforms, Some(4)), scaled);
        let turned = Losses::of(&square, Orientation::Rotate90, None);
        assert_eq!(turned, Losses { turned: 1, ..Losses::default() });
    }
}
