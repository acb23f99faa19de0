//! What was done to a picture on its way into a world: a record to be shown and kept.

use image::metadata::Orientation;
use serde::{Deserialize, Serialize};

/// How clearly, in levels of 255, a border must fit better after inversion for it to be offered.
const CLEARLY: u8 = 64;

/// Everything that was done to a picture, in the order in which it was done. Widths come before
/// heights; levels are of 255.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Treatment {
    /// Width and height as stored.
    pub stored: [u32; 2],
    /// How it was turned to stand upright, as its EXIF data say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turned: Option<Turn>,
    /// Whether it is the first frame of several.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub first_frame: bool,
    /// Bits of a value before they became 8; absent where they were 8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bits: Option<u8>,
    /// The colour that lies under transparent parts; absent where there were none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub background: Option<[u8; 3]>,
    /// What was cut out of the upright picture; absent where all of it was taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cropped: Option<Cut>,
    /// Its new size, if it was scaled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scaled: Option<Scaling>,
    /// What became of its colours.
    pub colour: Colour,
    /// Whether light and dark were exchanged.
    pub inverted: bool,
    /// The colour of the margins around it, if it does not fill the world's image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub margins: Option<[u8; 3]>,
    /// Level of its border before inversion: the median.
    pub border: u8,
    /// Level of the border of the world's own images.
    pub world_border: u8,
}

/// A way of turning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Turn {
    /// By 90°, clockwise.
    Right,
    /// By 180°.
    Around,
    /// By 90°, against the clock.
    Left,
    /// Left and right exchanged.
    Mirrored,
    /// Top and bottom exchanged.
    UpsideDown,
    /// By 90° clockwise, then mirrored.
    RightMirrored,
    /// By 90° against the clock, then mirrored.
    LeftMirrored,
}

/// A part of an upright picture, in its pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cut {
    /// Columns to its left.
    pub x: u32,
    /// Rows above it.
    pub y: u32,
    /// Its columns.
    pub width: u32,
    /// Its rows.
    pub height: u32,
}

/// A change of size.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scaling {
    /// Width and height before.
    pub from: [u32; 2],
    /// Width and height after.
    pub to: [u32; 2],
    /// How.
    pub filter: String,
}

/// What became of the colours of a picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Colour {
    /// The world has as many channels.
    Kept,
    /// Colours became their luma.
    ToGrey,
    /// Grey stands in all three channels.
    GreyInEach,
}

impl Turn {
    /// What an orientation asks for; nothing for an upright picture.
    pub(super) fn of(orientation: Orientation) -> Option<Self> {
        Some(match orientation {
            Orientation::NoTransforms => return None,
            Orientation::Rotate90 => Self::Right,
            Orientation::Rotate180 => Self::Around,
            Orientation::Rotate270 => Self::Left,
            Orientation::FlipHorizontal => Self::Mirrored,
            Orientation::FlipVertical => Self::UpsideDown,
            Orientation::Rotate90FlipH => Self::RightMirrored,
            Orientation::Rotate270FlipH => Self::LeftMirrored,
        })
    }

    fn words(self) -> &'static str {
        match self {
            Self::Right => "turned a quarter to the right",
            Self::Around => "turned upside down",
            Self::Left => "turned a quarter to the left",
            Self::Mirrored => "mirrored left to right",
            Self::UpsideDown => "mirrored top to bottom",
            Self::RightMirrored => "turned a quarter to the right and mirrored",
            Self::LeftMirrored => "turned a quarter to the left and mirrored",
        }
    }

    fn swaps_sides(self) -> bool {
        matches!(self, Self::Right | Self::Left | Self::RightMirrored | Self::LeftMirrored)
    }
}

impl Treatment {
    /// Width and height of the upright picture: the frame lies in it.
    pub fn upright(&self) -> [u32; 2] {
        let [width, height] = self.stored;
        if self.turned.is_some_and(Turn::swaps_sides) { [height, width] } else { [width, height] }
    }

    /// Whether its levels are those of the picture, each in its place.
    pub fn is_untouched(&self) -> bool {
        let Self { turned, bits, background, cropped, scaled, colour, inverted, margins, .. } = self;
        let changed = turned.is_some() || bits.is_some() || background.is_some() || *inverted || margins.is_some();
        !changed && cropped.is_none() && scaled.is_none() && *colour == Colour::Kept
    }

    /// Whether the border would clearly be more like the world's with light and dark exchanged.
    /// Nothing is inverted unasked.
    pub fn offers_inversion(&self) -> bool {
        let (before, after) = (self.border, 255 - self.border);
        !self.inverted && before.abs_diff(self.world_border) > after.abs_diff(self.world_border).saturating_add(CLEARLY)
    }

    /// What was done, in words, in order.
    pub fn describe(&self) -> String {
        let size = |[width, height]: [u32; 2]| format!("{width}×{height}");
        let rgb = |[r, g, b]: [u8; 3]| if r == g && g == b { format!("level {r}") } else { format!("RGB {r},{g},{b}") };
        let mut steps = vec![format!("{} pixels", size(self.stored))];
        steps.extend(self.first_frame.then(|| "first frame of an animation".to_owned()));
        steps.extend(self.bits.map(|bits| format!("{bits} bits a value brought to 8")));
        steps.extend(self.background.map(|colour| format!("transparent parts on {}", rgb(colour))));
        steps.extend(self.turned.map(|turn| format!("{} as its EXIF data say", turn.words())));
        steps.extend(
            self.cropped.map(|Cut { x, y, width, height }| format!("cropped to {} at {x},{y}", size([width, height]))),
        );
        steps
            .extend(self.scaled.as_ref().map(|scaling| format!("scaled to {} ({})", size(scaling.to), scaling.filter)));
        steps.extend(match self.colour {
            Colour::Kept => None,
            Colour::ToGrey => Some("colours turned to grey".to_owned()),
            Colour::GreyInEach => Some("grey in all three channels".to_owned()),
        });
        steps.extend(self.inverted.then(|| "light and dark exchanged".to_owned()));
        steps.extend(self.margins.map(|colour| format!("margins of {}", rgb(colour))));
        steps.join(", ")
    }

    /// Why inversion is offered; nothing where it is not.
    pub fn offer(&self) -> Option<String> {
        self.offers_inversion().then(|| {
            let Self { border, world_border, .. } = self;
            format!("its border is at level {border} of 255, this world's at {world_border}")
        })
    }
}
