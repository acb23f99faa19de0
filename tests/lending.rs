//! What strangers and clients can do to `bayescope serve`: a websocket client by hand does what burn's would not.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::disallowed_methods)]
#![cfg(all(feature = "lend", target_os = "linux"))]

#[path = "common/lender.rs"]
#[allow(dead_code)]
mod lender;

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpStream};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use lender::Lender;
use rustix::net::{AddressFamily, SocketType, bind, connect, socket};

const PATIENCE: Duration = Duration::from_secs(30);

fn knock(lender: &Lender) -> TcpStream {
    let stream = TcpStream::connect(lender.address.trim_start_matches("ws://")).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// As [`knock`], from another address of this machine.
fn knock_from(lender: &Lender, source: Ipv4Addr) -> TcpStream {
    let SocketAddr::V4(there) = lender.address.trim_start_matches("ws://").parse().unwrap() else {
        panic!("{} is no IPv4 address", lender.address)
    };
    let socket = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    bind(&socket, &SocketAddrV4::new(source, 0)).unwrap();
    connect(&socket, &there).unwrap();
    let stream = TcpStream::from(socket);
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// Asks for `path`; the connection and the first line of the answer.
fn ask(lender: &Lender, path: &str, more: &str) -> (TcpStream, String) {
    let mut stream = knock(lender);
    let line = upgrade(&mut stream, path, more).unwrap();
    (stream, line)
}

/// The first line of the answer to a request for `path`; `None` where the connection is closed instead.
fn upgrade(stream: &mut TcpStream, path: &str, more: &str) -> Option<String> {
    let key = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n";
    let request =
        format!("GET {path} HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n{key}{more}\r\n");
    stream.write_all(request.as_bytes()).ok()?;
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).ok()?;
        head.extend(byte);
    }
    String::from_utf8(head).unwrap().lines().next().map(str::to_owned)
}

/// One binary message under the mask 0. The lender may have closed the connection already, after the message before
/// this one; then [`receive`] tells.
fn send(stream: &mut TcpStream, message: &[u8]) {
    assert!(message.len() < 1 << 16);
    let length = u16::try_from(message.len()).unwrap().to_be_bytes();
    let _ = stream.write_all(&[&[0x82, 0xfe][..], &length, &[0; 4], message].concat());
}

/// The next message; `None` where the connection has ended, or ends.
fn receive(stream: &mut TcpStream) -> Option<Vec<u8>> {
    let mut head = [0; 2];
    stream.read_exact(&mut head).ok()?;
    assert!(head[1] < 127, "a longer answer than any here");
    let mut length = usize::from(head[1]);
    if length == 126 {
        let mut wide = [0; 2];
        stream.read_exact(&mut wide).ok()?;
        length = usize::from(u16::from_be_bytes(wide));
    }
    let mut message = vec![0; length];
    stream.read_exact(&mut message).ok()?;
    (head[0] & 15 == 2).then_some(message)
}

fn text(text: &str) -> Vec<u8> {
    [&[0xa0 | u8::try_from(text.len()).unwrap()][..], text.as_bytes()].concat()
}

/// MessagePack of `[{"Init": [2, [number], 0, token]}]`.
fn init(number: u8, token: &[u8]) -> Vec<u8> {
    let size = u16::try_from(token.len()).unwrap().to_be_bytes();
    [&[0x91, 0x81][..], &text("Init"), &[0x94, 2, 0x91, number, 0, 0xc5], &size, token].concat()
}

/// `[{"Task": {"RegisterOperation": [[0], {"BaseFloat": {"Zeros": [[[3], [[2^36]], "NotInit", "F32"]]}}]}}]`
fn zeros() -> Vec<u8> {
    let size = [&[0x91, 0x91, 0xcf][..], &(1_u64 << 36).to_be_bytes()].concat();
    let tensor = [&[0x91, 0x94, 0x91, 3][..], &size, &text("NotInit"), &text("F32")].concat();
    let float = [&[0x81][..], &text("BaseFloat"), &[0x81], &text("Zeros"), &tensor].concat();
    let task = [&[0x81][..], &text("RegisterOperation"), &[0x92, 0x91, 0], &float].concat();
    [&[0x91, 0x81][..], &text("Task"), &task].concat()
}

/// `[{"Task": {"SyncBackend": [1, [0]]}}]`
fn sync() -> Vec<u8> {
    [&[0x91, 0x81][..], &text("Task"), &[0x81], &text("SyncBackend"), &[0x92, 1, 0x91, 0]].concat()
}

