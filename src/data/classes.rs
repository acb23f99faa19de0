//! Which class of a list each class of a dataset is: by its name, or by the number it is called.

use std::collections::BTreeSet;

use super::Dataset;
use crate::error::{Error, Result, did_you_mean};
use crate::units::ClassId;

/// Names that a message lists.
const LISTED: usize = 12;

/// A class name as the name of a folder.
fn class_folder(class: &str) -> String {
    let clean: String =
        class.chars().map(|c| if c.is_alphanumeric() || "-_ .".contains(c) { c } else { '_' }).collect();
    if clean.trim_matches('.').is_empty() { format!("class{clean}").replace('.', "_") } else { clean }
}

/// Folders of the classes. ImageFolder numbers classes by sorted name: where that is not the
/// world's order, names begin with their number; so they do where two differ in case alone, which are one folder on macOS
/// and Windows.
pub fn class_folders(names: &[String]) -> Vec<String> {
    let folders: Vec<String> = names.iter().map(|name| class_folder(name)).collect();
    let apart: BTreeSet<String> = folders.iter().map(|folder| folder.to_lowercase()).collect();
    if folders.is_sorted_by(|a, b| a < b) && apart.len() == folders.len() {
        return folders;
    }
    let digits = names.len().saturating_sub(1).to_string().len();
    folders.iter().enumerate().map(|(k, folder)| format!("{k:0digits$} {folder}")).collect()
}

/// Where in `list` a name stands, or the class whose folder has that name: it may begin with the number of the class.
fn place(name: &str, list: &[String]) -> Option<usize> {
    let is_folder = |folder: &str, class: &String| class_folder(class) == folder;
    let numbered = || {
        let (number, folder) = name.split_once(' ')?;
        number.parse().ok().filter(|&k: &usize| list.get(k).is_some_and(|class| is_folder(folder, class)))
    };
    let exact = list.iter().position(|known| known == name);
    exact.or_else(|| list.iter().position(|known| is_folder(name, known))).or_else(numbered)
}

/// Where in `list` each of the names stands; `None` where one does not, or there are no names.
pub fn places(names: &[String], list: &[String]) -> Option<Vec<usize>> {
    names.iter().map(|name| place(name, list)).collect::<Option<Vec<_>>>().filter(|places| !places.is_empty())
}

/// Which class of a world each class of images is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClassMap {
    /// The class of the world for each; `None` of one that the world does not have.
    pub numbers: Vec<Option<ClassId>>,
    /// Whether they found each other by name; otherwise by number.
    pub by_name: bool,
}

impl ClassMap {
    /// The classes `names` among those of a world: by name, or where they share none by the number each is
    /// called by, or by their order where there are as many. `None` where nobody knows which is which.
    pub fn of(names: &[String], world: &[String]) -> Option<Self> {
        let numbers: Vec<Option<ClassId>> = names.iter().map(|name| place(name, world)).collect();
        let are_numbers = || as_numbers(names).is_some() && as_numbers(world).is_some();
        let (some, all) = (numbers.iter().flatten().count(), world.len());
        if some > 0 {
            // Numbers of which each side has some alone are no names: one counts from 0, the other from 1.
            let shifted = some < names.len() && some < all && are_numbers();
            return (!shifted).then_some(Self { numbers, by_name: true });
        }
        let in_order = || (names.len() == all).then(|| (0..all).collect());
        let numbers = as_numbers(names).or_else(in_order)?;
        let known = !numbers.is_empty() && numbers.iter().all(|number| *number < all);
        known.then(|| Self { numbers: numbers.into_iter().map(Some).collect(), by_name: false })
    }

