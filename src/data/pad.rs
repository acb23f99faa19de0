//! Datasets brought into the shape a model expects: padding, channels, and a part of the images.

use super::{Dataset, HeldNoises, ImageShape};
use crate::error::{Error, Result};

impl Dataset {
    /// Pads every image with zeros to `side`×`side`, centred (EBO pads MNIST 28 → 32: two pixels on
    /// each side). An odd difference puts the extra row or column at the bottom or right.
    ///
    /// # Errors
    /// When an image is already larger than `side` in height or width.
    pub fn pad_to(&self, side: usize) -> Result<Self> {
        let ImageShape { channels, height, width } = self.shape;
        if height > side || width > side {
            let cause = format!("{}: images of {height}×{width} do not fit into {side}×{side}", self.name);
            return Err(Error::input(cause));
        }
        let (top, left) = ((side - height) / 2, (side - width) / 2);
        let shape = ImageShape { channels, height: side, width: side };
        let mut pixels = vec![0; self.len() * shape.dims()];
        let planes = self.pixels.chunks_exact((height * width).max(1));
        for (plane, padded) in planes.zip(pixels.chunks_exact_mut((side * side).max(1))) {
            let rows = padded.chunks_exact_mut(side).skip(top);
            for (row, padded) in plane.chunks_exact(width).zip(rows) {
                padded[left..left + width].copy_from_slice(row);
            }
        }
        Ok(Self { shape, pixels, noises: self.noises_in(shape), ..self.without_pixels() })
    }

    /// Returns the images with 1 or 3 channels: grey is repeated, RGB becomes its ITU-R 601 luma in
    /// the integer arithmetic of PIL's `convert("L")`.
    ///
    /// # Errors
    /// For any other number of channels.
    pub fn to_channels(&self, channels: usize) -> Result<Self> {
        let shape = ImageShape { channels, ..self.shape };
        let pixels = match (self.shape.channels, channels) {
            (from, to) if from == to => self.pixels.clone(),
            (1, 3) => repeat_grey(&self.pixels, shape.height * shape.width),
            (3, 1) => self.pixels.chunks_exact(self.shape.dims().max(1)).flat_map(luma).collect(),
            (from, to) => {
                return Err(Error::input(format!(
                    "{}: images of {from} channel(s) cannot become images of {to}; 1 and 3 can",
                    self.name
                )));
            }
        };
        Ok(Self { shape, pixels, noises: self.noises_in(shape), ..self.without_pixels() })
    }

    /// The images of these indices, in this order; a range is fine. Class names stay.
    ///
    /// # Errors
    /// When an index is not below [`Dataset::len`].
    pub fn subset(&self, indices: impl IntoIterator<Item = usize>) -> Result<Self> {
        let mut part = Self {
            name: self.name.clone(),
            shape: self.shape,
            pixels: Vec::new(),
            labels: self.labels.as_ref().map(|_| Vec::new()),
            class_names: self.class_names.clone(),
            ids: Vec::new(),
            noises: self.noises.clone(),
        };
        for i in indices {
            let Some(id) = self.ids.get(i) else {
                return Err(Error::input(format!("{}: there is no image {i} among {}", self.name, self.len())));
            };
            part.ids.push(id.clone());
            part.pixels.extend_from_slice(self.image(i));
            if let (Some(to), Some(from)) = (&mut part.labels, &self.labels) {
                to.push(from[i]);
            }
        }
        Ok(part)
    }

    /// `n` of the images (all, where there are fewer), evenly spread: of a corpus that comes class by class some of
    /// every class.
    ///
    /// # Errors
    /// As [`Self::subset`].
    pub fn spread(&self, n: usize) -> Result<Self> {
        let n = n.min(self.len());
        self.subset((0..n).map(|i| i * self.len() / n))
    }

    /// The images of the named classes, numbered in that order.
    ///
    /// # Errors
    /// Names a class that is not there, and those that are; a class that is named twice.
    pub fn of_classes(&self, classes: &[String]) -> Result<Self> {
        if let Some((_, twice)) = classes.iter().enumerate().find(|(at, class)| classes[..*at].contains(class)) {
            return Err(Error::input(format!("class '{twice}' of {} is named twice; name each once", self.name)));
        }
        let find = |name: &String| {
            let found = self.class_names.iter().position(|class| class == name);
            found.ok_or_else(|| {
                let known = self.class_names.join(", ");
                Error::input(format!("{} has no class '{name}'; it has {known}", self.name))
            })
        };
        let wanted: Vec<usize> = classes.iter().map(find).collect::<Result<_>>()?;
        let labels = self.labels.as_deref().unwrap_or_default();
        let new = |label: usize| wanted.iter().position(|class| *class == label);
        let mut part = self.subset((0..labels.len()).filter(|&i| new(labels[i]).is_some()))?;
        part.class_names = classes.to_vec();
        part.labels = part.labels.map(|labels| labels.into_iter().filter_map(new).collect());
        Ok(part)
    }

