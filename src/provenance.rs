//! Exactness travels with the number: how far a figure, a picture or a file can be trusted, and the
//! chain it comes from.

use std::path::Path;

use serde::{Deserialize, Serialize};

/// How far a number or picture can be trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Badge {
    /// Follows from the world without approximation, true to rounding.
    Exact,
    /// Lies within a stated bound: deterministic quadrature, whose interval is the difference of
    /// two rules, or what the rule is known to leave.
    Bounded,
    /// Its interval holds with 95 % confidence.
    Estimated,
    /// For the eye only.
    Illustrative,
}

impl Badge {
    /// The word on it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Bounded => "bounded",
            Self::Estimated => "estimated",
            Self::Illustrative => "illustrative",
        }
    }
}

/// A badge and the chain behind it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Provenance {
    /// How far it can be trusted.
    pub badge: Badge,
    /// What it comes from, in order: world, its hash, τ, T, π, seeds, precision, method.
    pub chain: Vec<(String, String)>,
}

impl Provenance {
    /// Nothing behind it yet; every chain ends in the program that made it.
    pub fn new(badge: Badge) -> Self {
        Self { badge, chain: vec![("program".into(), format!("bayescope {}", env!("CARGO_PKG_VERSION")))] }
    }

    /// From the lines under a figure, one of which may name the badge; estimated where none does.
    pub fn of_lines(said: &[(String, String)]) -> Self {
        let badge = said.iter().find(|(name, _)| name == "badge").map_or("", |(_, value)| value.as_str());
        let all = [Badge::Exact, Badge::Bounded, Badge::Illustrative];
        let badge = all.into_iter().find(|known| badge.starts_with(known.name())).unwrap_or(Badge::Estimated);
        Self { badge, chain: said.to_vec() }
    }

    /// One more link, before the program.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<String>) -> Self {
        let last = self.chain.len().saturating_sub(1);
        self.chain.insert(last, (name.to_owned(), value.into()));
        self
    }

    /// Badge and chain as lines under a figure.
    pub fn lines(&self) -> Vec<(String, String)> {
        let badge = ("badge".to_owned(), self.badge.name().to_owned());
        std::iter::once(badge).chain(self.chain.iter().cloned()).collect()
    }

    /// The same for the eye only, and why.
    #[must_use]
    pub fn for_the_eye(self, why: &str) -> Self {
        Self { badge: Badge::Illustrative, ..self }.with("for the eye only", why)
    }
}

/// A file, a figure or a number that was made, with what is behind it: a line of the exactness
/// ledger.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Made {
    /// What it is, in words.
    pub what: String,
    /// Where it lies, if it is a file.
    pub place: Option<String>,
    /// How far it can be trusted, and why.
    #[serde(flatten)]
    pub provenance: Provenance,
}

impl Made {
    /// Something with the lines under a figure.
    pub fn of_lines(what: impl Into<String>, place: Option<&Path>, said: &[(String, String)]) -> Self {
        let place = place.map(|place| place.display().to_string());
        Self { what: what.into(), place, provenance: Provenance::of_lines(said) }
    }
}

/// Lines of a ledger as a Markdown list.
pub fn markdown<'a>(made: impl IntoIterator<Item = &'a Made>) -> String {
    let mut text = String::new();
    for Made { what, place, provenance: Provenance { badge, chain } } in made {
        let place = place.as_ref().map_or_else(String::new, |place| format!(", `{place}`"));
        text += &format!("* **{what}**{place}: {}\n", badge.name());
        for (name, value) in chain {
            text += &format!("  * {name}: {value}\n");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_keeps_its_order_and_ends_in_the_program() {
        let provenance = Provenance::new(Badge::Exact).with("oracle", "mnist").with("τ", "1").for_the_eye("8 bits");
        assert_eq!(provenance.badge, Badge::Illustrative);
        let names: Vec<&str> = provenance.chain.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["oracle", "τ", "for the eye only", "program"]);
        let made = Made { what: "samples".into(), place: Some("a.png".into()), provenance };
        let text = markdown([&made]);
        assert!(text.starts_with("* **samples**, `a.png`: illustrative\n  * oracle: mnist\n"), "{text}");
        let json = serde_json::to_string(&made).unwrap();
        assert_eq!(serde_json::from_str::<Made>(&json).unwrap(), made);
    }
}
