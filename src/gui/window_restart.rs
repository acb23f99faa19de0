//! What a window hands on to the next one when its graphics device is lost.

use super::app::App;
use super::prefs::{History, Prefs};
use super::request_tracker::RequestTracker;
use super::session::Session;
use super::session::log::Level;
use super::view::View;

/// The state that goes on in another window.
pub struct Known {
    session: Session,
    requests: RequestTracker,
    /// What the user has set, also what is forgotten when the program ends.
    pub prefs: Prefs,
    history: History,
    view: View,
}

impl App {
    /// Takes the state out of this window, whose graphics device is lost.
    pub fn retire(&mut self) -> Known {
        Known {
            session: std::mem::take(&mut self.session),
            requests: std::mem::replace(&mut self.requests, RequestTracker::new(&self.prefs)),
            prefs: self.prefs.clone(),
            history: std::mem::take(&mut self.history),
            view: std::mem::take(&mut self.view),
        }
    }

    /// Takes over the state of a window whose graphics device was lost, and asks for its pictures
    /// anew.
    pub fn succeed(&mut self, known: Option<Known>, why: &str) {
        let engine = if known.is_some() { "the engine went on" } else { "the engine was started again" };
        if let Some(known) = known {
            Known {
                session: self.session,
                requests: self.requests,
                prefs: self.prefs,
                history: self.history,
                view: self.view,
            } = known;
            self.session.forget_pictures();
            let classes = self.session.class_names().len();
            if classes > 0 {
                self.prefs.fit(classes);
            }
            self.requests.forget();
        }
        let text = format!("The graphics device was lost ({why}). The window was opened again, {engine}.");
        self.session.notify(Level::Warning, text);
    }
}
