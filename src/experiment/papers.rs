//! Where the figures of the two papers contradict each other, or what is known.

use super::hardness::EBO_TABLE_1;
use crate::bayes::Claims;
use crate::error::Result;

/// BLC table 2, ResNet-18: training images and KL to the posterior, nats.
const RESNET_18: [(f64, f64); 2] = [(100.0, 0.160), (40_000.0, 0.026)];
/// α of ResNet-50 in BLC figure 2d.
const RESNET_50: f64 = 0.039;

/// What cannot all be true of the papers' own figures, one sentence each.
///
/// # Errors
/// Never with these figures.
pub fn contradictions() -> Result<Vec<String>> {
    let afhq = Claims {
        priors: vec![1.0 / 3.0; 3],
        aleatoric_nats: Some((0.012, 5e-4)),
        mutual_information_bits: Some((1.577, 5e-4)),
        bayes_error: None,
    };
    let found = afhq.contradictions()?.into_iter().map(|why| format!("BLC section 2.3, AFHQ: {why}"));
    let [(few, before), (many, after)] = RESNET_18;
    let alpha = (before / after).ln() / (many / few).ln();
    let slopes = format!(
        "BLC table 2: KL falls from {before} to {after} over N = {few} to {many} (ResNet-18), α = {alpha:.2}; figure 2d gives its sister \
         ResNet-50 α = {RESNET_50}, {:.0} times less",
        alpha / RESNET_50
    );
    let refuted: Vec<&str> = EBO_TABLE_1.iter().filter(|row| row.is_refuted()).map(|row| row.corpus).collect();
    let below = format!(
        "EBO table 1: on {} of {} corpora ({}) a classifier errs less than the \"Bayes error\", which is then that of the flow's world \
         and none of the corpus",
        refuted.len(),
        EBO_TABLE_1.len(),
        refuted.join(", ")
    );
    let order = "EBO section 4.3: \"the ordering of classes is unchanged by τ\" does not hold in general; `bayescope hardness mnist` shows \
                 the ranking of classes at several τ"
        .to_owned();
    Ok(found.chain([slopes, below, order]).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_is_known_of_is_listed() {
        let found = contradictions().unwrap();
        assert_eq!(found.len(), 4, "{found:?}");
        assert!(found[0].contains("A + I = H(Y)"));
        assert!(found[1].contains("α = 0.30") && found[1].contains("0.039") && found[1].contains("8 times"));
        assert!(found[2].contains("6 of 11") && found[2].contains("CIFAR-10") && !found[2].contains("SVHN"));
    }
}
