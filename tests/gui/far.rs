//! Another machine's device: the window that connects to it, and what the world card says.

use std::time::Duration;

use bayescope::device::{Candidate, DeviceChoice, DeviceReport, Latency};
use bayescope::gui::{App, Prefs};
use bayescope::worker::protocol::{Event, Job, JobId, Outcome, RemoteNews};
use eframe::egui::{Key, Role};
use egui_kittest::Harness;
use egui_kittest::kittest::Queryable;

use super::experiments::{click, rewrite};
use super::fake::Fake;
use super::{by_palette, full, shows};

const THERE: &str = "ws://gpu-box:3000";

fn choice(text: &str) -> DeviceChoice {
    text.parse().unwrap()
}

/// By the palette.
fn opened(harness: &mut Harness<'_, App>) {
    by_palette(harness, "Compute on another machine");
}

/// The devices that were asked for.
fn asked(fake: &Fake) -> Vec<(JobId, DeviceChoice)> {
    let jobs = fake.jobs().into_iter();
    jobs.filter_map(|(id, job)| if let Job::UseDevice(choice) = job { Some((id, choice)) } else { None }).collect()
}

fn computes(fake: &Fake, asked: &str, used: DeviceReport) {
    fake.send(Event::Device(DeviceReport { asked: choice(asked), ..used }));
}

fn there(text: &str) -> DeviceReport {
    let DeviceChoice::Remote(address) = choice(text) else { panic!("no address") };
    DeviceReport { asked: choice(text), used: Candidate::lent(address), reason: "asked for".into() }
}

fn here(reason: &str) -> DeviceReport {
    let mut used = there(THERE);
    (used.used.choice, used.used.name, used.reason) = (DeviceChoice::Cpu, "CPU, 2 cores".into(), reason.into());
    used
}

#[test]
fn an_address_is_typed_refused_and_typed_again() {
    let (mut harness, fake) = full();
    opened(&mut harness);
    assert!(shows(&harness, "without encryption") && shows(&harness, "written nowhere"));
    click(&mut harness, "Connect");
    assert!(asked(&fake).is_empty(), "nothing was typed");
    rewrite(&mut harness, "Address", "wss://gpu-box");
    assert!(shows(&harness, "ssh -L"));
    click(&mut harness, "Connect");
    assert!(asked(&fake).is_empty());
    // The scheme may be left out, and Enter connects.
    rewrite(&mut harness, "Address", "gpu-box");
    harness.key_press(Key::Enter);
    harness.run_steps(4);
    let [(id, device)] = asked(&fake)[..] else { panic!("{:?}", asked(&fake)) };
    assert_eq!(device, choice(THERE));
    assert!(shows(&harness, &format!("Connecting to {THERE}")));
    // The window goes on meanwhile, and nobody connects twice by mistake.
    click(&mut harness, "Connect");
    assert_eq!(asked(&fake).len(), 1);
    fake.send(Event::JobStarted { id });
    let why = format!("device: {THERE}: a token is wanted there");
    fake.send(Event::JobEnded { id, outcome: Outcome::Failed(why.clone()) });
    harness.run_steps(4);
    assert!(shows(&harness, &why));
    assert_eq!(harness.state().prefs().device, DeviceChoice::Auto, "the device of before is still the one");
    harness.get_by_role_and_label(Role::PasswordInput, "Token").focus();
    harness.run_steps(2);
    harness.get_by_role_and_label(Role::PasswordInput, "Token").type_text("hunter2");
    harness.run_steps(2);
    click(&mut harness, "Connect");
    let (id, _) = *asked(&fake).last().unwrap();
    fake.send(Event::JobStarted { id });
    computes(&fake, THERE, there(THERE));
    fake.send(Event::JobEnded { id, outcome: Outcome::Done("computing there".into()) });
    let mut latency = Latency::default();
    [12, 14, 90].map(Duration::from_millis).into_iter().for_each(|trip| latency.add(trip));
    fake.send(Event::Remote(RemoteNews::Latency(latency)));
    harness.run_steps(4);
    assert!(shows(&harness, "Connected. Round trips: median 14 ms, worst 90 ms of 3"));
    harness.check_accessibility();
    harness.key_press(Key::Escape);
    harness.run_steps(4);
    harness.key_press(Key::Escape);
    harness.run_steps(4);
    assert!(!shows(&harness, "without encryption"), "Escape closes it");
    remembered_without_the_token(&harness);
}

/// What is kept for the next time.
fn remembered_without_the_token(harness: &Harness<'_, App>) {
    let prefs = harness.state().prefs();
    assert_eq!((prefs.device, prefs.machines.as_slice()), (choice(THERE), &[choice(THERE)][..]));
    let kept = serde_json::to_string(prefs).unwrap();
    assert!(kept.contains(THERE) && !kept.contains("hunter2"), "{kept}");
    let log: Vec<&str> = harness.state().session().log.iter().map(|entry| entry.text.as_str()).collect();
    assert!(log.iter().any(|line| line.contains(THERE)) && !log.iter().any(|line| line.contains("hunter2")));
    let again: Prefs = serde_json::from_str(&kept).unwrap();
    assert_eq!(again.machines, prefs.machines);
}

#[test]
fn the_card_tells_of_a_connection_and_of_its_loss() {
    let (mut harness, fake) = full();
    computes(&fake, "ws://gpu-box:3000/1", there("ws://gpu-box:3000/1"));
    let mut latency = Latency::default();
    latency.add(Duration::from_micros(740));
    fake.send(Event::Remote(RemoteNews::Latency(latency)));
    harness.run_steps(4);
    for text in ["device 1 of gpu-box:3000", "Latency", "median 0.7 ms, worst 0.7 ms of 1"] {
        assert!(shows(&harness, text), "'{text}' is not shown: {:?}", super::labels(&harness));
    }
    let (address, reason) = (choice("ws://gpu-box:3000/1"), "the connection is gone, and nobody listens there now");
    let (wait, of) = (Duration::from_secs(4), 5);
    fake.send(Event::Remote(RemoteNews::Trying { address, reason: reason.into(), attempt: 3, of, wait }));
    harness.run_steps(4);
    assert!(shows(&harness, "try 3 of 5") && shows(&harness, reason) && !shows(&harness, "median"));
    computes(&fake, "ws://gpu-box:3000/1", here("nobody answered five times"));
    harness.run_steps(4);
    assert!(shows(&harness, "nobody answered five times") && !shows(&harness, "try 3 of 5"));
    click(&mut harness, "Connect again");
    assert_eq!(asked(&fake).last().unwrap().1, address);
    click(&mut harness, "Other address or token…");
    let field = harness.get_by_role_and_label(Role::TextInput, "Address");
    assert_eq!(field.value().as_deref(), Some(THERE));
    harness.check_accessibility();
}

#[test]
fn the_picker_leads_to_the_window() {
    let (mut harness, _fake) = full();
    harness.get_by_role_and_label(Role::ComboBox, "Device").scroll_to_me();
    harness.run_steps(6);
    harness.get_by_role_and_label(Role::ComboBox, "Device").click();
    harness.run_steps(4);
    harness.get_by_label("Another machine…").click();
    harness.run_steps(4);
    assert!(shows(&harness, "without encryption"));
    rewrite(&mut harness, "Address", "ws://10.0.0.7:4000/2");
    click(&mut harness, "Copy ssh tunnel as command");
    let log = &harness.state().session().log;
    assert!(log.iter().any(|entry| entry.text.contains("-L 4000:127.0.0.1:4000 10.0.0.7")));
    click(&mut harness, "Close");
    assert!(!shows(&harness, "without encryption"));
}