fn session(lender: &Lender, number: u8) -> TcpStream {
    let (mut stream, line) = ask(lender, "/session", "");
    assert!(line.contains("101"), "{line}");
    send(&mut stream, &init(number, b""));
    let answer = receive(&mut stream).unwrap();
    assert!(answer.windows(4).any(|w| w == b"Init") && !answer.windows(7).any(|w| w == b"Refused"), "{answer:?}");
    stream
}

#[test]
fn web_pages_and_transfers_between_servers_stay_outside() {
    let lender = Lender::start();
    assert!(ask(&lender, "/session", "Origin: https://evil.example\r\n").1.contains("403"));
    assert!(ask(&lender, "/data", "").1.contains("404"));
}

#[test]
fn an_impossible_tensor_ends_its_own_session_alone() {
    let lender = Lender::start();
    let (mut good, mut bad) = (session(&lender, 1), session(&lender, 2));
    send(&mut bad, &zeros());
    send(&mut bad, &sync());
    assert_eq!(receive(&mut bad), None, "the process of that session was not ended");
    send(&mut good, &sync());
    let answer = receive(&mut good).unwrap();
    assert!(answer.windows(11).any(|w| w == b"SyncBackend") && answer.windows(2).any(|w| w == b"Ok"), "{answer:?}");
    let mut third = session(&lender, 3);
    send(&mut third, &sync());
    assert!(receive(&mut third).is_some());
}

#[test]
fn who_has_shown_no_token_gets_little_and_waits() {
    let lender = Lender::with(&["--device", "cpu", "--bind", "127.0.0.1:0"], "hunter2");
    let (mut stream, _) = ask(&lender, "/session", "");
    // A gigabyte is announced, as one frame.
    stream.write_all(&[&[0x82, 0xff][..], &(1_u64 << 30).to_be_bytes(), &[0; 4]].concat()).unwrap();
    assert_eq!(receive(&mut stream), None);
    let (mut stream, _) = ask(&lender, "/session", "");
    let began = Instant::now();
    send(&mut stream, &init(1, b"hunter"));
    let answer = receive(&mut stream).unwrap();
    assert!(answer.windows(12).any(|w| w == b"Unauthorized") && began.elapsed() >= Duration::from_millis(900));
    // Of many that only begin a request, four are kept until their time is over, the others are refused at once.
    drop(stream);
    let mut halves: Vec<TcpStream> = (0..12).map(|_| knock(&lender)).collect();
    for half in &mut halves {
        let _ = half.write_all(b"GET /session HTTP/1.1\r\nHost: x\r\n");
    }
    let began = Instant::now();
    for half in &mut halves {
        let _ = half.read_to_end(&mut Vec::new());
    }
    assert!(began.elapsed() < Duration::from_secs(15), "half requests are open after {:?}", began.elapsed());
}

#[test]
fn half_a_request_does_not_hold_the_end_and_a_token_is_drawn() {
    let mut lender = Lender::start();
    let mut half = knock(&lender);
    half.write_all(b"GET /session HTTP/1.1\r\nHost: x\r\n").unwrap();
    let _open = session(&lender, 1);
    let began = Instant::now();
    assert!(lender.terminate() && began.elapsed() < Duration::from_secs(3), "{:?}", began.elapsed());
    // Blanks are no token.
    let lender = Lender::with(&["--device", "cpu", "--bind", "127.0.0.1:0"], " ");
    let token = lender.report["drawn_token"].as_str().unwrap();
    assert!(token.len() == 32 && lender.report["token"] == true);
    let (mut stream, _) = ask(&lender, "/session", "");
    send(&mut stream, &init(1, token.as_bytes()));
    assert!(!receive(&mut stream).unwrap().windows(7).any(|w| w == b"Refused"));
}

/// What a process and its children hold: open files, children, MiB of its own memory.
fn held(id: u32) -> (usize, usize, usize) {
    let files = std::fs::read_dir(format!("/proc/{id}/fd")).unwrap().count();
    let threads = std::fs::read_dir(format!("/proc/{id}/task")).unwrap();
    // A thread may end while it is looked at.
    let children: String = threads
        .filter_map(|thread| std::fs::read_to_string(thread.unwrap().path().join("children")).ok())
        .collect::<Vec<_>>()
        .join(" ");
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap();
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    let kilobytes: usize = resident.trim().trim_end_matches(" kB").parse().unwrap();
    (files, children.split_whitespace().count(), kilobytes / 1024)
}

/// Draws samples on the lent device again and again, counts how often, and wants the same bytes each time.
fn compute(lender: &Lender, goes_on: impl Fn() -> bool, times: &AtomicUsize, expected: &[u8], out: &Path) {
    while goes_on() {
        sample(lender, out);
        assert!(std::fs::read(out).unwrap() == expected, "other bytes while a stranger was about");
        times.fetch_add(1, Ordering::Relaxed);
    }
}

