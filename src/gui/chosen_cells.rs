//! The cells of a run that are looked at together.

use std::collections::BTreeSet;

use super::selection::Click;

/// The cells that the user chose of the run that is shown, by their IDs.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct ChosenCells {
    /// The one that was chosen last: what is shown of a single cell is its.
    cursor: Option<String>,
    chosen: BTreeSet<String>,
    /// Where a range begins.
    anchor: Option<String>,
}

impl ChosenCells {
    /// The one that was chosen last, if any is.
    pub fn cursor(&self) -> Option<&str> {
        self.cursor.as_deref()
    }

    pub fn contains(&self, id: &str) -> bool {
        self.chosen.contains(id)
    }

    pub fn len(&self) -> usize {
        self.chosen.len()
    }

    /// All of them, the one that was chosen last before the others; `None` for no choice.
    pub fn ids(&self) -> Option<Vec<String>> {
        let cursor = self.cursor.as_ref()?;
        let others = self.chosen.iter().filter(|id| *id != cursor);
        Some(std::iter::once(cursor).chain(others).cloned().collect())
    }

    /// This one alone.
    pub fn only(&mut self, id: &str) {
        self.click(Click::Only, id, &[]);
    }

    /// A click on a cell of a list in this order.
    pub fn click(&mut self, click: Click, id: &str, order: &[&str]) {
        let place = |id: &str| order.iter().position(|other| *other == id);
        match click {
            Click::Only => (self.chosen, self.anchor) = (BTreeSet::from([id.to_owned()]), Some(id.to_owned())),
            Click::Toggle => {
                if !self.chosen.remove(id) {
                    self.chosen.insert(id.to_owned());
                }
                self.anchor = Some(id.to_owned());
            }
            Click::Range => {
                let from = self.anchor.as_deref().and_then(place).or_else(|| place(id));
                if let (Some(from), Some(to)) = (from, place(id)) {
                    self.chosen = order[from.min(to)..=from.max(to)].iter().map(|id| (*id).to_owned()).collect();
                    self.anchor = Some(order[from].to_owned());
                }
            }
        }
        // What is no longer chosen hands over to the first that is.
        let first = || order.iter().find(|id| self.chosen.contains(**id)).map(|id| (*id).to_owned());
        self.cursor = if self.chosen.contains(id) { Some(id.to_owned()) } else { first() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ORDER: [&str; 5] = ["d", "a", "c", "e", "b"];

    fn after(clicks: &[(Click, &str)]) -> (Option<String>, Vec<&'static str>) {
        let mut cells = ChosenCells::default();
        for (click, id) in clicks {
            cells.click(*click, id, &ORDER);
        }
        assert_eq!(cells.ids().map_or(0, |ids| ids.len()), cells.len());
        assert_eq!(cells.ids().and_then(|ids| ids.first().cloned()).as_deref(), cells.cursor());
        (cells.cursor.clone(), ORDER.into_iter().filter(|id| cells.contains(id)).collect())
    }

    #[test]
    fn ranges_follow_the_list_and_begin_at_the_last_click_without_shift() {
        use Click::{Only, Range, Toggle};
        let cursor = |id: &str| Some(id.to_owned());
        assert_eq!(after(&[(Only, "a"), (Range, "e")]), (cursor("e"), vec!["a", "c", "e"]));
        assert_eq!(after(&[(Only, "a"), (Range, "e"), (Range, "d")]), (cursor("d"), vec!["d", "a"]));
        assert_eq!(after(&[(Only, "a"), (Toggle, "b"), (Range, "e")]), (cursor("e"), vec!["e", "b"]));
        assert_eq!(
            after(&[(Range, "c"), (Range, "b")]),
            (cursor("b"), vec!["c", "e", "b"]),
            "the first is where it begins"
        );
        assert_eq!(after(&[(Only, "a"), (Range, "e"), (Only, "c")]), (cursor("c"), vec!["c"]));
    }

    #[test]
    fn what_is_no_longer_chosen_is_no_longer_shown() {
        use Click::{Only, Toggle};
        assert_eq!(after(&[(Only, "a"), (Toggle, "b"), (Toggle, "b")]), (Some("a".into()), vec!["a"]));
        assert_eq!(after(&[(Only, "a"), (Toggle, "a")]), (None, Vec::new()));
    }
}
