//! The exactness ledger: everything made in this session, with its badge and provenance.

use crate::provenance::Made;

/// Links of a chain that say what a line without a file is about; the others say at which knobs.
const SUBJECT: [&str; 3] = ["weights SHA-256", "picture", "dataset SHA-256"];

/// What was made, oldest first.
#[derive(Debug, Default)]
pub struct Ledger(Vec<Made>);

impl Ledger {
    /// One more line. The same file written again takes the place of the old one, and so does what is in no file: a posterior that is
    /// computed at other knobs is shown in place of the one before, where it is of the same picture in the same world, and a judgement
    /// in place of that of the same models on the same images.
    pub fn add(&mut self, made: Made) {
        self.0
            .retain(|old| old.what != made.what || old.place != made.place || old.place.is_none() && !same(old, &made));
        self.0.push(made);
    }

    /// Oldest first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Made> + ExactSizeIterator {
        self.0.iter()
    }
}

/// Returns whether two lines are about the same.
fn same(a: &Made, b: &Made) -> bool {
    let link = |made: &Made, name: &str| {
        let mut chain = made.provenance.chain.iter();
        chain.find(|(of, _)| of == name).map(|(_, value)| value.clone())
    };
    SUBJECT.iter().all(|name| link(a, name) == link(b, name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provenance::{Badge, Provenance};

    #[test]
    fn a_line_takes_the_place_of_the_one_about_the_same() {
        let of = |place: Option<&str>, what: &str, name: &str, hash: &str, tau: &str| Made {
            what: what.into(),
            place: place.map(str::to_owned),
            provenance: Provenance::new(Badge::Exact).with(name, hash).with("τ", tau),
        };
        let line = |place, world, tau| of(place, "posterior of 3.png (8a01)", "weights SHA-256", world, tau);
        let judged = |dataset| of(None, "judgement of mine on /d, test", "dataset SHA-256", dataset, "1");
        let mut ledger = Ledger::default();
        let all = [
            line(None, "a", "1"),
            line(Some("3.json"), "a", "1"),
            line(None, "b", "1"),
            line(None, "a", "0.5"),
            line(Some("3.json"), "b", "1"),
            of(None, "posterior of 3.png (77b2)", "weights SHA-256", "a", "0.5"),
            judged("exported before"),
            judged("exported anew"),
        ];
        all.iter().for_each(|made| ledger.add(made.clone()));
        assert_eq!(ledger.iter().collect::<Vec<_>>(), all[2..].iter().collect::<Vec<_>>());
    }
}
