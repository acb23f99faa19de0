//! Colours and marker shapes of series: the eight of Okabe and Ito, "Color Universal Design" (2008), which stay apart
//! for colour-blind eyes. Each is shaded a little for its ground, so that thin lines keep a contrast of 2.5 or more.

use super::Figure;

/// How many colours there are; later ones begin again with other markers.
pub const COLOURS: usize = 8;

/// RGB on a light and on a dark ground. The least visible ones come last.
const PALETTE: [[[u8; 3]; 2]; COLOURS] = [
    [[0x00, 0x72, 0xb2], [0x4a, 0xa8, 0xe0]],
    [[0xd5, 0x5e, 0x00], [0xf0, 0x7f, 0x2e]],
    [[0x00, 0x9e, 0x73], [0x1f, 0xbf, 0x91]],
    [[0xc0, 0x65, 0x97], [0xdd, 0x90, 0xba]],
    [[0xc8, 0x8a, 0x00], [0xe6, 0x9f, 0x00]],
    [[0x3d, 0x9f, 0xd6], [0x8c, 0xd0, 0xf5]],
    [[0x1a, 0x1a, 0x1a], [0xe4, 0xe6, 0xea]],
    [[0xb3, 0xa6, 0x00], [0xf0, 0xe4, 0x42]],
];

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

const MARKERS: [Marker; COLOURS] = [
    Marker::Circle,
    Marker::Square,
    Marker::Triangle,
    Marker::Diamond,
    Marker::TriangleDown,
    Marker::Plus,
    Marker::Star,
    Marker::Cross,
];

/// RGB of a place in the palette.
pub fn colour(index: usize, dark: bool) -> [u8; 3] {
    PALETTE[index % COLOURS][usize::from(dark)]
}

/// The marker of each series. It follows the colour, so that the same thing also has the same shape in every figure; a
/// series that would look like an earlier one gets another shape.
pub fn markers(figure: &Figure) -> Vec<Marker> {
    let look = |i: usize| {
        let series = &figure.series[i];
        (series.colour % COLOURS, series.faint, series.dashed)
    };
    let repeats = |i: usize| (0..i).filter(|&earlier| look(earlier) == look(i)).count();
    // Three shares no factor with eight: eight series of one colour have eight shapes.
    (0..figure.series.len()).map(|i| MARKERS[(figure.series[i].colour + 3 * repeats(i)) % COLOURS]).collect()
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
