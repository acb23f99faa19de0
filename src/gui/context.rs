//! What every part of the window is given, and what a panel is.

use eframe::egui::Ui;

use super::command::Command;
use super::prefs::Prefs;
use super::session::Session;
use super::view::View;
use crate::device::Candidate;

/// What a panel sees and where it leaves its requests.
pub struct Cx<'a> {
    /// What is known of the engine.
    pub session: &'a Session,
    /// What the user has set; edited in place, undone as a whole.
    pub prefs: &'a mut Prefs,
    /// What is looked at.
    pub view: &'a mut View,
    /// Every way to compute, once they are listed.
    pub devices: &'a [Candidate],
    /// What the user wants done.
    pub commands: &'a mut Vec<Command>,
}

/// What a docked panel paints.
pub trait Panel {
    fn ui(&mut self, ui: &mut Ui, cx: &mut Cx);
}
