//! What a run is told and what it leaves: specs, plans, metrics, states, results; class problems.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use bayescope::bayes::Problem;
use bayescope::error::{Error, Result};
use bayescope::events::silent;
use bayescope::experiment::{ExperimentSpec, HardnessSpec};
use bayescope::flow::Precision;
use bayescope::judge::Kind;
use bayescope::oracle::folder as oracle_folder;
use bayescope::oracle::scale::Job;
use bayescope::oracle::train::TrainSpec;
use bayescope::oracle::world::Settings;
use bayescope::run::external::{Header, StartExternal};
use bayescope::run::{AnyRun, Run, RunContext, RunEvent, RunFolder, RunNotes, Share, execute};
use bayescope::units::Seed;
use burn::tensor::Device;

use super::folder;
use crate::common::tiny;
use crate::forms::Form;
use crate::watch::{Reader, Whole};

/// A run of one cell that is finished.
pub struct Finished {
    folder: tempfile::TempDir,
    cell: PathBuf,
    pub id: String,
}

impl Finished {
    /// A file of its cell.
    pub fn file(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.cell.join(name)).unwrap()
    }

    fn of_run(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.folder.path().join("run").join(name)).unwrap()
    }
}

pub fn finished() -> Finished {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let oracle = tiny::gaussian_file(path);
    let text = format!(
        "name = 'small'\n[world]\noracle = '{}'\n[grid]\narchitectures = ['linear']\ntrain_sizes = [20]\nseeds = [0]\n\
         [test]\nimages = 40\nwatched = 20\n[training]\nepochs = 2\nbatch = 10\n",
        oracle.display()
    );
    let spec: ExperimentSpec = toml::from_str(&text).unwrap();
    let device = Device::flex();
    let (info, weights) = oracle_folder::read(oracle.to_str().unwrap()).unwrap();
    let world = info.build(weights, &device, Precision::F32, 40).unwrap().world;
    let run = RunFolder::create(&path.join("run"), &spec, &world.id(), None).unwrap();
    let settings = spec.settings(0, 2).unwrap();
    let context = RunContext::new(&world, settings, &device);
    execute(&run, Share::ALL, &context, &mut |_: RunEvent| ControlFlow::Continue(())).unwrap();
    let id = run.plan[0].id.clone();
    Finished { cell: run.cell(&id), folder, id }
}

#[test]
fn fuzz_specs() {
    let mut wholes = Vec::new();
    let mut presets: Vec<PathBuf> =
        std::fs::read_dir("assets/specs").unwrap().map(|entry| entry.unwrap().path()).collect();
    presets.sort();
    for preset in presets {
        let text = std::fs::read(preset).unwrap();
        let kind = match String::from_utf8_lossy(&text) {
            text if HardnessSpec::is(&text) => "hardness.toml",
            text if text.contains("[grid]") => "grid.toml",
            _ => "train.toml",
        };
        wholes.push(Whole::new(kind, Form::Text, text));
    }
    assert!(wholes.len() > 3 && wholes.iter().any(|whole| whole.name == "hardness.toml"));
    Reader {
        name: "specs",
        wholes,
        few: 2000,
        read: &|path| match path.file_name().unwrap().to_str().unwrap() {
            "hardness.toml" => HardnessSpec::read(path).map(drop),
            "train.toml" => TrainSpec::read(path).map(drop),
            _ => {
                let spec = ExperimentSpec::read(path)?;
                let cells = spec.cells();
                cells
                    .iter()
                    .try_for_each(|cell| spec.steps(cell).map(drop))
                    .map_err(|e| Error::file(path, e.to_string()))
            }
        },
    }
    .run();
}

/// Everything a run folder is asked for by those who look at it.
fn look(folder: &Path) -> Result<()> {
    let AnyRun::Grid(run) = AnyRun::open(folder)? else { return Ok(()) };
    for planned in &run.plan {
        run.metrics(&planned.id)?;
        run.result(&planned.id)?;
        if let Some(status) = run.status(&planned.id)? {
            let _ = status.stale();
        }
    }
    run.truth(0)?;
    let summary = run.summary().map_err(|e| match e {
        // Numbers that do not go together: of the run as a whole.
        Error::Numeric(_) | Error::Input(_) => Error::file(folder, e.to_string()),
        e => e,
    })?;
    let _ = (summary.csv(), serde_json::to_string(&summary));
    Ok(())
}

#[test]
fn fuzz_notes_of_runs() {
    let notes = RunNotes::typed("Baseline", "paper, small", "seed 3 \"diverged\"\n= [after] 'an hour'");
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("run.toml"), "name = 'x'").unwrap();
    notes.write(folder.path()).unwrap();
    let bytes = std::fs::read(folder.path().join("notes.toml")).unwrap();
    let wholes = vec![Whole::new("notes.toml", Form::Text, bytes)];
    let read = |path: &Path| RunNotes::read(path.parent().unwrap()).map(drop);
    Reader { name: "notes", wholes, few: 1000, read: &read }.run();
}

