//! `evaluate --checkpoint`: classifiers of runs of our own and plain state dicts, judged without retraining.

use std::path::{Path, PathBuf};

use bayescope::classifier::{Architecture, Classifier, ClassifierConfig};
use bayescope::data::{Column, ImageShape, Input, Split, Stored, open_split, read_npz, write_table};
use bayescope::flow::Precision;
use bayescope::flow::weights::{Storage, Weights};
use burn::tensor::Device;
use serde_json::Value;

use crate::experiments::{Grid, summary};
use crate::run::{fail, json, succeed, text};

const TRAINED: &str = "[grid]\narchitectures = ['linear', 'mlp-500']\ntrain_sizes = [300]\nseeds = [0]\n[test]\nimages = 400\n\
                       [training]\nepochs = 3\nbatch = 50\nlearning_rate = 1e-2\n";
const FIGURES: [&str; 6] = ["cross_entropy", "aleatoric", "epistemic", "error", "gap", "exact_calibration_error"];

/// A finished run, and an exported dataset of the same world.
struct Bench {
    grid: Grid,
    run: PathBuf,
    data: PathBuf,
}

impl Bench {
    fn new() -> Self {
        let grid = Grid::new(TRAINED);
        let (run, data) = (grid.path("run"), grid.path("data"));
        grid.run(&run);
        let oracle = grid.path("gaussian_model_2_64_1_1_0.05.safetensors");
        succeed(&["export", text(&oracle), "--train", "0", "--test", "700", "--out", text(&data), "--device", "cpu"]);
        Self { grid, run, data }
    }

    /// Folders of the cells by their architecture.
    fn cell(&self, architecture: &str) -> PathBuf {
        let plan = std::fs::read_to_string(self.run.join("plan.jsonl")).unwrap();
        let lines = plan.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let cell = lines.into_iter().find(|line| line["architecture"] == architecture).unwrap();
        self.run.join("cells").join(cell["id"].as_str().unwrap())
    }

    fn judge(&self, dataset: &Path, more: &[&str]) -> Value {
        json(&[&["evaluate", text(dataset), "--device", "cpu", "--json"], more].concat())
    }

    /// Means and standard deviations of the first 300 training images, and the ends of the range of pixels.
    fn statistics(&self) -> (f64, f64) {
        let Input::World(train) = read_npz(&self.run.join("pool/train-0.npz")).unwrap() else { panic!("pixels") };
        let x: Vec<f64> = train.x[..300 * 16].iter().map(|&v| f64::from(v)).collect();
        let mean = x.iter().sum::<f64>() / x.len() as f64;
        (mean, (x.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / x.len() as f64).sqrt())
    }
}

/// Equal figures, to 1e-6.
fn same(a: &Value, b: &Value, within: f64) {
    for figure in FIGURES {
        let of = |value: &Value| value[figure].as_f64().unwrap_or_else(|| value[figure]["value"].as_f64().unwrap());
        assert!((of(a) - of(b)).abs() < within, "{figure}: {} {}", of(a), of(b));
    }
}

#[test]
fn a_cells_checkpoint_has_the_figures_of_its_run_and_of_its_logits() {
    let bench = Bench::new();
    // All cells of the run on the run's own test images: what the run says of them.
    let judged = bench.judge(&bench.run.join("pool/test.npz"), &["--checkpoint", text(&bench.run)]);
    assert_eq!(judged.as_array().unwrap().len(), 2);
    for (architecture, name) in
        [("linear", "linear on 300 images, seed 0"), ("mlp-500", "MLP-500 on 300 images, seed 0")]
    {
        let result = std::fs::read(bench.cell(architecture).join("result.json")).unwrap();
        let result: Value = serde_json::from_slice(&result).unwrap();
        let one =
            judged.as_array().unwrap().iter().find(|one| one["name"] == name).unwrap_or_else(|| panic!("{judged}"));
        same(one, &result["measured"], 1e-6);
        assert_eq!(one["alarms"].as_array().unwrap().len(), 0, "{one}");
    }
    // On an export, from the folder of the cell and from the file: the figures of its logits, computed here.
    let (cell, file) = (bench.cell("mlp-500"), bench.cell("mlp-500").join("last.safetensors"));
    let of_cell = bench.judge(&bench.data, &["--checkpoint", text(&cell)]);
    assert_eq!(of_cell, bench.judge(&bench.data, &["--checkpoint", text(&file)]));
    let shape = ImageShape { channels: 1, height: 4, width: 4 };
    let config = ClassifierConfig { architecture: Architecture::Mlp500, shape, classes: 2, resize: None };
    let weights = Weights::read(&file).unwrap();
    let network = Classifier::from_weights(&config, weights, &Device::flex(), Precision::F32).unwrap();
    let (mean, std) = bench.statistics();
    let Input::World(test) = open_split(&bench.data, Split::Test, None).unwrap() else { panic!("pixels") };
    let x: Vec<f32> = test.x.iter().map(|&v| ((f64::from(v) - mean) / std) as f32).collect();
    let logits = network.logits(&x, 64).unwrap();
    let answers = bench.grid.path("answers.npz");
    let column = [Column { name: "logits", stored: Stored::F64, shape: vec![2] }];
    write_table(&answers, 700, &column, &mut |_, rows| Ok(logits[2 * rows.start..2 * rows.end].to_vec())).unwrap();
    same(&of_cell, &bench.judge(&bench.data, &["--predictions", text(&answers)]), 1e-6);
}

