//! Curves of thousands of points, thinned to what a plot can show.

/// At most two points, the smallest and the largest, for each of `columns` equal parts of the x
/// range, in their order; first and last stay. The curve's envelope is kept to the pixel. `points`
/// must be sorted by x.
pub fn decimate(points: &[[f64; 2]], columns: usize) -> Vec<[f64; 2]> {
    let columns = columns.max(1);
    let (Some(first), Some(last)) = (points.first(), points.last()) else { return Vec::new() };
    let span = last[0] - first[0];
    if points.len() <= 2 * columns || !(span > 0.0 && span.is_finite()) {
        return points.to_vec();
    }
    let column = |x: f64| (((x - first[0]) / span * columns as f64) as usize).min(columns - 1);
    let mut kept = Vec::with_capacity(2 * columns + 2);
    let mut begin = 0;
    while begin < points.len() {
        let here = column(points[begin][0]);
        let end = begin + points[begin..].iter().take_while(|point| column(point[0]) == here).count();
        let bucket = begin..end;
        let least = bucket.clone().min_by(|&a, &b| points[a][1].total_cmp(&points[b][1])).unwrap_or(begin);
        let most = bucket.max_by(|&a, &b| points[a][1].total_cmp(&points[b][1])).unwrap_or(begin);
        kept.push(least.min(most));
        if least != most {
            kept.push(least.max(most));
        }
        begin = end;
    }
    let ends = [0, points.len() - 1];
    kept.extend(ends);
    kept.sort_unstable();
    kept.dedup();
    kept.into_iter().map(|i| points[i]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wave(n: usize) -> Vec<[f64; 2]> {
        (0..n).map(|i| [i as f64, (i as f64 * 0.7).sin() + if i == n / 3 { 9.0 } else { 0.0 }]).collect()
    }

    #[test]
    fn few_points_stay_as_they_are() {
        assert!(decimate(&[], 10).is_empty());
        assert_eq!(decimate(&wave(20), 10), wave(20));
        // All at one place: nothing to divide.
        let stacked = vec![[1.0, 2.0]; 50];
        assert_eq!(decimate(&stacked, 3).len(), 50);
    }

    #[test]
    fn many_points_keep_their_envelope_and_their_ends() {
        let all = wave(100_000);
        let few = decimate(&all, 600);
        assert!(few.len() <= 2 * 600 + 2, "{}", few.len());
        assert!(few.is_sorted_by(|a, b| a[0] < b[0]));
        assert_eq!((few[0], few[few.len() - 1]), (all[0], all[99_999]));
        let range =
            |points: &[[f64; 2]]| points.iter().fold((f64::MAX, f64::MIN), |(l, h), p| (l.min(p[1]), h.max(p[1])));
        assert_eq!(range(&few), range(&all), "the spike stays");
        // In every column the extremes are those of the whole curve.
        for column in [0, 17, 598] {
            let width = 99_999.0 / 600.0;
            let inside = |p: &&[f64; 2]| (p[0] / width) as usize == column;
            let of = |points: &[[f64; 2]]| range(&points.iter().filter(inside).copied().collect::<Vec<_>>());
            assert_eq!(of(&few), of(&all));
        }
    }
}
