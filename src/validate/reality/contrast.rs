//! What decisions on real images, the world's own E and a published classifier say of each other.

use serde::Serialize;

use super::{Published, Reality};
use crate::measure::Estimate;

/// Class shares that images of classes drawn by π have as seldom as this are told, with what follows.
const OTHER_CLASSES: f64 = 0.01;

/// What is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// What bounds nature's Bayes error, or why nothing does.
    Bound,
    /// The world's E lies above what its own decision errs on real images.
    WorldAboveDecision,
    /// The world's E lies below it.
    WorldBelowDecision,
    /// The two intervals meet.
    WorldMeetsDecision,
    /// 1 − max p is larger than the share of errors on the same images.
    DoubtsTooMuch,
    /// It is smaller.
    DoubtsTooLittle,
    /// A published classifier errs less than the world's E.
    PublishedBelowWorld,
    /// It errs less than the world's own decision, or as often, or more often.
    PublishedBesideDecision,
    /// The classes have other shares than the prior says.
    OtherClasses,
    /// What follows for E.
    Verdict,
}

impl Kind {
    /// Returns whether it cannot be so where the world is nature.
    pub fn contradicts(self) -> bool {
        match self {
            Self::WorldAboveDecision
            | Self::WorldBelowDecision
            | Self::DoubtsTooMuch
            | Self::DoubtsTooLittle
            | Self::PublishedBelowWorld => true,
            Self::Bound
            | Self::WorldMeetsDecision
            | Self::PublishedBesideDecision
            | Self::OtherClasses
            | Self::Verdict => false,
        }
    }
}

/// A sentence, and what kind it is.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Finding {
    /// The kind.
    pub kind: Kind,
    /// The sentence.
    pub sentence: String,
}

/// All that can be said, the verdict last.
pub fn findings(r: &Reality) -> Vec<Finding> {
    let mut found = vec![bound(r), decision(r)];
    found.extend(doubt(r));
    found.extend(r.spec.published.iter().flat_map(|published| beside(r, published)));
    found.extend(classes(r));
    let verdict = match (contradicted(&found), beyond_shares(r)) {
        (false, _) => {
            "Nothing here contradicts E of the world as a Bayes error of nature. That does not prove it to be one."
        }
        (true, true) => {
            "E of the world is no Bayes error of nature: it is that of a world which differs from nature in what tells classes apart."
        }
        (true, false) => {
            "E of the world is not the Bayes error of these images. The other shares of their classes can be all that makes the \
             difference: set π (--prior) to theirs to know."
        }
    };
    found.push(finding(Kind::Verdict, verdict));
    found
}

/// Returns whether anything that was found says that E of the world is no Bayes error of nature.
pub(super) fn contradicted(found: &[Finding]) -> bool {
    found.iter().any(|finding| finding.kind.contradicts())
}

/// Returns whether the images have other class shares than π.
fn other_classes(r: &Reality) -> bool {
    r.prior_p_value < OTHER_CLASSES
}

/// Returns whether something contradicts E of the world that class shares alone cannot explain. At a total variation t
/// of the shares from π the mean of a figure in an interval of length l differs by l·t at most: E, errors and 1 − max p
/// by t, the surplus of doubt over errors by 2t.
fn beyond_shares(r: &Reality) -> bool {
    let t = if other_classes(r) { r.prior_distance } else { 0.0 };
    let (world, errs, surplus) = (r.of_the_world().interval, r.decision_error.interval, r.surplus.interval);
    let published = |one: &Published| one.error < world.low - t;
    world.low - t > errs.high
        || world.high + t < errs.low
        || surplus.low > 2.0 * t
        || surplus.high < -2.0 * t
        || r.spec.published.as_ref().is_some_and(published)
}

fn finding(kind: Kind, sentence: impl Into<String>) -> Finding {
    Finding { kind, sentence: sentence.into() }
}

/// With its interval, in per cent.
fn percent(Estimate { value, interval }: Estimate) -> String {
    format!("{:.2} % [{:.2}, {:.2}]", 100.0 * value, 100.0 * interval.low, 100.0 * interval.high)
}

fn bound(r: &Reality) -> Finding {
    let errs = format!("The world's own decision errs on {} of {} real images.", percent(r.decision_error), r.images);
    let follows = match r.held_out {
        true => format!(
            "No rule errs less often than nature's Bayes error: on images like these it is at most {:.2} % \
             (97.5 % sure, Clopper-Pearson).",
            100.0 * r.decision_error.interval.high
        ),
        false => "These may be training images, of which an oracle may know the labels: no bound of nature's Bayes \
                  error follows."
            .into(),
    };
    finding(Kind::Bound, format!("{errs} {follows}"))
}

fn decision(r: &Reality) -> Finding {
    let (world, errs) = (r.of_the_world(), r.decision_error);
    let e = format!("E of the world is {}", percent(world));
    if world.interval.low > errs.interval.high {
        let more =
            "more than the world's own decision errs on real images: the world is harder to tell apart than nature";
        finding(Kind::WorldAboveDecision, format!("{e}, {more}."))
    } else if world.interval.high < errs.interval.low {
        let less = "less than the world's own decision errs on real images: these are not images of the world";
        finding(Kind::WorldBelowDecision, format!("{e}, {less}."))
    } else {
        finding(Kind::WorldMeetsDecision, format!("{e}, which the error on real images does not contradict."))
    }
}

/// Where the world is nature, 1 − max p is the probability of an error: their means differ by chance.
fn doubt(r: &Reality) -> Option<Finding> {
    let by = r.surplus.interval;
    let (kind, how) = match () {
        () if by.low > 0.0 => (Kind::DoubtsTooMuch, "more"),
        () if by.high < 0.0 => (Kind::DoubtsTooLittle, "less"),
        () => return None,
    };
    let sentence = format!(
        "On the same images its posterior expects to err on {}, which is {how} often than it does: 1 − max p is no \
         probability of an error on real images.",
        percent(r.doubt)
    );
    Some(finding(kind, sentence))
}

fn beside(r: &Reality, Published { name, error }: &Published) -> Vec<Finding> {
    let (world, errs, shown) = (r.of_the_world(), r.decision_error, 100.0 * error);
    let mut found = Vec::new();
    if *error < world.interval.low {
        let less = format!(
            "{name} errs on {shown:.2} % of real images, less than E of the world, which no rule could in the world."
        );
        found.push(finding(Kind::PublishedBelowWorld, less));
    }
    // Of images that may be training images no bound stands above.
    let sharper = match (*error < errs.interval.low, *error > errs.interval.high, r.held_out) {
        (true, _, true) => {
            "errs less than the world's own decision: its error is the sharper bound, as far as its own test set goes"
        }
        (true, _, false) => {
            "errs less than the world's own decision: its error is a bound, as far as its own test set goes"
        }
        (_, true, true) => "errs more than the world's own decision: the bound above is the sharper one",
        (_, true, false) => {
            "errs more than the world's own decision, which may know these labels: its error is a bound, as far as its own test set goes"
        }
        _ => "errs about as often as the world's own decision",
    };
    let beside = format!("{name} ({shown:.2} %, taken without an interval) {sharper}.");
    found.push(finding(Kind::PublishedBesideDecision, beside));
    found
}

fn classes(r: &Reality) -> Option<Finding> {
    other_classes(r).then(|| {
        let apart = 100.0 * r.prior_distance;
        let sentence = format!(
            "The classes of the real images have other shares than the prior π (total variation {apart:.1} %), which alone can \
             make E and the errors differ by as much; set π (--prior) to theirs to compare the two."
        );
        finding(Kind::OtherClasses, sentence)
    })
}
