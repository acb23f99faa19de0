//! Rankings of corpora: two small ones whose order is known, stopped, resumed, watched and drawn.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::common::fill::uniform;
use crate::run::{bayescope, fail, json, succeed, text};

/// Writes a corpus of two classes of 8×8 pictures: noise, and in one of them brighter by `lift` of 255 on the left.
fn corpus(folder: &Path, name: &str, lift: f64) {
    for (part, n) in [("train", 60), ("test", 20)] {
        for (class, lift) in [("dark", 0.0), ("lit", lift)] {
            let place = folder.join(name).join(part).join(class);
            std::fs::create_dir_all(&place).unwrap();
            for i in 0..n {
                let noise = uniform(&format!("{part} {class}"), i, 64);
                let pixel = |x: u32, y: u32| {
                    let lift = if x < 4 { lift } else { 0.0 };
                    image::Luma([(100.0 + 40.0 * noise[(8 * y + x) as usize] + lift) as u8])
                };
                image::GrayImage::from_fn(8, 8, pixel).save(place.join(format!("{i:02}.png"))).unwrap();
            }
        }
    }
}

const SPEC: &str = "name = 'tiny'\nseed = 5\n[experiment]\nkind = 'hardness'\n[images]\npad_to = 8\nheld_out = 20\n\
                    [model]\nhidden = 8\nlevels = 1\nsteps = 2\n[training]\nepochs = 40\nbatch = 20\nlearning_rate = 1e-2\n\
                    lambda = 10.0\nclassification = 'posterior'\n\
                    warm_up_images = 40\nema_decay = 0.8\n[[corpora]]\nname = 'overlapping'\ndata = 'hard'\n\
                    [[corpora]]\nname = 'gone'\ndata = 'nowhere'\n[[corpora]]\nname = 'apart'\ndata = 'easy'\n";

/// Two corpora, and a spec that names them and one that is not there.
fn given() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    corpus(folder.path(), "hard", 6.0);
    corpus(folder.path(), "easy", 90.0);
    let spec = folder.path().join("spec.toml");
    std::fs::write(&spec, SPEC).unwrap();
    (folder, spec)
}

fn names(found: &Value) -> Vec<&str> {
    found["corpora"].as_array().unwrap().iter().map(|corpus| corpus["name"].as_str().unwrap()).collect()
}

#[test]
fn corpora_are_ranked_and_one_that_is_missing_holds_up_no_other() {
    let (folder, spec) = given();
    let out = folder.path().join("run");
    let why = fail(1, &["run", text(&spec), "--out", text(&out), "--device", "cpu"]);
    assert!(why.contains("nowhere") && why.contains("1 of 3 corpora failed"), "{why}");
    let found = json(&["summary", text(&out), "--json"]);
    assert_eq!(names(&found), ["apart", "overlapping"]);
    let error = |i: usize| found["corpora"][i]["truth"]["bayes_error"]["value"].as_f64().unwrap();
    // Nobody knows what so small a flow makes of so few images, but that one corpus is much harder than the other it must see.
    assert!(2.0 * error(0) < error(1), "{} {}", error(0), error(1));
    let of = &found["corpora"][0];
    assert_eq!((&of["classes"], &of["images"], &of["held_out"]["images"]), (&2.into(), &100.into(), &40.into()));
    assert_eq!((&of["held_out"]["on"], &of["truth"]["tau"]), (&"test".into(), &1.0.into()));
    assert_eq!(found["troubles"][0]["corpus"], "gone");

    // The Bayes error is that of the oracle in the corpus's folder, which is an oracle like any other.
    let oracle = out.join("corpora").join(of["id"].as_str().unwrap()).join("oracle");
    let again = json(&["bayes-error", text(&oracle), "--json"])["value"].as_f64().unwrap();
    assert!((again - error(0)).abs() <= 1e-6 * error(0), "{again} is not {}", error(0));

    // Put there, the missing one is all that is left to do.
    corpus(folder.path(), "nowhere", 30.0);
    let found = json(&["resume", text(&out), "--device", "cpu", "--json"]);
    assert_eq!(names(&found), ["apart", "gone", "overlapping"]);
    assert_eq!(json(&["watch", text(&out), "--once", "--json"])["finished"], 3);
    let figures = folder.path().join("figures");
    succeed(&["summary", text(&out), "--figures", text(&figures)]);
    for name in ["hardness-bayes-error.svg", "hardness-nll.png", "hardness.csv", "figures.md"] {
        assert!(figures.join(name).is_file(), "{name}");
    }
    assert!(succeed(&["summary", text(&out), "--csv"]).lines().count() == 4);
    assert!(succeed(&["plan", text(&out)]).matches("finished").count() == 3);
}