#[test]
fn fuzz_run_folder() {
    let run = finished();
    let (spec, plan) = (run.of_run("run.toml"), run.of_run("plan.jsonl"));
    let cell = |name: &str| Whole::new(name, Form::Text, run.file(name));
    let of_run = |name: &str| Whole::new(name, Form::Text, run.of_run(name));
    let wholes = vec![
        of_run("run.toml").beside("plan.jsonl", plan.clone()),
        of_run("plan.jsonl").beside("run.toml", spec.clone()),
        cell("metrics.jsonl"),
        cell("status.json"),
        cell("result.json"),
    ];
    Reader {
        name: "run-folder",
        wholes,
        few: 1500,
        read: &|path| {
            let name = path.file_name().unwrap().to_str().unwrap();
            let here = folder(path);
            let cell = here.join("cells").join(&run.id);
            std::fs::create_dir_all(&cell).unwrap();
            let place = match name {
                "run.toml" | "plan.jsonl" => here.clone(),
                _ => cell,
            };
            if place != here {
                std::fs::copy(path, place.join(name)).unwrap();
                std::fs::write(here.join("run.toml"), &spec).unwrap();
                std::fs::write(here.join("plan.jsonl"), &plan).unwrap();
            }
            look(&here)
        },
    }
    .run();
}

#[test]
fn fuzz_external_run() {
    let place = tempfile::tempdir().unwrap();
    let (info, weights) = oracle_folder::read(tiny::gaussian_file(place.path()).to_str().unwrap()).unwrap();
    let hash = info.weights_sha256.clone();
    let world = info.build(weights, &Device::flex(), Precision::F32, 40).unwrap().world;
    let made = StartExternal {
        folder: place.path().join("run"),
        name: "theirs".into(),
        oracle: "gaussian".into(),
        settings: Settings::default_for(2),
        precision: Precision::F32,
        images: 40,
        seed: Seed(0),
        predictions: Kind::Logits,
        train_images: None,
    };
    let made = made.make(&world, &hash, &mut silent()).unwrap();
    let header = Header { epoch: Some(1.5), images: Some(60), seconds: Some(2.0), train_loss: Some(0.7) };
    made.log(10, &header, &[0.25; 80]).unwrap();
    let file = |name: &str| std::fs::read(made.path.join(name)).unwrap();
    let (spec, record) = (file("run.toml"), file("predictions/000000010.pred"));
    let test = ["y.npy", "posterior.npy"].map(|name| (name, file(&format!("test/{name}"))));
    Reader {
        name: "external-run",
        wholes: vec![
            Whole::new("000000010.pred", Form::Bytes, record.clone()),
            Whole::new("run.toml", Form::Text, spec.clone()),
            Whole::new("y.npy", Form::Npy, test[0].1.clone()),
        ],
        few: 1500,
        read: &|path| {
            let (here, name) = (folder(path), path.file_name().unwrap().to_str().unwrap());
            // The input in its place, all others as they were written.
            let put = |file: &str, bytes: &[u8]| {
                let place = here.join("run").join(file);
                std::fs::create_dir_all(place.parent().unwrap()).unwrap();
                if place.file_name() == path.file_name() {
                    std::fs::copy(path, place).unwrap();
                } else {
                    std::fs::write(place, bytes).unwrap();
                }
            };
            put("run.toml", &spec);
            test.iter().for_each(|(name, bytes)| put(&format!("test/{name}"), bytes));
            put("predictions/000000010.pred", &record);
            let AnyRun::External(run) = AnyRun::open(&here.join("run"))? else { return Ok(()) };
            run.last_step()?;
            let course = run.look(None, 10)?;
            match course.refused().first() {
                Some(refused) => Err(Error::file(here.join("run/predictions").join(name), refused.why.clone())),
                None => Ok(()),
            }
        },
    }
    .run();
}

#[test]
fn fuzz_problem() {
    let text = r#"{"means": [[0.0, 1.0], [2.0, -1.5], [0.5, 0.5]], "cov_diag": [1.0, 0.25], "priors": [0.25, 0.25, 0.5], "class_names": ["a", "b", "c"]}"#;
    let whole = r#"{"means": [[0.0, 1.0], [2.0, -1.5]], "cov": [[1.0, 0.1], [0.1, 2.0]]}"#;
    Reader {
        name: "problem",
        wholes: vec![Whole::new("p.json", Form::Text, text), Whole::new("p.json", Form::Text, whole)],
        few: 2000,
        read: &|path| {
            let problem = Problem::read(path)?;
            problem.classes().map(drop).map_err(|e| Error::file(path, e.to_string()))
        },
    }
    .run();
}

#[test]
fn fuzz_posterior_job() {
    let text = r#"{"format": 1, "oracle": "mnist", "weights_sha256": "00", "classes": ["a", "b"],
        "settings": {"tau": 1.0, "smoothing": 1.0, "prior": [0.5, 0.5]}, "precision": "f32",
        "input": {"name": "x.npz", "images": 3, "kind": "world-space", "sha256": "00", "dequantisation": null},
        "images_per_pass": 8, "shards": 1}"#;
    Reader {
        name: "posterior-job",
        wholes: vec![Whole::new("job.json", Form::Text, text)],
        few: 2000,
        read: &|path| {
            let job = Job::read(&folder(path))?;
            let _ = job.id();
            job.settle(&folder(path))
        },
    }
    .run();
}
