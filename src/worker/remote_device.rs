//! A device of another machine: how long it takes to answer while nothing else is asked of it, and
//! what happens when its connection is gone. Then it is tried again a few times, with growing
//! waits; without an answer the CPU of this machine takes over, with the same oracle. Jobs under
//! way fail with a message; results stay in the window and on disk.

use std::sync::{Arc, OnceLock};
use std::task::{Wake, Waker};
use std::time::{Duration, Instant};

use super::channels::Channels;
use super::protocol::{Event, RemoteNews};
use super::shared::Shared;
use crate::device::remote::{self, Answer, Ping};
use crate::device::{Address, DeviceChoice, Latency, OpenDevice, choose};
use crate::error::Error;

/// How often a small round trip is measured while nothing else is asked of the device.
const EVERY: Duration = Duration::from_secs(2);
/// A small round trip that takes longer counts as a connection that is gone.
const SILENCE: Duration = Duration::from_secs(30);
/// Waits before the tries to connect again.
const WAITS: [Duration; 5] = [
    Duration::from_secs(1),
    Duration::from_secs(2),
    Duration::from_secs(4),
    Duration::from_secs(8),
    Duration::from_secs(15),
];

/// Round trips to the lent device in use.
#[derive(Default)]
pub struct Heartbeat {
    of: Option<Address>,
    latency: Latency,
    ping: Option<(Ping, Arc<Notifier>)>,
    last: Option<Instant>,
}

/// Notifies the worker and keeps the time: a busy worker does not count as latency.
struct Notifier {
    shared: Arc<Shared>,
    at: OnceLock<Instant>,
}

impl Wake for Notifier {
    fn wake(self: Arc<Self>) {
        self.at.get_or_init(Instant::now);
        self.shared.notify();
    }
}

impl Heartbeat {
    /// Sends a ping, or checks for its answer. Measures only while the worker is idle: a ping
    /// behind work would measure the work. Returns how long nothing needs to be done here.
    pub fn tick(&mut self, channels: &Channels, used: DeviceChoice) -> Duration {
        let DeviceChoice::Remote(address) = used else { return Duration::from_secs(3600) };
        if self.of != Some(address) {
            *self = Self { of: Some(address), ..Self::default() };
        }
        if self.ping.is_none() && self.last.is_none_or(|last| last.elapsed() >= EVERY) {
            let notifier = Arc::new(Notifier { shared: channels.shared.clone(), at: OnceLock::new() });
            self.ping = Ping::send(address).zip(Some(notifier));
            self.last = Some(Instant::now());
        }
        let Some((ping, notifier)) = &mut self.ping else { return EVERY };
        let rest = match ping.poll(&Waker::from(notifier.clone())) {
            Answer::Open if ping.sent().elapsed() > SILENCE => {
                remote::give_up(address, &format!("nothing came back for {} s", SILENCE.as_secs()));
                Duration::ZERO
            }
            Answer::Open => return EVERY,
            Answer::Came(trip) => {
                self.latency.add(notifier.at.get().map_or(trip, |at| *at - ping.sent()));
                channels.send(Event::Remote(RemoteNews::Latency(self.latency.clone())));
                EVERY
            }
            // The session remembers it.
            Answer::Gone(_) => Duration::ZERO,
        };
        self.ping = None;
        rest
    }

    /// Drops a ping under way: it would come back late, behind other work.
    pub fn pass(&mut self) {
        self.ping = None;
    }
}

/// Whether the connection of a lent device is known to be gone.
pub fn is_lost(used: DeviceChoice) -> bool {
    matches!(used, DeviceChoice::Remote(address) if remote::lost(address).is_some())
}

/// The device that computes where a lent one cannot be opened: the same one, if it was there before
/// and comes back, otherwise the CPU.
///
/// # Errors
/// When the CPU cannot be used either.
pub fn reconnect_or_cpu(channels: &Channels, asked: DeviceChoice, error: Error) -> Result<OpenDevice, Error> {
    let again = if is_lost(asked) { reconnect(channels, asked) } else { None };
    match again {
        Some(chosen) => Ok(chosen),
        None => Ok(cpu_instead(channels, choose(DeviceChoice::Cpu)?, asked, &error.to_string())),
    }
}

/// The lent device again, or the CPU with the reason; `None` where the user has chosen otherwise
/// meanwhile, or the program ends.
pub fn reconnect(channels: &Channels, asked: DeviceChoice) -> Option<OpenDevice> {
    let DeviceChoice::Remote(address) = asked else { return None };
    if channels.jobs.switches() {
        return None;
    }
    let mut reason = format!("{asked}: {}", remote::lost(address)?);
    channels.send(Event::Failed(format!("{reason}. Connecting again; choose another device to stop that")));
    for (i, wait) in WAITS.into_iter().enumerate() {
        let (attempt, of) = (i + 1, WAITS.len());
        channels.send(Event::Remote(RemoteNews::Trying { address: asked, reason: reason.clone(), attempt, of, wait }));
        if !pause(channels, wait) {
            return None;
        }
        match choose(asked) {
            Ok(chosen) => {
                channels.send(Event::Note(format!("{asked}: connected again")));
                return Some(chosen);
            }
            Err(error) => reason = error.to_string(),
        }
    }
    let cpu = choose(DeviceChoice::Cpu).map_err(|error| channels.send(Event::Failed(error.to_string()))).ok()?;
    Some(cpu_instead(channels, cpu, asked, &reason))
}

/// The CPU in place of a device that cannot be reached, with a message.
fn cpu_instead(channels: &Channels, mut cpu: OpenDevice, asked: DeviceChoice, reason: &str) -> OpenDevice {
    channels.send(Event::Failed(format!("{reason}. Computing on the CPU instead")));
    cpu.report.asked = asked;
    cpu.report.reason = reason.to_owned();
    cpu
}

/// Waits. Returns whether to go on. Jobs are taken in; a choice of device ends the wait.
fn pause(channels: &Channels, wait: Duration) -> bool {
    let end = Instant::now() + wait;
    loop {
        let left = end.saturating_duration_since(Instant::now());
        if channels.stopping() || channels.jobs.switches() {
            return false;
        }
        if left.is_zero() {
            return true;
        }
        if channels.wait(left).is_err() {
            return false;
        }
    }
}
