use std::process::Command;

use super::*;

fn example() -> Script {
    Script {
        name: "digits, small".into(),
        run: "/data/it's a run".into(),
        program: "/opt/bayescope".into(),
        leading: Vec::new(),
        oracle: None,
        descriptions: Vec::new(),
        tasks: 6,
        device: None,
        stage: StageIn::Auto,
        resources: Resources::default(),
    }
}

/// What a script prints when `sbatch`, `scontrol` and the program are stand-ins.
fn bash(script: &str, before: &str) -> String {
    let text = format!("{before}\n{script}");
    let output = Command::new("bash").args(["-c", &text]).output().unwrap();
    String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap()
}

#[test]
fn a_script_says_what_slurm_needs_to_know() {
    let text = script(&example()).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    for line in [
        "#!/bin/bash",
        "#SBATCH --job-name=digits--small",
        "#SBATCH --array=0-5",
        "#SBATCH --output=\"/data/it's a run/slurm/%A_%a.log\"",
        "#SBATCH --signal=B:USR1@120",
        "#SBATCH --open-mode=append",
        "#SBATCH --requeue",
        r"run='/data/it'\''s a run'",
    ] {
        assert!(lines.contains(&line), "{line} is missing from\n{text}");
    }
    assert!(!text.contains("--time") && !text.contains("--gres") && !text.contains("--oracle"));
    // Directives after the first command are not read.
    let last = lines.iter().rposition(|line| line.starts_with("#SBATCH")).unwrap();
    assert!(lines[..last].iter().all(|line| line.starts_with('#')));
}

