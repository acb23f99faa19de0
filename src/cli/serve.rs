//! `bayescope serve`: lends this machine's device to another one.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, ToSocketAddrs, UdpSocket};

use clap::Args;
use serde::Serialize;

use super::{print_json_line, print_text};
use crate::device::remote::TOKEN;
use crate::device::{Candidate, Chosen, DeviceChoice, choose, lend};
use crate::error::{Error, Result};

/// Arguments of `serve`.
#[derive(Debug, Args)]
pub struct ServeArgs {
    /// Devices to lend, numbered in this order: auto, wgpu:N, cuda:N or cpu (see `bayescope doctor`).
    #[arg(long, value_delimiter = ',', default_value = "auto", value_name = "DEVICE,…")]
    pub device: Vec<DeviceChoice>,
    /// Where to listen. Port 0 is any free one; 0.0.0.0 is reached from everywhere and wants a token in BAYESCOPE_TOKEN.
    #[arg(long, default_value = "127.0.0.1:3000", value_name = "HOST:PORT")]
    pub bind: String,
    /// Lend to everyone who reaches the port, though it is not only this machine.
    #[arg(long)]
    pub without_token: bool,
    /// Print one line of JSON about what is lent, instead of the explanation.
    #[arg(long)]
    pub json: bool,
}

#[derive(Serialize)]
struct Report<'a> {
    /// What to pass to `--device` on the other machine.
    address: String,
    /// What is lent, in the order of its numbers.
    devices: Vec<&'a Candidate>,
    token: bool,
}

/// Lends until Ctrl+C or SIGTERM.
pub fn run(args: &ServeArgs) -> Result<()> {
    let token = std::env::var(TOKEN).ok().map(|token| token.trim().to_owned()).filter(|token| !token.is_empty());
    let place = place(&args.bind)?;
    if !place.ip().is_loopback() && token.is_none() && !args.without_token {
        return Err(Error::input(format!(
            "{place} is reached from other machines, and everyone there could use this device: put a token into {TOKEN}, or listen \
             on 127.0.0.1 and use an ssh tunnel (see docs/remote.md), or add --without-token"
        )));
    }
    let devices: Vec<Chosen> = args.device.iter().map(|choice| choose(*choice)).collect::<Result<_>>()?;
    let refused = |e: std::io::Error| Error::input(format!("--bind {}: {e}", args.bind));
    let listener = TcpListener::bind(place).map_err(refused)?;
    let place = listener.local_addr().map_err(refused)?;
    let report = Report {
        address: format!("ws://{}", reached(place)),
        devices: devices.iter().map(|chosen| &chosen.report.used).collect(),
        token: token.is_some(),
    };
    if args.json {
        print_json_line(&report)?
    } else {
        print_text(&explanation(&report, place))?
    }
    lend::lend(&devices, listener, token.as_deref())
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
    let Report { address, devices, token } = report;
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
            "\nOn the other machine:\n\n  bayescope --device {address}\n\nThe connection is not encrypted: everyone on the way can read \
             images, weights{}.\nOn anything but a trusted network listen on 127.0.0.1 only, and go through ssh:\n\n",
            if *token { " and the token" } else { "" }
        );
    }
    text += &format!("  ssh -N -L {port}:127.0.0.1:{port} {far}\n  bayescope --device ws://127.0.0.1:{port}\n\n");
    text += match token {
        true => "A token is wanted: BAYESCOPE_TOKEN there must be the same as here.\n",
        false => {
            "No token is wanted. Put one into BAYESCOPE_TOKEN, here and there, where others use this machine too.\n"
        }
    };
    text + "Ctrl+C ends it.\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(token: bool) -> Report<'static> {
        Report { address: "ws://10.0.0.7:3000".into(), devices: Vec::new(), token }
    }

    #[test]
    fn what_others_must_do_is_said_with_its_dangers() {
        let near = explanation(&report(false), "127.0.0.1:3000".parse().unwrap());
        assert!(
            near.contains("ssh -N -L 3000:127.0.0.1:3000") && near.contains("Only this machine reaches it"),
            "{near}"
        );
        let far = explanation(&report(true), "10.0.0.7:3000".parse().unwrap());
        assert!(
            far.contains("--device ws://10.0.0.7:3000") && far.contains("not encrypted") && far.contains("the token")
        );
    }

    #[test]
    fn every_address_is_told_as_one_that_can_be_reached() {
        let reached = reached("0.0.0.0:4711".parse().unwrap());
        assert!(!reached.ip().is_unspecified() && reached.port() == 4711);
    }
}
