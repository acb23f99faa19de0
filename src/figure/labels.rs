//! Labels of both axes: which there are, how they break and turn, and the room they take.

use super::text::{self, LEADING};
use super::{Axis, ticks};

/// Font size of labels.
pub const LABEL_SIZE: f64 = 12.0;
/// Distance between an axis and its labels.
pub const LABEL_GAP: f64 = 7.0;
/// Least distance between two labels side by side.
const APART: f64 = 12.0;
/// Distance between two numbers that looks right, along and across.
const SPREAD: [f64; 2] = [80.0, 45.0];
/// Most lines of an upright name.
const MOST_LINES: usize = 3;
/// Widest name beside the y axis; widths at which turned names break, in order of preference.
const WIDEST: f64 = 150.0;
const TURNED: [f64; 4] = [80.0, 110.0, 150.0, 220.0];

/// A label and where it belongs.
#[derive(Debug, Clone, PartialEq)]
pub struct AxisLabel {
    /// In the axis' own numbers.
    pub at: f64,
    /// Share of the axis before it.
    pub share: f64,
    /// Its lines of text.
    pub lines: Vec<String>,
}

/// The labels below a horizontal axis.
#[derive(Debug, Clone, PartialEq)]
pub struct LabelRow {
    /// All that are written, from left to right.
    pub labels: Vec<AxisLabel>,
    /// Degrees they are turned against the clock; 0 is upright.
    pub angle: f64,
    /// Room they take below the axis.
    pub height: f64,
    /// How far they reach beyond the left and right end of the axis.
    pub overhang: [f64; 2],
}

/// Labels of an axis over `range`: about `n` numbers, or all names within, broken at `room`.
fn labels(axis: &Axis, range: [f64; 2], n: usize, room: f64) -> Vec<AxisLabel> {
    let scale = axis.shown_scale();
    let [low, high] = range.map(|end| scale.place(end));
    let label = |at: f64, lines| AxisLabel { at, share: (scale.place(at) - low) / (high - low), lines };
    if axis.categories.is_empty() {
        return ticks(range, scale, n).into_iter().map(|tick| label(tick.at, vec![tick.label])).collect();
    }
    let names = axis.categories.iter().enumerate().map(|(i, name)| (i as f64, name));
    let inside = names.filter(|(at, _)| (range[0]..=range[1]).contains(at));
    inside.map(|(at, name)| label(at, text::wrap(name, LABEL_SIZE, room))).collect()
}

/// The labels beside a vertical axis of `height`, and the width of the widest.
pub(super) fn column(axis: &Axis, range: [f64; 2], height: f64) -> (Vec<AxisLabel>, f64) {
    let labels = labels(axis, range, (height / SPREAD[1]) as usize, WIDEST);
    let width = labels.iter().map(|label| text::widest(&label.lines, LABEL_SIZE)).fold(0.0, f64::max);
    (labels, width)
}

/// Labels below an axis of `width`: as many numbers as fit, or all names, turned if needed. No name reaches farther than `left`
/// beyond the left end where that can be.
pub fn label_row(axis: &Axis, range: [f64; 2], width: f64, left: f64) -> LabelRow {
    let most = ((width / SPREAD[0]) as usize).max(2);
    if axis.categories.is_empty() {
        let upright = |n: usize| LabelRow::upright(labels(axis, range, n, width), width);
        return (2..=most).rev().map(upright).find(|row| row.fits(width)).unwrap_or_else(|| upright(2));
    }
    let slot = width / (range[1] - range[0]);
    let broken = |room: f64| labels(axis, range, most, room);
    let words = axis.categories.iter().flat_map(|name| name.split_whitespace());
    let longest = words.map(|word| text::width(word, LABEL_SIZE)).fold(0.0, f64::max);
    let upright = LabelRow::upright(broken((slot - APART).max(LABEL_SIZE)), width);
    if longest <= slot - APART && upright.labels.iter().all(|label| label.lines.len() <= MOST_LINES) {
        return upright;
    }
    // A word is broken only where no room holds it.
    let rooms = TURNED.into_iter().filter(|room| *room >= longest.min(TURNED[TURNED.len() - 1]));
    let turned = |angle: f64| {
        rooms.clone().map(move |room| (angle, room)).map(|(angle, room)| LabelRow::turned(broken(room), angle, width))
    };
    let found = turned(40.0).chain(turned(90.0)).find(|row| row.fits(width) && row.overhang[0] <= left);
    found.unwrap_or_else(|| {
        // Names closer together than lines of text: every second, third, … stays.
        let every = (LABEL_SIZE * LEADING / slot).ceil() as usize;
        let few = broken(TURNED[3]).into_iter().step_by(every).map(|label| {
            let lines = vec![label.lines.join(" ")];
            AxisLabel { lines, ..label }
        });
        LabelRow::turned(few.collect(), 90.0, width)
    })
}

