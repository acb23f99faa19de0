//! Words as people type them: mistakes are answered with what was meant, and nothing is overwritten unasked.

use crate::run::{fail, json, output, succeed, text};

#[test]
fn a_first_word_that_is_nothing_opens_no_window() {
    for (line, meant) in [
        (&["sampel", "mnist", "--n", "4"][..], "did you mean sample?"),
        (&["sampel"], "did you mean sample?"),
        (&["--device", "cpu", "posteriors", "mnist"], "did you mean posterior?"),
        (&["nosuch.png"], "no file"),
        (&["--reproducible", "MNIST"], "did you mean mnist?"),
    ] {
        let said = fail(2, line);
        assert!(said.contains(meant) && !said.contains("display"), "{line:?}: {said}");
    }
    // Behind the options of the window, too.
    assert!(fail(1, &["--theme", "dark", "nosuch.png"]).contains("'nosuch.png' is no command"));
    assert!(fail(1, &["--no-tour", "mnist", "nosuch.png"]).contains("'nosuch.png' is no command"));
}

#[test]
fn the_device_may_stand_before_the_command() {
    let before = json(&["--device", "cpu", "posterior", "mnist", "docs/explorer-light.png", "--json"]);
    let after = json(&["posterior", "mnist", "docs/explorer-light.png", "--json", "--device", "cpu"]);
    assert_eq!(before, after);
    assert!(succeed(&["--device=cpu", "doctor"]).contains("will use cpu"));
    assert!(fail(2, &["--device", "abacus", "doctor"]).contains("abacus"));
}

#[test]
fn names_that_are_nearly_right_are_recognised() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("x.npz");
    let out = text(&out);
    let cpu = ["--device", "cpu"];
    for (line, meant) in [
        (&["sample", "MNIST", "--out", out][..], "did you mean mnist?"),
        (&["sample", "mnits", "--out", out], "did you mean mnist?"),
        (&["sample", "cells", "--class", "monocytes", "--n", "1", "--out", out], "did you mean monocyte?"),
        (&["run", "scaling-quik", "--out", out], "did you mean scaling-quick?"),
        (&["walk", "cells", "--from", "sample:0", "--to", "monocyte"], "is class:monocyte meant?"),
        (&["walk", "cells", "--from", "sample:0", "--to", "zebra"], "class:NAME, sample:INDEX"),
    ] {
        let said = fail(1, &[line, &cpu[..]].concat());
        assert!(said.contains(meant), "{line:?}: {said}");
    }
    assert!(fail(1, &["plan", "scaling-quik"]).contains("did you mean scaling-quick?"));
    assert!(fail(1, &["fetch", "cifar1"]).contains("did you mean cifar10?"));
    let run = folder.path().join("run");
    succeed(&["plan", "scaling-quick", "--out", text(&run), "--device", "cpu"]);
    let plan = std::fs::read_to_string(run.join("plan.jsonl")).unwrap();
    let cell: serde_json::Value = serde_json::from_str(plan.lines().next().unwrap()).unwrap();
    let id = cell["id"].as_str().unwrap();
    let said = fail(1, &["summary", text(&run), "--worst", &id[..15]]);
    assert!(said.contains(&format!("did you mean {id}?")), "{said}");
}

#[test]
fn numbers_are_read_as_people_write_them() {
    let folder = tempfile::tempdir().unwrap();
    let images = |n: &str| {
        let out = folder.path().join(format!("{n}.npz"));
        let args = ["sample", "mnist", "--n", n, "--out", text(&out), "--device", "cpu", "--json"];
        json(&args)["saved"]["images"].as_u64().unwrap()
    };
    assert_eq!([images("2e1"), images("1,000"), images("12")], [20, 1000, 12]);
    let wrong = |line: &[&str]| fail(2, line);
    let sample = ["sample", "mnist", "--out", "x.npz"];
    assert!(wrong(&[&sample[..], &["--n", "-5"]].concat()).contains("-5 is negative"));
    assert!(wrong(&[&sample[..], &["--n", "0.5"]].concat()).contains("no whole number"));
    assert!(wrong(&[&sample[..], &["--tau", "1,2"]].concat()).contains("1.2"));
    // Whoever calls τ a temperature is understood.
    let out = folder.path().join("warm.npz");
    let warm =
        ["sample", "mnist", "--n", "1", "--out", text(&out), "--device", "cpu", "--json", "--temperature", "1.5"];
    assert_eq!(json(&warm)["settings"]["tau"], 1.5);
    // A negative percentage meets the range, not an unknown option.
    let said = fail(1, &["tau", "mnist", "--target", "-3%"]);
    assert!(said.contains("90") && !said.contains("unexpected argument"), "{said}");
}

