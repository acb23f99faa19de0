//! Reconnecting to another machine's device whose connection is gone.

use super::DeviceThread;
use crate::device::explain;
use crate::events::silent;
use crate::worker::channels::Channels;
use crate::worker::protocol::Event;
use crate::worker::remote_device::{is_lost, reconnect};

impl DeviceThread {
    /// Whether the connection of the device in use is gone.
    pub fn is_cut_off(&self) -> bool {
        is_lost(self.chosen.report.used.choice)
    }

    /// If the device in use is cut off: connects again, or falls back to the CPU, and opens
    /// `oracle` there. Not where the user has chosen another device meanwhile: that job is next,
    /// and nothing has changed.
    pub fn reconnect(&mut self, channels: &Channels, oracle: &str) {
        if !self.is_cut_off() {
            return;
        }
        let Some(chosen) = reconnect(channels, self.chosen.report.asked) else { return };
        channels.send(Event::Device(chosen.report.clone()));
        self.chosen = chosen;
        self.opened = None;
        self.interactive.requeue(&channels.shared);
        if let Err(error) = self.open(channels, oracle, &mut silent()) {
            channels.send(Event::Failed(explain(error, Some(self.chosen.report.used.choice)).to_string()));
        }
    }
}
