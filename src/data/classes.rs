//! Which class of a list each class of a dataset is: by its name, or by the number it is called.

use super::Dataset;
use crate::error::{Error, Result, did_you_mean};
use crate::units::ClassId;

/// Names that a message lists.
const LISTED: usize = 12;

/// Where in `list` each of the names stands; `None` where one does not, or there are no names.
pub fn places(names: &[String], list: &[String]) -> Option<Vec<usize>> {
    let place = |name: &String| list.iter().position(|known| known == name);
    names.iter().map(place).collect::<Option<Vec<_>>>().filter(|places| !places.is_empty())
}

/// The names as numbers, if they are distinct numbers (class folders are sorted: 10 before 2).
pub fn as_numbers(names: &[String]) -> Option<Vec<usize>> {
    let numbers: Vec<usize> = names.iter().map(|name| name.parse().ok()).collect::<Option<_>>()?;
    let twice = numbers.iter().enumerate().any(|(i, number)| numbers[..i].contains(number));
    (!twice && !numbers.is_empty()).then_some(numbers)
}

/// The names, or the first of very many and how many there are, for a message.
pub fn listed(names: &[String]) -> String {
    let n = names.len();
    let more = if n > LISTED { format!(", … ({n} in all)") } else { String::new() };
    names[..n.min(LISTED)].join(", ") + &more
}

/// A class by name or by number; names win. `option` is where it was given.
///
/// # Errors
/// Names the classes there are.
pub fn class_of(option: &str, class: &str, names: &[String]) -> Result<ClassId> {
    let by_name = names.iter().position(|name| name == class);
    let by_number = || class.parse().ok().filter(|&c: &usize| c < names.len());
    by_name.or_else(by_number).ok_or_else(|| {
        let (classes, meant) = (names.join(", "), did_you_mean(class, names));
        Error::input(format!("{option}{class}: this world's classes are {classes}{meant}"))
    })
}

impl Dataset {
    /// The same images with the classes `names`: class k of theirs is number `numbers[k]` of these.
    #[must_use]
    pub fn renumbered(self, numbers: &[usize], names: &[String]) -> Self {
        let labels = self.labels.map(|labels| labels.into_iter().map(|label| numbers[label]).collect());
        Self { labels, class_names: names.to_vec(), ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn every_name_has_its_place_or_none_has() {
        let list = names("cat dog wild");
        assert_eq!(places(&names("wild cat"), &list), Some(vec![2, 0]));
        assert_eq!(places(&names("cat wolf"), &list), None);
        assert_eq!(places(&[], &list), None);
    }

    #[test]
    fn numbers_are_taken_at_their_word() {
        assert_eq!(as_numbers(&names("0 1 10 2")), Some(vec![0, 1, 10, 2]));
        assert_eq!(as_numbers(&names("1 01")), None);
        assert_eq!(as_numbers(&names("1 one")), None);
        assert_eq!(as_numbers(&[]), None);
    }

    #[test]
    fn labels_follow_their_classes() {
        let shape = crate::data::ImageShape { channels: 1, height: 1, width: 1 };
        let ids = names("x y z");
        let (name, labels) = ("zoo".into(), Some(vec![1, 0, 1]));
        let images = Dataset { name, shape, pixels: vec![7; 3], labels, class_names: names("cat wild"), ids };
        let among = images.renumbered(&[0, 2], &names("cat dog wild"));
        assert_eq!((among.labels, among.class_names), (Some(vec![2, 0, 2]), names("cat dog wild")));
    }

    #[test]
    fn very_many_names_are_cut_short() {
        assert_eq!(listed(&names("a b")), "a, b");
        let many: Vec<String> = (0..1000).map(|i| i.to_string()).collect();
        assert_eq!(listed(&many), "0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, … (1000 in all)");
    }
}
