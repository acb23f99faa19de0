//! Runs as a scheduler sees them: a script for it, signals, and several processes in one folder.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::common::tiny;
use crate::run::{bayescope, fail, json, succeed, text};

/// Six cells of a linear classifier.
const SPEC: &str = "name = 'small digits'\n[world]\noracle = 'mnist'\ntau = 1.3\n\
                    [grid]\narchitectures = ['linear']\ntrain_sizes = [20, 40, 60]\nseeds = [0, 1]\n\
                    [test]\nimages = 60\nwatched = 20\n\
                    [training]\nepochs = 30\nbatch = 4\nlearning_rate = 1e-3\nshards = 2\n";

fn spec(folder: &Path, change: impl Fn(&str) -> String) -> PathBuf {
    let path = folder.join("spec.toml");
    bayescope::data::write_atomically(&path, |out| out.write_all(change(SPEC).as_bytes())).unwrap();
    path
}

fn run(spec: &Path, out: &Path) {
    succeed(&["run", text(spec), "--out", text(out), "--device", "cpu"]);
}

/// The files that have to be the same whoever wrote them.
fn results(run: &Path) -> Vec<Vec<u8>> {
    let pools = ["pool/test.npz", "pool/train-0.npz", "pool/train-1.npz"];
    ["summary.json", "summary.csv"].iter().chain(&pools).map(|name| std::fs::read(run.join(name)).unwrap()).collect()
}

/// Temporary files in a run folder.
pub fn temporary_files(run: &Path) -> usize {
    let folders = [run.to_owned(), run.join("pool")].into_iter();
    let cells = std::fs::read_dir(run.join("cells")).unwrap().map(|entry| entry.unwrap().path());
    let names = folders.chain(cells).flat_map(|folder| std::fs::read_dir(folder).unwrap());
    names.filter(|entry| entry.as_ref().unwrap().path().extension().is_some_and(|e| e == "part")).count()
}

#[test]
fn a_script_for_slurm_is_a_script() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("it's a run");
    let spec = spec(folder.path(), str::to_owned);
    succeed(&["plan", text(&spec), "--out", text(&out), "--device", "cpu"]);
    let script = succeed(&["slurm", text(&out), "--time", "12:00:00", "--gres", "gpu:1", "--mem", "8G"]);
    let checked = Command::new("bash").args(["-n", "-c", &script]).output().unwrap();
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));
    for part in [
        "#!/bin/bash\n",
        "#SBATCH --array=0-5\n",
        "#SBATCH --time=12:00:00\n",
        "#SBATCH --gres=gpu:1\n",
        "#SBATCH --mem=8G\n",
        "#SBATCH --signal=B:USR1@120\n",
        "#SBATCH --requeue\n",
        "#SBATCH --open-mode=append\n",
        "/it's a run/slurm/%A_%a.log\"\n",
        "/it'\\''s a run'\n",
        "--task \"$SLURM_ARRAY_TASK_ID\" --of 6)",
        "scontrol requeue \"$element\"",
        env!("CARGO_BIN_EXE_bayescope"),
    ] {
        assert!(script.contains(part), "{part} is missing from\n{script}");
    }
    // Slurm does not make the folder of its logs.
    assert!(out.join("slurm").is_dir());
    // A bundled oracle needs no copy.
    assert!(!script.contains("--oracle") && script.contains("--stage"));
    assert!(fail(1, &["slurm", text(folder.path())]).contains("run.toml"));
    assert!(fail(1, &["slurm", text(&out), "--time", "00:02:00"]).contains("too short"));
    assert!(fail(1, &["slurm", text(&out), "--bayescope", "nowhere/bayescope"]).contains("nowhere"));
}

#[test]
fn a_script_copies_what_describes_a_file_of_weights_beside_it() {
    let folder = tempfile::tempdir().unwrap();
    let (out, world) = (folder.path().join("run"), folder.path().join("world"));
    std::fs::create_dir(&world).unwrap();
    for name in ["oracle.json", "weights.safetensors"] {
        std::fs::copy(Path::new("assets/oracles/mnist").join(name), world.join(name)).unwrap();
    }
    let weights = world.join("weights.safetensors");
    let spec = spec(folder.path(), |text| text.replace("'mnist'", &format!("'{}'", weights.display())));
    succeed(&["plan", text(&spec), "--out", text(&out), "--device", "cpu"]);
    let script = succeed(&["slurm", text(&out)]);
    let copies =
        |line: &&str| line.contains("cp -rL") && line.contains(&format!("{}", world.join("oracle.json").display()));
    assert!(script.lines().any(|line| copies(&line)), "{script}");
}

#[test]
#[cfg(unix)]
fn a_stopped_run_says_so_and_goes_on_to_the_same_summary() {
    let folder = tempfile::tempdir().unwrap();
    let (whole, broken) = (folder.path().join("whole"), folder.path().join("broken"));
    // The third cell and on are long enough to be hit in the middle.
    let spec =
        spec(folder.path(), |text| text.replace("epochs = 30", "epochs = 200").replace("[20, 40, 60]", "[20, 60]"));
    run(&spec, &whole);
    for (signal, cell) in [("TERM", "[1/4]"), ("USR1", "[2/4]"), ("USR2", "[4/4]")] {
        let args = ["run", text(&spec), "--out", text(&broken), "--device", "cpu"];
        let mut child = bayescope(&args).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let mut told = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
        assert!(told.by_ref().any(|line| line.starts_with(cell)));
        let id = child.id().to_string();
        // The shell's own: a clean Debian has no program of that name.
        assert!(Command::new("sh").args(["-c", "kill -s $0 $1", signal, &id]).status().unwrap().success());
        // All of it is read: a program whose stderr is closed cannot say why it ends.
        let told = told.last().unwrap_or_default();
        assert_eq!(child.wait().unwrap().code(), Some(75), "{signal}: {told}");
        assert!(told.contains("bayescope resume"), "{told}");
    }
    let looks = json(&["watch", text(&broken), "--once", "--json"]);
    assert_eq!(looks["finished"], 3);
    let stopped = looks["cells"].as_array().unwrap().iter().filter(|cell| cell["status"]["state"] == "stopped").count();
    assert_eq!(stopped, 1);
    succeed(&["resume", text(&broken), "--device", "cpu"]);
    assert!(results(&whole) == results(&broken), "the resumed run ends in another summary");
    assert_eq!(temporary_files(&broken), 0);
}

