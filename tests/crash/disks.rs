//! Disks that are full or may not be written: tmpfs mounts of a shell's own, gone with it. Where the system allows none, the tests say
//! so and pass.

use std::path::PathBuf;
use std::process::Command;

use crate::writers::{Bench, Writer, sound};

/// With so many kB of room ("$ROOM"), then with enough: exit codes to `codes`, words to files, the results to `out`.
const FULL: &str = r#"
mount -t tmpfs -o size=64m none "$DISK" || exit 42
dd if=/dev/zero of="$DISK/ballast" bs=1k count=$((65536 - ROOM)) 2>"$TOLD/dd"
full=0; "$@" >/dev/null 2>"$TOLD/full" || full=$?
cp -r "$DISK/out" "$TOLD/left" 2>/dev/null
rm "$DISK/ballast"
room=0; "$@" >/dev/null 2>"$TOLD/room" || room=$?
cp -r "$DISK/out" "$TOLD/out"
echo "$full $room" >"$TOLD/codes"
"#;

/// Nothing there yet; then broken off after "$ROOM" seconds; both on a disk that may not be written.
const READ_ONLY: &str = r#"
mount -t tmpfs -o size=64m none "$DISK" || exit 42
mount -o remount,ro "$DISK" || exit 43
empty=0; "$@" >/dev/null 2>"$TOLD/empty" || empty=$?
mount -o remount,rw "$DISK" || exit 43
timeout -s KILL "$ROOM" "$@" >/dev/null 2>&1
# A killed process may take a moment to let go of its files.
for _ in $(seq 100); do mount -o remount,ro "$DISK" 2>"$TOLD/busy" && break; sleep 0.1; done
half=0; "$@" >/dev/null 2>"$TOLD/half" || half=$?
mount -o remount,rw "$DISK" || exit 43
room=0; "$@" >/dev/null 2>"$TOLD/room" || room=$?
cp -r "$DISK/out" "$TOLD/out"
echo "$empty $half $room" >"$TOLD/codes"
"#;

/// What a script told, by file; nothing where it may not mount.
fn script(bench: &Bench, writer: Writer, text: &str, room: f64) -> Option<impl Fn(&str) -> PathBuf> {
    let (disk, told) = (bench.path("disk"), bench.path(&format!("told-{writer:?}-{room}")));
    std::fs::create_dir_all(&disk).unwrap();
    std::fs::create_dir_all(&told).unwrap();
    let mut shell = Command::new("unshare");
    shell.args(["--map-root-user", "--mount", "sh", "-c", text, "sh", env!("CARGO_BIN_EXE_bayescope")]);
    shell.args(bench.words(writer, &disk.join("out"))).env("DISK", &disk).env("TOLD", &told);
    let output = shell.env("ROOM", room.to_string()).env_remove("DISPLAY").output();
    if told.join("codes").exists() {
        return Some(move |name: &str| told.join(name));
    }
    let allowed = output.as_ref().is_ok_and(|output| output.status.code() == Some(43));
    assert!(!allowed, "{output:?}");
    eprintln!("skipped: this system allows no disk of one's own: {output:?}");
    None
}

fn read(path: PathBuf) -> String {
    std::fs::read_to_string(path).unwrap()
}

/// The folder that a script left is the undisturbed one.
fn is_whole(bench: &Bench, writer: Writer, told: &dyn Fn(&str) -> PathBuf, after: &str) {
    sound(&told("out"));
    let (found, whole) = (writer.results(&told("out")), bench.whole(writer).results);
    assert!(found == whole, "{writer:?} after {after} left other results");
}

#[test]
fn a_full_disk() {
    let bench = Bench::new();
    // `run` has a test of its own beside the command line's.
    for writer in [Writer::Posterior, Writer::Export, Writer::Train] {
        let mut refusals = Vec::new();
        for room in [0.0, 12.0, 60.0, 150.0, 400.0, 1280.0, 5120.0, 20480.0] {
            let Some(told) = script(&bench, writer, FULL, room) else { return };
            let said = read(told("full"));
            let codes = read(told("codes"));
            if codes.trim() == "0 0" {
                break;
            }
            assert_eq!(codes.trim(), "1 0", "{writer:?} {room} kB: {said}{}", read(told("room")));
            assert!(!said.contains("panicked"), "{writer:?} {room} kB: {said}");
            let complaint = said.lines().find(|line| line.contains("No space left")).unwrap_or_default();
            let fair = complaint.contains("disk/out") && complaint.contains("free some space");
            assert!(fair, "{writer:?} {room} kB: {said}");
            sound(&told("left"));
            is_whole(&bench, writer, &told, "a full disk");
            refusals.push(complaint.split(": No space").next().unwrap().rsplit('/').next().unwrap().to_owned());
        }
        println!("{writer:?}: {} full disks, refused at {refusals:?}", refusals.len());
        assert!(refusals.len() >= 2, "{writer:?}: {refusals:?}");
    }
}

#[test]
fn a_disk_that_may_not_be_written() {
    let bench = Bench::new();
    for writer in Writer::ALL {
        let half = 0.7 * bench.whole(writer).took.as_secs_f64();
        let Some(told) = script(&bench, writer, READ_ONLY, half) else { return };
        let codes = read(told("codes"));
        assert_eq!(codes.split_whitespace().count(), 3, "{writer:?}: {codes}");
        for (code, name) in codes.split_whitespace().zip(["empty", "half", "room"]) {
            let said = read(told(name));
            println!("{writer:?} {name}: {code} {}", said.lines().last().unwrap_or_default());
            assert!(!said.contains("panicked"), "{writer:?} {name}: {said}");
            // What was finished before can still be read.
            // One that was killed half way may have been finished by then.
            assert!(name == "half" || (code == "0") == (name == "room"), "{writer:?} {name}: {said}");
            let fair = said.contains("disk/out") && said.contains("choose another folder");
            assert!(code == "0" || fair, "{writer:?} {name}: {said}");
        }
        is_whole(&bench, writer, &told, "a read-only disk");
    }
}
