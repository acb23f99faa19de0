//! Several devices of one machine: each takes the next piece of work from one list, on its own
//! thread. A lost device leaves its work to the others.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::fmt;
use std::ops::ControlFlow;
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError, mpsc};

use super::avoid::sound;
use super::choice::{DeviceChoice, OpenDevice};
use super::choose::{candidates, choose};
use super::faults::{note, notes, take_over};
use super::guard::guarded;
use super::remote;
use crate::error::{Error, Result};
use crate::events::Events;

/// Words of the devices that may wait to be heard.
const WORDS: usize = 64;

/// Which devices share a piece of work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Devices {
    /// These, at least one, each once.
    Listed(Vec<DeviceChoice>),
    /// Every GPU that works and on which `bayescope verify` found nothing wrong; where there is none, the
    /// CPU.
    All,
}

impl Default for Devices {
    fn default() -> Self {
        Self::Listed(vec![DeviceChoice::Auto])
    }
}

impl fmt::Display for Devices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => write!(f, "all"),
            Self::Listed(choices) => {
                let names: Vec<String> = choices.iter().map(ToString::to_string).collect();
                write!(f, "{}", names.join(","))
            }
        }
    }
}

impl FromStr for Devices {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        if text == "all" {
            return Ok(Self::All);
        }
        let mut choices: Vec<DeviceChoice> = Vec::new();
        for choice in text.split(',') {
            let choice = choice.trim().parse()?;
            if choices.contains(&choice) {
                return Err(Error::input(format!("'{text}' names {choice} twice")));
            }
            choices.push(choice);
        }
        Ok(Self::Listed(choices))
    }
}

impl Devices {
    /// The one that was named, if it is one.
    pub fn one(&self) -> Option<DeviceChoice> {
        match self {
            Self::Listed(choices) if choices.len() == 1 => choices.first().copied(),
            _ => None,
        }
    }

    /// Chooses them.
    ///
    /// # Errors
    /// When one that was named is missing or fails, or two names mean the same.
    pub fn choose(&self) -> Result<Vec<OpenDevice>> {
        let Self::Listed(choices) = self else { return all() };
        let chosen: Vec<OpenDevice> = choices.iter().map(|choice| choose(*choice)).collect::<Result<_>>()?;
        for (i, one) in chosen.iter().enumerate() {
            if chosen[..i].iter().any(|other| other.device == one.device) {
                return Err(Error::input(format!("'{self}' names {} twice", one.report.used.name)));
            }
        }
        Ok(chosen)
    }
}

/// A card that has CUDA has a graphics API too: the one that computes faster counts.
fn all() -> Result<Vec<OpenDevice>> {
    let (found, wrong) = sound(candidates());
    wrong.iter().for_each(|why| tracing::warn!("{why}: `all` leaves it out"));
    let of = |wanted: fn(&DeviceChoice) -> bool| {
        let mut working = Vec::new();
        for choice in found.iter().copied().filter(wanted) {
            match choose(choice) {
                Ok(chosen) => working.push(chosen),
                Err(error) => tracing::warn!("{error}"),
            }
        }
        working
    };
    let cards = of(|choice| matches!(choice, DeviceChoice::Cuda(_)));
    let cards = if cards.is_empty() { of(|choice| matches!(choice, DeviceChoice::Wgpu(_))) } else { cards };
    if cards.is_empty() { Ok(vec![choose(DeviceChoice::Cpu)?]) } else { Ok(cards) }
}

/// The list from which every device takes.
pub struct List<I> {
    waiting: Mutex<VecDeque<I>>,
    stopped: AtomicBool,
}

/// One device's access to the list.
pub struct WorkQueue<'a, I> {
    list: &'a List<I>,
    held: RefCell<Option<I>>,
}

