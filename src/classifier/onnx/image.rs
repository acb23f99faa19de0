//! Images on their way into a network: channels, size, scale, order of the axes and format of the
//! numbers.

use tract_onnx::prelude::{DatumType, Tensor, TractResult};

use super::file::{Extent, Port};
use super::normalisation::{Normalisation, Scale};
use super::options::{Layout, OnnxOptions};
use super::read::LARGEST;
use super::resize::Bilinear;
use crate::data::ImageShape;
use crate::error::{Error, Result};

impl Layout {
    /// Channels, height and width among the axes behind the batch.
    fn sorted<T: Copy>(self, [a, b, c]: [T; 3]) -> [T; 3] {
        match self {
            Self::Nchw => [a, b, c],
            Self::Nhwc => [c, a, b],
        }
    }

    /// The axes of images of a shape, behind those of the batch.
    pub(super) fn axes(self, shape: ImageShape) -> [usize; 3] {
        let ImageShape { channels: c, height: h, width: w } = shape;
        match self {
            Self::Nchw => [c, h, w],
            Self::Nhwc => [h, w, c],
        }
    }
}

/// What is done to images before they enter.
pub(super) struct Entry {
    /// Shape of the images it is given.
    pub(super) images: ImageShape,
    /// Shape the network sees.
    pub(super) network: ImageShape,
    pub(super) layout: Layout,
    /// Whether neither the file nor the user says the order of the axes.
    pub(super) is_unclear: bool,
    pub(super) dtype: DatumType,
    /// Images of a pass, where the file fixes them.
    pub(super) fixed: Option<usize>,
    pub(super) normalisation: Normalisation,
    scales: Vec<Scale>,
    resize: Option<Bilinear>,
}

/// The formats images may be asked for in.
fn dtype(port: &Port) -> Result<DatumType> {
    match port.dtype.as_str() {
        "FLOAT" => Ok(DatumType::F32),
        "DOUBLE" => Ok(DatumType::F64),
        "FLOAT16" => Ok(DatumType::F16),
        "UINT8" => Ok(DatumType::U8),
        other => Err(Error::input(format!(
            "its input '{}' is of {other}; images enter as FLOAT, DOUBLE, FLOAT16 or UINT8",
            port.name
        ))),
    }
}

/// Known extents of the batch and of the axes behind it.
fn axes(port: &Port, images: Option<ImageShape>) -> Result<[Option<usize>; 4]> {
    let known = |extent: &Extent| match extent {
        Extent::Known(n) => Some(*n),
        Extent::Open(_) => None,
    };
    match port.extents.as_deref() {
        Some([n, a, b, c]) => Ok([n, a, b, c].map(known)),
        None if images.is_some() => Ok([None; 4]),
        _ => Err(Error::input(format!(
            "its input is {port}, and images are [N, C, H, W] or [N, H, W, C]: it is no classifier of images, or flattens them \
             outside; put that into the network"
        ))),
    }
}

/// Which of the axes holds the channels: that of the images' own number, else one of 1 or 3, else
/// an open one; and whether images of a known shape fit as well in the other order.
fn layout(port: &Port, axes: [Option<usize>; 3], images: Option<ImageShape>) -> Result<(Layout, bool)> {
    let rank = |layout: Layout| {
        let [channels, height, width] = layout.sorted(axes);
        let likely = match channels {
            Some(n) if images.is_some_and(|images| images.channels == n) => 3,
            Some(1 | 3) => 2,
            None => 1,
            Some(_) => 0,
        };
        let sides = images.map_or([height, width], |images| [Some(images.height), Some(images.width)]);
        let fits = |(axis, side): (Option<usize>, Option<usize>)| axis.is_none() || axis == side;
        (likely, [height, width].into_iter().zip(sides).all(fits))
    };
    match (rank(Layout::Nchw), rank(Layout::Nhwc)) {
        ((0, _), (0, _)) => Err(Error::input(format!(
            "its input is {port}: neither the second nor the last axis has the channels of images, 1 or 3"
        ))),
        (nchw, nhwc) if nchw >= nhwc => Ok((Layout::Nchw, images.is_some() && nchw.1 && nchw == nhwc)),
        _ => Ok((Layout::Nhwc, false)),
    }
}

