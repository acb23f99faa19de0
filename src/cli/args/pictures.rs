//! How pictures of other sizes become images of a world: arguments of all commands that read them.

use clap::{Args, ValueEnum};

use crate::data::{Fit, Frame, Way};
use crate::error::{Error, Result};
use crate::oracle::pictures::Fits;

/// What is done to pictures. Datasets (IDX, CIFAR, npz) are padded with zeros, whatever is asked.
#[derive(Debug, Clone, Copy, Args)]
pub struct FitArgs {
    /// How a picture of another size gets the world's: the largest part in the middle is cut out and scaled (crop), all of it is scaled and
    /// gets margins (pad), or is scaled to fit (stretch); with none, one that is too large is refused. It is turned upright as its EXIF data
    /// say, and what was done is told.
    #[arg(long, value_enum, default_value = "crop", value_name = "HOW")]
    pub fit: WayArg,
    /// What --fit crop cuts out of one upright picture: columns to its left, rows above it, its width, in pixels.
    #[arg(long, value_name = "X,Y,WIDTH", value_parser = frame)]
    pub frame: Option<Frame>,
    /// Exchange light and dark in pictures: for a dark drawing on white in a world of light on dark.
    #[arg(long)]
    pub invert: bool,
}

/// [`Way`] for clap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum WayArg {
    /// The part in the middle, or --frame.
    Crop,
    /// All of it, with margins.
    Pad,
    /// All of it, each direction scaled by itself.
    Stretch,
    /// Nothing is scaled.
    None,
}

impl FitArgs {
    /// What is to be done to each picture.
    ///
    /// # Errors
    /// When a frame is given where nothing is cut out.
    pub fn fits(self) -> Result<Fits> {
        let way = match self.fit {
            WayArg::Crop => Way::Crop,
            WayArg::Pad => Way::Pad,
            WayArg::Stretch => Way::Stretch,
            WayArg::None => Way::None,
        };
        if self.frame.is_some() && way != Way::Crop {
            return Err(Error::input("--frame is used only with --fit crop: leave --frame or the other --fit out"));
        }
        Ok(Fits::all(Fit { way, frame: self.frame, invert: self.invert }))
    }
}

/// `500,0,3000`.
fn frame(text: &str) -> std::result::Result<Frame, String> {
    let numbers: Option<Vec<u32>> = text.split(',').map(|number| number.trim().parse().ok()).collect();
    match numbers.as_deref() {
        Some(&[x, y, width]) if width > 0 => Ok(Frame { x, y, width }),
        _ => Err(format!("{text:?} is no frame: give X,Y,WIDTH in whole pixels, such as 500,0,3000")),
    }
}
