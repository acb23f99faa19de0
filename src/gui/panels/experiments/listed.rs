//! Which runs the list shows, and in which order.

use std::cmp::Ordering;

/// What the list says of a run, to be sorted and found by.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Listed<'a> {
    pub name: String,
    pub tags: &'a [String],
    pub notes: &'a str,
    /// Finished cells, or records.
    pub finished: Option<usize>,
    /// Where it stands, in words.
    pub state: String,
    /// Seconds.
    pub left: Option<f64>,
}

/// A column that the list can be sorted by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Column {
    Run,
    Tags,
    Finished,
    State,
    Left,
}

impl Column {
    const ALL: [Self; 5] = [Self::Run, Self::Tags, Self::Finished, Self::State, Self::Left];

    /// The title of the column.
    pub fn name(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::Tags => "tags",
            Self::Finished => "cells finished",
            Self::State => "state",
            Self::Left => "time left",
        }
    }

    /// The columns that say something: tags and times where a run has any.
    pub fn shown(runs: &[Listed<'_>]) -> impl Iterator<Item = Self> {
        let (tags, left) = (runs.iter().any(|run| !run.tags.is_empty()), runs.iter().any(|run| run.left.is_some()));
        Self::ALL.into_iter().filter(move |column| match column {
            Self::Tags => tags,
            Self::Left => left,
            Self::Run | Self::Finished | Self::State => true,
        })
    }

    /// Which of two runs comes first when the column rises, and which of them has no value in it.
    fn compare(self, a: &Listed<'_>, b: &Listed<'_>) -> (Ordering, [bool; 2]) {
        let lower = |text: &str| text.to_lowercase();
        let words = |a: &str, b: &str| (lower(a).cmp(&lower(b)), [a.is_empty(), b.is_empty()]);
        let missing = [a, b];
        match self {
            Self::Run => words(&a.name, &b.name),
            Self::Tags => words(&a.tags.join(", "), &b.tags.join(", ")),
            Self::Finished => (a.finished.cmp(&b.finished), missing.map(|one| one.finished.is_none())),
            Self::State => words(&a.state, &b.state),
            Self::Left => {
                let secs = |one: &Listed| one.left.unwrap_or_default();
                (secs(a).total_cmp(&secs(b)), missing.map(|one| one.left.is_none()))
            }
        }
    }
}

/// How the list is sorted and filtered.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Order {
    /// The column, and whether the largest comes first; as they became known without one.
    pub by: Option<(Column, bool)>,
    /// Words that must stand in name, tags or notes.
    pub filter: String,
}

impl Order {
    /// A click on the title of a column: rising, falling, as they became known.
    pub fn click(&mut self, column: Column) {
        self.by = match self.by {
            Some((before, false)) if before == column => Some((column, true)),
            Some((before, true)) if before == column => None,
            _ => Some((column, false)),
        };
    }

    /// Places of the runs to show, in their order. Those without a value come last, whichever way it goes.
    pub fn of(&self, runs: &[Listed<'_>]) -> Vec<usize> {
        let mut shown: Vec<usize> = (0..runs.len()).filter(|&i| self.matches(&runs[i])).collect();
        if let Some((column, falling)) = self.by {
            shown.sort_by(|&a, &b| {
                let (order, [none_a, none_b]) = column.compare(&runs[a], &runs[b]);
                let order = if falling { order.reverse() } else { order };
                none_a.cmp(&none_b).then(if none_a { Ordering::Equal } else { order })
            });
        }
        shown
    }

    /// Whether every word stands somewhere, capital letters or not.
    fn matches(&self, run: &Listed<'_>) -> bool {
        let tags = run.tags.iter().map(String::as_str);
        let said = [&*run.name, run.notes].into_iter().chain(tags).map(str::to_lowercase);
        let said: Vec<String> = said.collect();
        self.filter.to_lowercase().split_whitespace().all(|word| said.iter().any(|text| text.contains(word)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOTES: [&str; 4] = ["learning rate too large", "", "", "for the PAPER"];

    fn tags() -> [Vec<String>; 4] {
        ["paper", "", "Paper old", "draft"].map(|tags| tags.split_whitespace().map(str::to_owned).collect())
    }

    fn runs(tags: &[Vec<String>; 4]) -> Vec<Listed<'_>> {
        let run = |i: usize, name: &str, finished, left| Listed {
            name: name.into(),
            tags: &tags[i],
            notes: NOTES[i],
            finished,
            state: if left == Some(1.0) { "running".into() } else { "done".into() },
            left,
        };
        vec![
            run(0, "beta", Some(16), None),
            run(1, "Alpha", None, Some(30.0)),
            run(2, "gamma", Some(3), Some(1.0)),
            run(3, "alpha2", Some(120), None),
        ]
    }

    fn order(by: Option<(Column, bool)>, filter: &str) -> Vec<usize> {
        Order { by, filter: filter.into() }.of(&runs(&tags()))
    }

    #[test]
    fn tags_and_times_have_a_column_where_there_are_any() {
        let (tags, none) = (tags(), [const { Vec::new() }; 4]);
        assert_eq!(Column::shown(&runs(&tags)).collect::<Vec<_>>(), Column::ALL);
        assert!(Column::shown(&runs(&none)).all(|column| column != Column::Tags));
        let rests: Vec<Listed<'_>> = runs(&tags).into_iter().map(|run| Listed { left: None, ..run }).collect();
        assert!(Column::shown(&rests).all(|column| column != Column::Left));
    }

    #[test]
    fn every_word_of_the_filter_stands_in_name_tags_or_notes() {
        assert_eq!(order(None, "paper"), [0, 2, 3]);
        assert_eq!(order(None, " OLD  gam"), [2], "words in any order");
        assert_eq!(order(None, "paper alpha"), [3]);
        assert_eq!(order(None, "done"), [] as [usize; 0], "states are no words of people");
        assert_eq!(order(None, ""), [0, 1, 2, 3]);
    }

    #[test]
    fn columns_sort_both_ways_and_what_is_missing_comes_last() {
        for (column, rising) in [
            (Column::Run, vec![1, 3, 0, 2]),
            (Column::Finished, vec![2, 0, 3, 1]),
            (Column::Left, vec![2, 1, 0, 3]),
            (Column::Tags, vec![3, 0, 2, 1]),
            (Column::State, vec![0, 1, 3, 2]),
        ] {
            assert_eq!(order(Some((column, false)), ""), rising, "{column:?}");
            // What has a value turns round; equal ones stay as they became known.
            let falling = order(Some((column, true)), "");
            let tags = tags();
            let runs = runs(&tags);
            let ordered = |pair: &[usize]| {
                let (order, [_, missing]) = column.compare(&runs[pair[0]], &runs[pair[1]]);
                missing || order != Ordering::Less
            };
            assert!(falling.windows(2).all(ordered), "{column:?}: {falling:?}");
        }
        assert_eq!(order(Some((Column::Finished, true)), ""), [3, 0, 2, 1]);
    }

    #[test]
    fn a_title_goes_up_down_and_back_to_the_beginning() {
        let mut order = Order::default();
        let mut click = |column| {
            order.click(column);
            order.by
        };
        assert_eq!(click(Column::Run), Some((Column::Run, false)));
        assert_eq!(click(Column::Run), Some((Column::Run, true)));
        assert_eq!(click(Column::Left), Some((Column::Left, false)));
        assert_eq!(click(Column::Left), Some((Column::Left, true)));
        assert_eq!(click(Column::Left), None);
    }
}