#[test]
fn an_impossible_bayes_error_is_called_impossible() {
    let said = |classes: &str, error: &str, code: i32| {
        let output = output(&["check", "--classes", classes, "--bayes-error", error]);
        assert_eq!(output.status.code(), Some(code), "{classes} {error}");
        String::from_utf8(output.stdout).unwrap()
    };
    for (classes, error) in [("10", "0.95"), ("10", "95%"), ("10", "3.59"), ("2", "0.6"), ("10", "-3%")] {
        let said = said(classes, error, 1);
        assert!(said.starts_with("impossible") && said.contains("1 − max π"), "{classes} {error}: {said}");
        assert_eq!(said.contains("is 3.59% meant?"), error == "3.59", "{said}");
    }
    for (classes, error) in [("10", "3.59%"), ("10", "0.9"), ("2", "0.5"), ("10", "0")] {
        assert!(said(classes, error, 0).starts_with("possible"), "{classes} {error}");
    }
}

#[test]
fn nothing_is_written_over_unasked() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("a.npz");
    let sample = |n| ["sample", "mnist", "--n", n, "--device", "cpu", "--out", text(&out)];
    succeed(&sample("20"));
    let before = std::fs::read(&out).unwrap();
    let said = fail(1, &sample("4"));
    assert!(said.contains("a.npz") && said.contains("--force"), "{said}");
    assert!(std::fs::read(&out).unwrap() == before);
    succeed(&[&sample("4")[..], &["--force"]].concat());
    assert!(std::fs::read(&out).unwrap().len() < before.len());
    let (map, way) = (folder.path().join("map.png"), folder.path().join("way.npz"));
    let evidence =
        ["evidence", "mnist", text(&out), "--for", "3", "--against", "5", "--device", "cpu", "--out", text(&map)];
    let walk = [
        "walk",
        "mnist",
        "--from",
        "sample:0",
        "--to",
        "sample:1",
        "--steps",
        "2",
        "--device",
        "cpu",
        "--out",
        text(&way),
    ];
    for line in [&evidence[..], &walk] {
        succeed(line);
        assert!(fail(1, line).contains("is there already"));
        succeed(&[line, &["--force"]].concat());
    }
    // A folder with anything in it, too.
    let pictures = folder.path().join("pictures");
    let line = ["sample", "mnist", "--n", "3", "--device", "cpu", "--out", text(&pictures)];
    succeed(&line);
    assert!(fail(1, &line).contains("not empty"));
}

#[test]
fn a_mean_over_one_image_has_no_interval() {
    let one = ["posterior", "mnist", "docs/explorer-light.png", "--typicality", "0", "--device", "cpu"];
    let said = succeed(&one);
    let line = said.lines().find(|line| line.starts_with("entropy ")).expect("a line about the image");
    assert!(line.ends_with("nats, of one image") && !said.contains("interval"), "{said}");
    let summary = &json(&[&one[..], &["--json"]].concat())["summary"];
    assert!(summary["entropy_interval"].is_null() && summary["entropy_nats"].is_f64(), "{summary}");
    let two = succeed(&["posterior", "mnist", "docs/explorer-light.png", "docs/explorer-dark.png", "--device", "cpu"]);
    assert!(two.contains("nats over 2 images (95 % intervals over images)"), "{two}");
}

