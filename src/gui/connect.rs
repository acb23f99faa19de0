//! Another machine's device: the window that connects to it, and its part of the world card.

use std::time::Instant;

use eframe::egui::{self, Button, DragValue, Grid, Key, TextEdit, Ui};

use super::command::Command;
use super::context::Cx;
use super::failures;
use super::session::far::Trying;
use super::theme::Theme;
use super::widgets::{dialog, fact, facts, hint, said};
use crate::device::remote::{TOKEN, use_token};
use crate::device::{Address, DeviceChoice, DeviceReport, PORT, ssh_tunnel};
use crate::worker::protocol::Outcome;

/// Width of the window's text, points.
const WIDTH: f32 = 470.0;

/// The window, closed at first.
#[derive(Default)]
pub struct ConnectDialog {
    open: bool,
    fresh: bool,
    address: String,
    device: u16,
    token: String,
}

impl ConnectDialog {
    /// Opens it on the machine of this choice, if it is one.
    pub fn show_machine(&mut self, choice: Option<DeviceChoice>) {
        (self.open, self.fresh) = (true, true);
        if let Some(DeviceChoice::Remote(address)) = choice {
            self.fill(address);
        }
    }

    fn fill(&mut self, address: Address) {
        (self.address, self.device) = (address.with_device(0).to_string(), address.device());
        // What was typed is another machine's.
        self.token.clear();
    }

    /// Closes it; a connection attempt goes on.
    pub fn close(&mut self) -> bool {
        std::mem::take(&mut self.open)
    }

    /// The address as far as it is typed; the scheme may be left out.
    fn typed(&self) -> crate::error::Result<Address> {
        let text = self.address.trim();
        let whole = if text.contains("://") { text.to_owned() } else { format!("ws://{text}") };
        let address: Address = whole.parse()?;
        // A device number in the address counts if the field for it is 0.
        Ok(if self.device == 0 { address } else { address.with_device(self.device) })
    }

    pub fn show(&mut self, ctx: &egui::Context, cx: &mut Cx) {
        let mut open = self.open;
        dialog(ctx, "Another machine", &mut open).resizable(false).show(ctx, |ui| {
            ui.set_width(WIDTH);
            hint(
                ui,
                "Everything is computed on a device that `bayescope serve` lends on the other machine; this window and all files stay \
                 here. The oracle's weights and the images go there: without encryption.",
            );
            ui.add_space(4.0);
            let enter = self.fields(ui);
            self.recent(ui, cx);
            let typed = self.typed();
            self.buttons(ui, cx, &typed, enter);
            let begun = !self.address.trim().is_empty();
            match (&typed, begun) {
                (Err(error), true) => {
                    ui.colored_label(Theme::of(ui).warning(), error.to_string());
                }
                (Ok(address), _) => self.status(ui, cx, *address),
                _ => {}
            }
        });
        self.open &= open;
    }

    /// Returns whether Enter was pressed in one of them.
    fn fields(&mut self, ui: &mut Ui) -> bool {
        let mut enter = false;
        let mut typed = |ui: &Ui, field: &egui::Response| {
            if field.lost_focus() && ui.input(|input| input.key_pressed(Key::Enter)) {
                enter = true;
                // Whatever comes of it, typing goes on here.
                field.request_focus();
            }
        };
        // A field has the colour of a window in the light theme.
        let ground = ui.visuals().widgets.inactive.weak_bg_fill;
        Grid::new("machine").num_columns(2).spacing([10.0, 6.0]).show(ui, |ui| {
            let label = ui.label("Address").on_hover_text(format!("Host and port, such as ws://gpu-box:{PORT}"));
            let field = TextEdit::singleline(&mut self.address).desired_width(300.0).hint_text(format!("gpu-box:{PORT}"));
            let field = ui.add(field.background_color(ground)).labelled_by(label.id);
            if std::mem::take(&mut self.fresh) {
                field.request_focus();
            }
            typed(ui, &field);
            ui.end_row();
            let label = ui.label("Number of the device").on_hover_text("0 is the first that is lent there");
            ui.add(DragValue::new(&mut self.device).range(0..=u16::MAX)).labelled_by(label.id);
            ui.end_row();
            let meaning = format!(
                "What {TOKEN} holds where the device is lent; empty where no token is wanted, {TOKEN} holds it here too, or it was \
                 typed before"
            );
            let label = ui.label("Token").on_hover_text(meaning);
            let field = TextEdit::singleline(&mut self.token).password(true).desired_width(300.0);
            let field = ui.add(field.background_color(ground));
            typed(ui, &field.labelled_by(label.id));
            ui.end_row();
        });
        hint(ui, "The token is kept until the program ends, and written nowhere.");
        enter
    }