/// What is in the summary after the missing corpus was left out.
fn ranked(spec: &Path, out: &Path) -> Vec<u8> {
    succeed(&["run", text(spec), "--out", text(out), "--device", "cpu"]);
    std::fs::read(out.join("summary.json")).unwrap()
}

#[test]
#[cfg(unix)]
fn a_stopped_ranking_goes_on_to_the_same_summary() {
    let (folder, spec) = given();
    std::fs::write(&spec, SPEC.replace("[[corpora]]\nname = 'gone'\ndata = 'nowhere'\n", "")).unwrap();
    let whole = ranked(&spec, &folder.path().join("whole"));
    let broken = folder.path().join("broken");
    for (moment, signal, code) in [("epoch 2", "TERM", Some(75)), ("[2/2] apart", "KILL", None)] {
        let args = ["run", text(&spec), "--out", text(&broken), "--device", "cpu"];
        let mut child = bayescope(&args).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let mut told = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
        assert!(told.by_ref().any(|line| line.contains(moment)), "{moment}");
        // The shell's own: a clean Debian has no program of that name.
        assert!(
            Command::new("sh")
                .args(["-c", "kill -s $0 $1", signal, &child.id().to_string()])
                .status()
                .unwrap()
                .success()
        );
        let told = told.last().unwrap_or_default();
        assert_eq!(child.wait().unwrap().code(), code, "{told}");
    }
    let looks = json(&["watch", text(&broken), "--once", "--json"]);
    assert_eq!((&looks["finished"], &looks["planned"]), (&1.into(), &2.into()));
    // In another place, by parts.
    succeed(&["resume", text(&broken), "--task", "1", "--of", "2", "--device", "cpu"]);
    assert!(
        std::fs::read(broken.join("summary.json")).unwrap() == whole,
        "the resumed ranking ends in another summary"
    );
}

#[test]
fn corpora_that_cannot_be_ranked_are_told_with_their_cause() {
    let (folder, spec) = given();
    let there = |name: &str| folder.path().join(name);
    corpus(folder.path(), "odd", 9.0);
    image::GrayImage::new(9, 8).save(there("odd/train/lit/60.png")).unwrap();
    corpus(folder.path(), "alone", 9.0);
    std::fs::remove_dir_all(there("alone/train/lit")).unwrap();
    corpus(folder.path(), "other", 9.0);
    std::fs::rename(there("other/test/lit"), there("other/test/bright")).unwrap();
    let corpora = ["odd", "alone", "other"].map(|name| format!("[[corpora]]\nname = '{name}'\ndata = '{name}'\n"));
    let few = "[[corpora]]\nname = 'few'\ndata = 'easy'\nlimit = 20\n";
    let head = SPEC.split("[[corpora]]").next().unwrap();
    std::fs::write(&spec, format!("{head}{}{few}", corpora.concat())).unwrap();
    let out = there("run");
    fail(1, &["run", text(&spec), "--out", text(&out), "--device", "cpu"]);
    let found = json(&["summary", text(&out), "--json"]);
    let why = |i: usize| found["troubles"][i]["why"].as_str().unwrap();
    assert!(why(0).contains("60.png"), "{}", why(0));
    assert!(why(1).contains("alone") && why(1).contains("at least two"), "{}", why(1));
    assert!(why(2).contains("bright"), "{}", why(2));
    assert!(why(3).contains("holding out 20"), "{}", why(3));
}

#[test]
fn a_corpus_that_changed_holds_up_no_other() {
    let (folder, spec) = given();
    let two = SPEC.replace("[[corpora]]\nname = 'gone'\ndata = 'nowhere'\n", "").replace("epochs = 40", "epochs = 3");
    std::fs::write(&spec, two).unwrap();
    let out = folder.path().join("run");
    ranked(&spec, &out);
    // Both are trained and not measured, and the images of the first are no longer those of its training.
    let cells: Vec<PathBuf> = out.join("corpora").read_dir().unwrap().map(|cell| cell.unwrap().path()).collect();
    cells.iter().for_each(|cell| std::fs::remove_file(cell.join("result.json")).unwrap());
    let [lit, dark] = ["lit", "dark"].map(|class| folder.path().join("hard/train").join(class).join("00.png"));
    std::fs::copy(lit, dark).unwrap();
    let why = fail(1, &["resume", text(&out), "--device", "cpu"]);
    assert!(why.contains("1 of 2 corpora failed") && why.contains("what this training was begun with"), "{why}");
    let found = json(&["summary", text(&out), "--json"]);
    assert_eq!((names(&found), &found["troubles"][0]["corpus"]), (vec!["apart"], &"overlapping".into()));
    // A damaged result is no failure that is tried again: it stays until it is deleted.
    for cell in cells.iter().filter(|cell| cell.join("result.json").is_file()) {
        std::fs::write(cell.join("result.json"), "{").unwrap();
    }
    let why = fail(1, &["resume", text(&out), "--device", "cpu"]);
    assert!(why.contains("1 of 2 corpora failed (") && why.contains("tries them again): overlapping: "), "{why}");
    assert!(
        why.contains("; 1 of 2 corpora left out, with a damaged result: apart: ") && why.contains("delete it"),
        "{why}"
    );
    let told = succeed(&["summary", text(&out)]);
    assert!(told.contains("overlapping failed: ") && told.contains("apart is left out: "), "{told}");
}

