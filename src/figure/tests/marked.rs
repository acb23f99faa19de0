//! Marks on axes.

use super::*;

/// The number a label stands for.
fn read(label: &str) -> f64 {
    let plain: String = label.chars().filter(|c| *c != ',').map(|c| if c == '−' { '-' } else { c }).collect();
    let Some((digits, power)) = plain
        .rsplit_once("10")
        .filter(|(_, power)| power.starts_with(['⁻', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹']))
    else {
        return plain.parse().unwrap();
    };
    let lowered: String = power
        .chars()
        .map(|c| {
            "⁰¹²³⁴⁵⁶⁷⁸⁹".chars().position(|raised| raised == c).map_or('-', |digit| char::from(b'0' + digit as u8))
        })
        .collect();
    let digits = match digits {
        "" => "1",
        "-" => "-1",
        times => times.trim_end_matches('×'),
    };
    format!("{digits}e{lowered}").parse().unwrap()
}

fn check(range: [f64; 2], scale: Scale, n: usize) {
    let ticks = ticks(range, scale, n);
    let case = format!("{range:?} {scale:?} {n}: {ticks:?}");
    assert!((2..=3 * n + 3).contains(&ticks.len()), "{case}");
    assert!(ticks.windows(2).all(|pair| pair[0].at < pair[1].at), "{case}");
    for tick in &ticks {
        assert!((range[0]..=range[1]).contains(&tick.at), "{case}");
        assert!((read(&tick.label) - tick.at).abs() <= 1e-12 * tick.at.abs(), "{case}");
        assert!(tick.label != "-0" && tick.label != "−0", "{case}");
        assert!(tick.label.chars().count() <= 18, "{case}");
    }
}

#[test]
fn ticks_are_round_ascending_inside_and_say_where_they_are() {
    let mut rng = rng(1);
    for _ in 0..20_000 {
        let n = rng.random_range(3..12);
        let size = 10f64.powf(rng.random_range(-9.0..9.0));
        let low = size * rng.random_range(-1.0..1.0);
        let width = size * 10f64.powf(rng.random_range(-4.0..2.0));
        check([low, low + width], Scale::Linear, n);
        check([size, size * 10f64.powf(rng.random_range(0.01..15.0))], Scale::Log10, n);
    }
}

#[test]
fn steps_of_a_linear_axis_are_equal_and_as_many_as_asked_for() {
    let mut rng = rng(2);
    for _ in 0..5_000 {
        let (low, width, n) = (rng.random_range(-1.0..1.0), rng.random_range(0.01..100.0), rng.random_range(4..12));
        let ticks = ticks([low, low + width], Scale::Linear, n);
        let steps: Vec<f64> = ticks.windows(2).map(|pair| pair[1].at - pair[0].at).collect();
        assert!(steps.iter().all(|step| (step - steps[0]).abs() < 1e-9 * width), "{ticks:?}");
        // 1-2-5 steps are at most a factor √2.5 from the wanted one, and ends may fall between.
        let share = (width / steps[0]) / n as f64;
        assert!((0.63..1.6).contains(&share), "{n}: {ticks:?}");
    }
}

fn written(range: [f64; 2], scale: Scale, n: usize) -> String {
    ticks(range, scale, n).into_iter().map(|tick| tick.label).collect::<Vec<_>>().join(" ")
}

#[test]
fn ticks_read_as_people_write_them() {
    assert_eq!(written([0.0, 1.0], Scale::Linear, 5), "0 0.2 0.4 0.6 0.8 1");
    assert_eq!(written([-0.3, 0.3], Scale::Linear, 6), "−0.3 −0.2 −0.1 0 0.1 0.2 0.3");
    assert_eq!(written([0.0, 45_000.0], Scale::Linear, 5), "0 10,000 20,000 30,000 40,000");
    assert_eq!(written([90.0, 50_000.0], Scale::Log10, 6), "100 1,000 10,000");
    assert_eq!(written([0.9, 30.0], Scale::Log10, 5), "1 2 5 10 20");
    assert_eq!(written([3.0, 4.0], Scale::Log10, 5), "3 3.2 3.4 3.6 3.8 4");
    assert_eq!(written([1e-12, 1.0], Scale::Log10, 5), "10⁻¹² 10⁻⁹ 10⁻⁶ 0.001 1");
    assert_eq!(written([0.0, 5e-7], Scale::Linear, 5), "0 10⁻⁷ 2×10⁻⁷ 3×10⁻⁷ 4×10⁻⁷ 5×10⁻⁷");
    assert_eq!(number(-12_345.5), "−12,345.5");
    assert_eq!(number(0.1 + 0.2), "0.3");
    assert_eq!(number(-0.0), "0");
    assert_eq!(number(f64::NAN), "NaN");
}

#[test]
fn ranges_without_width_or_logarithm_have_no_ticks() {
    for range in [[1.0, 1.0], [f64::NAN, 1.0], [0.0, f64::INFINITY], [1e16, 1e16 + 2.0], [f64::MIN, f64::MAX]] {
        assert_eq!(ticks(range, Scale::Linear, 5), []);
    }
    for range in [[0.0, 1.0], [-1.0, 1.0], [2.0, 2.0]] {
        assert_eq!(ticks(range, Scale::Log10, 5), []);
        assert_eq!(minor_ticks(range, Scale::Log10), [0.0; 0]);
    }
    assert_eq!(ticks([1.0, 0.0], Scale::Linear, 5), ticks([0.0, 1.0], Scale::Linear, 5));
}

#[test]
fn small_marks_lie_between_powers_of_ten() {
    let minor = minor_ticks([1.0, 100.0], Scale::Log10);
    assert_eq!(minor, [2., 3., 4., 5., 6., 7., 8., 9., 20., 30., 40., 50., 60., 70., 80., 90.]);
    assert_eq!(minor_ticks([1.0, 100.0], Scale::Linear), [0.0; 0]);
    assert_eq!(minor_ticks([1.0, 1e9], Scale::Log10), [0.0; 0]);
}

#[test]
fn colours_are_visible_and_eight_shapes_differ() {
    for dark in [false, true] {
        let ground = palette::Theme::new(dark).ground.rgb;
        for index in 0..COLOURS {
            let contrast = contrast(colour(index, dark), ground);
            assert!(contrast >= 3.0, "colour {index}, dark {dark}: {contrast}");
        }
    }
    for colours in [[0; 8], [0, 1, 2, 3, 4, 5, 6, 7], [0, 10, 20, 30, 40, 50, 60, 70]] {
        let series = colours.map(|colour| Series { colour, ..Series::default() }).to_vec();
        let mut shapes = markers(&Figure { series, ..Figure::default() });
        shapes.sort();
        shapes.dedup();
        assert_eq!(shapes.len(), 8, "{colours:?}");
    }
}
