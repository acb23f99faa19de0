//! Records that are no predictions on the test images, and why.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Most reasons that are told, the most frequent ones.
const REASONS: usize = 5;

/// A record that says nothing of a classifier.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refused {
    /// Its step.
    pub step: u64,
    /// Why, in words.
    pub why: String,
}

/// A sentence for each reason, with the number of its records and the last of them: of steps, by rising step, with their reasons.
pub(super) fn sentences<'a>(refused: impl Iterator<Item = (u64, &'a str)>) -> Vec<String> {
    let mut reasons: BTreeMap<&str, (usize, u64)> = BTreeMap::new();
    for (step, why) in refused {
        let (count, last) = reasons.entry(why).or_default();
        (*count, *last) = (*count + 1, step);
    }
    let mut reasons: Vec<_> = reasons.into_iter().collect();
    reasons.sort_by_key(|&(_, of)| Reverse(of));
    let others = reasons.split_off(reasons.len().min(REASONS));
    let told =
        |(why, (count, last)): (&str, (usize, u64))| format!("{}; that of step {last}: {why}", unread(count, ""));
    let mut sentences: Vec<String> = reasons.into_iter().map(told).collect();
    if !others.is_empty() {
        let count: usize = others.iter().map(|(_, (count, _))| count).sum();
        let reasons =
            if others.len() == 1 { "another reason".into() } else { format!("{} other reasons", others.len()) };
        sentences.push(format!("{}, for {reasons}", unread(count, " more")));
    }
    sentences
}

fn unread(count: usize, more: &str) -> String {
    let are = if count == 1 { "record is" } else { "records are" };
    format!("{count}{more} {are} not read")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_is_told_once_with_its_count_and_not_too_many() {
        let of = |reasons: &[&'static str]| sentences((0..).zip(reasons.iter().copied()));
        assert_eq!(of(&["torn"]), ["1 record is not read; that of step 0: torn"]);
        assert_eq!(of(&["torn", "torn"]), ["2 records are not read; that of step 1: torn"]);
        assert_eq!(
            of(&["torn", "NaN", "torn"]),
            ["2 records are not read; that of step 2: torn", "1 record is not read; that of step 1: NaN"]
        );
        let many = of(&["a", "b", "c", "d", "e", "f", "g"]);
        assert_eq!((many.len(), &*many[5]), (6, "2 more records are not read, for 2 other reasons"));
        assert_eq!(of(&["a", "b", "c", "d", "e", "f"])[5], "1 more record is not read, for another reason");
    }
}
