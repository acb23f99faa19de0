//! The commands that leave results, and what they leave.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use bayescope::data::{ImageShape, WorldBatch, write_npz};

use crate::common::fill::uniform;
use crate::common::pictures::pictures;
use crate::common::tiny;

/// A command that leaves results in a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Writer {
    Run,
    Posterior,
    Export,
    Train,
}

impl Writer {
    pub const ALL: [Self; 4] = [Self::Run, Self::Posterior, Self::Export, Self::Train];

    /// What must not depend on what happened on the way.
    pub fn results(self, out: &Path) -> Vec<(String, Vec<u8>)> {
        let named = |names: &[&str]| {
            let there = names.iter().filter_map(|name| Some(((*name).to_owned(), std::fs::read(out.join(name)).ok()?)));
            there.collect()
        };
        match self {
            Self::Run => named(&["summary.json", "summary.csv", "pool/test.npz", "pool/train-0.npz"]),
            Self::Posterior => named(&["posteriors.npz"]),
            Self::Train => named(&["oracle/weights.safetensors"]),
            Self::Export => {
                let mut files = BTreeMap::new();
                visit(out, &mut |path| {
                    let name = path.strip_prefix(out).unwrap().to_str().unwrap().to_owned();
                    files.insert(name, std::fs::read(path).unwrap());
                });
                files.into_iter().collect()
            }
        }
    }
}

/// Every file that is no temporary one, in any depth.
pub fn visit(folder: &Path, see: &mut dyn FnMut(&Path)) {
    for entry in std::fs::read_dir(folder).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.file_name().unwrap().to_str().unwrap().starts_with('.') {
            continue;
        }
        if path.is_dir() { visit(&path, see) } else { see(&path) }
    }
}

/// Every file in a folder is whole, whatever was done to those who wrote there.
pub fn sound(folder: &Path) {
    visit(folder, &mut |path| {
        let bytes = std::fs::read(path).unwrap();
        let text = || String::from_utf8(bytes.clone()).unwrap();
        let whole = match path.extension().and_then(|e| e.to_str()).unwrap_or_default() {
            "json" => serde_json::from_slice::<serde_json::Value>(&bytes).is_ok(),
            // Appended to line by line: the last may be torn.
            "jsonl" => {
                let text = text();
                let ended = text.rfind('\n').map_or("", |end| &text[..end]);
                ended.lines().all(|line| serde_json::from_str::<serde_json::Value>(line).is_ok())
            }
            "toml" => toml::from_str::<toml::Table>(&text()).is_ok(),
            "npz" => unpacks(path),
            "safetensors" => safetensors::SafeTensors::deserialize(&bytes).is_ok(),
            "png" => image::load_from_memory(&bytes).is_ok(),
            "parquet" => bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1"),
            _ => true,
        };
        assert!(whole, "{} is no whole file ({} bytes)", path.display(), bytes.len());
    });
}

/// Whether every member of an archive has its checksum.
fn unpacks(path: &Path) -> bool {
    let Ok(mut archive) = zip::ZipArchive::new(std::fs::File::open(path).unwrap()) else { return false };
    (0..archive.len())
        .all(|at| archive.by_index(at).is_ok_and(|mut m| std::io::copy(&mut m, &mut std::io::sink()).is_ok()))
}

/// How a command ended.
#[derive(Debug)]
pub struct Ended {
    pub code: Option<i32>,
    /// On stderr.
    pub said: String,
}

impl Ended {
    pub fn of(child: Child) -> Self {
        let output = child.wait_with_output().unwrap();
        Self { code: output.status.code(), said: String::from_utf8_lossy(&output.stderr).into_owned() }
    }
}

/// An undisturbed run.
#[derive(Clone)]
pub struct Whole {
    pub results: Vec<(String, Vec<u8>)>,
    pub took: Duration,
}

/// What the commands work on, in a folder of its own.
pub struct Bench {
    folder: tempfile::TempDir,
    wholes: Mutex<BTreeMap<Writer, Whole>>,
}

const IMAGES: usize = 128;

impl Bench {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path();
        tiny::gaussian_file(at);
        tiny::tarflow_file(at, 6, 5);
        let run = "name = 'test'\n[world]\noracle = 'gaussian_model_2_64_1_1_0.05.safetensors'\n[grid]\n\
                   architectures = ['linear', 'mlp-500']\ntrain_sizes = [100, 400]\nseeds = [0]\n[test]\nimages = 2000\nwatched = 100\n\
                   [training]\nepochs = 12\nlearning_rate = 1e-2\n";
        std::fs::write(at.join("run.toml"), run).unwrap();
        let shape = ImageShape { channels: 1, height: 8, width: 8 };
        let x = uniform("x", 1, IMAGES * shape.dims()).into_iter().map(|v| (0.9 * v) as f32).collect();
        let batch = WorldBatch { shape, x, classes: 0, y: None, posterior: None, logp: None, aleatoric: None };
        write_npz(&at.join("x.npz"), &batch).unwrap();
        pictures(at);
        let train = "name = 'halves'\n[data]\npath = 'data'\npad_to = 8\nheld_out = 16\nmirror = false\n[model]\nhidden = 8\nlevels = 2\n\
                     steps = 2\n[training]\nepochs = 8\nbatch = 16\nlearning_rate = 3e-3\nwarm_up_images = 64\nseed = 3\n";
        std::fs::write(at.join("train.toml"), train).unwrap();
        Self { folder, wholes: Mutex::default() }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The command's words.
    pub fn words(&self, writer: Writer, out: &Path) -> Vec<String> {
        let at = |name: &str| self.path(name).to_str().unwrap().to_owned();
        let mut words: Vec<String> = match writer {
            Writer::Run => vec!["run".into(), at("run.toml"), "--checkpoint-every".into(), "0.05".into()],
            Writer::Posterior => vec![
                "posterior".into(),
                at("tiny5_model_2_64_2_2_0.05.safetensors"),
                at("x.npz"),
                "--no-compare".into(),
            ],
            Writer::Export => {
                let asked = "--train 200 --test 40 --format npz,png,parquet".split(' ').map(str::to_owned);
                ["export".into(), at("gaussian_model_2_64_1_1_0.05.safetensors")].into_iter().chain(asked).collect()
            }
            Writer::Train => vec!["oracle".into(), "train".into(), at("train.toml")],
        };
        words.extend(["--out".into(), out.to_str().unwrap().into(), "--device".into(), "cpu".into()]);
        words
    }

    pub fn start(&self, writer: Writer, out: &Path) -> Child {
        let mut command = Command::new(env!("CARGO_BIN_EXE_bayescope"));
        command.args(self.words(writer, out)).env_remove("DISPLAY").env_remove("WAYLAND_DISPLAY");
        command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
    }

    pub fn run(&self, writer: Writer, out: &Path) -> Ended {
        Ended::of(self.start(writer, out))
    }

    /// The command undisturbed, once.
    pub fn whole(&self, writer: Writer) -> Whole {
        let mut wholes = self.wholes.lock().unwrap();
        let made = || {
            let out = self.path(&format!("whole-{writer:?}"));
            let begun = Instant::now();
            let Ended { code, said } = self.run(writer, &out);
            assert_eq!(code, Some(0), "{writer:?}: {said}");
            let results = writer.results(&out);
            assert!(!results.is_empty(), "{writer:?} left nothing");
            Whole { results, took: begun.elapsed() }
        };
        wholes.entry(writer).or_insert_with(made).clone()
    }
}
