//! The menus of the bar at the top.

use super::{Command, Page};
use crate::gui::prefs::ThemePreference;

/// What has to be there before a line of a menu can be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needs {
    Nothing,
    Oracle,
    /// A change to take back.
    Past,
    /// A change to make again.
    Future,
}

/// A line of a menu.
#[derive(Debug, Clone, PartialEq)]
pub enum Line {
    Item(&'static str, Command, Needs),
    /// Commands of which one holds, under a title.
    Choice(&'static str, Vec<(&'static str, Command)>),
    Separator,
}

/// Sizes that the menu offers, per cent.
const SCALES: [(&str, u16); 5] = [("100 %", 100), ("125 %", 125), ("150 %", 150), ("175 %", 175), ("200 %", 200)];

/// Every menu. `panels` are names and titles.
pub fn menus(panels: &[(&'static str, &'static str)]) -> Vec<(&'static str, Vec<Line>)> {
    use Line::{Item, Separator};
    use Needs::{Future, Nothing, Oracle, Past};
    let file = vec![
        Item("Open…", Command::Open, Nothing),
        Item("Save samples…", Command::Save, Oracle),
        Item("Fetch a corpus…", Command::ShowFetch(None), Nothing),
        Item("Copy as command", Command::CopyCommandLine, Oracle),
        Separator,
        Item("Quit", Command::Quit, Nothing),
    ];
    let edit = vec![
        Item("Undo", Command::Undo, Past),
        Item("Redo", Command::Redo, Future),
        Separator,
        Item("Select all", Command::SelectAll, Nothing),
        Item("Reset τ, T and prior", Command::ResetKnobs, Nothing),
        Separator,
        Item("Start what the panel says", Command::Start, Nothing),
    ];
    let mut view = vec![
        Item("World card", Command::ToggleWorldCard, Nothing),
        Item("Inspector", Command::ToggleInspector, Nothing),
    ];
    view.extend(panels.iter().map(|(id, title)| Item(title, Command::ShowPanel(id), Nothing)));
    view.extend([Item("Reset the layout", Command::ResetLayout, Nothing), Separator]);
    let sizes = SCALES.map(|(title, percent)| (title, Command::Scale(percent)));
    let looks = [
        ("As the desktop", ThemePreference::System),
        ("Light", ThemePreference::Light),
        ("Dark", ThemePreference::Dark),
    ];
    view.extend([
        Line::Choice("Theme", looks.map(|(title, look)| (title, Command::Theme(look))).into()),
        Line::Choice("Size", sizes.into()),
        Item("Larger", Command::Larger, Nothing),
        Item("Smaller", Command::Smaller, Nothing),
        Item("Fullscreen", Command::Fullscreen, Nothing),
        Separator,
        Item("Frame times", Command::Overlay, Nothing),
        Item("Exactness ledger", Command::Ledger, Nothing),
        Item("Precision", Command::Precision, Nothing),
    ]);
    let help = vec![
        Item("Take the tour", Command::StartTour, Nothing),
        Item("Keyboard shortcuts", Command::Help(Page::Shortcuts), Nothing),
        Item("Glossary", Command::Help(Page::Glossary), Nothing),
        Item("All commands", Command::Palette, Nothing),
        Separator,
        Item("Verify this device", Command::Verify, Nothing),
    ];
    vec![("File", file), ("Edit", edit), ("View", view), ("Help", help)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gui::command::keys::bindings;
    use crate::gui::command::palette;
    use crate::gui::panels;

    fn offered() -> (Vec<(&'static str, &'static str)>, Vec<Command>) {
        let panels: Vec<_> = panels::registry().iter().map(|panel| (panel.id, panel.title)).collect();
        let offered = palette(&panels, &[]).into_iter().map(|entry| entry.command).collect();
        (panels, offered)
    }

    #[test]
    fn every_command_of_a_menu_is_in_the_palette() {
        let (panels, offered) = offered();
        for (menu, lines) in menus(&panels) {
            let commands = lines.into_iter().flat_map(|line| match line {
                Line::Item(_, command, _) => vec![command],
                Line::Choice(_, choices) => choices.into_iter().map(|(_, command)| command).collect(),
                Line::Separator => Vec::new(),
            });
            for command in commands.filter(|command| *command != Command::Palette) {
                assert!(offered.contains(&command), "{menu}: {command:?} is in a menu but not in the palette");
            }
        }
    }

    #[test]
    fn every_command_with_a_key_is_in_the_palette() {
        let (_, offered) = offered();
        for binding in bindings() {
            // These say something only where the focus is.
            let local = matches!(binding.command, Command::Palette | Command::Escape | Command::Walk(..));
            assert!(local || offered.contains(&binding.command), "{:?} is not in the palette", binding.command);
        }
    }

    #[test]
    fn no_line_of_the_palette_stands_there_twice() {
        let (panels, _) = offered();
        let mut titles: Vec<String> = palette(&panels, &[]).into_iter().map(|entry| entry.title).collect();
        let all = titles.len();
        titles.sort();
        titles.dedup();
        assert_eq!(titles.len(), all);
    }
}
