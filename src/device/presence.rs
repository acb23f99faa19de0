//! Whether a lender that keeps us waiting is still there. A tunnel keeps its sockets open when the
//! machine behind it has vanished, so that TCP's own keepalive hears of nothing: the lender's port is
//! asked over a connection of its own. A lender that computes for a long time answers that at once.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

use super::address::Address;
use super::fault_injection;
use super::lend::PRESENCE;

/// How long a result is waited for between two questions, and how long the lender may give no sign of
/// life: its answer may be behind data on their way through the same tunnel.
const PATIENCE: [Duration; 2] = [Duration::from_secs(5), Duration::from_secs(30)];
/// The same for tests.
const IMPATIENCE: [Duration; 2] = [Duration::from_millis(200), Duration::from_secs(3)];

/// Time between two questions whether a lender is there, and the longest time without an answer.
pub fn patience() -> [Duration; 2] {
    if fault_injection::are_impatient() { IMPATIENCE } else { PATIENCE }
}

/// Whether anything comes back from the lender's port within `limit`: an answer, or the end of the
/// connection.
pub fn is_there(address: Address, limit: Duration) -> bool {
    let end = Instant::now() + limit;
    let mut places = address.socket().to_socket_addrs().into_iter().flatten();
    places.any(|place| answers(&place, end).unwrap_or(false))
}

fn answers(place: &SocketAddr, end: Instant) -> std::io::Result<bool> {
    // None at all is no time that the system takes.
    let left = || end.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
    let mut stream = TcpStream::connect_timeout(place, left())?;
    stream.set_write_timeout(Some(left()))?;
    // Whether the other side has closed it, reading tells.
    let _ = stream.write_all(format!("{PRESENCE}\r\nHost: {place}\r\n\r\n").as_bytes());
    stream.set_read_timeout(Some(left()))?;
    loop {
        match stream.read(&mut [0]) {
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            // Unix says the one, Windows the other.
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => return Ok(false),
            Ok(_) | Err(_) => return Ok(true),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn an_answer_and_a_closed_connection_are_signs_of_life_and_silence_is_none() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address: Address = format!("ws://{}", listener.local_addr().unwrap()).parse().unwrap();
        // The system takes the connection, as a tunnel does, and nobody answers.
        assert!(!is_there(address, Duration::from_millis(100)));
        drop(listener.accept().unwrap());
        let other_side = std::thread::spawn(move || {
            let (closed, _) = listener.accept().unwrap();
            drop(closed);
            let (mut answered, _) = listener.accept().unwrap();
            answered.write_all(b"H").unwrap();
            // Until the one that asks has closed it.
            while answered.read(&mut [0; 64]).is_ok_and(|read| read > 0) {}
        });
        const LIMIT: Duration = Duration::from_secs(30);
        assert!(is_there(address, LIMIT) && is_there(address, LIMIT));
        other_side.join().unwrap();
        assert!(!is_there(address, LIMIT), "nobody listens");
    }
}
