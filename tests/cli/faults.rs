//! Runs that a disk or a kill breaks off, and posteriors that do not survive the rounding of their images.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use bayescope::experiment::ExperimentSpec;

use crate::experiments::{Grid, summary};
use crate::run::{SHARP_DIGITS, bayescope, fail, json, succeed, text};
use crate::slurm::temporary_files;

const SMALL: &str = "[grid]\narchitectures = ['linear', 'mlp-500']\ntrain_sizes = [100, 400]\nseeds = [0]\n\
                     [test]\nimages = 400\nwatched = 100\n[training]\nepochs = 6\nlearning_rate = 1e-2\n";

/// A run on a disk of 16 MB with little room (argument 1, kB), then with room: exit codes to `codes`, words to `told`. The disk is
/// seen by this shell and its children only, and gone with them.
const ON_A_FULL_DISK: &str = r#"
mount -t tmpfs -o size=16m none "$DISK" || exit 42
dd if=/dev/zero of="$DISK/ballast" bs=1k count=$((16384 - $1)) 2>"$TOLD/dd" || exit 43
full=0; "$PROGRAM" run "$SPEC" --out "$DISK/run" --device cpu --checkpoint-every 0.01 2>"$TOLD/full" || full=$?
rm "$DISK/ballast"
room=0; "$PROGRAM" run "$SPEC" --out "$DISK/run" --device cpu 2>"$TOLD/room" || room=$?
echo "$full $room" >"$TOLD/codes"
cp "$DISK/run/summary.json" "$TOLD/summary.json"
find "$DISK" -name '*.part*' >"$TOLD/left"
"#;