impl Entry {
    /// The entry of images of a shape, or of the network's own, into one of its inputs. `written`
    /// is the file's own normalisation.
    pub(super) fn new(
        port: &Port,
        images: Option<ImageShape>,
        written: Option<Normalisation>,
        options: &OnnxOptions,
    ) -> Result<Self> {
        let dtype = dtype(port)?;
        let [batch, a, b, c] = axes(port, images)?;
        let (layout, is_unclear) = match options.layout {
            Some(said) => (said, false),
            None => layout(port, [a, b, c], images)?,
        };
        let sides = layout.sorted([a, b, c]);
        let network = match (images, sides) {
            (_, [Some(channels), Some(height), Some(width)]) => ImageShape { channels, height, width },
            (Some(own), [channels, height, width]) => ImageShape {
                channels: channels.unwrap_or(own.channels),
                height: height.unwrap_or(own.height),
                width: width.unwrap_or(own.width),
            },
            (None, _) => {
                return Err(Error::input(format!("its input is {port}, open in size: say the shape of the images")));
            }
        };
        let images = images.unwrap_or(network);
        check_shapes(images, network, options)?;
        check_size(images, network, batch.unwrap_or(options.batch))?;
        let normalisation = options.input.clone().or(written);
        let normalisation = match (normalisation, dtype) {
            (Some(Normalisation::Bytes) | None, DatumType::U8) => Normalisation::Bytes,
            (Some(other), DatumType::U8) => {
                return Err(Error::input(format!("it reads bytes, and '{other}' is no scale for them: say 'bytes'")));
            }
            (Some(asked), _) => asked,
            (None, _) => return Err(Error::input(unsaid())),
        };
        let scales = normalisation.scales(network.channels, options.range)?;
        let (from, to) = ([images.height, images.width], [network.height, network.width]);
        let resize = (from != to).then(|| Bilinear::new(from, to));
        Ok(Self { images, network, layout, is_unclear, dtype, fixed: batch, normalisation, scales, resize })
    }

    /// A pass of `batch` images from `x` [n, C, H, W], 0 < n ≤ batch; the last image is repeated to
    /// fill it.
    pub(super) fn tensor(&self, x: &[f32], batch: usize) -> TractResult<Tensor> {
        let (dims, pixels) = (self.network.dims(), self.network.height * self.network.width);
        let (from, plane) = (self.images.dims(), self.images.height * self.images.width);
        let n = x.len() / from;
        let mut entered = vec![0f32; batch * dims];
        for (i, target) in entered.chunks_exact_mut(dims).enumerate() {
            let image = &x[i.min(n - 1) * from..][..from];
            for (c, &scale) in self.scales.iter().enumerate() {
                let source = &image[c.min(self.images.channels - 1) * plane..][..plane];
                let mut put = |at: usize, v: f64| {
                    let at = match self.layout {
                        Layout::Nchw => c * pixels + at,
                        Layout::Nhwc => at * self.network.channels + c,
                    };
                    let v = scale.apply(v);
                    target[at] = if self.dtype == DatumType::U8 { v.round().clamp(0.0, 255.0) } else { v };
                };
                match &self.resize {
                    Some(resize) => resize.apply(source, put),
                    None => source.iter().enumerate().for_each(|(at, &v)| put(at, f64::from(v))),
                }
            }
        }
        let [a, b, c] = self.layout.axes(self.network);
        Ok(Tensor::from_shape(&[batch, a, b, c], &entered)?.cast_to_dt(self.dtype)?.into_owned())
    }
}

fn unsaid() -> String {
    format!(
        "how images enter is not said: give --normalisation of `bayescope evaluate` (as-is, zero-to-one, minus-one-to-one, \
         bytes, imagenet, or mean=…;std=…), or write it into the file (metadata '{}', or '{}' and '{}')",
        super::normalisation::KEY,
        super::normalisation::MEAN_AND_STD[0],
        super::normalisation::MEAN_AND_STD[1]
    )
}

/// Whether a pass has any numbers, and not more than anyone's memory: an extent may be what a damaged file makes up.
fn check_size(images: ImageShape, network: ImageShape, batch: usize) -> Result<()> {
    for shape in [images, network] {
        let sides = [batch, shape.channels, shape.height, shape.width];
        let numbers = sides.into_iter().try_fold(1, usize::checked_mul);
        if !numbers.is_some_and(|numbers| (1..=LARGEST).contains(&numbers)) {
            return Err(Error::input(format!(
                "a pass of {batch} image(s) of {shape} has no size to work with: from 1 to {LARGEST} numbers"
            )));
        }
    }
    Ok(())
}

/// Whether images of one shape may enter a network for another.
fn check_shapes(images: ImageShape, network: ImageShape, options: &OnnxOptions) -> Result<()> {
    if images.channels != network.channels {
        if images.channels != 1 {
            return Err(Error::input(format!(
                "it reads images of {} channel(s), and these have {}",
                network.channels, images.channels
            )));
        }
        if !options.repeat_channels {
            return Err(Error::input(format!(
                "it reads images of {} channels, and these are grey; --repeat-channels of `bayescope evaluate` shows it each of them as one",
                network.channels
            )));
        }
    }
    if (images.height, images.width) != (network.height, network.width) && !options.resize {
        return Err(Error::input(format!(
            "it reads images of {network}, and these are {images}; --resize of `bayescope evaluate` scales them, bilinearly"
        )));
    }
    Ok(())
}