#[test]
fn several_tasks_in_one_folder_end_in_the_same_summary() {
    let folder = tempfile::tempdir().unwrap();
    let (whole, shared) = (folder.path().join("whole"), folder.path().join("shared"));
    let (spec, stage) = (spec(folder.path(), str::to_owned), folder.path().join("stage"));
    run(&spec, &whole);
    succeed(&["plan", text(&spec), "--out", text(&shared), "--device", "cpu"]);
    // All of them draw the same images at once. Two of them take the same cells, as a node does that was given up too soon.
    let children: Vec<_> = ["0", "1", "2", "0"]
        .iter()
        .map(|task| {
            let args = ["run", "--plan", text(&shared), "--task", task, "--of", "3"];
            let args = [&args[..], &["--stage", text(&stage), "--device", "cpu"]].concat();
            bayescope(&args).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
        })
        .collect();
    let mut begun = 0;
    for child in children {
        let output = child.wait_with_output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{told}");
        begun += told.matches(" parameters, ").count();
    }
    assert_eq!(begun, 6, "a cell was computed twice");
    assert!(results(&whole) == results(&shared), "tasks end in another summary");
    assert_eq!(temporary_files(&shared), 0);
    let staged: Vec<_> = std::fs::read_dir(&stage).unwrap().map(|run| run.unwrap().path().join("test.npz")).collect();
    assert!(staged.len() == 1 && staged[0].is_file(), "{staged:?}");

    // A share that is finished needs neither oracle nor device, and makes up for a summary that was never written.
    std::fs::remove_file(shared.join("summary.json")).unwrap();
    succeed(&["run", "--plan", text(&shared), "--task", "1", "--of", "3", "--oracle", "nowhere", "--device", "cuda:9"]);
    assert!(results(&whole) == results(&shared), "a finished share writes another summary");
}

/// Cells of a run that are finished.
fn finished(run: &Path) -> usize {
    let cells = std::fs::read_dir(run.join("cells")).unwrap().map(|cell| cell.unwrap().path());
    cells.filter(|cell| cell.join("result.json").exists()).count()
}

#[test]
fn a_cell_of_another_process_is_left_to_it_waited_for_and_taken_over_when_that_is_gone() {
    let folder = tempfile::tempdir().unwrap();
    let (whole, shared) = (folder.path().join("whole"), folder.path().join("shared"));
    let spec = spec(folder.path(), str::to_owned);
    run(&spec, &whole);
    succeed(&["plan", text(&spec), "--out", text(&shared), "--device", "cpu"]);
    let plan = std::fs::read_to_string(shared.join("plan.jsonl")).unwrap();
    let planned: serde_json::Value = serde_json::from_str(plan.lines().next().unwrap()).unwrap();
    let cell = shared.join("cells").join(planned["id"].as_str().unwrap());
    std::fs::create_dir_all(&cell).unwrap();
    let held = bayescope::data::try_lock_file(&cell.join("cell.lock"), "somebody else").unwrap().unwrap();

    let start = || {
        let args = ["run", "--plan", text(&shared), "--device", "cpu"];
        bayescope(&args).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let mut child = start();
    let mut told = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    assert!(told.by_ref().any(|line| line.contains("is at work on it")), "the cell is not left alone");
    // The fifth of the five others is told of when its result is there.
    assert!(told.by_ref().filter(|line| line.contains("cross-entropy")).nth(4).is_some());
    assert_eq!((finished(&shared), child.try_wait().unwrap()), (5, None), "it does not wait");
    // Who waits hears of a stop.
    #[cfg(unix)]
    {
        let id = child.id().to_string();
        assert!(Command::new("sh").args(["-c", "kill -s TERM $0", &id]).status().unwrap().success());
        let last = told.last().unwrap_or_default();
        assert_eq!(child.wait().unwrap().code(), Some(75), "{last}");
        child = start();
        told = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
        assert!(told.by_ref().any(|line| line.contains("is at work on it")));
    }
    // As where that process was killed.
    drop(held);
    let told: Vec<String> = told.collect();
    assert!(child.wait().unwrap().success(), "{told:?}");
    assert!(results(&whole) == results(&shared), "the run ends in another summary");
    assert!(!cell.join("cell.lock").exists(), "a finished cell needs no lock");
}

#[test]
fn a_copy_of_another_oracle_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (spec, out) = (spec(folder.path(), str::to_owned), folder.path().join("run"));
    succeed(&["plan", text(&spec), "--out", text(&out), "--device", "cpu"]);
    let other = tiny::tarflow_file(folder.path(), 3, 1);
    let told = fail(1, &["resume", text(&out), "--oracle", text(&other), "--device", "cpu"]);
    assert!(told.contains("another oracle"), "{told}");
}
