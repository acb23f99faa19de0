//! The place on a way at which two classes are equally probable.

use serde::Serialize;

use super::course::{Course, wide};
use super::{TOGETHER, WalkPoint, Walker};
use crate::error::Result;
use crate::units::ClassId;

/// Rounds of narrowing the crossing down, each to an eighth.
const ROUNDS: usize = 17;

/// Where the start's class and the target are equally probable.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Boundary {
    /// Whether such a point was found.
    pub reached: bool,
    /// That point; otherwise the one where the target comes closest.
    pub point: WalkPoint,
    /// |p_a − p_b|/(p_a + p_b) there.
    pub imbalance: f64,
    /// A class more probable there than both, and its probability.
    pub third: Option<(ClassId, f64)>,
    /// Why it was not reached.
    pub why_not: Option<String>,
}

/// log p(b|x) − log p(a|x).
pub(super) fn odds(point: &WalkPoint, [a, b]: [ClassId; 2]) -> f64 {
    point.posterior.log_probabilities[b] - point.posterior.log_probabilities[a]
}

/// |p_a − p_b|/(p_a + p_b), from the log-odds: also where both probabilities round to 0.
fn imbalance(point: &WalkPoint, pair: [ClassId; 2]) -> f64 {
    let odds = odds(point, pair).abs();
    if odds.is_nan() { 1.0 } else { (odds / 2.0).tanh() }
}

impl Walker<'_> {
    /// The crossing on a straight way, and the largest effect of rounding on the images looked at for it.
    pub(super) fn crossing(
        &self,
        points: &[WalkPoint],
        pair: [ClassId; 2],
        tolerance: f64,
        course: &Course<'_>,
    ) -> Result<(Boundary, f64)> {
        let Some([low, high]) = bracket(points, pair) else { return Ok((self.not_reached(points, pair), 0.0)) };
        self.narrow([low, high], pair, tolerance, course, [0.0, 1.0])
    }

    /// The crossing on a way of straight pieces.
    pub(super) fn climbed(&self, points: &[WalkPoint], pair: [ClassId; 2], tolerance: f64) -> Result<Boundary> {
        let Some([low, high]) = bracket(points, pair) else { return Ok(self.not_reached(points, pair)) };
        let course = Course::Pixels { corners: vec![wide(&low.x), wide(&high.x)] };
        let ends = [low.position, high.position];
        let unit = |point: &WalkPoint, position| WalkPoint { position, ..point.clone() };
        let (boundary, _) = self.narrow([&unit(low, 0.0), &unit(high, 1.0)], pair, tolerance, &course, ends)?;
        Ok(boundary)
    }

    /// Narrows the first crossing between two points down. `ends` are the positions of 0 and 1. Returns
    /// the largest effect of rounding, too.
    fn narrow(
        &self,
        [low, high]: [&WalkPoint; 2],
        pair: [ClassId; 2],
        tolerance: f64,
        course: &Course<'_>,
        ends: [f64; 2],
    ) -> Result<(Boundary, f64)> {
        let nearer = |a: WalkPoint, b: &WalkPoint| if imbalance(b, pair) < imbalance(&a, pair) { b.clone() } else { a };
        let (mut low, mut high) = (low.clone(), high.clone());
        let mut best = nearer(low.clone(), &high);
        let mut drift = 0f64;
        for _ in 0..ROUNDS {
            if imbalance(&best, pair) <= tolerance || high.position <= low.position.next_up() {
                break;
            }
            let width = (high.position - low.position) / (TOGETHER + 1) as f64;
            let places: Vec<[f64; 2]> = (1..=TOGETHER).map(|i| [low.position + i as f64 * width, 0.0]).collect();
            let (found, rounded) = self.stretch(course, &places)?;
            drift = drift.max(rounded);
            best = found.iter().fold(best, nearer);
            let all: Vec<WalkPoint> = [vec![low], found, vec![high]].concat();
            let Some([below, above]) = bracket(&all, pair) else { break };
            (low, high) = (below.clone(), above.clone());
        }
        let told = |point: WalkPoint| WalkPoint { position: ends[0] + point.position * (ends[1] - ends[0]), ..point };
        let reached = imbalance(&best, pair) <= tolerance;
        let why = "the posterior jumps over 50/50 between neighbouring images: rounding to 32 bits moves it by more";
        Ok((boundary(told(best), pair, (!reached).then(|| why.to_owned())), drift))
    }

    fn not_reached(&self, points: &[WalkPoint], pair: [ClassId; 2]) -> Boundary {
        let [a, b] = pair.map(|class| &self.world.class_names()[class]);
        if pair[0] == pair[1] {
            let doubtful = points.iter().min_by(|p, q| p.posterior.margin.total_cmp(&q.posterior.margin));
            let why = format!("both ends are decided as {a}: no class to change to");
            return boundary(doubtful.unwrap_or(&points[0]).clone(), pair, Some(why));
        }
        let closest = points.iter().max_by(|p, q| odds(p, pair).total_cmp(&odds(q, pair)));
        boundary(closest.unwrap_or(&points[0]).clone(), pair, Some(format!("{b} is nowhere as probable as {a}")))
    }
}

/// The first neighbours between which b overtakes a.
fn bracket(points: &[WalkPoint], pair: [ClassId; 2]) -> Option<[&WalkPoint; 2]> {
    if pair[0] == pair[1] {
        return None;
    }
    let crosses = |two: &&[WalkPoint]| odds(&two[0], pair) <= 0.0 && odds(&two[1], pair) >= 0.0;
    points.windows(2).find(crosses).map(|two| [&two[0], &two[1]])
}

fn boundary(point: WalkPoint, pair: [ClassId; 2], why_not: Option<String>) -> Boundary {
    let probabilities = &point.posterior.probabilities;
    let decision = point.posterior.decision;
    let third = (!pair.contains(&decision)).then(|| (decision, probabilities[decision]));
    let imbalance = imbalance(&point, pair);
    Boundary { reached: why_not.is_none(), imbalance, third, why_not, point }
}