impl LabelRow {
    fn upright(labels: Vec<AxisLabel>, width: f64) -> Self {
        let lines = labels.iter().map(|label| label.lines.len()).max().unwrap_or(0);
        let reach = |label: &AxisLabel| {
            let half = text::widest(&label.lines, LABEL_SIZE) / 2.0;
            [half - label.share * width, half - (1.0 - label.share) * width]
        };
        let overhang = widest_reach(labels.iter().map(reach));
        Self { labels, angle: 0.0, height: lines as f64 * LABEL_SIZE * LEADING, overhang }
    }

    fn turned(labels: Vec<AxisLabel>, angle: f64, width: f64) -> Self {
        let (sin, cos) = angle.to_radians().sin_cos();
        let depth = |(i, line): (usize, &String)| {
            text::width(line, LABEL_SIZE) * sin + (i as f64 * LEADING + 1.0) * LABEL_SIZE * cos
        };
        let depths = labels.iter().flat_map(|label| label.lines.iter().enumerate().map(depth));
        let height = depths.fold(0.0, f64::max);
        let reach = |label: &AxisLabel| {
            let long = text::widest(&label.lines, LABEL_SIZE);
            let half = label.lines.len() as f64 * LABEL_SIZE * LEADING * sin / 2.0;
            [long * cos + half - label.share * width, half - (1.0 - label.share) * width]
        };
        let overhang = widest_reach(labels.iter().map(reach));
        Self { labels, angle, height, overhang }
    }

    /// The lines of a label whose mark is at `x` on an axis at height `y`, each with the middle of its height: at its end where
    /// the labels are turned, at its centre where they are upright.
    pub fn lines<'a>(
        &self,
        label: &'a AxisLabel,
        x: f64,
        y: f64,
    ) -> impl Iterator<Item = (&'a str, [f64; 2])> + use<'a> {
        let ((sin, cos), angle, top) = (self.angle.to_radians().sin_cos(), self.angle, y + LABEL_GAP);
        let apart = LABEL_SIZE * LEADING;
        let half = label.lines.len().saturating_sub(1) as f64 / 2.0 * apart;
        label.lines.iter().enumerate().map(move |(i, line)| {
            let down = i as f64 * apart;
            let at = match angle == 0.0 {
                true => [x, top + 0.45 * LABEL_SIZE + down],
                // They are spread about the mark.
                false => [x + (down - half) * sin, top + (down - half) * cos + half * cos],
            };
            (line.as_str(), at)
        })
    }

    /// Returns whether neighbours keep apart.
    fn fits(&self, width: f64) -> bool {
        let sin = self.angle.to_radians().sin();
        self.labels.windows(2).all(|pair| {
            let distance = (pair[1].share - pair[0].share) * width;
            if self.angle == 0.0 {
                let half = |label: &AxisLabel| text::widest(&label.lines, LABEL_SIZE) / 2.0;
                return distance >= half(&pair[0]) + half(&pair[1]) + APART;
            }
            let lines = pair.iter().map(|label| label.lines.len()).max().unwrap_or(1);
            distance * sin >= lines as f64 * LABEL_SIZE * LEADING
        })
    }
}

