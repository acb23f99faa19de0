//! `bayescope serve`: lends this machine's device to another one.

use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::io::Read;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, ToSocketAddrs, UdpSocket};
use std::process::Command;

use super::args::ServeArgs;
use serde::Serialize;
use sha2::{Digest, Sha256};

use super::output::{print_json_line, print_text};
use super::program::{Start, again};
use crate::device::remote::TOKEN;
use crate::device::{Candidate, DeviceChoice, OpenDevice, choose, lend, ssh_tunnel};
use crate::error::{Error, Result};

#[derive(Serialize)]
struct Report<'a> {
    /// What to pass to `--device` on the other machine.
    address: String,
    /// What is lent, in the order of its numbers.
    devices: Vec<&'a Candidate>,
    token: bool,
    /// The token, where it was drawn here.
    #[serde(skip_serializing_if = "Option::is_none")]
    drawn_token: Option<String>,
}

/// Lends until Ctrl+C or SIGTERM.
pub fn run(args: &ServeArgs) -> Result<()> {
    lend::is_built_in()?;
    let told = std::env::var(TOKEN).ok().map(|token| token.trim().to_owned()).filter(|token| !token.is_empty());
    if args.one_session {
        let devices: Vec<OpenDevice> = args.device.iter().map(|choice| choose(*choice)).collect::<Result<_>>()?;
        let bytes = args.session_memory.map(|gib| gib << 30).or_else(half_the_memory);
        return lend::lend_to_one(&devices, told.as_deref(), bytes, |port| print_text(&format!("{port}\n")));
    }
    let place = place(&args.bind)?;
    if args.without_token && !place.ip().is_loopback() {
        return Err(Error::input(format!(
            "{place} is reached from other machines, and everyone there could use this device: leave --without-token out (a token \
             is drawn where {TOKEN} holds none), or listen on 127.0.0.1 and use an ssh tunnel (see docs/remote.md)"
        )));
    }
    let drawn = (told.is_none() && !args.without_token).then(draw_token);
    let token = if args.without_token { None } else { told.or_else(|| drawn.clone()) };
    // What is named before it is opened, and what `auto` has become.
    can_be_lent(&args.device)?;
    let devices: Vec<OpenDevice> = args.device.iter().map(|choice| choose(*choice)).collect::<Result<_>>()?;
    can_be_lent(&devices.iter().map(|chosen| chosen.report.used.choice).collect::<Vec<_>>())?;
    let refused = |e: std::io::Error| Error::input(format!("--bind {}: {e}", args.bind));
    let listener = TcpListener::bind(place).map_err(refused)?;
    let place = listener.local_addr().map_err(refused)?;
    let report = Report {
        address: format!("ws://{}", reached(place)),
        devices: devices.iter().map(|chosen| &chosen.report.used).collect(),
        token: token.is_some(),
        drawn_token: drawn,
    };
    if args.json {
        print_json_line(&report)?
    } else {
        print_text(&explanation(&report, place))?
    }
    let names: Vec<String> = report.devices.iter().map(|used| used.choice.to_string()).collect();
    let (names, memory) = (names.join(","), args.session_memory);
    lend::open_door(&listener, || {
        let Start { program, leading } = again()?;
        let mut command = Command::new(program);
        command
            .args(leading)
            .args(["serve", "--one-session", "--device", &names])
            .env(TOKEN, token.as_deref().unwrap_or_default());
        if let Some(gib) = memory {
            command.arg("--session-memory").arg(gib.to_string());
        }
        Ok(command)
    })
}

/// Whether burn's server lends these devices together: GPUs, through wgpu and CUDA, or the processor, and
/// none that is lent itself.
///
/// # Errors
/// Names what does not go, and what does.
fn can_be_lent(devices: &[DeviceChoice]) -> Result<()> {
    if let Some(lent) = devices.iter().find(|choice| matches!(choice, DeviceChoice::Remote(_))) {
        return Err(Error::input(format!(
            "{lent} is another machine's device, and cannot be lent on: lend it there (`bayescope serve`), and name it here"
        )));
    }
    let gpu = devices.iter().find(|choice| matches!(choice, DeviceChoice::Wgpu(_) | DeviceChoice::Cuda(_)));
    match gpu.filter(|_| devices.contains(&DeviceChoice::Cpu)) {
        Some(gpu) => Err(Error::input(format!(
            "cpu and {gpu} cannot be lent by one server: start a second `bayescope serve --device cpu` on another port"
        ))),
        None => Ok(()),
    }
}

