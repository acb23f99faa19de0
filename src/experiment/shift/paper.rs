//! BLC tables 7 and 8: ResNet-50 pretrained on ImageNet-1K, N = 5,000 images of a TarFlow of AFHQ,
//! three seeds.

/// A row of tables 7 and 8. Pairs are mean and standard deviation over seeds.
pub(super) struct Row {
    /// Configuration.
    pub name: &'static str,
    /// π as table 7 has it.
    pub prior: [f64; 3],
    /// σ.
    pub noise: f64,
    /// Target KL_y, nats.
    pub target_kl: f64,
    /// Empirical KL_y, nats.
    pub kl_y: (f64, f64),
    /// Test accuracy, %.
    pub accuracy: (f64, f64),
    /// Δ of the test accuracy against the baseline, percentage points.
    pub change: f64,
    /// Accuracy on the validation images, %.
    pub validation: (f64, f64),
}

const EVEN: [f64; 3] = [0.33, 0.33, 0.34];
const EVEN_KL: (f64, f64) = (1.27e-4, 1.56e-4);

#[rustfmt::skip]
const fn row(
    name: &'static str, (prior, noise): ([f64; 3], f64), target_kl: f64, kl_y: (f64, f64),
    accuracy: (f64, f64), change: f64, validation: (f64, f64),
) -> Row {
    Row { name, prior, noise, target_kl, kl_y, accuracy, change, validation }
}

/// All ten, in the paper's order.
#[rustfmt::skip]
pub(super) const ROWS: [Row; 10] = [
    row("Balanced (Baseline)", (EVEN, 0.0), 1e-4, EVEN_KL, (97.67, 0.10), 0.0, (98.20, 0.26)),
    row("Mild Imbalance (40/35/25)", ([0.40, 0.35, 0.25], 0.0), 0.017, (0.018, 0.001), (97.58, 0.10), -0.08, (98.10, 0.44)),
    row("Moderate Imbalance (50/30/20)", ([0.50, 0.30, 0.20], 0.0), 0.069, (0.070, 0.003), (97.45, 0.13), -0.22, (98.40, 0.60)),
    row("Strong Imbalance (60/25/15)", ([0.60, 0.25, 0.15], 0.0), 0.161, (0.158, 0.007), (97.40, 0.09), -0.27, (98.70, 0.20)),
    row("Very Strong Imbalance (70/20/10)", ([0.70, 0.20, 0.10], 0.0), 0.296, (0.293, 0.009), (97.38, 0.20), -0.28, (98.80, 0.26)),
    row("Balanced + Noise σ=0.05", (EVEN, 0.05), 1e-4, EVEN_KL, (97.58, 0.12), -0.08, (98.13, 0.35)),
    row("Balanced + Noise σ=0.10", (EVEN, 0.10), 1e-4, EVEN_KL, (95.70, 0.87), -1.97, (98.00, 0.35)),
    row("Balanced + Noise σ=0.15", (EVEN, 0.15), 1e-4, EVEN_KL, (76.92, 13.02), -20.75, (98.03, 0.42)),
    row("Imbalance (50/30/20) + Noise σ=0.05", ([0.50, 0.30, 0.20], 0.05), 0.069, (0.070, 0.003), (97.03, 0.38), -0.63, (98.80, 0.44)),
    row("Imbalance (70/20/10) + Noise σ=0.10", ([0.70, 0.20, 0.10], 0.10), 0.296, (0.293, 0.009), (95.65, 1.03), -2.02, (99.27, 0.58)),
];

/// The row of a setting, where the paper has that setting, of whatever three classes.
pub(super) fn row_of(name: &str, prior: &[f64], noise: f64) -> Option<&'static Row> {
    let present: Vec<f64> = prior.iter().copied().filter(|&weight| weight != 0.0).collect();
    ROWS.iter().find(|row| row.name == name && present == row.prior && row.noise == noise)
}
