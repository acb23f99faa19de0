//! A panel's main button. Returns whether it was pressed, by hand or Ctrl+Enter. `why` disables it.

use eframe::egui::{self, Button, Ui};

use super::command::{Command, shortcut};

/// What became of Ctrl+Enter.
#[derive(Debug, Default, PartialEq, Eq)]
enum Press {
    #[default]
    None,
    /// Asked for in this frame: fields take over first what was typed into them.
    Asked,
    /// To be done in this frame, by the panel in front.
    Due,
    /// The button was found, and could not be pressed.
    Refused(String),
}

/// Which panel is in front, and whether its button is to be pressed.
#[derive(Debug, Default)]
pub struct PrimaryAction {
    press: Press,
    /// The panel that was brought up or touched last.
    front: String,
    /// Panels painted in this frame, in their order.
    painted: Vec<String>,
    /// Whether the panel that is being painted is the one in front.
    here: bool,
    /// Whether the keyboard is to enter the panel in front.
    enters: bool,
}

impl PrimaryAction {
    /// Requests a press of the front panel's button.
    pub fn ask(&mut self, ctx: &egui::Context) {
        ctx.memory_mut(|memory| {
            if let Some(focused) = memory.focused() {
                memory.surrender_focus(focused);
            }
        });
        ctx.request_repaint();
        self.press = Press::Asked;
    }

    /// Has the keyboard enter the panel in front.
    pub fn enter_by_keys(&mut self) {
        self.enters = true;
    }

    /// A panel was brought up or touched.
    pub fn bring(&mut self, panel: &str) {
        panel.clone_into(&mut self.front);
    }

    /// Before the panels are painted.
    pub fn begin(&mut self) {
        self.painted.clear();
        self.here = false;
    }

    /// Returns whether a panel was painted in this frame.
    pub fn shows(&self, panel: &str) -> bool {
        self.painted.iter().any(|painted| painted == panel)
    }

    /// A panel is painted now. Returns whether the keyboard enters it.
    pub fn enter(&mut self, panel: &str, ui: &Ui) -> bool {
        if ui.ui_contains_pointer() && ui.input(|input| input.pointer.any_pressed()) {
            self.bring(panel);
        }
        self.here = self.front == panel;
        self.painted.push(panel.to_owned());
        self.here && std::mem::take(&mut self.enters)
    }

    /// Ends a frame. Returns why a requested press did nothing.
    pub fn end(&mut self) -> Option<String> {
        // A panel that was closed or is behind another is not in front. One that was brought up is painted by now.
        if !self.painted.contains(&self.front) {
            self.front = self.painted.first().cloned().unwrap_or_default();
        }
        match std::mem::take(&mut self.press) {
            Press::Asked => self.press = Press::Due,
            Press::Due => return Some("The panel in front has nothing to start.".into()),
            Press::Refused(why) => return Some(why),
            Press::None => {}
        }
        None
    }
}

/// A panel's main button. Returns whether it was pressed, by hand or Ctrl+Enter. `why` disables it.
pub fn primary_button(ui: &mut Ui, action: &mut PrimaryAction, text: &str, about: &str, why: &str) -> bool {
    let keys = shortcut(&Command::Start).map(|keys| ui.ctx().format_shortcut(&keys)).unwrap_or_default();
    let button = ui.add_enabled(why.is_empty(), Button::new(text)).on_disabled_hover_text(why);
    let button = button.on_hover_text(if about.is_empty() { keys } else { format!("{about} ({keys})") });
    let due = action.here && action.press == Press::Due;
    if due {
        action.press = if why.is_empty() { Press::None } else { Press::Refused(why.to_owned()) };
    }
    button.clicked() || (due && why.is_empty())
}
