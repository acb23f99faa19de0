//! Another machine, played by `bayescope serve` in a process of its own.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

/// Lends the CPU until it is dropped.
pub struct Lender {
    process: Child,
    /// What to pass to `--device`.
    pub address: String,
    /// What it said about itself.
    pub report: Value,
}

impl Lender {
    /// On any free port of this machine.
    pub fn start() -> Self {
        Self::with(&["--device", "cpu", "--bind", "127.0.0.1:0"], "")
    }

    /// With arguments of its own, and a token where it is not empty; else without any.
    pub fn with(args: &[&str], token: &str) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_bayescope"));
        command.arg("serve").args(args).arg("--json").env("BAYESCOPE_TOKEN", token);
        if token.is_empty() {
            command.arg("--without-token");
        }
        let mut process = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let report: Value = serde_json::from_str(&line).unwrap_or_else(|e| panic!("{e}: {line:?}"));
        let address = report["address"].as_str().unwrap().to_owned();
        Self { process, address, report }
    }

    /// The same address once more, after the one before has gone.
    pub fn again(&self) -> Self {
        Self::with(&["--device", "cpu", "--bind", self.address.trim_start_matches("ws://")], "")
    }

    /// The process that listens.
    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// SIGKILL: no word to anybody.
    pub fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    /// SIGTERM; whether it ended well.
    pub fn terminate(&mut self) -> bool {
        let id = self.process.id().to_string();
        // The shell's own: a clean Debian has no program of that name.
        assert!(Command::new("sh").args(["-c", "kill -TERM $0", &id]).status().unwrap().success());
        self.process.wait().unwrap().success()
    }
}

impl Drop for Lender {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
