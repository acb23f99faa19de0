//! The device of another machine, from the command line and the library: the same figures as there, and what is said and kept when
//! it goes away. The other machine is a process of its own that lends the CPU.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::disallowed_methods)]
#![cfg(feature = "lend")]

#[path = "common/mod.rs"]
mod common;
#[allow(dead_code)]
#[path = "cli/run.rs"]
mod run;

use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use bayescope::device::remote::{Answer, lost, round_trip, use_token};
use bayescope::device::{DeviceChoice, choose, explain, fault_injection, to_host};
use bayescope::error::Error;
use burn::tensor::Tensor;

use common::lender::Lender;
use common::npz::npz_array;
use common::tunnel::Tunnel;
use common::{max_abs, tiny};
use run::{bayescope, fail, json, succeed, text};

/// Longer than any answer here takes, even on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// One array of an npz file.
fn array(path: &Path, name: &str) -> Vec<f64> {
    match name {
        "logp" | "aleatoric" | "log_px" => npz_array(path, name),
        _ => npz_array::<f32>(path, name).into_iter().map(f64::from).collect(),
    }
}

#[test]
fn samples_and_posteriors_are_those_of_the_device_there() {
    let (lender, folder) = (Lender::start(), tempfile::tempdir().unwrap());
    let [here, there] = ["here.npz", "there.npz"].map(|name| folder.path().join(name));
    for (path, device) in [(&here, "cpu"), (&there, lender.address.as_str())] {
        succeed(&["sample", "mnist", "--n", "48", "--seed", "3", "--device", device, "--out", text(path)]);
    }
    for name in ["x", "posterior", "aleatoric"] {
        let off = max_abs(&array(&here, name), &array(&there, name));
        assert!(off <= 1e-5, "{name} is off by {off}");
    }
    // log p is of the order of 10³ nats: the same to seven digits.
    let off = max_abs(&array(&here, "logp"), &array(&there, "logp"));
    assert!(off <= 1e-3, "log p is off by {off} nats");
    let posterior = |device: &str| json(&["posterior", "mnist", text(&here), "--device", device, "--json"]);
    let (near, far) = (posterior("cpu"), posterior(&lender.address));
    let figures = |report: &serde_json::Value| -> Vec<f64> {
        let images = report["images"].as_array().unwrap();
        images.iter().flat_map(|i| i["posterior"].as_array().unwrap()).map(|p| p.as_f64().unwrap()).collect()
    };
    let off = max_abs(&figures(&near), &figures(&far));
    assert!(off <= 1e-5 && figures(&near).len() == 480, "posteriors are off by {off}");
    assert!(far["precision"]["max_posterior_error"].as_f64().unwrap() < 1e-3);
}

/// Here our own kernels compute, there burn's: the class-map worlds agree to what 32 bits allow.
#[test]
fn a_class_map_world_and_its_bayes_error_are_the_same_there() {
    let (lender, folder) = (Lender::start(), tempfile::tempdir().unwrap());
    let oracle = tiny::tarflow_file(folder.path(), 3, 8);
    let [here, there] = ["here.npz", "there.npz"].map(|name| folder.path().join(name));
    for (path, device) in [(&here, "cpu"), (&there, lender.address.as_str())] {
        succeed(&["sample", text(&oracle), "--n", "24", "--seed", "3", "--device", device, "--out", text(path)]);
    }
    for (name, bound) in [("x", 1e-4), ("posterior", 1e-3)] {
        let off = max_abs(&array(&here, name), &array(&there, name));
        assert!(off <= bound, "{name} is off by {off}");
    }
    let error = |device: &str| json(&["bayes-error", text(&oracle), "--samples", "200", "--device", device, "--json"]);
    let (near, far) = (error("cpu"), error(&lender.address));
    let off = (near["value"].as_f64().unwrap() - far["value"].as_f64().unwrap()).abs();
    assert!(off <= 1e-3, "{near} {far}");
}

#[test]
fn a_run_is_carried_out_there() {
    let (lender, folder) = (Lender::start(), tempfile::tempdir().unwrap());
    let oracle = tiny::gaussian_file(folder.path());
    let (spec, out) = (folder.path().join("spec.toml"), folder.path().join("run"));
    let grid = "[grid]\narchitectures = ['linear']\ntrain_sizes = [100, 200]\nseeds = [0]\n[test]\nimages = 200\nwatched = 50\n\
                [training]\nepochs = 3\nlearning_rate = 1e-2\n";
    std::fs::write(&spec, format!("name = 'there'\n[world]\noracle = '{}'\n{grid}", text(&oracle))).unwrap();
    let summary = json(&["run", text(&spec), "--out", text(&out), "--device", &lender.address, "--json"]);
    let near = folder.path().join("near");
    let local = json(&["run", text(&spec), "--out", text(&near), "--device", "cpu", "--json"]);
    let losses = |summary: &serde_json::Value| -> Vec<f64> {
        let cells = summary["cells"].as_array().unwrap();
        cells.iter().map(|cell| cell["measured"]["cross_entropy"]["value"].as_f64().unwrap()).collect()
    };
    let off = max_abs(&losses(&summary), &losses(&local));
    assert!(off < 1e-5 && losses(&local).len() == 2, "cross-entropies are off by {off} nats");
}

