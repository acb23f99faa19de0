//! What images lose where they become ones of a world's shape.

use crate::data::{Dataset, ImageShape};

/// The share of zeros around images beyond which they are told.
const WIDE: f64 = 0.25;

/// What is to be said of images, as they were read, that become ones of a world's shape. Pictures that were scaled to `resize`
/// pixels are so as those that the world was trained on.
pub fn reshaped(images: &Dataset, world: ImageShape, resize: Option<usize>) -> Vec<String> {
    let ImageShape { channels, height, width } = images.shape;
    let pictures = images.noises.pictures;
    let losses = images.noises.losses;
    let zeros = 1.0 - (height * width) as f64 / (world.height * world.width).max(1) as f64;
    let scaled = losses.scaled > 0 && resize.is_none();
    let said = [
        scaled.then(|| format!("{} of {pictures} pictures are scaled to {width}×{width}", losses.scaled)),
        (channels > world.channels).then(|| "colours are turned to grey, of which the world is".into()),
        (channels < world.channels).then(|| "grey images have the same value in each colour of the world".into()),
        (zeros > WIDE).then(|| {
            let (side, percent) = (world.width, 100.0 * zeros);
            format!(
                "images of {height}×{width} stand in the middle of {side}×{side}, and {percent:.0} % of each is zeros"
            )
        }),
    ];
    said.into_iter().flatten().chain(losses.told(pictures)).map(|said| format!("{}: {said}", images.name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Split, encode_png, open_dataset};

    #[test]
    fn what_images_lose_is_said_and_nothing_of_those_that_fit() {
        let place = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(place.path().join("a")).unwrap();
        let shape = ImageShape { channels: 3, height: 12, width: 6 };
        std::fs::write(place.path().join("a/0.png"), encode_png(shape, &[9; 216]).unwrap()).unwrap();
        let said = |side, channels, resize| {
            let images = open_dataset(place.path(), Split::Train, Some(side)).unwrap();
            reshaped(&images, ImageShape { channels, height: 8, width: 8 }, resize).join("; ")
        };
        let cut = said(8, 3, None);
        assert!(cut.contains("1 of 1 pictures are scaled to 8×8") && cut.contains("a quarter, 50 % at most"), "{cut}");
        assert!(cut.contains("1 of 1 pictures are enlarged") && !cut.contains("colour"), "{cut}");
        // As for training; what that lost is lost all the same.
        let as_trained = said(6, 1, Some(6));
        assert!(!as_trained.contains("scaled") && as_trained.contains("a quarter, 50 % at most"), "{as_trained}");
        assert!(as_trained.contains("turned to grey") && as_trained.contains("44 % of each is zeros"), "{as_trained}");
        let fits = Dataset { noises: Default::default(), ..open_dataset(place.path(), Split::Train, Some(8)).unwrap() };
        assert!(reshaped(&fits, ImageShape { channels: 3, height: 8, width: 8 }, None).is_empty());
        let grey = reshaped(&fits.to_channels(1).unwrap(), ImageShape { channels: 3, height: 8, width: 8 }, None);
        assert!(grey.len() == 1 && grey[0].contains("same value in each colour"), "{grey:?}");
    }
}