    /// The images of a class that the world has, with the classes of the world.
    ///
    /// # Errors
    /// As [`Dataset::subset`].
    pub fn among(&self, images: &Dataset, world: &[String]) -> Result<Dataset> {
        let class = |label: &usize| self.numbers.get(*label).copied().flatten();
        let labels = images.labels.as_deref().unwrap_or_default();
        let mut part = images.subset((0..labels.len()).filter(|&i| class(&labels[i]).is_some()))?;
        part.labels = part.labels.map(|labels| labels.iter().filter_map(class).collect());
        part.class_names = world.to_vec();
        Ok(part)
    }
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
    fn class_names_become_harmless_folders_and_are_found_in_them() {
        assert_eq!(class_folder("frog"), "frog");
        assert_eq!(class_folder("../etc"), ".._etc");
        assert_eq!(class_folder(".."), "class__");
        let list = ["T-shirt/top", "a_b", "a/b"].map(str::to_owned);
        let of = |names: &[&str]| places(&names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>(), &list);
        assert_eq!(of(&["T-shirt_top", "a_b", "a/b"]), Some(vec![0, 1, 2]));
        // As `class_folders` calls them, where the order of the classes is not that of their names.
        assert_eq!(of(&["0 T-shirt_top", "2 a_b"]), Some(vec![0, 2]));
        assert_eq!(of(&["1 T-shirt_top"]), None);
    }

    #[test]
    fn folders_keep_the_classes_apart_in_their_order_wherever_they_lie() {
        let folders = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            let folders = class_folders(&names);
            // As ImageFolder numbers them, and as they are read back.
            assert!(folders.is_sorted_by(|a, b| a < b), "{folders:?}");
            assert_eq!(places(&folders, &names), Some((0..names.len()).collect()), "{folders:?}");
            // Where "A" and "a" are one folder.
            let apart: BTreeSet<String> = folders.iter().map(|folder| folder.to_lowercase()).collect();
            assert_eq!(apart.len(), names.len(), "{folders:?}");
            folders
        };
        assert_eq!(folders(&["ape", "bee"]), ["ape", "bee"]);
        assert_eq!(folders(&["Bee", "ape"]), ["Bee", "ape"]);
        assert_eq!(folders(&["bee", "ape"]), ["0 bee", "1 ape"]);
        assert_eq!(folders(&["A", "a"]), ["0 A", "1 a"]);
        assert_eq!(folders(&["É", "é"]), ["0 É", "1 é"]);
        assert_eq!(folders(&["a/b", "a_b"]), ["0 a_b", "1 a_b"]);
    }

    #[test]
    fn classes_find_each_other_by_name_then_by_number() {
        let map = |theirs: &str, world: &str| {
            ClassMap::of(&names(theirs), &names(world)).map(|map| (map.numbers, map.by_name))
        };
        assert_eq!(map("wild fox cat", "cat dog wild"), Some((vec![Some(2), None, Some(0)], true)));
        assert_eq!(map("3 7", "0 1 2 3 4 5 6 7"), Some((vec![Some(3), Some(7)], true)));
        assert_eq!(map("0 2", "cat dog wild"), Some((vec![Some(0), Some(2)], false)));
        assert_eq!(map("Hund Katze Wild", "cat dog wild"), Some((vec![Some(0), Some(1), Some(2)], false)));
        // Counted from 1 there, from 0 here: nobody knows which class is which.
        assert_eq!(map("0 1 2", "1 2 3"), None);
        for unknown in ["", "0 3", "Hund Katze", "a b c d"] {
            assert_eq!(map(unknown, "cat dog wild"), None, "{unknown}");
        }
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
        let images = Dataset {
            name,
            shape,
            pixels: vec![7; 3],
            labels,
            class_names: names("cat wild"),
            ids,
            noises: Default::default(),
        };
        let among = images.renumbered(&[0, 2], &names("cat dog wild"));
        assert_eq!((among.labels, among.class_names), (Some(vec![2, 0, 2]), names("cat dog wild")));
    }

    #[test]
    fn images_of_other_classes_are_left_out() {
        let shape = crate::data::ImageShape { channels: 1, height: 1, width: 1 };
        let (ids, class_names, world) = (names("x y z"), names("fox wild"), names("cat dog wild"));
        let (name, labels) = ("zoo".into(), Some(vec![1, 0, 1]));
        let images =
            Dataset { name, shape, pixels: vec![7, 8, 9], labels, class_names, ids, noises: Default::default() };
        let part = ClassMap::of(&images.class_names, &world).unwrap().among(&images, &world).unwrap();
        assert_eq!((part.ids, part.labels, part.class_names), (names("x z"), Some(vec![2, 2]), world));
    }

    #[test]
    fn very_many_names_are_cut_short() {
        assert_eq!(listed(&names("a b")), "a, b");
        let many: Vec<String> = (0..1000).map(|i| i.to_string()).collect();
        assert_eq!(listed(&many), "0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, … (1000 in all)");
    }
}
