//! Which knobs have moved since something was computed.

use super::format;
use crate::oracle::world::Settings;

/// τ and T of what is shown, and what has moved since; none where nothing has.
pub fn since(shown: &Settings, now: &Settings) -> Option<String> {
    let names = [
        ("τ", shown.tau != now.tau),
        ("T", shown.smoothing != now.smoothing),
        ("class prior π", shown.prior != now.prior),
        ("label noise C", shown.label_noise != now.label_noise),
    ];
    let names: Vec<&str> = names.into_iter().filter(|(_, differs)| *differs).map(|(name, _)| name).collect();
    let [tau, smoothing] = [shown.tau.get(), shown.smoothing.get()].map(format::sig4);
    let names = names.join(", ");
    (!names.is_empty()).then(|| format!("at τ = {tau} × std, T = {smoothing}: the knobs have moved since ({names})."))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oracle::label_noise::LabelNoise;
    use crate::oracle::posterior::Prior;
    use crate::units::Tau;

    #[test]
    fn what_moved_is_named() {
        let shown = Settings::default_for(2);
        assert_eq!(since(&shown, &shown), None);
        let prior = Settings { prior: Prior::new(&[0.9, 0.1]).unwrap(), ..shown.clone() };
        assert!(since(&shown, &prior).unwrap().ends_with("since (class prior π)."));
        let noise = Settings { label_noise: Some(LabelNoise::symmetric(0.2).unwrap()), ..shown.clone() };
        assert!(since(&noise, &shown).unwrap().ends_with("since (label noise C)."));
        let tau = Settings { tau: Tau::new(2.0).unwrap(), ..noise };
        assert!(since(&shown, &tau).unwrap().ends_with("since (τ, label noise C)."));
    }
}
