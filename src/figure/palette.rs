//! The one palette: colours of series and of classes, in files and in the window, and marker shapes
//! of series.
//!
//! The hues are the eight of Okabe and Ito, "Color Universal Design" (2008), and two more. Each is
//! shaded for light and for dark grounds, so that its contrast is 3 or more on every ground, and so
//! that any two differ for people with protanopia, deuteranopia or tritanopia too. The tests
//! measure both.

use super::Figure;
use super::scene::Ink;

/// How many colours there are; later ones begin again with other markers.
pub const COLOURS: usize = 10;

/// RGB on light and dark grounds: blue, vermilion, green, pink, orange, sky blue, ink, yellow,
/// violet, dark red (mint on dark).
const PALETTE: [[[u8; 3]; 2]; COLOURS] = [
    [[0x00, 0x60, 0xa6], [0x44, 0xa4, 0xe4]],
    [[0xa4, 0x3c, 0x06], [0xe0, 0x60, 0x0c]],
    [[0x0a, 0x83, 0x58], [0x34, 0xa4, 0x6c]],
    [[0xd0, 0x65, 0x9a], [0xca, 0x88, 0xbc]],
    [[0x9e, 0x70, 0x00], [0xee, 0x9a, 0x10]],
    [[0x1f, 0x93, 0xd2], [0xa8, 0xcd, 0xec]],
    [[0x1a, 0x1a, 0x1a], [0xec, 0xed, 0xf0]],
    [[0x8f, 0x96, 0x14], [0xf4, 0xd8, 0x1c]],
    [[0x5a, 0x1a, 0x85], [0x8a, 0x62, 0xb8]],
    [[0x7a, 0x1c, 0x1c], [0x58, 0xe8, 0xa0]],
];

/// The colours of everything in a figure that is not data.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Theme {
    pub ground: Ink,
    pub text: Ink,
    pub weak: Ink,
    pub grid: Ink,
    pub axis: Ink,
    pub warning: Ink,
}

impl Theme {
    pub(super) fn new(dark: bool) -> Self {
        let pick = |light: [u8; 3], on_dark: [u8; 3]| Ink::solid(if dark { on_dark } else { light });
        Self {
            ground: pick([0xff, 0xff, 0xff], [0x18, 0x1b, 0x20]),
            text: pick([0x1c, 0x20, 0x26], [0xe8, 0xea, 0xee]),
            weak: pick([0x55, 0x5b, 0x64], [0xa3, 0xab, 0xb6]),
            grid: pick([0xe6, 0xe8, 0xec], [0x2d, 0x32, 0x3a]),
            axis: pick([0x8a, 0x91, 0x9b], [0x6b, 0x74, 0x80]),
            warning: pick([0x8a, 0x5a, 0x00], [0xf2, 0xc1, 0x4e]),
        }
    }
}

/// A number's colour on a scale from −1, blue, over 0, close to the ground, to 1, orange.
pub fn diverging(share: f64, dark: bool) -> [u8; 3] {
    let pick = |light: [u8; 3], on_dark: [u8; 3]| if dark { on_dark } else { light };
    let middle = pick([0xf4, 0xf4, 0xf1], [0x20, 0x24, 0x2a]);
    let end = match share < 0.0 {
        true => pick([0x1c, 0x5c, 0xa8], [0x5a, 0xa9, 0xff]),
        false => pick([0xc9, 0x5a, 0x0c], [0xff, 0xa2, 0x4d]),
    };
    let mixed = |i: usize| f64::from(middle[i]) + (f64::from(end[i]) - f64::from(middle[i])) * share.abs().min(1.0);
    [0, 1, 2].map(|i| mixed(i).round() as u8)
}

/// The shape of a marker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Marker {
    Circle,
    Square,
    Triangle,
    Diamond,
    TriangleDown,
    Plus,
    Star,
    Cross,
}

const MARKERS: [Marker; 8] = [
    Marker::Circle,
    Marker::Square,
    Marker::Triangle,
    Marker::Diamond,
    Marker::TriangleDown,
    Marker::Plus,
    Marker::Star,
    Marker::Cross,
];

/// sRGB of a place in the palette, on a light or a dark ground.
pub fn colour(index: usize, dark: bool) -> [u8; 3] {
    PALETTE[index % COLOURS][usize::from(dark)]
}

/// The marker of each series. It follows the colour; a series that would look like an earlier one
/// gets another.
pub fn markers(figure: &Figure) -> Vec<Marker> {
    let look = |i: usize| {
        let series = &figure.series[i];
        (series.colour % COLOURS, series.faint, series.dashed)
    };
    let repeats = |i: usize| (0..i).filter(|&earlier| look(earlier) == look(i)).count();
    // Three shares no factor with eight: eight series of one colour have eight shapes.
    (0..figure.series.len()).map(|i| MARKERS[(figure.series[i].colour + 3 * repeats(i)) % MARKERS.len()]).collect()
}

