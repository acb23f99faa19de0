//! Which class of the world each class of a dataset is.

use serde::{Deserialize, Serialize};

use crate::data::{as_numbers, listed, places};
use crate::units::ClassId;

/// How classes found each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mapped {
    /// By their names.
    ByName,
    /// By their numbers: the dataset or the world has no names but numbers.
    ByNumber,
}

/// The class of the world for every label, from 0. `names` are the dataset's classes in the order
/// of its labels, empty where unknown; `counted` is the number of classes of its posteriors.
///
/// # Errors
/// A sentence about classes that do not match.
pub fn numbers_of(
    names: &[String],
    counted: Option<usize>,
    labels: &[usize],
    world: &[String],
) -> Result<(Mapped, Vec<ClassId>), String> {
    let used = labels.iter().max().map_or(0, |last| last + 1);
    let (said, theirs) = (as_numbers(names), if names.is_empty() { used } else { names.len() });
    let named = !names.is_empty() && said.is_none();
    // Of numbered classes the last may not occur; the number of named or counted ones is known.
    let known = counted.or(named.then_some(theirs));
    if let Some(known) = known.filter(|known| *known != world.len()) {
        let theirs = if named { format!(" ({})", listed(names)) } else { String::new() };
        return Err(format!("has {known} classes{theirs}, this world {} ({})", world.len(), listed(world)));
    }
    if used > theirs {
        return Err(format!("has the label {}, but only {theirs} classes", used - 1));
    }
    if let Some(numbers) = places(names, world) {
        return Ok((Mapped::ByName, numbers));
    }
    if named && as_numbers(world).is_none() {
        let strangers: Vec<String> = names.iter().filter(|name| !world.contains(name)).cloned().collect();
        return Err(format!("has classes this world does not know ({}); it has {}", listed(&strangers), listed(world)));
    }
    let numbers = said.unwrap_or_else(|| (0..theirs).collect());
    match numbers.iter().max() {
        Some(last) if *last >= world.len() => {
            Err(format!("has a class {last}; this world's classes end at {}", world.len() - 1))
        }
        _ => Ok((Mapped::ByNumber, numbers)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn names_go_before_numbers() {
        let world = names("cat dog horse");
        let by_name = numbers_of(&names("horse cat dog"), None, &[0, 1, 2], &world).unwrap();
        assert_eq!(by_name, (Mapped::ByName, vec![2, 0, 1]));
        let by_number = numbers_of(&names("0 1 2"), None, &[2, 1], &world).unwrap();
        assert_eq!(by_number, (Mapped::ByNumber, vec![0, 1, 2]));
        // A dataset without names: as many classes as its labels need, or as its posteriors have.
        assert_eq!(numbers_of(&[], None, &[0, 1], &world).unwrap(), (Mapped::ByNumber, vec![0, 1]));
        assert_eq!(numbers_of(&[], Some(3), &[0, 1], &world).unwrap().1, [0, 1]);
        // Names on one side only.
        assert_eq!(numbers_of(&world, None, &[0], &names("0 1 2")).unwrap(), (Mapped::ByNumber, vec![0, 1, 2]));
    }

    #[test]
    fn folders_called_by_numbers_are_these_numbers() {
        let world: Vec<String> = (0..12).map(|k| k.to_string()).collect();
        let mut sorted = world.clone();
        sorted.sort();
        let (_, numbers) = numbers_of(&sorted, None, &[0, 11], &world).unwrap();
        assert_eq!(numbers[..4], [0, 1, 10, 11]);
        let other: Vec<String> = (b'a'..=b'l').map(|c| char::from(c).to_string()).collect();
        assert_eq!(numbers_of(&sorted, None, &[0], &other).unwrap().1, numbers);
    }

    #[test]
    fn what_does_not_match_is_said() {
        let world = names("cat dog horse");
        let why =
            |given: &str, counted, labels: &[usize]| numbers_of(&names(given), counted, labels, &world).unwrap_err();
        assert!(why("cat dog", None, &[0]).contains("2 classes (cat, dog)"));
        assert!(why("cat dog frog", None, &[0]).contains("(frog)"));
        assert!(why("", Some(10), &[0]).contains("10 classes"));
        assert!(why("0 1 2 3", None, &[0]).contains("end at 2"));
        assert!(why("", None, &[3]).contains("end at 2"));
        assert!(why("cat dog horse", None, &[5]).contains("label 5"));
    }
}