fn widest_reach(reaches: impl Iterator<Item = [f64; 2]>) -> [f64; 2] {
    reaches.fold([0.0, 0.0], |[left, right], reach| [left.max(reach[0]), right.max(reach[1])])
}

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;

    /// Where a line is, in coordinates along the text and across: both ends.
    fn place(row: &LabelRow, line: &str, [x, y]: [f64; 2]) -> [[f64; 2]; 2] {
        let ((sin, cos), long) = (row.angle.to_radians().sin_cos(), text::width(line, LABEL_SIZE));
        let (along, across) = (x * cos - y * sin, x * sin + y * cos);
        let first = if row.angle == 0.0 { along - long / 2.0 } else { along - long };
        // Letters of the largest height, from the middle.
        [[first, first + long], [across - 0.4 * LABEL_SIZE, across + 0.4 * LABEL_SIZE]]
    }

    fn meet([a, b]: [f64; 2], [c, d]: [f64; 2]) -> bool {
        a < d && c < b
    }

    #[test]
    fn no_name_lies_on_another_whatever_they_are_called_and_however_narrow_the_axis() {
        let mut rng = ChaCha8Rng::seed_from_u64(11);
        let word = |rng: &mut ChaCha8Rng| {
            "Wagenrad(bymerge)".chars().cycle().take(rng.random_range(1..18)).collect::<String>()
        };
        let mut turned = 0;
        for _ in 0..1000 {
            let name =
                |rng: &mut ChaCha8Rng| (0..rng.random_range(1..4)).map(|_| word(rng)).collect::<Vec<_>>().join(" ");
            let names: Vec<String> = (0..rng.random_range(1..40)).map(|_| name(&mut rng)).collect();
            let (width, left) = (rng.random_range(120.0..900.0), rng.random_range(20.0..120.0));
            // The whole axis, or a part that somebody looks at.
            let first = rng.random_range(-0.5..names.len() as f64 - 0.5);
            let whole = [-0.5, names.len() as f64 - 0.5];
            let range = if rng.random() { whole } else { [first, first + rng.random_range(0.5..5.0)] };
            let axis = Axis::named("corpus", names);
            let row = label_row(&axis, range, width, left);
            turned += usize::from(row.angle != 0.0);
            let places: Vec<_> = row
                .labels
                .iter()
                .enumerate()
                .flat_map(|(i, label)| row.lines(label, label.share * width, 0.0).map(move |(line, at)| (i, line, at)))
                .map(|(i, line, at)| (i, line, at, place(&row, line, at)))
                .collect();
            for (n, (i, line, at, [along, across])) in places.iter().enumerate() {
                for (j, other, _, [beside, above]) in &places[n + 1..] {
                    let apart = i == j || !(meet(*along, *beside) && meet(*across, *above));
                    assert!(apart, "«{line}» and «{other}» at {} degrees, {width} wide: {axis:?}", row.angle);
                }
                // From the top of the letters at the one end to their foot at the other.
                let (sin, cos) = row.angle.to_radians().sin_cos();
                let [top, foot] =
                    [at[1] - 0.4 * LABEL_SIZE * cos, at[1] + (along[1] - along[0]) * sin + 0.4 * LABEL_SIZE * cos];
                assert!(
                    top > 0.0 && foot < row.height + LABEL_GAP + 1e-9,
                    "«{line}» leaves its room: {top} {foot} {}",
                    row.height
                );
            }
            assert!(row.overhang[0] <= left || row.angle != 40.0, "{} of {left}: {axis:?}", row.overhang[0]);
        }
        assert!((300..900).contains(&turned), "{turned} are turned");
    }
}