/// The outline of a marker of about two units across, centred on the origin, y upwards.
pub(super) fn outline(marker: Marker) -> Vec<[f64; 2]> {
    let ring = |corners: usize, radius: &dyn Fn(usize) -> f64, turn: f64| -> Vec<[f64; 2]> {
        let angle = |i: usize| std::f64::consts::TAU * (i as f64 / corners as f64 + turn);
        (0..corners).map(|i| [radius(i) * angle(i).cos(), radius(i) * angle(i).sin()]).collect()
    };
    // Radii give the shapes about the same area.
    match marker {
        Marker::Circle => ring(32, &|_| 1.0, 0.0),
        Marker::Square => ring(4, &|_| 1.25, 0.125),
        Marker::Diamond => ring(4, &|_| 1.35, 0.0),
        Marker::Triangle => ring(3, &|_| 1.4, 0.25),
        Marker::TriangleDown => ring(3, &|_| 1.4, 0.75),
        Marker::Star => ring(10, &|i| if i % 2 == 0 { 1.6 } else { 0.7 }, 0.25),
        Marker::Plus => cross(0.0),
        Marker::Cross => cross(std::f64::consts::FRAC_PI_4),
    }
}

/// Two crossing beams, turned by `angle`.
fn cross(angle: f64) -> Vec<[f64; 2]> {
    let (long, thick) = (1.4, 0.45);
    let corner = [[long, thick], [thick, thick], [thick, long]];
    let quarter = |turns: usize| {
        let (sin, cos) = (angle + turns as f64 * std::f64::consts::FRAC_PI_2).sin_cos();
        corner.map(|[x, y]| [x * cos - y * sin, x * sin + y * cos])
    };
    (0..4).flat_map(quarter).collect()
}

/// sRGB as shares of linear light.
#[cfg(test)]
fn linear(rgb: [u8; 3]) -> [f64; 3] {
    rgb.map(|value| {
        let share = f64::from(value) / 255.0;
        if share <= 0.04045 { share / 12.92 } else { ((share + 0.055) / 1.055).powf(2.4) }
    })
}

/// Contrast of two colours after WCAG 2.1: 1 for equal ones, 21 for black and white.
#[cfg(test)]
pub(crate) fn contrast(a: [u8; 3], b: [u8; 3]) -> f64 {
    let luminance = |rgb| linear(rgb).iter().zip([0.2126, 0.7152, 0.0722]).map(|(light, weight)| light * weight).sum();
    let [a, b]: [f64; 2] = [luminance(a), luminance(b)];
    (a.max(b) + 0.05) / (a.min(b) + 0.05)
}

#[cfg(test)]
mod tests {
    use super::*;

    type Matrix = [[f64; 3]; 3];

    /// What an eye sees of linear light: the usual one; then protanopia, deuteranopia and
    /// tritanopia after Machado, Oliveira and Fernandes, "A Physiologically-based Model for
    /// Simulation of Color Vision Deficiency" (2009), severity 1.
    const EYES: [Matrix; 4] = [
        [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
    ];

    /// Linear sRGB to the cones' light, and its cube root to Oklab (Ottosson 2020).
    const CONES: Matrix = [
        [0.412_221_470_8, 0.536_332_536_3, 0.051_445_992_9],
        [0.211_903_498_2, 0.680_699_545_1, 0.107_396_956_6],
        [0.088_302_461_9, 0.281_718_837_6, 0.629_978_700_5],
    ];
    const OKLAB: Matrix = [
        [0.210_454_255_3, 0.793_617_785_0, -0.004_072_046_8],
        [1.977_998_495_1, -2.428_592_205_0, 0.450_593_709_9],
        [0.025_904_037_1, 0.782_771_766_2, -0.808_675_766_0],
    ];

    fn times(matrix: &Matrix, v: [f64; 3]) -> [f64; 3] {
        matrix.map(|row| row.iter().zip(v).map(|(a, b)| a * b).sum())
    }

    fn seen(rgb: [u8; 3], eye: &Matrix) -> [f64; 3] {
        let light = times(eye, linear(rgb)).map(|share| share.clamp(0.0, 1.0));
        times(&OKLAB, times(&CONES, light).map(f64::cbrt))
    }

    #[test]
    fn any_two_colours_differ_for_every_eye() {
        let distance = |a: [f64; 3], b: [f64; 3]| a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt();
        for dark in [false, true] {
            for (kind, eye) in EYES.iter().enumerate() {
                // The just noticeable difference is about 0.02; fewer kinds of cones leave less.
                let least = if kind == 0 { 0.1 } else { 0.055 };
                for (a, b) in (0..COLOURS).flat_map(|a| (0..a).map(move |b| (a, b))) {
                    let apart = distance(seen(colour(a, dark), eye), seen(colour(b, dark), eye));
                    assert!(apart >= least, "{a} and {b}, dark {dark}, eye {kind}: {apart}");
                }
            }
        }
    }

    #[test]
    fn contrast_is_that_of_the_standard() {
        assert!((contrast([0; 3], [255; 3]) - 21.0).abs() < 1e-9 && contrast([7; 3], [7; 3]) == 1.0);
        // The grey that WCAG's explanations give as just enough for text on white.
        assert!((contrast([0x76; 3], [255; 3]) - 4.54).abs() < 0.005);
    }
}
