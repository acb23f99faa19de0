//! The keys: one table for input, menus, palette and the window *Keyboard shortcuts*.

use eframe::egui::{Key, KeyboardShortcut, Modifiers};

use super::{Command, Page};
use crate::gui::selection::Step;

/// Where a key works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// Wherever the focus is, except that text fields keep their own undo.
    Everywhere,
    /// When nothing that takes keys has the focus.
    Gallery,
}

/// A key and what it does.
#[derive(Debug, Clone)]
pub struct Binding {
    pub keys: KeyboardShortcut,
    pub command: Command,
    /// What they do, in words.
    pub about: &'static str,
    pub reach: Reach,
}

const CTRL: Modifiers = Modifiers::COMMAND;
const CTRL_SHIFT: Modifiers = Modifiers { shift: true, ..Modifiers::COMMAND };
const PLAIN: Modifiers = Modifiers::NONE;

/// Every key.
pub fn bindings() -> Vec<Binding> {
    let everywhere = [
        (CTRL, Key::P, Command::Palette, "Every command by name"),
        (CTRL, Key::O, Command::Open, "Open images, an oracle or a run"),
        (CTRL, Key::S, Command::Save, "Save samples"),
        (CTRL, Key::Enter, Command::Start, "Press the main button of the panel in front: start, judge, validate, walk"),
        // Those with more keys first: Ctrl+Z is also part of Ctrl+Shift+Z.
        (CTRL_SHIFT, Key::Z, Command::Redo, "Redo the last undone change of a setting"),
        (CTRL, Key::Y, Command::Redo, "The same"),
        (CTRL, Key::Z, Command::Undo, "Take the last change of a setting back"),
        (CTRL, Key::Plus, Command::Larger, "Everything larger"),
        (CTRL, Key::Equals, Command::Larger, "The same, without Shift"),
        (CTRL, Key::Minus, Command::Smaller, "Everything smaller"),
        (CTRL, Key::Num0, Command::Scale(100), "As large as at first: 100 %"),
        (Modifiers::SHIFT, Key::F1, Command::Help(Page::Glossary), "Every word, with its formula"),
        (PLAIN, Key::F1, Command::Help(Page::Shortcuts), "Every key: this list"),
        (PLAIN, Key::F6, Command::EnterPanel, "Into the panel in front; Tab leads on, Escape gives the keys back"),
        (PLAIN, Key::F11, Command::Fullscreen, "Whole screen and back"),
        (PLAIN, Key::F12, Command::Overlay, "Frame times"),
        (CTRL, Key::Q, Command::Quit, "Quit"),
    ];
    let gallery = [
        (CTRL, Key::A, Command::SelectAll, "Select all images on show"),
        (PLAIN, Key::Space, Command::NewSamples, "New samples: other classes, latents and labels"),
        (PLAIN, Key::Enter, Command::Inspect, "Show the inspector"),
        (
            PLAIN,
            Key::Escape,
            Command::Escape,
            "Leave the start page or the tour, close the topmost window, clear the selection",
        ),
    ];
    let binding = |reach| {
        move |(modifiers, key, command, about)| Binding {
            keys: KeyboardShortcut::new(modifiers, key),
            command,
            about,
            reach,
        }
    };
    let mut all: Vec<Binding> = everywhere.map(binding(Reach::Everywhere)).into();
    all.extend(steps().into_iter().map(binding(Reach::Gallery)));
    all.extend(gallery.map(binding(Reach::Gallery)));
    all
}

/// Steps through the gallery. Keys with Shift come first: they contain the plain arrow.
fn steps() -> Vec<(Modifiers, Key, Command, &'static str)> {
    let steps = [
        (Key::ArrowLeft, Step::Left, "Previous image"),
        (Key::ArrowRight, Step::Right, "Next image"),
        (Key::ArrowUp, Step::Up, "Image above"),
        (Key::ArrowDown, Step::Down, "Image below"),
        (Key::PageUp, Step::PageUp, "A page up"),
        (Key::PageDown, Step::PageDown, "A page down"),
        (Key::Home, Step::Home, "First image"),
        (Key::End, Step::End, "Last image"),
    ];
    let extending = [
        "Select to the previous image",
        "Select to the next image",
        "Select to the image above",
        "Select to the image below",
        "Select a page up",
        "Select a page down",
        "Select to the first image",
        "Select to the last image",
    ];
    let extend = |((key, step, _), about)| (Modifiers::SHIFT, key, Command::Walk(step, true), about);
    let mut all: Vec<_> = steps.into_iter().zip(extending).map(extend).collect();
    all.extend(steps.map(|(key, step, about)| (PLAIN, key, Command::Walk(step, false), about)));
    all
}

impl Command {
    /// Returns whether it concerns the window as such, and nothing that a question is about.
    pub fn is_of_window(&self) -> bool {
        matches!(self, Self::Larger | Self::Smaller | Self::Scale(_) | Self::Fullscreen | Self::Overlay | Self::Quit)
    }
}

/// The keys of a command: the first, where it has several.
pub fn shortcut(command: &Command) -> Option<KeyboardShortcut> {
    bindings().into_iter().find(|binding| binding.command == *command).map(|binding| binding.keys)
}

/// What mouse and keys do inside controls, for the list of shortcuts.
pub const GESTURES: [(&str, &str); 17] = [
    ("Tab, Shift+Tab", "To the next or previous control"),
    ("Space or Enter", "Press the button that has the focus"),
    ("Arrow keys on a slider", "Move it; a number beside it can be typed after Enter"),
    ("Escape in a field", "Give the focus back to the gallery"),
    ("Click an image", "Inspect it"),
    ("Ctrl+click, Shift+click", "Select one more; select a range: of images, of the cells of a run"),
    ("Arrow keys in the list of cells", "Choose the next; with Shift all up to it; Space adds it or takes it away"),
    ("Click a picture at another τ", "Set τ"),
    ("Drag the marker of the curve E(τ)", "Move τ"),
    ("Ctrl+wheel or two fingers over a plot, + and -", "Zoom in or out around the pointer"),
    ("Drag in a plot", "Select the region to zoom into; with Shift or the right button, move the view"),
    ("Double click in a plot, 0", "See all of it again"),
    ("Click in the legend of a plot", "Hide a series, or show it again"),
    ("Click a point of a scaling law", "Show that classifier's worst images"),
    ("Drop files on the window", "Open them"),
    ("Ctrl+V", "Map a picture from the clipboard into the world"),
    ("Drag in the picture of the inspector", "Move the frame that is cut out of it"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_key_means_two_things() {
        let mut keys: Vec<_> = bindings().into_iter().map(|binding| format!("{:?}", binding.keys)).collect();
        let all = keys.len();
        keys.sort();
        keys.dedup();
        assert_eq!(keys.len(), all);
    }

    #[test]
    fn keys_with_more_modifiers_are_asked_first() {
        // egui ignores Shift where a shortcut does not name it.
        let all = bindings();
        for (place, binding) in all.iter().enumerate().filter(|(_, binding)| binding.keys.modifiers.shift) {
            let plain = Modifiers { shift: false, ..binding.keys.modifiers };
            let same = |other: &Binding| other.keys == KeyboardShortcut::new(plain, binding.keys.logical_key);
            assert!(!all[..place].iter().any(same), "{:?} is never reached", binding.keys);
        }
    }
}