#[test]
fn whoever_does_not_answer_is_named_with_the_way_out() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("x.png");
    let refused = |device: &str, token: &str| {
        let began = Instant::now();
        let mut command = bayescope(&["sample", "mnist", "--n", "1", "--out", text(&out), "--device", device]);
        let output = command.env("BAYESCOPE_TOKEN", token).output().unwrap();
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{message}");
        assert!(began.elapsed() < PATIENCE && !message.contains("panicked"), "{message}");
        assert!(message.contains(device) && !message.contains("hunter2"), "{message}");
        message
    };
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let place = free.local_addr().unwrap();
    // Something listens and says nothing.
    assert!(refused(&format!("ws://{place}"), "").contains("does not answer within"));
    drop(free);
    let message = refused(&format!("ws://{place}"), "");
    assert!(message.contains("nobody listens there") && message.contains("bayescope serve"), "{message}");
    let message = refused("ws://no-such-host.invalid:3000", "");
    assert!(message.contains("name no-such-host.invalid is not known"), "{message}");
    let lender = Lender::with(&["--device", "cpu,cpu", "--bind", "127.0.0.1:0"], "hunter2");
    assert_eq!(lender.report["devices"].as_array().unwrap().len(), 2);
    assert!(refused(&lender.address, "").contains("a token is wanted"));
    assert!(refused(&lender.address, "hunter").contains("the token was refused"));
    assert!(refused(&format!("{}/2", lender.address), "hunter2").contains("2 devices are lent there"));
    let mut second = bayescope(&["doctor", "--json", "--device", &format!("{}/1", lender.address)]);
    let output = second.env("BAYESCOPE_TOKEN", "hunter2").output().unwrap();
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["use"]["used"]["choice"], format!("{}/1", lender.address));
    let [median, worst] = [0, 1].map(|i| report["round_trip_ms"][i].as_f64().unwrap());
    assert!(0.0 < median && median <= worst, "{report}");
    assert!(!String::from_utf8_lossy(&output.stdout).contains("hunter2"));
    assert!(fail(2, &["doctor", "--device", "wss://gpu"]).contains("ssh -L"));
}

#[test]
fn nothing_is_lent_to_everybody_by_mistake_and_a_signal_ends_it() {
    let message = fail(1, &["serve", "--device", "cpu", "--bind", "0.0.0.0:0", "--without-token"]);
    assert!(message.contains("BAYESCOPE_TOKEN") && message.contains("--without-token"), "{message}");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let place = taken.local_addr().unwrap().to_string();
    assert!(fail(1, &["serve", "--device", "cpu", "--bind", &place]).contains(&place));
    let mut lender = Lender::with(&["--device", "cpu", "--bind", "0.0.0.0:0"], "hunter2");
    assert!(!lender.address.contains("0.0.0.0") && lender.report["token"] == true, "{}", lender.report);
    let nested = fail(1, &["serve", "--bind", "127.0.0.1:0", "--device", &lender.address]);
    assert!(nested.contains("cannot be lent on"), "{nested}");
    let mixed = fail(1, &["serve", "--bind", "127.0.0.1:0", "--device", "cpu,wgpu:0"]);
    assert!(mixed.contains("cpu and wgpu:0 cannot be lent by one server"), "{mixed}");
    let DeviceChoice::Remote(address) = lender.address.parse().unwrap() else { panic!("no address") };
    use_token(address, "hunter2");
    choose(DeviceChoice::Remote(address)).unwrap();
    assert!(lender.terminate(), "it did not end well with a client connected");
    assert!(matches!(round_trip(address, PATIENCE), Answer::Gone(_)));
}

/// burn gives back the dead session when it is asked again: ours is replaced.
#[test]
fn a_session_that_has_ended_is_replaced() {
    let mut lender = Lender::start();
    let choice: DeviceChoice = lender.address.parse().unwrap();
    let DeviceChoice::Remote(address) = choice else { panic!("no address") };
    let product = |device: &burn::tensor::Device| {
        (Tensor::<1>::from_floats([1.0, 2.0], device) * 3.0).try_into_vec_as::<f64>().map_err(|e| e.to_string())
    };
    let first = choose(choice).unwrap();
    assert_eq!(product(&first.device).unwrap(), [3.0, 6.0]);
    assert_eq!(choose(choice).unwrap().device, first.device, "a session that answers is used again");
    lender.kill();
    let raw = Error::Device(product(&first.device).unwrap_err());
    let told = explain(raw, Some(choice)).to_string();
    assert!(told.contains(&lender.address) && told.contains("nobody listens there now"), "{told}");
    assert!(lost(address).is_some() && choose(choice).is_err());
    let _again = lender.again();
    let second = choose(choice).unwrap();
    assert!(second.device != first.device && lost(address).is_none());
    assert_eq!(product(&second.device).unwrap(), [3.0, 6.0]);
    assert!(product(&first.device).is_err(), "the old one stays dead");
    // Other failures are left as they are.
    let other = explain(Error::Device("too large".into()), Some(choice)).to_string();
    assert_eq!(other, "device: too large");
}

