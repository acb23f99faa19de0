//! The forms in which training shows an image: moved, then mirrored, then turned, as a spec's `shift`, `mirror` and `turn` say.

use std::borrow::Cow;
use std::fmt;

use serde::Serialize;

use super::spec::DataSpec;
use crate::data::ImageShape;
use crate::error::{Error, Result};

/// One of them; the default is the image as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Form {
    /// Pixels that the image is moved up and to the left; zeros come in.
    pub moved: [isize; 2],
    /// Whether its rows are then back to front.
    pub mirrored: bool,
    /// Quarter turns to the left that follow, 0 to 3.
    pub turns: u32,
}

impl Form {
    /// All forms in which training by this spec shows an image of such a shape, all equally probable: the image as it is comes first.
    ///
    /// # Errors
    /// When images that are no squares are to be turned.
    pub fn all(data: &DataSpec, shape: ImageShape) -> Result<Vec<Self>> {
        if data.turn && shape.height != shape.width {
            return Err(Error::input(format!("data.turn: images of {shape} cannot be turned by a quarter turn")));
        }
        // Moved by its side or more an image is all zeros.
        let most = data.shift.min(shape.height.max(shape.width)).cast_signed();
        let mut moves: Vec<[isize; 2]> =
            (-most..=most).flat_map(|up| (-most..=most).map(move |left| [up, left])).collect();
        moves.sort_by_key(|moved| *moved != [0, 0]);
        let mirrors: &[bool] = if data.mirror { &[false, true] } else { &[false] };
        let turns = if data.turn { 0..4 } else { 0..1 };
        let still = mirrors.iter().flat_map(|&mirrored| turns.clone().map(move |turns| (mirrored, turns)));
        let forms = |moved| still.clone().map(move |(mirrored, turns)| Self { moved, mirrored, turns });
        Ok(moves.into_iter().flat_map(forms).collect())
    }

    /// An image [C, H, W] in this form. Only squares can be turned.
    pub fn of<'a>(&self, image: &'a [u8], shape: ImageShape) -> Cow<'a, [u8]> {
        let mut image = Cow::Borrowed(image);
        if self.moved != [0, 0] {
            image = moved(&image, shape, self.moved).into();
        }
        if self.mirrored {
            image = mirrored(&image, shape.width).into();
        }
        for _ in 0..self.turns {
            image = turned(&image, shape.width).into();
        }
        image
    }
}

/// In words.
impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let step = |by: isize, [onwards, back]: [&str; 2]| {
            (by != 0).then(|| format!("moved {} {}", by.abs(), if by > 0 { onwards } else { back }))
        };
        let parts = [
            step(self.moved[0], ["up", "down"]),
            step(self.moved[1], ["left", "right"]),
            self.mirrored.then(|| "mirrored".to_owned()),
            (self.turns > 0).then(|| format!("turned left by {}°", 90 * self.turns)),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        if parts.is_empty() { f.write_str("as it is") } else { f.write_str(&parts.join(", ")) }
    }
}

/// Moved up and to the left by so many pixels; zeros come in.
fn moved(image: &[u8], shape: ImageShape, [up, left]: [isize; 2]) -> Vec<u8> {
    let ImageShape { channels, height, width } = shape;
    let mut out = vec![0; image.len()];
    for (row, pixels) in out.chunks_mut(width).enumerate() {
        let (channel, y) = (row / height, row % height);
        let from = y.checked_add_signed(up).filter(|from| *from < height && channel < channels);
        let Some(from) = from.map(|from| &image[(channel * height + from) * width..][..width]) else { continue };
        for (x, pixel) in pixels.iter_mut().enumerate() {
            *pixel = x.checked_add_signed(left).and_then(|x| from.get(x)).copied().unwrap_or(0);
        }
    }
    out
}

/// Rows of `width` pixels back to front.
fn mirrored(image: &[u8], width: usize) -> Vec<u8> {
    image.chunks(width).flat_map(|row| row.iter().rev().copied()).collect()
}

/// Square channels of `side`² pixels, turned by a quarter turn to the left.
fn turned(image: &[u8], side: usize) -> Vec<u8> {
    let channel = |pixels: &[u8]| -> Vec<u8> {
        (0..side * side).map(|i| pixels[(i % side) * side + side - 1 - i / side]).collect()
    };
    image.chunks(side * side).flat_map(channel).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mirrored_image_has_its_rows_back_to_front() {
        assert_eq!(mirrored(&[1, 2, 3, 4, 5, 6], 3), [3, 2, 1, 6, 5, 4]);
    }

    #[test]
    fn a_turned_image_has_its_last_column_as_its_first_row() {
        assert_eq!(turned(&[1, 2, 3, 4, 5, 6, 7, 8], 2), [2, 4, 1, 3, 6, 8, 5, 7]);
        let image: Vec<u8> = (0..27).collect();
        assert_eq!((0..4).fold(image.clone(), |image, _| turned(&image, 3)), image);
    }

    #[test]
    fn a_moved_image_is_the_image_moved() {
        let shape = ImageShape { channels: 2, height: 2, width: 3 };
        let image: Vec<u8> = (1..=12).collect();
        assert_eq!(moved(&image, shape, [1, 0]), [4, 5, 6, 0, 0, 0, 10, 11, 12, 0, 0, 0]);
        assert_eq!(moved(&image, shape, [0, -2]), [0, 0, 1, 0, 0, 4, 0, 0, 7, 0, 0, 10]);
        assert!(moved(&image, shape, [-1, 3]).iter().all(|&pixel| pixel == 0));
    }

    #[test]
    fn the_forms_of_a_spec_are_those_it_names() {
        let square = ImageShape { channels: 1, height: 4, width: 4 };
        let image: Vec<u8> = (1..=16).collect();
        for (shift, mirror, turn, expected) in
            [(0, false, false, 1), (0, true, true, 8), (1, false, false, 9), (1, true, true, 72), (0, true, false, 2)]
        {
            let data = DataSpec { shift, mirror, turn, ..DataSpec::at("anywhere") };
            let forms = Form::all(&data, square).unwrap();
            let pictures: std::collections::BTreeSet<_> = forms.iter().map(|form| form.of(&image, square)).collect();
            assert_eq!((forms.len(), pictures.len(), forms[0]), (expected, expected, Form::default()));
        }
        let flat = ImageShape { height: 2, ..square };
        assert!(Form::all(&DataSpec { turn: true, ..DataSpec::at("anywhere") }, flat).is_err());
        let form = Form { moved: [1, -2], mirrored: true, turns: 3 };
        assert_eq!(form.to_string(), "moved 1 up, moved 2 right, mirrored, turned left by 270°");
    }
}