impl<I: Clone> List<I> {
    fn waiting(&self) -> std::sync::MutexGuard<'_, VecDeque<I>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<I: Clone> WorkQueue<'_, I> {
    /// The next piece of work; taking it marks the one before as done. `None` where the list is
    /// empty or the work was stopped.
    pub fn take(&self) -> Option<I> {
        let stopped = self.list.stopped.load(Ordering::Relaxed);
        let next = if stopped { None } else { self.list.waiting().pop_front() };
        self.held.replace(next.clone());
        next
    }

    /// Puts back the item that was not finished.
    fn put_back(&self) {
        if let Some(item) = self.held.take() {
            self.list.waiting().push_front(item);
        }
    }
}

/// Runs pieces of work on devices side by side: `work` takes from its queue until that is empty.
/// Its events reach `events` on the caller's thread; a break there stops all devices at their next
/// event.
///
/// # Errors
/// The first of `work`'s that is not the loss of a device; the last loss, where no device is left;
/// [`Error::Cancelled`].
pub fn run_on_all<I: Clone + Send, E: Send>(
    mut devices: Vec<OpenDevice>,
    items: Vec<I>,
    work: impl Fn(&OpenDevice, &WorkQueue<'_, I>, &mut dyn Events<E>) -> Result<()> + Sync,
    events: &mut dyn Events<E>,
) -> Result<()> {
    let list = List { waiting: Mutex::new(items.into()), stopped: AtomicBool::new(false) };
    loop {
        let ended = round(&devices, &list, &work, events);
        let (mut lost, mut stop) = (Vec::new(), None);
        for (i, done) in ended.into_iter().enumerate() {
            match done {
                Ok(()) => {}
                Err(loss @ Error::DeviceLost { .. }) => lost.push((i, loss)),
                // Why the others were stopped says less than what stopped them.
                Err(error) => stop = stop.filter(|stop| !matches!(stop, Error::Cancelled)).or(Some(error)),
            }
        }
        if let Some(error) = stop {
            return Err(error);
        }
        if list.stopped.load(Ordering::Relaxed) {
            return Err(Error::Cancelled);
        }
        for (i, loss) in lost.into_iter().rev() {
            devices.remove(i);
            if devices.is_empty() {
                return Err(loss);
            }
            note(format!("{loss}. Its work goes to the other devices"));
        }
        if list.waiting().is_empty() {
            return Ok(());
        }
    }
}

/// A device of another machine whose connection is gone counts as lost.
fn lender_lost(chosen: &OpenDevice, error: Error) -> Error {
    let (Error::Device(_), DeviceChoice::Remote(address)) = (&error, chosen.report.used.choice) else { return error };
    match remote::gone(Some(address)).and_then(|_| remote::lost(address)) {
        Some(why) => Error::DeviceLost { device: chosen.report.used.choice.to_string(), why },
        None => error,
    }
}

/// How every device ended: once the list is empty, or with its error.
fn round<I: Clone + Send, E: Send>(
    devices: &[OpenDevice],
    list: &List<I>,
    work: &(impl Fn(&OpenDevice, &WorkQueue<'_, I>, &mut dyn Events<E>) -> Result<()> + Sync),
    events: &mut dyn Events<E>,
) -> Vec<Result<()>> {
    let one = |chosen: &OpenDevice, sender: mpsc::SyncSender<E>| {
        let hand = WorkQueue { list, held: RefCell::new(None) };
        let mut sink = |event: E| match sender.send(event).is_err() || list.stopped.load(Ordering::Relaxed) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        };
        let done =
            guarded(&chosen.device, || work(chosen, &hand, &mut sink)).map_err(|error| lender_lost(chosen, error));
        if done.is_err() {
            hand.put_back();
        }
        if !matches!(done, Ok(()) | Err(Error::DeviceLost { .. })) {
            list.stopped.store(true, Ordering::Relaxed);
        }
        (done, notes())
    };
    let one = &one;
    std::thread::scope(|scope| {
        let (sender, told) = mpsc::sync_channel::<E>(WORDS);
        let begin = |chosen| {
            let sender = sender.clone();
            scope.spawn(move || one(chosen, sender))
        };
        let handles: Vec<_> = devices.iter().map(begin).collect();
        drop(sender);
        for event in told {
            if events.emit(event).is_break() {
                list.stopped.store(true, Ordering::Relaxed);
            }
        }
        let ended = handles.into_iter().map(|handle| {
            let (done, noted) = handle.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            // Whoever started the work listens on this thread.
            take_over(noted);
            done
        });
        ended.collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::silent;

    #[test]
    fn lists_read_as_they_are_written() {
        for text in ["all", "auto", "cpu,wgpu:0", "wgpu:0,wgpu:1"] {
            assert_eq!(text.parse::<Devices>().unwrap().to_string(), text);
        }
        assert!("cpu,cpu".parse::<Devices>().unwrap_err().to_string().contains("cpu twice"));
        assert!("cpu,gpu".parse::<Devices>().unwrap_err().to_string().contains("'gpu' is no device"));
    }

    fn cpus(n: usize) -> Vec<OpenDevice> {
        let mut cpus = vec![choose(DeviceChoice::Cpu).unwrap(); n];
        cpus.iter_mut().enumerate().for_each(|(i, cpu)| cpu.batch = i);
        cpus
    }

    fn loss() -> Error {
        Error::DeviceLost { device: "a card".into(), why: "it went away".into() }
    }

    #[test]
    fn everything_is_done_once_and_a_lost_device_leaves_its_work_to_the_others() {
        let mut done = Vec::new();
        let work = |chosen: &OpenDevice, hand: &WorkQueue<'_, usize>, events: &mut dyn Events<usize>| {
            if chosen.batch == 1 {
                note("it goes on with fewer images".into());
            }
            while let Some(item) = hand.take() {
                if chosen.batch == 0 && item >= 2 {
                    return Err(loss());
                }
                events.report(item)?;
            }
            Ok(())
        };
        let mut sink = |item| {
            done.push(item);
            ControlFlow::Continue(())
        };
        run_on_all(cpus(3), (0..50).collect(), work, &mut sink).unwrap();
        done.sort_unstable();
        assert_eq!(done, (0..50).collect::<Vec<_>>());
        // What was done about faults on the devices' own threads is heard here, beside what became of the lost one.
        let (own, of_loss): (Vec<String>, Vec<String>) = notes().into_iter().partition(|note| note.contains("fewer"));
        assert!(!own.is_empty() && of_loss.iter().all(|note| note.contains("Its work goes to the other devices")));
        let all_lost = run_on_all(
            cpus(2),
            vec![1],
            |_, hand, _: &mut dyn Events<()>| hand.take().map_or(Ok(()), |_| Err(loss())),
            &mut silent(),
        );
        assert!(matches!(all_lost, Err(Error::DeviceLost { .. })));
    }

    #[test]
    fn a_stop_and_an_error_end_all() {
        let endless = |_: &OpenDevice, hand: &WorkQueue<'_, usize>, events: &mut dyn Events<usize>| {
            while let Some(item) = hand.take() {
                events.report(item)?;
            }
            Ok(())
        };
        let stopped = run_on_all(cpus(2), (0..10_000).collect(), endless, &mut |_| ControlFlow::Break(()));
        assert!(matches!(stopped, Err(Error::Cancelled)));
        let wrong = |_: &OpenDevice, hand: &WorkQueue<'_, usize>, _: &mut dyn Events<()>| match hand.take() {
            Some(3) => Err(Error::input("three")),
            _ => Ok(()),
        };
        let failed = run_on_all(cpus(2), (3..10).collect(), wrong, &mut silent());
        assert!(matches!(failed, Err(Error::Input(why)) if why == "three"));
        // A device that it stops, and that comes first in the list, does not hide it.
        let one_is_wrong =
            |chosen: &OpenDevice, hand: &WorkQueue<'_, usize>, events: &mut dyn Events<usize>| match chosen.batch {
                0 => endless(chosen, hand, events).and(Err(Error::Cancelled)),
                _ => Err(Error::input("three")),
            };
        let failed = run_on_all(cpus(2), (0..10_000).collect(), one_is_wrong, &mut silent());
        assert!(matches!(failed, Err(Error::Input(why)) if why == "three"));
    }
}
