//! The crash matrix: every command that leaves results, disturbed in every way a machine can disturb it. Whatever happens, every file
//! that is there is whole, a refusal names the file, and the command given again ends in the bytes of an undisturbed run.
//!
//! | | kill -9 | full disk | read-only | folder deleted | two at once | file times moved |
//! |---|---|---|---|---|---|---|
//! | `run` | here, and `cli::twenty_kills_change_nothing` | `cli::a_full_disk_stops_a_run_…` | here | here | here | here |
//! | `posterior --out` | here | here | here | here | here | here |
//! | `export` | here | here | here | here | here | here |
//! | `oracle train` | here | here | here | here | here | here |

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::disallowed_methods)]

#[path = "../common/mod.rs"]
mod common;
mod disks;
mod writers;

use std::fs::{File, FileTimes};
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use common::fill::uniform;
use writers::{Bench, Ended, Writer, sound, visit};

/// Kills of each command.
const KILLS: usize = 6;

/// Starts a command and kills it after a part of the time that it takes undisturbed. Whether it was still running.
fn killed(bench: &Bench, writer: Writer, out: &Path, wait: Duration) -> bool {
    let mut child = bench.start(writer, out);
    std::thread::sleep(wait);
    let running = child.try_wait().unwrap().is_none();
    child.kill().unwrap();
    child.wait().unwrap();
    running
}

/// The command given once more ends well, and as if nothing had happened.
fn ends_the_same(bench: &Bench, writer: Writer, out: &Path, after: &str) {
    let Ended { code, said } = bench.run(writer, out);
    assert_eq!(code, Some(0), "{writer:?} after {after}: {said}");
    sound(out);
    let (found, whole) = (writer.results(out), bench.whole(writer));
    let names = |files: &[(String, Vec<u8>)]| files.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
    assert_eq!(names(&found), names(&whole.results), "{writer:?} after {after}");
    for ((name, found), (_, whole)) in found.iter().zip(&whole.results) {
        assert!(found == whole, "{writer:?} after {after}: {name} differs");
    }
}

#[test]
fn kills() {
    let bench = Bench::new();
    for writer in Writer::ALL {
        let took = bench.whole(writer).took;
        let out = bench.path("killed");
        let (mut hit, mut share) = (0, 1.0);
        for wait in uniform(&format!("{writer:?}"), 9, KILLS) {
            // Mostly in what comes after the start of the program.
            let wait = took.mul_f64(share * (0.5 + 0.45 * wait));
            let running = killed(&bench, writer, &out, wait);
            hit += usize::from(running);
            sound(&out);
            if !running {
                // Undisturbed it ran while the machine was busier. From the beginning, and sooner.
                std::fs::remove_dir_all(&out).unwrap();
                share *= 0.6;
            }
        }
        println!("{writer:?}: {hit} of {KILLS} kills before its end; undisturbed {took:?}");
        assert!(hit > 0, "{writer:?} is too quick to be killed");
        ends_the_same(&bench, writer, &out, "kills");
        std::fs::remove_dir_all(&out).unwrap();
    }
}

#[test]
fn a_folder_deleted_under_it() {
    let bench = Bench::new();
    for writer in Writer::ALL {
        for (turn, wait) in uniform(&format!("{writer:?}"), 4, 2).into_iter().enumerate() {
            let out = bench.path(&format!("deleted{turn}"));
            let took = bench.whole(writer).took;
            let mut child = bench.start(writer, &out);
            let begun = Instant::now();
            while !out.is_dir() && child.try_wait().unwrap().is_none() {
                assert!(begun.elapsed() < Duration::from_secs(60), "{writer:?} writes nothing");
                std::thread::sleep(Duration::from_millis(1));
            }
            std::thread::sleep(took.mul_f64(0.2 + 0.2 * wait));
            // It may be writing: then there is more to delete.
            while std::fs::remove_dir_all(&out).is_err() && out.exists() {}
            let running = child.try_wait().unwrap().is_none();
            let Ended { code, said } = Ended::of(child);
            println!("{writer:?} deleted: {code:?} {}", said.lines().last().unwrap_or_default());
            assert!(!said.contains("panicked"), "{writer:?}: {said}");
            if code != Some(0) {
                assert!(said.contains(out.to_str().unwrap()), "{writer:?} names no file: {said}");
            }
            // A posterior lies in one file that is open from the start: without it nothing is left to end well with.
            let lost = writer == Writer::Posterior && running;
            assert!(!lost || code == Some(1), "{writer:?} ended well without its folder: {said}");
            sound(&out);
            ends_the_same(&bench, writer, &out, "its folder was deleted");
            std::fs::remove_dir_all(&out).unwrap();
        }
    }
}

#[test]
fn two_at_once() {
    let bench = Bench::new();
    for writer in Writer::ALL {
        let out = bench.path("both");
        let both = [bench.start(writer, &out), bench.start(writer, &out)].map(Ended::of);
        for Ended { code, said } in &both {
            assert!(!said.contains("panicked"), "{writer:?}: {said}");
            let told = said.contains(out.to_str().unwrap());
            assert!(*code == Some(0) || told, "{writer:?} names no file: {said}");
            println!("{writer:?} beside another: {code:?} {}", said.lines().last().unwrap_or_default());
        }
        assert!(both.iter().any(|ended| ended.code == Some(0)), "{writer:?}: neither got through: {both:?}");
        sound(&out);
        ends_the_same(&bench, writer, &out, "two at once");
        std::fs::remove_dir_all(&out).unwrap();
    }
}

/// As after the clock was set back or forward in between.
#[test]
fn files_from_yesterday_and_tomorrow() {
    let bench = Bench::new();
    let days = Duration::from_secs(3 * 24 * 3600);
    for writer in Writer::ALL {
        for (name, time) in [("past", SystemTime::now() - days), ("future", SystemTime::now() + days)] {
            let out = bench.path(name);
            let took = bench.whole(writer).took;
            killed(&bench, writer, &out, took.mul_f64(0.7));
            visit(&out, &mut |path| {
                let times = FileTimes::new().set_modified(time).set_accessed(time);
                File::options().write(true).open(path).unwrap().set_times(times).unwrap();
            });
            ends_the_same(&bench, writer, &out, name);
            std::fs::remove_dir_all(&out).unwrap();
        }
    }
}
