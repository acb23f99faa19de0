//! The problems of `tests/reference/bayes/public.json`, rebuilt from their rules. The file itself tells the rules in
//! words, under `rules`.

use serde_json::{Value, json};

/// One problem of the table, rebuilt from its rule.
pub struct Rebuilt {
    /// One mean per class, in the space of the data.
    pub means: Vec<Vec<f64>>,
    /// Shared by the classes, before τ: they have the covariance τ²Σ.
    pub covariance: Covariance,
    /// One per class. They may be zero.
    pub priors: Vec<f64>,
    /// The τ of a row; 1 for an entry of `inverse`, where τ is the answer.
    pub tau: f64,
}

/// The Σ of a problem.
pub enum Covariance {
    /// The variance of every coordinate.
    Diagonal(Vec<f64>),
    /// Row by row.
    Full(Vec<Vec<f64>>),
}

/// The whole table.
pub fn table() -> Value {
    let path = crate::path("bayes/public.json");
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

/// Rebuilds an entry of `rows` or of `inverse`.
pub fn rebuild(row: &Value) -> Rebuilt {
    let (classes, d) = (count(row, "K"), count(row, "d"));
    let (means, covariance) = with_covariance(&row["cov"], base_means(&row["means"]), d);
    let priors = match &row["priors"] {
        Value::String(name) if name == "uniform" => vec![1.0 / classes as f64; classes],
        list => numbers(list),
    };
    let tau = if row.get("target_error").is_some() { 1.0 } else { number(row, "tau") };
    assert_eq!((means.len(), priors.len()), (classes, classes), "{}", row["id"]);
    assert!(means.iter().all(|mean| mean.len() == d), "{}", row["id"]);
    Rebuilt { means, covariance, priors, tau }
}

fn number(object: &Value, key: &str) -> f64 {
    object[key].as_f64().unwrap_or_else(|| panic!("no number {key} in {object}"))
}

fn whole(object: &Value, key: &str) -> u64 {
    object[key].as_u64().unwrap_or_else(|| panic!("no whole number {key} in {object}"))
}

fn count(object: &Value, key: &str) -> usize {
    whole(object, key) as usize
}

fn list(value: &Value) -> &[Value] {
    value.as_array().unwrap_or_else(|| panic!("no list: {value}"))
}

fn numbers(value: &Value) -> Vec<f64> {
    list(value).iter().map(|x| x.as_f64().unwrap_or_else(|| panic!("no number: {x}"))).collect()
}

fn matrix(value: &Value) -> Vec<Vec<f64>> {
    list(value).iter().map(numbers).collect()
}

/// `length` zeros but for one place.
fn axis(length: usize, place: usize, value: f64) -> Vec<f64> {
    let mut point = vec![0.0; length];
    point[place] = value;
    point
}

/// `means.*`, before `cov.embed_*` moves them.
fn base_means(rule: &Value) -> Vec<Vec<f64>> {
    match rule["rule"].as_str().unwrap() {
        "explicit" => matrix(&rule["points"]),
        "orthogonal" => {
            let classes = count(rule, "K");
            (0..classes).map(|k| axis(classes, k, number(rule, "a"))).collect()
        }
        "simplex" => simplex(count(rule, "K"), number(rule, "D")),
        "pam" => ladder(count(rule, "K"), number(rule, "h")).into_iter().map(|x| vec![x]).collect(),
        "qam" => {
            let steps = ladder(count(rule, "L"), number(rule, "h"));
            steps.iter().flat_map(|&x| steps.iter().map(move |&y| vec![x, y])).collect()
        }
        "psk" => psk(count(rule, "K"), number(rule, "A")),
        "biorthogonal" => {
            let (half, a) = (count(rule, "K") / 2, number(rule, "a"));
            [a, -a].iter().flat_map(|&a| (0..half).map(move |k| axis(half, k, a))).collect()
        }
        "product" => product(list(&rule["factors"])),
        "splitmix_iid" => splitmix_iid(rule),
        "splitmix_tree" => splitmix_tree(rule),
        other => panic!("no such rule for means: {other}"),
    }
}

/// Classes at equal distances of each other, in one dimension fewer than there are classes.
fn simplex(classes: usize, distance: f64) -> Vec<Vec<f64>> {
    let dims = classes - 1;
    let a = distance / 2_f64.sqrt();
    let c = a * (1.0 - (classes as f64).sqrt()) / dims as f64;
    let mut means: Vec<Vec<f64>> = (0..dims).map(|k| axis(dims, k, a)).collect();
    means.push(vec![c; dims]);
    means
}

/// Equal steps of 2h around zero.
fn ladder(steps: usize, h: f64) -> Vec<f64> {
    (0..steps).map(|k| h * (2.0 * k as f64 - (steps as f64 - 1.0))).collect()
}

/// Equal angles on a circle.
fn psk(classes: usize, radius: f64) -> Vec<Vec<f64>> {
    let angle = |k| 2.0 * std::f64::consts::PI * k as f64 / classes as f64;
    (0..classes).map(|k| vec![radius * angle(k).cos(), radius * angle(k).sin()]).collect()
}

/// Every choice of one point from each factor; the first factor varies slowest.
fn product(factors: &[Value]) -> Vec<Vec<f64>> {
    let mut means = vec![Vec::new()];
    for points in factors.iter().map(matrix) {
        means = means.iter().flat_map(|head| points.iter().map(|tail| [&head[..], tail].concat())).collect();
    }
    means
}

/// Number `index` of the uniform stream `seed`: splitmix64 at a place.
fn uniform(seed: u64, index: u64) -> f64 {
    let mut z = (seed << 32).wrapping_add(index).wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    ((z ^ (z >> 31)) >> 11) as f64 * 2_f64.powi(-53)
}

fn splitmix_iid(rule: &Value) -> Vec<Vec<f64>> {
    let (classes, d, seed, scale) = (whole(rule, "K"), whole(rule, "d"), whole(rule, "seed"), number(rule, "scale"));
    let entry = |k, i| scale * (2.0 * uniform(seed, k * d + i) - 1.0) * 3_f64.sqrt();
    (0..classes).map(|k| (0..d).map(|i| entry(k, i)).collect()).collect()
}

/// Each group of classes has a centre; later classes lie farther from theirs.
fn splitmix_tree(rule: &Value) -> Vec<Vec<f64>> {
    let [classes, d, seed, group] = ["K", "d", "seed", "group"].map(|key| whole(rule, key));
    let [scale, wa, wb, grow] = ["scale", "wa", "wb", "grow"].map(|key| number(rule, key));
    let u = |q| (2.0 * uniform(seed, q) - 1.0) * 3_f64.sqrt();
    let entry = |k: u64, i: u64| {
        let (centre, own) = (u(1_000_000 + (k / group) * d + i), u(k * d + i));
        scale * (wa * centre + wb * (1.0 + grow * k as f64) * own)
    };
    (0..classes).map(|k| (0..d).map(|i| entry(k, i)).collect()).collect()
}

/// `cov.*`: the covariance, and the means in its space.
fn with_covariance(rule: &Value, base: Vec<Vec<f64>>, d: usize) -> (Vec<Vec<f64>>, Covariance) {
    match rule["rule"].as_str().unwrap() {
        "identity" => (base, Covariance::Diagonal(vec![1.0; d])),
        "diag" => (base, Covariance::Diagonal(numbers(&rule["var"]))),
        "full" => (base, Covariance::Full(matrix(&rule["matrix"]))),
        "splitmix_diag" => {
            let seed = whole(rule, "seed");
            let variance = (0..d as u64).map(|i| 0.5 + 1.5 * uniform(seed, i)).collect();
            (base, Covariance::Diagonal(variance))
        }
        "embed_diag" => {
            let variance: Vec<f64> = (0..d).map(|i| 0.5 + ((37 * i) % 101) as f64 / 101.0).collect();
            let place = |x: &[f64], i: usize| variance[i].sqrt() * x[i];
            (embed(&base, d, place), Covariance::Diagonal(variance))
        }
        "embed_full" => {
            // L has two diagonals, so Σ = LL' has three.
            let diagonal = |i: usize| 1.0 + 0.5 * (i as f64).sin();
            let below = |i: usize| if i == 0 { 0.0 } else { 0.3 };
            let place = |x: &[f64], i: usize| diagonal(i) * x[i] + below(i) * x[i.saturating_sub(1)];
            let mut sigma = vec![vec![0.0; d]; d];
            for i in 0..d {
                sigma[i][i] = diagonal(i).powi(2) + below(i).powi(2);
                if i > 0 {
                    sigma[i][i - 1] = below(i) * diagonal(i - 1);
                    sigma[i - 1][i] = sigma[i][i - 1];
                }
            }
            (embed(&base, d, place), Covariance::Full(sigma))
        }
        other => panic!("no such rule for a covariance: {other}"),
    }
}

/// Base means in `d` dimensions: reflected into general position, stretched as the covariance is, moved off the origin.
fn embed(base: &[Vec<f64>], d: usize, stretch: impl Fn(&[f64], usize) -> f64) -> Vec<Vec<f64>> {
    let mirror: Vec<f64> = (0..d).map(|i| (i as f64 + 1.0).sin()).collect();
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(x, y)| x * y).sum::<f64>();
    let norm = dot(&mirror, &mirror);
    let embedded = |point: &Vec<f64>| {
        let factor = 2.0 * dot(&mirror, point) / norm;
        let x: Vec<f64> = (0..d).map(|i| point.get(i).unwrap_or(&0.0) - factor * mirror[i]).collect();
        (0..d).map(|i| stretch(&x, i) + 3.0 * (i as f64).cos()).collect()
    };
    base.iter().map(embedded).collect()
}