#[test]
fn other_commands_know_a_ranking_when_they_see_one() {
    let (folder, spec) = given();
    let out = folder.path().join("run");
    assert!(succeed(&["plan"]).contains("hardness-quick"));
    let plan = json(&["plan", text(&spec), "--out", text(&out), "--json"]);
    assert_eq!(plan["corpora"].as_array().unwrap().len(), 3);
    assert!(succeed(&["plan", text(&spec)]).contains("not there"));
    assert!(fail(1, &["slurm", text(&out)]).contains("--task"));
    assert!(fail(1, &["plan", text(&spec), "--estimate"]).contains("--estimate"));
    assert!(fail(1, &["summary", text(&out), "--worst", "x"]).contains("--worst"));
    assert!(fail(1, &["summary", text(&out), "--bought", "x"]).contains("--bought"));
    let other = folder.path().join("other");
    assert!(fail(1, &["plan", text(&out), "--out", text(&other)]).contains("leave --out out") && !other.exists());
    assert!(fail(1, &["run", text(&spec), "--out", text(&out), "--oracle", "mnist"]).contains("--oracle"));
    std::fs::write(&spec, SPEC.replace("seed = 5", "seed = 6")).unwrap();
    assert!(fail(1, &["run", text(&spec), "--out", text(&out)]).contains("another"));
    std::fs::write(&spec, SPEC.replace("levels = 1", "lvels = 1")).unwrap();
    assert!(fail(1, &["plan", text(&spec)]).contains("lvels"));
}

#[test]
fn several_flows_of_a_corpus_choose_their_weight_and_have_a_spread() {
    let (folder, spec) = given();
    let head = SPEC.split("[[corpora]]").next().unwrap().replace("epochs = 40", "epochs = 3");
    let repeat = "[repeat]\nlambdas = [1.0, 10.0]\nworlds = 3\nbootstrap = true\n";
    let wrong =
        format!("{head}{}[[corpora]]\nname = 'apart'\ndata = 'easy'\n", repeat.replace("worlds = 3", "worlds = 2"));
    std::fs::write(&spec, wrong).unwrap();
    assert!(fail(1, &["plan", text(&spec)]).contains("repeat.worlds must be at least 3"));
    std::fs::write(&spec, format!("{head}{repeat}[[corpora]]\nname = 'apart'\ndata = 'easy'\n")).unwrap();
    let plan = succeed(&["plan", text(&spec)]);
    assert!(plan.contains("apart, λ = 1:") && plan.contains("apart, λ = 10, world 3:"), "{plan}");

    let out = folder.path().join("run");
    let found = json(&["run", text(&spec), "--out", text(&out), "--device", "cpu", "--json"]);
    let tried = found["tried"].as_array().unwrap();
    assert_eq!((tried.len(), &found["flows"], names(&found)), (6, &6.into(), vec!["apart"]));
    let nll = |one: &Value| one["held_out_nll"].as_f64().unwrap();
    for world in 0..3 {
        let here: Vec<&Value> = tried.iter().filter(|one| one["world"] == world).collect();
        let chosen: Vec<&&Value> = here.iter().filter(|one| one["chosen"] == true).collect();
        assert!(chosen.len() == 1 && here.iter().all(|one| nll(one) >= nll(chosen[0])), "{here:?}");
    }
    let worlds = found["worlds"][0]["bayes_errors"].as_array().unwrap();
    // Other seeds and other images: no two worlds are the same.
    assert!(worlds.len() == 3 && worlds[0] != worlds[1] && worlds[1] != worlds[2], "{worlds:?}");
    assert_eq!(worlds[0], found["corpora"][0]["truth"]["bayes_error"]["value"]);
    let figures = folder.path().join("figures");
    succeed(&["summary", text(&out), "--figures", text(&figures)]);
    for name in ["hardness-worlds.svg", "hardness-world-to-world.csv", "hardness-lambda.csv"] {
        assert!(figures.join(name).is_file(), "{name}");
    }
}
