//! The problems of shared/reference/hdr/hdr.json, rebuilt from the formula stated there.

use serde_json::Value;

/// A recorded run of LinConGauss: (formulation, mean of the estimates, their standard deviation, how many).
pub type Recorded = (String, f64, f64, usize);

/// Means [K][D], the diagonal covariance times τ², the exact Bayes error, and the recorded runs.
pub fn problem(case: &Value) -> (Vec<Vec<f64>>, Vec<f64>, f64, Vec<Recorded>) {
    let tau = number(&case["tau"]);
    let covariance = fill(&case["cov_diag"]).into_iter().map(|v| v.abs() * tau * tau).collect();
    let mut means: Vec<Vec<f64>> =
        fill(&case["means"]).chunks(number(&case["d"]) as usize).map(<[f64]>::to_vec).collect();
    let then = case["means"]["then"].as_str().unwrap();
    if then.starts_with("each row divided by its L2 norm") {
        for mean in &mut means {
            let norm = mean.iter().map(|x| x * x).sum::<f64>().sqrt();
            mean.iter_mut().for_each(|x| *x /= norm);
        }
    } else {
        assert!(then.starts_with("used as is"), "{then}");
    }
    let runs = case["runs"].as_array().unwrap().iter().map(|run| {
        let formulation = run["formulation"].as_str().unwrap().to_owned();
        (formulation, number(&run["mean"]), number(&run["std"]), number(&run["repeats"]) as usize)
    });
    (means, covariance, number(&case["exact"]["bayes_error"]), runs.collect())
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap()
}

/// f32(base + scale·u), row-major; u from SplitMix64 begun at fnv1a64(name) xor the seed 1 of the file.
fn fill(rule: &Value) -> Vec<f64> {
    const SEED: u64 = 1;
    let name = rule["name"].as_str().unwrap();
    let hash = |h: u64, byte: u8| (h ^ u64::from(byte)).wrapping_mul(0x100_0000_01B3);
    let mut state = name.bytes().fold(0xCBF2_9CE4_8422_2325, hash) ^ SEED;
    let count = rule["shape"].as_array().unwrap().iter().map(|n| number(n) as usize).product();
    let (base, scale) = (number(&rule["base"]), number(&rule["scale"]));
    let next = || {
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        let u = 2.0 * (((z ^ (z >> 31)) >> 40) as f64 / f64::from(1 << 24)) - 1.0;
        f64::from((base + scale * u) as f32)
    };
    std::iter::repeat_with(next).take(count).collect()
}