/// What [`ON_A_FULL_DISK`] left in `told`, by name; nothing where the system allows no disk of one's own.
fn on_a_full_disk(grid: &Grid, room: usize) -> Option<impl Fn(&str) -> String> {
    let told = grid.path(&format!("told-{room}"));
    let disk = grid.path("disk");
    std::fs::create_dir_all(&disk).unwrap();
    std::fs::create_dir_all(&told).unwrap();
    let mut shell = Command::new("unshare");
    shell.args(["--map-root-user", "--mount", "sh", "-c", ON_A_FULL_DISK, "sh", &room.to_string()]);
    let paths = [("DISK", &disk), ("TOLD", &told), ("SPEC", &grid.spec)];
    shell.envs(paths.map(|(name, path)| (name, text(path).to_owned())));
    let output = shell.env("PROGRAM", env!("CARGO_BIN_EXE_bayescope")).env_remove("DISPLAY").output();
    match output {
        Ok(output) if output.status.success() => {
            Some(move |name: &str| std::fs::read_to_string(told.join(name)).unwrap())
        }
        // A shell that may not mount says 42; unshare itself may not be there, or not be allowed.
        Ok(output) if output.status.code() != Some(42) && told.join("codes").exists() => {
            panic!("{}", String::from_utf8_lossy(&output.stderr))
        }
        refused => {
            eprintln!("skipped: this system allows no full disk of one's own: {refused:?}");
            None
        }
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_full_disk_stops_a_run_and_room_lets_it_go_on() {
    let grid = Grid::new(SMALL);
    let whole = grid.path("whole");
    grid.run(&whole);
    let mut refused = BTreeSet::new();
    // From a disk without room for the spec, past pools, metrics and checkpoints, to one with room for all.
    for room in [0, 8, 40, 80].into_iter().chain((100..1000).step_by(28)) {
        let Some(told) = on_a_full_disk(&grid, room) else { return };
        let full = told("full");
        if told("codes").trim() == "0 0" {
            break;
        }
        assert_eq!(told("codes").trim(), "1 0", "{room} kB: {full}{}", told("room"));
        let complaint = full.lines().find(|line| line.contains("No space left")).unwrap_or_default();
        assert!(complaint.contains("disk/run") && complaint.contains("free some space"), "{room} kB: {full}");
        assert!(!full.contains("panicked"), "{full}");
        assert_eq!(told("summary.json").as_bytes(), summary(&whole), "{room} kB: another summary");
        assert_eq!(told("left"), "", "{room} kB");
        let file = complaint.split(": No space").next().unwrap().rsplit('/').next().unwrap();
        println!("{room} kB: {complaint}");
        refused.insert(file.to_owned());
    }
    let broken = |end: &str| refused.iter().any(|file| file.ends_with(end));
    assert!(broken("run.toml") && broken(".npz") && broken("last.safetensors") && refused.len() >= 4, "{refused:?}");
}

/// What a command prints on a disk that is full, and into a pipe whose reader is gone, is lost, and nothing else.
#[test]
#[cfg(target_os = "linux")]
fn who_cannot_be_heard_works_to_the_end() {
    use std::fs::File;
    let grid = Grid::new(SMALL);
    let (whole, full, gone) = (grid.path("whole"), grid.path("full"), grid.path("gone"));
    grid.run(&whole);
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let on_full_disk = Stdio::from(File::options().write(true).open("/dev/full").unwrap());
    for (run, stderr) in [(&full, on_full_disk), (&gone, Stdio::from(writer))] {
        let args = ["run", text(&grid.spec), "--out", text(run), "--device", "cpu"];
        let code = bayescope(&args).stdout(Stdio::null()).stderr(stderr).status().unwrap().code();
        assert_eq!((code, summary(run) == summary(&whole)), (Some(0), true), "{}", run.display());
    }
    let unheard = Stdio::from(File::options().write(true).open("/dev/full").unwrap());
    assert_eq!(bayescope(&["no-such-command"]).stderr(unheard).status().unwrap().code(), Some(2));
    // Warnings go another way than lines: the folder in which draws are kept cannot be made here.
    let unheard = Stdio::from(File::options().write(true).open("/dev/full").unwrap());
    let mut asked = bayescope(&["hardness", "mnist", "--tau", "1.2", "--samples", "300", "--device", "cpu"]);
    let asked = asked.env("XDG_CACHE_HOME", "/proc/none").stdout(Stdio::null()).stderr(unheard);
    assert_eq!(asked.status().unwrap().code(), Some(0));
}

#[test]
fn a_killed_process_leaves_its_images_and_its_rubbish_goes() {
    let rest = SMALL.replace("images = 400", "images = 60000").replace("'linear', 'mlp-500'", "'linear'");
    let grid = Grid::new(&rest);
    let [whole, killed] = ["whole", "killed"].map(|name| grid.path(name));
    grid.run(&whole);
    let args = ["run", text(&grid.spec), "--out", text(&killed), "--device", "cpu"];
    let mut child = bayescope(&args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let parts = killed.join("pool/test.parts");
    let count = |parts: &Path| std::fs::read_dir(parts).map_or(0, Iterator::count);
    let started = Instant::now();
    while count(&parts) < 4 && started.elapsed() < Duration::from_secs(120) {
        assert!(child.try_wait().unwrap().is_none(), "the pool is too small to be interrupted");
        std::thread::sleep(Duration::from_millis(1));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(count(&parts) >= 4 && !killed.join("pool/test.npz").exists());
    // A file that the dead process was writing, wherever the kill has hit it.
    let machine = bayescope::data::machine();
    let rubbish = killed.join(format!("pool/.train-0.npz.{machine}.{}.abcdef.part", child.id()));
    std::fs::write(&rubbish, "half of it").unwrap();
    // Two go on at once: both make the same parts, and one of them finishes first.
    let tasks = ["0", "1"].map(|task| {
        let args = ["run", "--plan", text(&killed), "--task", task, "--of", "2", "--device", "cpu"];
        bayescope(&args).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
    });
    for task in tasks {
        let output = task.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    assert!(summary(&whole) == summary(&killed));
    let pools = [&whole, &killed].map(|run| std::fs::read(run.join("pool/test.npz")).unwrap());
    assert!(pools[0] == pools[1] && !parts.exists());
    if cfg!(target_os = "linux") {
        assert_eq!(temporary_files(&killed), 0);
    }
}

#[test]
fn images_that_lose_their_posterior_to_rounding_are_counted_as_sample_counts_them() {
    let rest = "[grid]\narchitectures = ['linear']\ntrain_sizes = [10, 20]\nseeds = [0]\n[test]\nimages = 60\nwatched = 20\n\
                [training]\nepochs = 2\n";
    let grid = Grid::of(tempfile::tempdir().unwrap(), SHARP_DIGITS, &format!("tau = 2.0\n{rest}"));
    let run = grid.path("run");
    let found = grid.run(&run);
    let spec = ExperimentSpec::read(&grid.spec).unwrap();
    for (name, seed, n) in [("test", spec.test_seed(), "60"), ("train-0", spec.train_seed(0), "20")] {
        let (seed, out) = (seed.0.to_string(), grid.path("x.npz"));
        let args =
            ["sample", SHARP_DIGITS, "--tau", "2", "--n", n, "--seed", &seed, "--out", text(&out), "--device", "cpu"];
        let sampled = json(&[&args[..], &["--force", "--json"]].concat());
        assert_eq!(found["rounding"][name], sampled["saved"], "{name}");
        assert!(sampled["saved"]["rounded"].as_u64().unwrap() > 0);
        // The posteriors are those that `sample` writes.
        assert!(std::fs::read(&out).unwrap() == std::fs::read(run.join(format!("pool/{name}.npz"))).unwrap());
    }
    let told = succeed(&["summary", text(&run)]);
    assert!(
        told.contains("60 test images")
            && told.contains("training images of seed 0")
            && told.contains("counts as epistemic"),
        "{told}"
    );
    // Nothing of it is lost or counted anew on the way.
    let before = summary(&run);
    std::fs::remove_dir_all(run.join("cells")).unwrap();
    succeed(&["resume", text(&run), "--device", "cpu"]);
    assert!(summary(&run) == before);
    grid.change("tau = 2.0", "tau = 1.0");
    let mild = grid.path("mild");
    assert!(grid.run(&mild)["rounding"].is_null() && mild.join("pool/test.rounding.json").exists());
    assert!(!succeed(&["summary", text(&mild)]).contains("Rounding"));
}

/// The result of a job of posteriors is damaged after it was finished: nobody is told that it is there.
#[test]
fn a_result_that_is_no_longer_what_it_was_is_not_called_finished() {
    let place = tempfile::tempdir().unwrap();
    let [images, out] = ["images.npz", "job"].map(|name| place.path().join(name));
    succeed(&["sample", "mnist", "--n", "8", "--device", "cpu", "--out", text(&images)]);
    let args = ["posterior", "mnist", text(&images), "--device", "cpu", "--no-compare", "--out", text(&out)];
    succeed(&args);
    let result = out.join("posteriors.npz");
    let whole = std::fs::read(&result).unwrap();
    let mut flipped = whole.clone();
    flipped[whole.len() / 2] ^= 1;
    for damaged in [&whole[..whole.len() / 2], &whole[..0], &flipped[..]] {
        std::fs::write(&result, damaged).unwrap();
        let why = fail(1, &args);
        assert!(why.contains("posteriors.npz: is not what") && why.contains("remove it"), "{why}");
        assert!(std::fs::read(&result).unwrap() == damaged);
    }
    std::fs::remove_file(&result).unwrap();
    succeed(&args);
    assert!(std::fs::read(&result).unwrap() == whole);
    let report = out.join("posteriors.json");
    // Its description, too, is written again.
    let described = std::fs::read(&report).unwrap();
    std::fs::write(&report, &described[..9]).unwrap();
    let why = fail(1, &args);
    assert!(why.contains("posteriors.json: ") && why.contains("remove it"), "{why}");
    std::fs::remove_file(&report).unwrap();
    succeed(&args);
    assert!(std::fs::read(&report).unwrap() == described && std::fs::read(&result).unwrap() == whole);
}