    /// Everything but the pixels, for a copy with other ones.
    fn without_pixels(&self) -> Self {
        Self {
            name: self.name.clone(),
            shape: self.shape,
            pixels: Vec::new(),
            labels: self.labels.clone(),
            class_names: self.class_names.clone(),
            ids: self.ids.clone(),
            noises: self.noises.clone(),
        }
    }

    /// What is said of the noise of these images in a shape, which may be another.
    fn noises_in(&self, shape: ImageShape) -> HeldNoises {
        HeldNoises { untouched: self.noises.untouched && shape == self.shape, ..self.noises.clone() }
    }
}

/// Grey planes of `plane` pixels, each three times.
pub(super) fn repeat_grey(pixels: &[u8], plane: usize) -> Vec<u8> {
    pixels.chunks_exact(plane.max(1)).flat_map(|grey| grey.repeat(3)).collect()
}

/// Luma of one CHW image: (19595 R + 38470 G + 7471 B + 2^15) >> 16.
pub(super) fn luma(image: &[u8]) -> impl Iterator<Item = u8> {
    let (r, gb) = image.split_at(image.len() / 3);
    let (g, b) = gb.split_at(gb.len() / 2);
    r.iter().zip(g).zip(b).map(|((&r, &g), &b)| {
        ((19_595 * u32::from(r) + 38_470 * u32::from(g) + 7_471 * u32::from(b) + 0x8000) >> 16) as u8
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dataset(shape: ImageShape, pixels: Vec<u8>) -> Dataset {
        let n = pixels.len() / shape.dims();
        Dataset {
            name: "test".into(),
            shape,
            pixels,
            labels: Some((0..n).collect()),
            class_names: super::super::numbered(n),
            ids: super::super::numbered(n),
            noises: HeldNoises::default(),
        }
    }

    #[test]
    fn padding_puts_the_image_in_the_middle() {
        let shape = ImageShape { channels: 1, height: 28, width: 28 };
        let padded = dataset(shape, vec![7; 2 * 784]).pad_to(32).unwrap();
        assert_eq!((padded.shape.height, padded.shape.width, padded.len()), (32, 32, 2));
        for i in 0..2 {
            for (at, &pixel) in padded.image(i).iter().enumerate() {
                let inside = |x: usize| (2..30).contains(&x);
                assert_eq!(pixel, if inside(at / 32) && inside(at % 32) { 7 } else { 0 });
            }
        }
        let odd = dataset(ImageShape { channels: 3, height: 1, width: 2 }, vec![1, 2, 3, 4, 5, 6]);
        assert_eq!(odd.pad_to(2).unwrap().pixels, [1, 2, 0, 0, 3, 4, 0, 0, 5, 6, 0, 0]);
        assert!(odd.pad_to(1).is_err());
    }

    #[test]
    fn channels_follow_pil() {
        let shape = ImageShape { channels: 3, height: 1, width: 4 };
        let rgb = dataset(shape, vec![255, 0, 0, 10, 0, 255, 0, 20, 0, 0, 255, 30]);
        // PIL: Image.new("RGB", …).convert("L") of red, green, blue and (10, 20, 30).
        assert_eq!(rgb.to_channels(1).unwrap().pixels, [76, 150, 29, 18]);
        let grey = dataset(ImageShape { channels: 1, height: 1, width: 2 }, vec![1, 2, 3, 4]);
        assert_eq!(grey.to_channels(3).unwrap().pixels, [1, 2, 1, 2, 1, 2, 3, 4, 3, 4, 3, 4]);
        // Grey → RGB → grey is the identity for every value.
        let all = dataset(ImageShape { channels: 1, height: 16, width: 16 }, (0..=255).collect());
        assert_eq!(all.to_channels(3).unwrap().to_channels(1).unwrap(), all);
        assert!(rgb.to_channels(4).is_err());
    }

    #[test]
    fn subsets_keep_labels_and_names() {
        let all = dataset(ImageShape { channels: 1, height: 1, width: 1 }, vec![5, 6, 7]);
        let part = all.subset([2, 0]).unwrap();
        assert_eq!((part.pixels, part.labels, part.ids), (vec![7, 5], Some(vec![2, 0]), vec!["2".into(), "0".into()]));
        assert_eq!(all.subset(0..3).unwrap(), all);
        assert!(all.subset(2..4).is_err());
        let twice = all.of_classes(&["1".into(), "1".into()]).unwrap_err().to_string();
        assert!(twice.contains("class '1'") && twice.contains("named twice"), "{twice}");
    }
}