fn sample(lender: &Lender, out: &Path) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bayescope"));
    command
        .args(["sample", "mnist", "--n", "64", "--seed", "5", "--device", &lender.address, "--force", "--out"])
        .arg(out);
    let output = command.env("BAYESCOPE_TOKEN", TOKEN).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

const TOKEN: &str = "hunter2";
const STRANGER: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);

/// What docs/upstream.md reports in its points 1, 2 and 4 to 6, once. Whether each attempt is answered or closed is the lender's choice.
fn misbehave(lender: &Lender, round: u8) {
    let mut open = Vec::new();
    // Half requests, more than are kept.
    for _ in 0..8 {
        let mut half = knock_from(lender, STRANGER);
        let _ = half.write_all(b"GET /session HTTP/1.1\r\nHost: x\r\n");
        open.push(half);
    }
    drop(open);
    // A page, a transfer between servers, a head without end.
    let _ = upgrade(&mut knock_from(lender, STRANGER), "/session", "Origin: https://evil.example\r\n");
    let _ = upgrade(&mut knock_from(lender, STRANGER), "/data", "");
    let _ = knock_from(lender, STRANGER).write_all(&[b'x'; 1 << 16]);
    let begin = || {
        let mut stream = knock_from(lender, STRANGER);
        upgrade(&mut stream, "/session", "").map(|_| stream)
    };
    // A gigabyte announced, words that are none, a wrong token.
    for message in [&[0xff; 100][..], &[0xdd, 0xff, 0xff, 0xff, 0xff], &init(round, b"wrong")] {
        if let Some(mut stream) = begin() {
            send(&mut stream, message);
            let _ = receive(&mut stream);
        }
    }
    if let Some(mut stream) = begin() {
        let _ = stream.write_all(&[&[0x82, 0xff][..], &(1_u64 << 30).to_be_bytes(), &[0; 4]].concat());
        let _ = stream.read(&mut [0]);
    }
    // With the token: a tensor of 2^36 numbers.
    if let Some(mut stream) = begin() {
        send(&mut stream, &init(round, TOKEN.as_bytes()));
        if receive(&mut stream).is_some() {
            send(&mut stream, &zeros());
            send(&mut stream, &sync());
            assert_eq!(receive(&mut stream), None, "an impossible tensor was answered");
        }
    }
}

/// How often the stranger does its worst: a lender that kept anything of a round would hold twenty of it.
const ROUNDS: u32 = 20;
/// How often each client draws samples meanwhile, at least.
const TIMES: usize = 3;
/// Longer than that takes, even on a busy machine.
const LONGEST: Duration = Duration::from_secs(180);

#[test]
fn two_clients_compute_while_a_third_does_its_worst() {
    let lender = Lender::with(&["--device", "cpu", "--bind", "127.0.0.1:0"], TOKEN);
    let folder = tempfile::tempdir().unwrap();
    let alone = folder.path().join("alone.npz");
    sample(&lender, &alone);
    let expected = std::fs::read(&alone).unwrap();
    let before = held(lender.id());
    let (until, over) = (Instant::now() + LONGEST, AtomicBool::new(false));
    let (times, mut rounds) = ([AtomicUsize::new(0), AtomicUsize::new(0)], 0_u32);
    std::thread::scope(|scope| {
        let (lender, expected) = (&lender, &expected);
        let goes_on = || Instant::now() < until && !over.load(Ordering::Relaxed);
        for (name, times) in ["a.npz", "b.npz"].iter().zip(&times) {
            let out = folder.path().join(name);
            scope.spawn(move || compute(lender, goes_on, times, expected, &out));
        }
        let computed = || times.iter().all(|times| times.load(Ordering::Relaxed) >= TIMES);
        while goes_on() && (rounds < ROUNDS || !computed()) {
            misbehave(lender, 100 + (rounds % ROUNDS) as u8);
            rounds += 1;
        }
        over.store(true, Ordering::Relaxed);
    });
    let times = times.map(AtomicUsize::into_inner);
    assert!(times.iter().all(|&times| times >= TIMES) && rounds >= ROUNDS, "{times:?} samples, {rounds} rounds");
    // Half requests end after 5 s, sessions whose client has gone at once.
    let began = Instant::now();
    let mut after = held(lender.id());
    while (after.0 > before.0 || after.1 > before.1) && began.elapsed() < PATIENCE {
        std::thread::sleep(Duration::from_millis(200));
        after = held(lender.id());
    }
    println!("{times:?} samples, {rounds} rounds; files, children, MiB: {before:?} before, {after:?} after");
    assert!(after.0 <= before.0 && after.1 <= before.1, "files, children: {before:?} before, {after:?} after");
    assert!(after.2 <= before.2 + 16, "MiB: {} before, {} after", before.2, after.2);
}
