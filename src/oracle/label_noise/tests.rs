//! Label noise against its definition, p~ = Cᵀp, entry by entry.

use super::*;
use crate::units::Smoothing;

const P: [f64; 4] = [0.55, 0.25, 0.15, 0.05];

fn every_form() -> Vec<LabelNoise> {
    let rows = vec![vec![0.7, 0.1, 0.1, 0.1], vec![0.0, 1.0, 0.0, 0.0], vec![0.2, 0.3, 0.5, 0.0], vec![0.25; 4]];
    vec![
        LabelNoise::symmetric(0.3).unwrap(),
        LabelNoise::symmetric(1.0).unwrap(),
        LabelNoise::pair(0.2).unwrap(),
        LabelNoise::by_class(vec![0.0, 0.5, 1.0, 0.1]).unwrap(),
        LabelNoise::matrix(rows).unwrap(),
    ]
}

/// Σ_y C_yj p_y, term by term.
fn by_definition(noise: &LabelNoise, p: &[f64]) -> Vec<f64> {
    (0..p.len()).map(|j| (0..p.len()).map(|y| p[y] * noise.probability(y, j, p.len())).sum()).collect()
}

#[test]
fn noisy_probabilities_are_those_of_the_matrix_and_add_up_to_1() {
    for noise in every_form() {
        for y in 0..4 {
            assert!((noise.row(y, 4).iter().sum::<f64>() - 1.0).abs() < 1e-14, "{}: row {y}", noise.describe());
        }
        let (found, expected) = (noise.labels(&P), by_definition(&noise, &P));
        assert!(found.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-15), "{}: {found:?}", noise.describe());
        assert!((found.iter().sum::<f64>() - 1.0).abs() < 1e-14);
        let floor: f64 = (0..4).map(|y| P[y] * (1.0 - noise.row(y, 4).into_iter().fold(0.0, f64::max))).sum();
        assert!((noise.floor(&P) - floor).abs() < 1e-15);
    }
}

#[test]
fn a_noisy_posterior_keeps_likelihoods_and_small_logarithms() {
    let prior = Prior::new(&P).unwrap();
    for logs in [[0.0, -1.0, -2.0, 0.5], [0.0, -900.0, -2000.0, -1e5], [f64::NEG_INFINITY, 0.0, 0.0, -800.0]] {
        let of_class = Posterior::new(logs.to_vec(), &prior, Smoothing::new(1.5).unwrap());
        for noise in every_form() {
            let noisy = noise.posterior(of_class.clone());
            assert_eq!((&noisy.log_likelihood, noisy.log_px), (&of_class.log_likelihood, of_class.log_px));
            assert!((noisy.probabilities.iter().sum::<f64>() - 1.0).abs() < 1e-14);
            for j in 0..4 {
                let terms: Vec<f64> =
                    (0..4).map(|y| of_class.log_probabilities[y] + noise.probability(y, j, 4).ln()).collect();
                let (found, expected) = (noisy.log_probabilities[j], log_sum_exp(terms.iter().copied()));
                let same = found == expected || (found - expected).abs() < 1e-12 * expected.abs().max(1.0);
                assert!(same, "{} of {logs:?}: {found} and {expected}", noise.describe());
            }
            let entropy: f64 = noisy.probabilities.iter().filter(|p| **p > 0.0).map(|p| -p * p.ln()).sum();
            assert!((noisy.entropy_nats - entropy).abs() < 1e-14);
        }
    }
}

#[test]
fn a_matrix_that_changes_nothing_keeps_every_bit() {
    let identity = (0..4).map(|y| (0..4).map(|j| f64::from(u8::from(y == j))).collect()).collect();
    let of_class =
        Posterior::new(vec![-1.0, -3.0, -800.0, 0.2], &Prior::new(&P).unwrap(), Smoothing::new(0.7).unwrap());
    for noise in [LabelNoise::matrix(identity).unwrap(), LabelNoise::pair(0.0).unwrap()] {
        assert!(noise.is_none());
        assert_eq!(noise.posterior(of_class.clone()), of_class);
    }
    assert!(every_form().iter().all(|noise| !noise.is_none()));
}

#[test]
fn only_symmetric_matrices_have_a_symmetric_rate() {
    let rate = |text: &str, classes| LabelNoise::parse(text).unwrap().symmetric_rate(classes);
    assert_eq!((rate("symmetric:0.2", 7), rate("pair:0.2", 2), rate("pair:0.2", 3)), (Some(0.2), Some(0.2), None));
    assert!((rate("by-class:0.3,0.3,0.3", 3).unwrap() - 0.3).abs() < 1e-15);
    assert_eq!(rate("by-class:0.3,0.3,0.2", 3), None);
}

#[test]
fn the_doubt_of_an_image_is_what_labels_tell_of_it() {
    let of_class = Posterior::new(vec![-1.0, -3.0, -800.0, 0.2], &Prior::new(&P).unwrap(), Smoothing::ONE);
    for noise in every_form() {
        let column = |label: usize| {
            let all = (0..4).map(|class| noise.probability(class, label, 4));
            let (least, most) = all.fold((1.0f64, 0.0f64), |(least, most), p| (least.min(p), most.max(p)));
            most - least
        };
        let widest = (0..4).map(column).fold(0.0, f64::max);
        assert!((noise.reach(4) - widest).abs() < 1e-15, "{}: {widest}", noise.describe());
        let doubt = noise.doubt(of_class.decision, &noise.labels(&of_class.probabilities));
        let own = of_class.doubt(of_class.decision);
        assert!(doubt > 0.0 && doubt <= own * (1.0 + 1e-12), "{}: {doubt}", noise.describe());
        assert!(noise.symmetric_rate(4).is_none() || (doubt / own - 1.0).abs() < 1e-12, "{doubt}, {own}");
    }
    // Labels that say nothing of the two classes in doubt, or of any.
    let sure = |rows: [[f64; 4]; 4]| {
        let noise = LabelNoise::matrix(rows.map(|row| row.to_vec()).to_vec()).unwrap();
        noise.doubt(of_class.decision, &noise.labels(&of_class.probabilities))
    };
    let alike = [1.0, 0.0, 0.0, 0.0];
    assert!(sure([alike, alike, [0.0, 0.0, 1.0, 0.0], alike]) < 1e-12);
    assert_eq!(sure([[0.25; 4]; 4]), 0.0);
}