/// A random token: 128 bits of the system's randomness, as 32 hexadecimal digits.
fn draw_token() -> String {
    let mut digest = Sha256::new();
    let mut bytes = [0_u8; 32];
    if File::open("/dev/urandom").and_then(|mut source| source.read_exact(&mut bytes)).is_ok() {
        digest.update(bytes);
    }
    // The keys of the standard library's maps are 128 bits of the system's randomness.
    let keys = RandomState::new();
    for i in 0..4_u64 {
        digest.update(keys.hash_one(i).to_le_bytes());
    }
    digest.finalize().iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

/// Half of this machine's memory in bytes, where the system tells (Linux).
fn half_the_memory() -> Option<u64> {
    let told = std::fs::read_to_string("/proc/meminfo").ok()?;
    let kib: u64 =
        told.lines().find_map(|line| line.strip_prefix("MemTotal:"))?.split_whitespace().next()?.parse().ok()?;
    Some(kib * 1024 / 2)
}

fn place(bind: &str) -> Result<SocketAddr> {
    let mut found = bind.to_socket_addrs().map_err(|e| Error::input(format!("--bind {bind}: {e}; write HOST:PORT")))?;
    found.next().ok_or_else(|| Error::input(format!("--bind {bind}: the name has no address")))
}

/// Where others reach what listens at `place`: of "every address" the one that leads out.
fn reached(place: SocketAddr) -> SocketAddr {
    if !place.ip().is_unspecified() {
        return place;
    }
    // Nothing is sent: the system only says which of its addresses it would send from.
    let own = || -> std::io::Result<IpAddr> {
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
        socket.connect((Ipv4Addr::new(192, 0, 2, 1), 9))?;
        Ok(socket.local_addr()?.ip())
    };
    SocketAddr::new(own().unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST)), place.port())
}

fn explanation(report: &Report<'_>, place: SocketAddr) -> String {
    let Report { address, devices, token, drawn_token } = report;
    let set = drawn_token.as_ref().map(|token| format!("{TOKEN}={token} ")).unwrap_or_default();
    let port = place.port();
    let mut text = String::new();
    for (i, used) in devices.iter().enumerate() {
        let number = if i == 0 { String::new() } else { format!("/{i}") };
        text += &format!("lending {} as {address}{number}\n", used.label());
    }
    let (near, far) = (place.ip().is_loopback(), "USER@THIS-MACHINE");
    if near {
        text += "\nOnly this machine reaches it. On the other one, leave this open:\n\n";
    } else {
        text += &format!(
            "\nOn the other machine:\n\n  {set}bayescope --device {address}\n\nThe connection is not encrypted: everyone on the way can read \
             images, weights{}.\nOn anything but a trusted network listen on 127.0.0.1 only, and go through ssh:\n\n",
            if *token { " and the token" } else { "" }
        );
    }
    text += &format!("  {}\n  {set}bayescope --device ws://127.0.0.1:{port}\n\n", ssh_tunnel(port, far));
    text += match (token, drawn_token) {
        (true, None) => "A token is required: BAYESCOPE_TOKEN there must be the same as here.\n",
        (true, Some(_)) => {
            "The token was drawn for this run. Put one into BAYESCOPE_TOKEN, here and there, to keep it.\n"
        }
        (false, _) => "No token is required: everyone on this machine can use the device and its memory.\n",
    };
    text + "Ctrl+C ends it.\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(token: bool) -> Report<'static> {
        Report { address: "ws://10.0.0.7:3000".into(), devices: Vec::new(), token, drawn_token: None }
    }

    #[test]
    fn what_others_must_do_is_said_with_its_dangers() {
        let near = explanation(&report(false), "127.0.0.1:3000".parse().unwrap());
        assert!(
            near.contains(" -o ServerAliveInterval=10 -L 3000:127.0.0.1:3000 USER@")
                && near.contains("Only this machine reaches it"),
            "{near}"
        );
        let far = explanation(&report(true), "10.0.0.7:3000".parse().unwrap());
        assert!(
            far.contains("--device ws://10.0.0.7:3000") && far.contains("not encrypted") && far.contains("the token")
        );
    }

    #[test]
    fn what_no_server_can_lend_is_refused_before_it_is_announced() {
        let asked = |text: &str| {
            let devices: Vec<DeviceChoice> = text.split(',').map(|choice| choice.parse().unwrap()).collect();
            can_be_lent(&devices).map_err(|error| error.to_string())
        };
        for fine in ["auto", "cpu", "cpu,cpu", "wgpu:0,cuda:1", "auto,wgpu:0"] {
            assert_eq!(asked(fine), Ok(()), "{fine}");
        }
        assert!(asked("cpu,wgpu:0").unwrap_err().contains("cpu and wgpu:0"));
        assert!(asked("cuda:0,auto,cpu").unwrap_err().contains("cpu and cuda:0"));
        assert!(asked("cpu,ws://gpu-box:3000").unwrap_err().contains("ws://gpu-box:3000 is another machine's"));
    }

    #[test]
    fn every_address_is_told_as_one_that_can_be_reached() {
        let reached = reached("0.0.0.0:4711".parse().unwrap());
        assert!(!reached.ip().is_unspecified() && reached.port() == 4711);
    }
}