/// TCP's keepalive hears only of the near end of a tunnel, which stays. Without the question over a connection of its own the
/// first wait ends too early, or the second never.
#[test]
fn a_lender_that_vanishes_behind_a_tunnel_is_told_from_one_that_computes() {
    let lender = Lender::start();
    let tunnel = Tunnel::to(&lender.address);
    fault_injection::impatient();
    let choice: DeviceChoice = tunnel.address.parse().unwrap();
    let device = choose(choice).unwrap().device;
    let product = || to_host(Tensor::<1>::from_floats([1.0, 2.0], &device) * 3.0);
    tunnel.hold();
    let late = std::thread::scope(|scope| {
        let late = scope.spawn(product);
        // Longer than silence is borne.
        std::thread::sleep(Duration::from_secs(5));
        tunnel.release();
        late.join().unwrap()
    });
    assert_eq!(late.unwrap(), [3.0, 6.0]);
    tunnel.cut();
    let began = Instant::now();
    let told = explain(product().unwrap_err(), Some(choice)).to_string();
    assert!(told.contains(&tunnel.address) && told.contains("nothing has come back for 3 s"), "{told}");
    assert!(began.elapsed() < PATIENCE, "{:?}", began.elapsed());
    // What comes through later is a dead session's.
    tunnel.release();
    assert!(product().is_err() && product_of(choice) == [3.0, 6.0]);
}

/// What a new session of a device computes.
fn product_of(choice: DeviceChoice) -> Vec<f64> {
    let device = choose(choice).unwrap().device;
    to_host(Tensor::<1>::from_floats([1.0, 2.0], &device) * 3.0).unwrap()
}

/// Waits until a job has kept something.
fn scores(out: &Path) {
    let begun = Instant::now();
    let kept = || {
        let files = std::fs::read_dir(out).into_iter().flatten().flatten();
        let mut scores = files.into_iter().filter(|file| file.file_name().to_string_lossy().ends_with(".scores"));
        scores.any(|file| file.metadata().is_ok_and(|file| file.len() > 0))
    };
    while !kept() {
        assert!(begun.elapsed() < PATIENCE, "nothing was begun");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The lender is killed in the middle: the command says so and keeps what it has; with the lender back, the same bytes come out as
/// without the accident.
#[test]
fn a_lost_connection_costs_a_job_nothing_but_time() {
    let (mut lender, folder) = (Lender::start(), tempfile::tempdir().unwrap());
    let [input, whole, out] = ["x.npz", "whole", "out"].map(|name| folder.path().join(name));
    succeed(&["sample", "mnist", "--n", "240", "--device", "cpu", "--out", text(&input)]);
    let address = lender.address.clone();
    let args = |out| {
        ["posterior", "mnist", text(&input), "--image-batch", "8", "--no-compare", "--device", &address, "--out", out]
            .map(str::to_owned)
    };
    succeed(&args(text(&whole)).each_ref().map(String::as_str));
    let args = args(text(&out));
    let args = args.each_ref().map(String::as_str);
    let child = bayescope(&args).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    scores(&out);
    lender.kill();
    let killed = Instant::now();
    let output = child.wait_with_output().unwrap();
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{message}");
    assert!(message.contains(&address) && message.contains("connection is gone"), "{message}");
    assert!(!message.contains("panicked") && killed.elapsed() < PATIENCE, "{message}");
    let kept = std::fs::metadata(out.join("shard-0-of-1.scores")).map_or(0, |file| file.len());
    assert!(kept > 0, "nothing was kept");
    lender = lender.again();
    assert_eq!(lender.address, address);
    succeed(&args);
    let bytes = |folder: &Path| std::fs::read(folder.join("posteriors.npz")).unwrap();
    assert!(bytes(&whole) == bytes(&out), "the resumed job ends in other bits");
}

/// Of several devices one is a lender that is killed: the others finish its work, and say so.
#[test]
fn a_lender_that_dies_leaves_its_work_to_those_beside_it() {
    let (mut lender, folder) = (Lender::start(), tempfile::tempdir().unwrap());
    let [input, out] = ["x.npz", "out"].map(|name| folder.path().join(name));
    succeed(&["sample", "mnist", "--n", "480", "--device", "cpu", "--out", text(&input)]);
    let devices = format!("cpu,{}", lender.address);
    let args = ["posterior", "mnist", text(&input), "--image-batch", "8", "--no-compare", "--device", &devices];
    let args = [&args[..], &["--out", text(&out)]].concat();
    let child = bayescope(&args).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    // The first shard that has scores is the CPU's: the lender holds one of which nothing is finished yet.
    scores(&out);
    lender.kill();
    let output = child.wait_with_output().unwrap();
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{message}");
    assert!(message.contains(&lender.address) && message.contains("Its work goes to the other devices"), "{message}");
    let result = out.join("posteriors.npz");
    let (found, drawn) = (array(&result, "posterior"), array(&input, "posterior"));
    assert!(max_abs(&found, &drawn) < 1e-4, "{}", max_abs(&found, &drawn));
}
