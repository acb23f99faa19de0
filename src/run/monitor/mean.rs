//! Means over runs, and running means, with their intervals.

use super::picture::few;
use crate::figure::Point;
use crate::measure::student_mean;

/// Places at which runs are averaged.
const PLACES: usize = 2000;

/// The mean of several courses where at least two of them are, on straight lines between their points. Its 95 % interval is
/// Student's over the courses and, where every course has an interval of its own, the mean of these in quadrature: courses
/// are measured on the same test images, so that their errors do not average out. Its ends lie in the range of the quantity.
pub(super) fn mean(courses: &[&[Point]], [least, most]: [f64; 2]) -> Vec<Point> {
    let mut places: Vec<f64> = courses.iter().flat_map(|course| course.iter()).map(|point| point.x).collect();
    places.sort_by(f64::total_cmp);
    places.dedup();
    let at = |x: f64| {
        let points: Vec<Point> = courses.iter().filter_map(|course| between(course, x)).collect();
        (points.len() > 1).then(|| {
            let (mean, half) = student_mean(&points.iter().map(|point| point.y).collect::<Vec<_>>());
            let end = |of: fn(&Point) -> Option<f64>| {
                let own: Option<f64> = points.iter().map(|point| Some((of(point)? - point.y).abs())).sum();
                half.hypot(own.unwrap_or_default() / points.len() as f64)
            };
            let (down, up) = (end(|point| point.low), end(|point| point.high));
            Point::new(x, mean).within((mean - down).max(least), (mean + up).min(most))
        })
    };
    few(places, PLACES).into_iter().filter_map(at).collect()
}

/// The point of a course at a place within its ends. Its interval, too, lies on straight lines.
fn between(course: &[Point], x: f64) -> Option<Point> {
    let after = course.partition_point(|point| point.x < x);
    let right = course.get(after)?;
    if right.x == x {
        return Some(right.clone());
    }
    let left = course.get(after.checked_sub(1)?)?;
    let share = (x - left.x) / (right.x - left.x);
    let line = |left: f64, right: f64| left + share * (right - left);
    let ends = |left: Option<f64>, right: Option<f64>| Some(line(left?, right?));
    let (low, high) = (ends(left.low, right.low), ends(left.high, right.high));
    Some(Point { low, high, ..Point::new(x, line(left.y, right.y)) })
}

/// The running mean s = w·s + (1 − w)·y, divided by what of it has been filled: it begins at the first point. So are the ends of
/// its interval, as the errors of all steps are those of the same test images; there is none from a point without one on.
pub(super) fn smoothed(points: &[Point], weight: f64) -> Vec<Point> {
    let (mut y, mut low, mut high, mut filled) = (0.0, Some(0.0), Some(0.0), 0.0);
    let step = |sum: f64, value: f64| weight * sum + (1.0 - weight) * value;
    let one = |point: &Point| {
        (y, filled) = (step(y, point.y), step(filled, 1.0));
        low = low.zip(point.low).map(|(sum, end)| step(sum, end));
        high = high.zip(point.high).map(|(sum, end)| step(sum, end));
        let [low, high] = [low, high].map(|end| end.map(|sum| sum / filled));
        Point { low, high, ..Point::new(point.x, y / filled) }
    };
    points.iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Student's t of one degree of freedom.
    const T1: f64 = 12.706_204_736;

    #[test]
    fn a_mean_keeps_the_error_of_the_test_images_that_its_runs_share() {
        let a = [Point::new(0.0, 1.0).within(0.7, 1.3), Point::new(2.0, 3.0).within(2.0, 4.0)];
        let b = [Point::new(0.0, 1.0).within(0.9, 1.5), Point::new(1.0, 2.0).within(1.6, 2.6)];
        const ANY: [f64; 2] = [f64::NEG_INFINITY, f64::INFINITY];
        let both = mean(&[&a, &b], ANY);
        // Runs that agree have no spread: what is left is the error over test images, each end by itself, not divided by √2.
        let close = |got: Option<f64>, want: f64| assert!((got.unwrap() - want).abs() < 1e-12, "{got:?}, {want}");
        assert_eq!(both.iter().map(|point| (point.x, point.y)).collect::<Vec<_>>(), [(0.0, 1.0), (1.0, 2.0)]);
        close(both[0].low, 0.8);
        close(both[0].high, 1.4);
        // a at 1 lies halfway: 2.0 within 1.35 and 2.65.
        close(both[1].low, 2.0 - (0.65 + 0.4) / 2.0);
        close(both[1].high, 2.0 + (0.65 + 0.6) / 2.0);
        // Runs that differ have Student's interval as well; without intervals of their own that alone.
        let c = [Point::new(0.0, 3.0).within(2.6, 3.4)];
        let apart = mean(&[&a, &c], ANY);
        let half = T1 * 2.0_f64.sqrt() / 2.0_f64.sqrt();
        assert!((apart[0].high.unwrap() - 2.0 - half.hypot(0.35)).abs() < 1e-6, "{apart:?}");
        let alone = mean(&[&a, &[Point::new(0.0, 3.0)]], ANY);
        assert!((alone[0].high.unwrap() - 2.0 - half).abs() < 1e-6, "{alone:?}");
        // No error is below 0 or above 1.
        let shares = mean(&[&[Point::new(0.0, 0.1)], &[Point::new(0.0, 0.9)]], [0.0, 1.0]);
        assert_eq!((shares[0].low, shares[0].high), (Some(0.0), Some(1.0)));
    }

    #[test]
    fn a_running_mean_has_the_running_mean_of_its_interval_until_one_is_missing() {
        let of = |y: f64| Point::new(y, y).within(y - 1.0, y + 2.0);
        let points = [of(4.0), of(0.0), of(7.0), Point::new(8.0, 1.0), of(9.0)];
        let smooth = smoothed(&points, 0.9);
        for (i, point) in smooth.iter().enumerate() {
            let ends = [point.low, point.high].map(|end| end.map(|end| end - point.y));
            match i < 3 {
                true => {
                    ends.iter().zip([-1.0, 2.0]).for_each(|(end, want)| assert!((end.unwrap() - want).abs() < 1e-12))
                }
                false => assert_eq!(ends, [None; 2]),
            }
        }
        assert!((smooth[1].y - 0.9 * 4.0 / 1.9).abs() < 1e-12);
        assert_eq!(smoothed(&points, 0.0).last(), Some(&of(9.0)).map(|point| Point::new(point.x, point.y)).as_ref());
    }
}