#[test]
fn labels_come_in_the_frequencies_of_their_row() {
    const DRAWS: usize = 20_000;
    for noise in every_form() {
        for y in 0..4 {
            let mut counts = [0usize; 4];
            (0..DRAWS).for_each(|i| counts[noise.draw(y, 4, (i as f64 + 0.5) / DRAWS as f64)] += 1);
            for (count, p) in counts.iter().zip(noise.row(y, 4)) {
                assert!(
                    (*count as f64 / DRAWS as f64 - p).abs() <= 1.001 / DRAWS as f64,
                    "{}: {counts:?}",
                    noise.describe()
                );
            }
        }
    }
}

#[test]
fn what_is_no_law_of_labels_is_refused() {
    let refused = |rows: Vec<Vec<f64>>| LabelNoise::matrix(rows).unwrap_err().to_string();
    assert!(refused(vec![vec![0.5, 0.4], vec![0.0, 1.0]]).contains("row 0 of the matrix adds up to 0.9"));
    assert!(refused(vec![vec![1.0, 0.0], vec![-0.1, 1.1]]).contains("row 1 of the matrix holds -0.1"));
    assert!(refused(vec![vec![1.0, 0.0], vec![f64::NAN, 1.0]]).contains("NaN"));
    assert!(refused(vec![vec![1.0, 0.0], vec![1.0]]).contains("row 1 of the matrix has 1 numbers"));
    assert!(refused(Vec::new()).contains("no row"));
    for text in ["symmetric:1.2", "pair:-0.1", "by-class:0.1,NaN", "symmetric:much", "often", "symmetric"] {
        assert!(LabelNoise::parse(text).unwrap_err().to_string().contains("label noise"), "{text}");
    }
    let three = LabelNoise::by_class(vec![0.1; 3]).unwrap();
    assert!(three.check(4).unwrap_err().to_string().contains("of 3 classes, this world has 4"));
    assert!(LabelNoise::symmetric(0.1).unwrap().check(1).is_err());
    // Decimals that nearly add up are normalised.
    let thirds = LabelNoise::matrix(vec![vec![0.333333, 0.333333, 0.333334]; 3]).unwrap();
    assert!((thirds.row(0, 3).iter().sum::<f64>() - 1.0).abs() < 1e-15);
}

#[test]
fn it_reads_back_as_it_was_written_in_words_and_files() {
    for noise in every_form() {
        let text = serde_json::to_string(&noise).unwrap();
        assert_eq!(serde_json::from_str::<LabelNoise>(&text).unwrap(), noise, "{text}");
        assert_eq!(LabelNoise::parse(&noise.describe()).unwrap(), noise);
    }
    let folder = tempfile::tempdir().unwrap();
    let rows = vec![vec![0.9, 0.1], vec![0.3, 0.7]];
    let csv = folder.path().join("flips.csv");
    std::fs::write(&csv, "# rows: classes\n0.9, 0.1\n\n0.3,0.7\n").unwrap();
    std::fs::write(folder.path().join("flips.json"), "[[0.9, 0.1], [0.3, 0.7]]").unwrap();
    let matrix = LabelNoise::matrix(rows).unwrap();
    assert_eq!(LabelNoise::parse(&csv.display().to_string()).unwrap(), matrix);
    let named: LabelNoise = serde_json::from_str("\"flips.json\"").unwrap();
    assert!(named.check(2).unwrap_err().to_string().contains("was not read"));
    assert_eq!(named.relative_to(folder.path()).unwrap(), matrix);
    // As Excel begins its files.
    std::fs::write(&csv, "\u{feff}0.9,0.1\n0.3,0.7\n").unwrap();
    assert_eq!(LabelNoise::parse(&csv.display().to_string()).unwrap(), matrix);
}

#[test]
fn a_table_is_refused_at_its_first_wrong_line() {
    let folder = tempfile::tempdir().unwrap();
    let csv = folder.path().join("flips.csv");
    let long = format!("0.9,0.1\n0.3,{}\n", "9 ".repeat(3000));
    for (text, wrong) in [
        ("0.9,0.1\n0.3,a few\n", "line 2: \"a few\" is no number"),
        ("0,9;0,1\n", "line 1: \"9;0\" is no number"),
        ("1,0\n1\nnever read\n", "line 2: 1 numbers, and the first row has 2"),
        ("# rows\n1\n\n1\nnever read\n", "line 4: a row more than the 1 numbers of each"),
        (long.as_str(), "line 2: \"9 9 "),
    ] {
        std::fs::write(&csv, text).unwrap();
        let why = LabelNoise::parse(&csv.display().to_string()).unwrap_err().to_string();
        assert!(why.contains(&format!("flips.csv: {wrong}")) && why.contains("commas between"), "{why}");
        assert!(why.len() < 500 + folder.path().as_os_str().len(), "{} bytes", why.len());
    }
}