#[test]
fn what_is_asked_for_is_asked_of_slurm() {
    let some = |text: &str| Some(text.to_owned());
    let resources = Resources {
        time: some("1-02:00:00"),
        partition: some("gpu"),
        gres: some("gpu:1"),
        cpus: Some(4),
        mem: some("16G"),
        account: some(r#"a "b\c"#),
    };
    let text = script(&Script { resources, device: some("cuda:0"), ..example() }).unwrap();
    for line in [
        "--time=1-02:00:00",
        "--partition=gpu",
        "--gres=gpu:1",
        "--cpus-per-task=4",
        "--mem=16G",
        r#"--account="a \"b\\c""#,
    ] {
        assert!(text.contains(&format!("#SBATCH {line}\n")), "{line}");
    }
    assert!(text.contains("--of 6 --device cuda:0)"));
}

#[test]
fn a_script_goes_through_a_file_of_options() {
    let script = Script { stage: StageIn::Folder("/scratch".into()), ..example() };
    let text = serde_json::to_string(&script).unwrap();
    assert_eq!(serde_json::from_str::<Script>(&text).unwrap(), script);
}

#[test]
fn values_that_would_break_a_script_are_refused() {
    let with = |change: fn(&mut Script)| {
        let mut example = example();
        change(&mut example);
        script(&example).unwrap_err().to_string()
    };
    assert!(with(|s| s.tasks = 0).contains("task"));
    assert!(with(|s| s.run = "here".into()).contains("absolute"));
    assert!(with(|s| s.resources.partition = Some("a\nrm -rf /".into())).contains("line break"));
    assert!(with(|s| s.resources.mem = Some(String::new())).contains("mem"));
    assert!(with(|s| s.resources.time = Some("00:03:59".into())).contains("too short"));
    assert!(with(|s| s.resources.time = Some("soon".into())).contains("soon"));
}

#[test]
fn times_are_read_as_slurm_reads_them() {
    for time in ["4", "4:00", "00:04:00", "0-1", "1-00:00", "1-00:00:00", "240:00:00"] {
        check_time(time).unwrap_or_else(|e| panic!("{time}: {e}"));
    }
    for time in ["3", "3:59", "0-0:03", "1:2:3:4", "-", "1-", "", "-5", "1h"] {
        assert!(check_time(time).is_err(), "{time}");
    }
}

#[test]
fn few_long_tasks() {
    assert_eq!([0, 1, 5, 8, 400].map(few_tasks), [1, 1, 5, 8, 8]);
}

/// The environment of an element, and stand-ins: `scontrol` and the program print their arguments.
fn element(folder: &Path, program: &str) -> String {
    let program_file = folder.join("program");
    let text = format!("#!/bin/bash\n{program}\n");
    crate::data::write_atomically(&program_file, |out| out.write_all(text.as_bytes())).unwrap();
    let path = program_file.display();
    format!(
        "chmod +x {path}\nunset SLURM_TMPDIR TMPDIR\n\
         export SLURM_ARRAY_JOB_ID=7 SLURM_ARRAY_TASK_ID=2\nstate=RUNNING\n\
         scontrol() {{ echo \"scontrol: $* JobState=$state\"; }}"
    )
}

fn in_folder(folder: &Path) -> Script {
    Script { program: folder.join("program"), run: folder.to_owned(), ..example() }
}

#[test]
fn only_a_stopped_program_is_queued_again() {
    let folder = tempfile::tempdir().unwrap();
    let text = script(&in_folder(folder.path())).unwrap();
    for (status, queued) in [(0, false), (1, false), (2, false), (75, true), (137, false)] {
        let told = bash(&text, &element(folder.path(), &format!("echo \"got: $*\"; exit {status}")));
        let run = folder.path().display();
        assert!(told.contains(&format!("got: run --plan {run} --task 2 --of 6\n")), "{told}");
        assert_eq!(told.contains("scontrol: requeue 7_2"), queued, "{told}");
        assert_eq!(told.contains(&format!("ended with status {status}")), !queued, "{told}");
    }
}

#[test]
fn a_program_may_be_a_command_of_several_words() {
    let folder = tempfile::tempdir().unwrap();
    let leading = ["-m", "it's a module"].map(str::to_owned).to_vec();
    let text = script(&Script { leading, ..in_folder(folder.path()) }).unwrap();
    let told = bash(&text, &element(folder.path(), "printf '<%s>' \"${@:1:4}\"; exit 0"));
    assert!(told.contains("<-m><it's a module><run><--plan>"), "{told}");
}

#[test]
fn a_cancelled_element_stays_cancelled() {
    let folder = tempfile::tempdir().unwrap();
    let text = script(&in_folder(folder.path())).unwrap();
    let told = bash(&text, &(element(folder.path(), "exit 75") + "\nstate=COMPLETING"));
    assert!(!told.contains("requeue") && told.contains("ended with status 75"), "{told}");
}

#[test]
fn a_signal_to_the_script_reaches_the_program() {
    let folder = tempfile::tempdir().unwrap();
    let text = script(&in_folder(folder.path())).unwrap();
    // The program signals its script, and takes its time to write a checkpoint.
    for signal in ["USR1", "USR2", "TERM"] {
        let program = format!(
            "trap 'sleep 0.2; echo checkpoint; exit 75' {signal}\nkill -s {signal} $PPID\nfor i in $(seq 50); do sleep 0.1; done"
        );
        let told = bash(&text, &element(folder.path(), &program));
        let (checkpoint, queued) = (told.find("checkpoint\n"), told.find("scontrol: requeue 7_2"));
        assert!(checkpoint.is_some() && checkpoint < queued, "{signal}: {told}");
    }
    // One that ends well in spite of it is finished.
    let told = bash(&text, &element(folder.path(), "trap '' USR1\nkill -s USR1 $PPID\nsleep 0.2\nexit 0"));
    assert!(told.contains("ended with status 0") && !told.contains("scontrol"), "{told}");
    // One that does not listen yet dies of it.
    let told = bash(&text, &element(folder.path(), "kill -s USR1 $PPID\nsleep 5"));
    assert!(told.contains("scontrol: requeue"), "{told}");
}

#[test]
fn what_is_staged_is_used_and_removed() {
    let folder = tempfile::tempdir().unwrap();
    let oracle = folder.path().join("an oracle.pth");
    crate::data::write_atomically(&oracle, |out| out.write_all(b"weights")).unwrap();
    let description = folder.path().join("oracle.json");
    crate::data::write_atomically(&description, |out| out.write_all(b" and how pixels enter")).unwrap();
    let disk = folder.path().join("disk");
    let told = |stage: StageIn, before: &str| {
        let (oracle, descriptions) = (Some(oracle.clone()), vec![description.clone()]);
        let text = script(&Script { oracle, descriptions, stage, ..in_folder(folder.path()) }).unwrap();
        // The weights, and what lies beside them.
        let program = "echo \"got: $*\"; while [ $# -gt 1 ]; do [ \"$1\" != --oracle ] || cat \"$2\" \"${2%/*}/oracle.json\"; shift; done";
        bash(&text, &(element(folder.path(), program) + "\n" + before))
    };
    let told_none = told(StageIn::None, "");
    assert!(
        told_none.contains(&format!("--oracle {}\nweights and how pixels enter", oracle.display()))
            && !told_none.contains("--stage")
    );
    // No disk of its own: everything is read where it lies.
    assert!(
        told(StageIn::Auto, "")
            .contains(&format!("--of 6 --oracle {}\nweights and how pixels enter", oracle.display()))
    );
    let told = told(StageIn::Folder(disk.clone()), "");
    let there = format!("{}/bayescope-7_2.", disk.display());
    assert!(told.contains(&format!("--stage {there}")) && told.contains(&format!("--oracle {there}")), "{told}");
    assert!(told.contains("/oracle/an oracle.pth\nweights and how pixels enter"), "{told}");
    assert_eq!(std::fs::read_dir(&disk).unwrap().count(), 0);
}