fn assert_close(found: &[f64], vector: &Value) {
    let expected = numbers(vector);
    assert_eq!(found.len(), expected.len());
    for (x, y) in found.iter().zip(&expected) {
        assert!((x - y).abs() <= 2e-15 * (1.0 + y.abs()), "{found:?} is not {expected:?}");
    }
}

#[test]
fn test_vectors() {
    let table = table();
    let vectors = &table["test_vectors"];
    for (seed, index) in [(101, 0), (101, 1), (602, 3071)] {
        assert_eq!(uniform(seed, index), number(vectors, &format!("U({seed},{index})")));
    }

    let iid = json!({ "rule": "splitmix_iid", "seed": 101, "scale": 1.0, "K": 3, "d": 4 });
    assert_close(&base_means(&iid)[2], &vectors["splitmix_iid seed=101 scale=1 K=3 d=4: means[2]"]);
    let tree = json!({
        "rule": "splitmix_tree", "seed": 104, "scale": 1.0, "K": 4, "d": 8,
        "group": 2, "wa": 1.0, "wb": 0.6, "grow": 0.05,
    });
    let key = "splitmix_tree seed=104 scale=1 group=2 wa=1 wb=0.6 grow=0.05 d=8: means[3]";
    assert_close(&base_means(&tree)[3], &vectors[key]);

    let embedded = |rule| {
        let means = json!({ "rule": "simplex", "K": 3, "D": 2.0 });
        let row = json!({ "K": 3, "d": 6, "means": means, "cov": { "rule": rule }, "priors": "uniform", "tau": 1.0 });
        rebuild(&row)
    };
    let problem = embedded("embed_diag");
    assert_close(&problem.means[1], &vectors["embed_diag of simplex K=3 D=2 into d=6: means[1]"]);
    let Covariance::Diagonal(variance) = &problem.covariance else { panic!("a diagonal was expected") };
    assert_close(variance, &vectors["  its var"]);
    let problem = embedded("embed_full");
    assert_close(&problem.means[1], &vectors["embed_full of the same: means[1]"]);
    let Covariance::Full(sigma) = &problem.covariance else { panic!("a full matrix was expected") };
    assert_close(&sigma[1], &vectors["  its Sigma row 1"]);
}

#[test]
fn every_entry_rebuilds() {
    let table = table();
    let entries = ["rows", "inverse"].map(|key| list(&table[key]));
    assert_eq!(entries.map(<[Value]>::len), [206, 15]);
    for row in entries.concat() {
        let problem = rebuild(&row);
        assert!(problem.tau > 0.0 && (problem.priors.iter().sum::<f64>() - 1.0).abs() < 1e-12, "{}", row["id"]);
    }
}