    fn recent(&mut self, ui: &mut Ui, cx: &Cx) {
        if cx.prefs.machines.is_empty() {
            return;
        }
        let mut chosen = None;
        ui.horizontal_wrapped(|ui| {
            ui.label("Used before:");
            for choice in &cx.prefs.machines {
                if let DeviceChoice::Remote(address) = choice
                    && ui.small_button(choice.to_string()).clicked()
                {
                    chosen = Some(*address);
                }
            }
        });
        chosen.into_iter().for_each(|address| self.fill(address));
    }

    fn buttons(&mut self, ui: &mut Ui, cx: &mut Cx, typed: &crate::error::Result<Address>, enter: bool) {
        ui.add_space(4.0);
        ui.horizontal_wrapped(|ui| {
            let ready = typed.as_ref().ok().filter(|_| cx.session.far.connecting().is_none());
            let connect = ui.add_enabled(ready.is_some(), Button::new("Connect"));
            let connect = connect.on_disabled_hover_text("Type an address first, or wait for the connection under way.");
            if let Some(address) = ready
                && (connect.clicked() || enter)
            {
                if !self.token.trim().is_empty() {
                    use_token(*address, &self.token);
                }
                cx.commands.push(Command::Connect(DeviceChoice::Remote(*address)));
            }
            let tunnel = ui.add_enabled(typed.is_ok(), Button::new("Copy ssh tunnel as command"));
            let about = format!(
                "Encrypts the way: run it in a terminal, leave it open, and connect to ws://127.0.0.1:{PORT}. On the other machine \
                 `bayescope serve` listens on 127.0.0.1."
            );
            if let Ok(address) = typed
                && tunnel.on_hover_text(about).clicked()
            {
                let (host, port) = address.socket();
                cx.commands.push(Command::CopyText(ssh_tunnel(port, host)));
            }
            if ui.button("Close").clicked() {
                self.open = false;
            }
        });
    }

    /// How the last connection to this machine goes, or what became of it.
    fn status(&self, ui: &mut Ui, cx: &Cx, address: Address) {
        let theme = Theme::of(ui);
        let asked = cx.session.far.asked.as_ref().filter(|asked| asked.device == DeviceChoice::Remote(address));
        let Some(asked) = asked else { return };
        match &asked.outcome {
            None => {
                ui.horizontal(|ui| {
                    ui.spinner();
                    ui.label(format!("Connecting to {}…", asked.device));
                });
            }
            Some(Outcome::Failed(why)) => failures::show(ui, asked.job, why),
            Some(Outcome::Cancelled) => hint(ui, "Cancelled."),
            Some(Outcome::Done(_)) if uses(cx, address) => {
                ui.colored_label(theme.good(), format!("Connected. Round trips: {}.", cx.session.far.latency));
            }
            Some(Outcome::Done(_)) => {}
        }
    }
}

fn uses(cx: &Cx, address: Address) -> bool {
    cx.session.device.as_ref().is_some_and(|report| report.used.choice == DeviceChoice::Remote(address))
}

/// Shows the connection on the world card, or what to do when it is lost.
pub fn card(ui: &mut Ui, cx: &mut Cx, report: &DeviceReport) {
    let DeviceChoice::Remote(address) = report.asked else { return };
    let theme = Theme::of(ui);
    let far = &cx.session.far;
    if let Some(trying) = &far.trying {
        said(ui, trying.words(Instant::now()), theme.warning());
        hint(ui, &*trying.reason);
        ui.ctx().request_repaint_after(Trying::TICK);
    } else if report.used.choice == report.asked {
        facts(ui, "connection", |ui| {
            fact(ui, "Host", address.host(), "The other machine, and the port `bayescope serve` listens on there.");
            let trips =
                "Small round trips there and back, the last 30, measured every 2 s while nothing else is computed.";
            let value = match far.latency.median_and_worst_ms() {
                Some(_) => far.latency.to_string(),
                None => "measured when idle".to_owned(),
            };
            fact(ui, "Latency", value, trips);
        });
    } else {
        ui.horizontal_wrapped(|ui| {
            let free = far.connecting().is_none();
            let again = ui.add_enabled(free, Button::new("Connect again"));
            if again.on_hover_text(format!("To {}", report.asked)).clicked() {
                cx.commands.push(Command::Connect(report.asked));
            }
            if ui.button("Other address or token…").clicked() {
                cx.commands.push(Command::ShowConnect);
            }
        });
    }
}
