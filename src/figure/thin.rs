//! Lines of thousands of points, thinned to what a picture can show.

use super::{Figure, Point, Scale, Series, Style};

/// The figure with at most two points, the smallest and the largest, of every long line for each of `columns` equal
/// parts of the axis between the ends `within` (of the whole line, where there are none); of what lies beyond them the
/// next point stays on either side, so that lines leave the picture where they did. What has markers, a band, or points
/// that do not rise in x stays as it is.
pub fn thin(figure: &Figure, within: Option<[f64; 2]>, columns: usize) -> Figure {
    let scale = figure.x.shown_scale();
    let series = figure.series.iter().map(|series| {
        let plain = matches!(series.style, Style::Line) && !series.band;
        let rises =
            || series.points.iter().all(|point| scale.has(point.x)) && series.points.is_sorted_by(|a, b| a.x <= b.x);
        match plain && series.points.len() > 2 * columns && rises() {
            true => Series { points: few(&series.points, scale, within, columns.max(1)), ..header(series) },
            false => series.clone(),
        }
    });
    Figure { series: series.collect(), ..without_series(figure) }
}

/// A series but for its points: a long list is not copied to be thrown away.
fn header(series: &Series) -> Series {
    let Series { name, style, colour, points: _, band, faint, dashed, aside, own } = series;
    let (name, points) = (name.clone(), Vec::new());
    Series {
        name,
        style: *style,
        colour: *colour,
        points,
        band: *band,
        faint: *faint,
        dashed: *dashed,
        aside: *aside,
        own: *own,
    }
}

fn without_series(figure: &Figure) -> Figure {
    let Figure { id, title, caption, provenance, x, y, series: _, rules, grids } = figure;
    let (id, title, caption, provenance) = (id.clone(), title.clone(), caption.clone(), provenance.clone());
    let (x, y, series, rules, grids) = (x.clone(), y.clone(), Vec::new(), rules.clone(), grids.clone());
    Figure { id, title, caption, provenance, x, y, series, rules, grids }
}

fn few(points: &[Point], scale: Scale, within: Option<[f64; 2]>, columns: usize) -> Vec<Point> {
    let points = match within {
        Some([low, high]) => {
            let first = points.partition_point(|point| point.x < low).saturating_sub(1);
            let end = (points.partition_point(|point| point.x <= high) + 1).min(points.len());
            points.get(first..end).unwrap_or_default()
        }
        None => points,
    };
    let (Some(first), Some(last)) = (points.first(), points.last()) else { return Vec::new() };
    let (start, span) = (scale.place(first.x), scale.place(last.x) - scale.place(first.x));
    if points.len() <= 2 * columns || !(span > 0.0 && span.is_finite()) {
        return points.to_vec();
    }
    let column = |point: &Point| (((scale.place(point.x) - start) / span * columns as f64) as usize).min(columns - 1);
    let mut kept = vec![0, points.len() - 1];
    let mut begin = 0;
    while begin < points.len() {
        let here = column(&points[begin]);
        let end = begin + points[begin..].iter().take_while(|point| column(point) == here).count();
        // A point without a place breaks the line: the gap stays.
        kept.extend((begin..end).find(|&i| !points[i].y.is_finite()));
        let high = |i: &usize| points[*i].y.is_finite();
        let by = |a: &usize, b: &usize| points[*a].y.total_cmp(&points[*b].y);
        kept.extend((begin..end).filter(high).min_by(by));
        kept.extend((begin..end).filter(high).max_by(by));
        begin = end;
    }
    kept.sort_unstable();
    kept.dedup();
    kept.into_iter().map(|i| points[i].clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wave(n: usize) -> Vec<Point> {
        (0..n).map(|i| Point::new(i as f64, (i as f64 * 0.7).sin() + if i == n / 3 { 9.0 } else { 0.0 })).collect()
    }

    fn of(points: Vec<Point>) -> Figure {
        Figure { series: vec![Series { points, ..Series::default() }], ..Figure::default() }
    }

    fn range(points: &[Point]) -> (f64, f64) {
        points.iter().fold((f64::MAX, f64::MIN), |(low, high), p| (low.min(p.y), high.max(p.y)))
    }

    #[test]
    fn few_points_and_marks_stay_as_they_are() {
        assert_eq!(thin(&of(wave(20)), None, 10), of(wave(20)));
        // All at one place: nothing to divide.
        assert_eq!(thin(&of(vec![Point::new(1.0, 2.0); 50]), None, 3).series[0].points.len(), 50);
        let mut marks = of(wave(500));
        marks.series[0].style = Style::Points;
        assert_eq!(thin(&marks, None, 10), marks);
    }

    #[test]
    fn many_points_keep_their_envelope_and_their_ends() {
        let all = wave(100_000);
        let few = thin(&of(all.clone()), None, 600).series.remove(0).points;
        assert!(few.len() <= 2 * 600 + 2 && few.is_sorted_by(|a, b| a.x < b.x), "{}", few.len());
        assert_eq!((&few[0], few.last()), (&all[0], all.last()));
        assert_eq!(range(&few), range(&all), "the spike stays");
        // In every column the extremes are those of the whole line.
        for column in [0, 17, 598] {
            let inside = |p: &&Point| (p.x / (99_999.0 / 600.0)) as usize == column;
            let of = |points: &[Point]| range(&points.iter().filter(inside).cloned().collect::<Vec<_>>());
            assert_eq!(of(&few), of(&all));
        }
    }

    #[test]
    fn a_part_in_view_has_all_its_points_and_one_beyond_each_end() {
        let few = thin(&of(wave(100_000)), Some([500.5, 520.5]), 100).series.remove(0).points;
        let places: Vec<f64> = few.iter().map(|point| point.x).collect();
        assert_eq!(places, (500..=521).map(f64::from).collect::<Vec<_>>());
    }
}