#[test]
fn a_file_in_the_place_of_an_oracle_is_told_from_one() {
    let folder = tempfile::tempdir().unwrap();
    let (out, picture) = (folder.path().join("out"), "docs/explorer-light.png");
    let empty = folder.path().join("empty");
    std::fs::create_dir(&empty).unwrap();
    let takes = "give a bundled name (mnist, cells, fashion), an oracle folder, a folder with flows.json, ";
    for (given, what) in [
        (picture, "is a picture, no oracle"),
        ("README.md", "is a text, no oracle"),
        (text(&empty), "is a folder without oracle.json or flows.json, no oracle"),
        ("mnits", "is no oracle (did you mean mnist?)"),
    ] {
        for line in [
            &["sample", given, "--out", text(&out)][..],
            &["posterior", given, picture],
            &["export", given, "--out", text(&out)],
            &["walk", given, "--from", "sample:0", "--to", "sample:1"],
            &["evidence", given, picture, "--for", "0", "--against", "1"],
        ] {
            let said = fail(1, &[line, &["--device", "cpu"]].concat());
            assert!(said.contains(&format!("'{given}' {what}: {takes}or a checkpoint file")), "{line:?}: {said}");
        }
        assert!(fail(1, &["oracle", "info", given]).contains(what));
        // These take a problem, too.
        for line in [&["bayes-error", given][..], &["tau", given, "--target", "5%"], &["hardness", given]] {
            let said = fail(1, line);
            assert!(said.contains(&format!("'{given}' {what}: {takes}a checkpoint file")), "{line:?}: {said}");
            assert!(said.contains("or a class problem (PROBLEM.json)"), "{line:?}: {said}");
        }
    }
    assert!(!out.exists());
}

#[test]
fn what_is_missing_is_named_with_every_way_to_give_it() {
    for (line, command) in [
        (&["posterior", "docs/explorer-light.png"][..], "bayescope posterior mnist docs/explorer-light.png"),
        (&["evidence", "--for", "3", "docs/explorer-light.png"], "bayescope evidence mnist docs/explorer-light.png"),
    ] {
        let said = fail(2, line);
        assert!(said.contains("of which world?") && said.contains("is a picture, no oracle"), "{said}");
        assert!(said.contains(command), "{said}");
    }
    assert!(fail(2, &["posterior", "mnist"]).contains("<INPUT>"));
    let said = fail(2, &["evaluate", "digits"]);
    assert!(["--predictions", "--onnx", "--checkpoint"].iter().all(|way| said.contains(way)), "{said}");
}

/// Each was left out of account in silence.
#[test]
fn options_that_nothing_reads_are_refused_by_their_names() {
    let predictions = ["evaluate", "digits", "--predictions", "mine.npz"];
    let uncertain = ["evaluate", "digits", "--uncertainty", "mine.npz"];
    for option in [
        &["--normalisation", "imagenet"][..],
        &["--side", "224"],
        &["--resize"],
        &["--repeat-channels"],
        &["--layout", "nchw"],
        &["--output", "foo"],
        &["--architecture", "resnet-18"],
    ] {
        for models in [&predictions, &uncertain] {
            let said = fail(2, &[&models[..], option].concat());
            let known = ["--onnx", "--checkpoint", option[0]].iter().any(|name| said.contains(name));
            assert!(known && !said.contains("unexpected argument"), "{option:?}: {said}");
        }
    }
    for (line, option) in [
        (&["summary", "run", "--worst", "cell", "--png", "x.png"][..], "--png"),
        (&["summary", "run", "--csv", "--png", "x.png"], "--png"),
        (&["export", "mnist", "--out", "x", "--tau", "1.1", "--tolerance", "0.1"], "--tolerance"),
        (&["posterior", "mnist", "x.npz", "--typicality", "100", "--out", "job"], "--typicality"),
        (&["sample", "mnist", "--out", "x.npz", "--latents", "z.npz", "--guide", "b"], "--guide"),
    ] {
        let said = fail(2, line);
        assert!(said.contains(option) && said.contains("cannot be used with"), "{line:?}: {said}");
    }
}