#[test]
fn a_state_dict_is_judged_as_it_is_told_and_nothing_is_guessed() {
    let bench = Bench::new();
    let cell = bench.cell("linear").join("last.safetensors");
    let mut weights = Weights::read(&cell).unwrap();
    weights.0 = weights.0.into_iter().map(|(name, array)| (format!("model.{name}"), array)).collect();
    let bare = bench.grid.path("mine.safetensors");
    weights.write(&bare, Storage::F32).unwrap();
    let refused =
        |more: &[&str]| fail(1, &[&["evaluate", text(&bench.data), "--device", "cpu", "--checkpoint"], more].concat());
    let silent = refused(&[text(&bare)]);
    assert!(silent.contains("mine.safetensors") && silent.contains("its architecture (linear, mlp-500"), "{silent}");
    // Pixels of this world lie between -1 and 1.
    let (mean, std) = bench.statistics();
    let how = format!("mean={};std={}", (mean + 1.0) / 2.0, std / 2.0);
    let told = ["--architecture", "linear", "--normalisation", &how];
    let found = bench.judge(&bench.data, &[&["--checkpoint", text(&bare)], &told[..]].concat());
    assert_eq!(found["name"], "mine");
    same(&found, &bench.judge(&bench.data, &["--checkpoint", text(&cell)]), 1e-5);
    let other = refused(&[text(&bare), "--architecture", "mlp-500", "--normalisation", &how]);
    assert!(other.contains("is no MLP-500: array 'fc2.bias' is missing"), "{other}");
    let unknown = fail(2, &["evaluate", text(&bench.data), "--checkpoint", text(&bare), "--architecture", "lenet"]);
    assert!(unknown.contains("there is no architecture") && unknown.contains("resnet-18"), "{unknown}");
    // Images of another world.
    let digits = bench.grid.path("digits");
    succeed(&["export", "mnist", "--train", "0", "--test", "4", "--out", text(&digits), "--device", "cpu"]);
    let shape = fail(1, &["evaluate", text(&digits), "--device", "cpu", "--checkpoint", text(&cell)]);
    assert!(shape.contains("2 classes") && shape.contains("10 classes") && shape.contains("32"), "{shape}");
    let classes = [&["evaluate", text(&digits), "--device", "cpu", "--checkpoint", text(&bare)], &told[..]].concat();
    let classes = fail(1, &classes);
    assert!(classes.contains("tells 2 classes apart, and here there are 10"), "{classes}");
    let empty = bench.grid.path("empty");
    std::fs::create_dir(&empty).unwrap();
    assert!(refused(&[text(&empty)]).contains("neither a run folder nor"));
}

#[test]
fn a_checkpoint_of_an_older_version_says_how_it_is_brought_up_to_date() {
    let bench = Bench::new();
    let (cell, file) = (bench.cell("linear"), bench.cell("linear").join("last.safetensors"));
    let before = bench.judge(&bench.data, &["--checkpoint", text(&file)]);
    let mut bytes = std::fs::read(&file).unwrap();
    let entry = br#"\"classifier\""#;
    let at = bytes.windows(entry.len()).position(|window| window == entry).unwrap();
    bytes[at + 2] = b'k';
    std::fs::write(&file, &bytes).unwrap();
    let older = fail(1, &["evaluate", text(&bench.data), "--device", "cpu", "--checkpoint", text(&file)]);
    assert!(older.contains("older version") && older.contains("bayescope resume"), "{older}");
    std::fs::remove_file(cell.join("result.json")).unwrap();
    succeed(&["resume", text(&bench.run), "--device", "cpu"]);
    assert_eq!(bench.judge(&bench.data, &["--checkpoint", text(&file)]), before);
}

#[test]
fn a_cell_knows_the_world_of_its_training_images() {
    let bench = Bench::new();
    let (cell, manifest) = (bench.cell("linear"), bench.data.join("dataset.json"));
    let judged = || bench.judge(&bench.data, &["--checkpoint", text(&cell)]);
    let own = judged();
    assert!(!own["notes"].to_string().contains("another world"), "{own}");
    let mut facts: Value = serde_json::from_slice(&std::fs::read(&manifest).unwrap()).unwrap();
    facts["weights_sha256"] = "00".into();
    std::fs::write(&manifest, facts.to_string()).unwrap();
    let other = judged();
    assert!(other["notes"].to_string().contains("trained on images of another world"), "{other}");
    same(&own, &other, 1e-12);
    // Its scale would be that of another range.
    facts["pixel_range"] = serde_json::json!([0.0, 1.0]);
    std::fs::write(&manifest, facts.to_string()).unwrap();
    let refused = fail(1, &["evaluate", text(&bench.data), "--device", "cpu", "--checkpoint", text(&cell)]);
    assert!(refused.contains("between -1 and 1") && refused.contains("between 0 and 1"), "{refused}");
}

/// Two cells of one network have arrays of the same names and shapes: figures of the wrong one would pass for its own.
#[test]
fn a_cell_does_not_go_on_from_the_checkpoint_of_another() {
    let grid = Grid::new(&TRAINED.replace("'linear', 'mlp-500'", "'linear'").replace("[0]", "[0, 1]"));
    let run = grid.path("run");
    grid.run(&run);
    let whole = summary(&run);
    let cells: Vec<PathBuf> = std::fs::read_dir(run.join("cells")).unwrap().map(|cell| cell.unwrap().path()).collect();
    let [own, other] = [&cells[0], &cells[1]].map(|cell| cell.join("last.safetensors"));
    std::fs::copy(&other, &own).unwrap();
    std::fs::remove_file(cells[0].join("result.json")).unwrap();
    let why = fail(1, &["resume", text(&run), "--device", "cpu"]);
    assert!(why.contains(text(&own)) && why.contains("another training") && why.contains("remove it"), "{why}");
    std::fs::remove_file(&own).unwrap();
    succeed(&["resume", text(&run), "--device", "cpu"]);
    assert!(summary(&run) == whole);
}
