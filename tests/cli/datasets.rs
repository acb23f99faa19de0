//! Runs on a dataset in place of the world's own images.

use std::path::Path;

use bayescope::data::{Input, WorldBatch, read_npz, write_npz};
use bayescope::experiment::ExperimentSpec;
use bayescope::units::Seed;
use serde_json::{Value, json};

use crate::experiments::{Grid, summary};
use crate::run::{SHARP_DIGITS, fail, json, succeed, text};

const REST: &str = "[data]\ntrain = 'train.npz'\n[grid]\narchitectures = ['linear']\ntrain_sizes = [50, 200]\nseeds = [0, 1]\n\
                    labels = ['drawn', 'posterior']\n[test]\nimages = 100\nwatched = 50\n[training]\nepochs = 3\n\
                    learning_rate = 1e-2\n";

fn read(path: &Path) -> WorldBatch {
    match read_npz(path).unwrap() {
        Input::World(batch) => batch,
        Input::Pixels(_) => panic!("{} holds pixels", path.display()),
    }
}

/// Writes the training images that the world of a spec draws itself under the grid's first seed.
fn sample(grid: &Grid, oracle: &str, n: usize, name: &str) -> WorldBatch {
    drawn(grid, oracle, n, name, |spec| spec.train_seed(0))
}

/// Writes the images that the world of a spec draws under a seed.
fn drawn(grid: &Grid, oracle: &str, n: usize, name: &str, seed: fn(&ExperimentSpec) -> Seed) -> WorldBatch {
    let spec = ExperimentSpec::read(&grid.spec).unwrap();
    let (seed, out) = (seed(&spec).0.to_string(), grid.path(name));
    let (tau, n) = (spec.world.tau.get().to_string(), n.to_string());
    let args = ["sample", oracle, "--n", &n, "--seed", &seed, "--tau", &tau, "--out", text(&out), "--device", "cpu"];
    succeed(&args);
    read(&out)
}

fn oracle(grid: &Grid) -> String {
    ExperimentSpec::read(&grid.spec).unwrap().world.oracle
}

#[test]
fn the_worlds_own_images_as_a_dataset_have_the_worlds_own_posteriors() {
    let grid = Grid::new(REST);
    let given = sample(&grid, &oracle(&grid), 200, "train.npz");
    let found = grid.run(&grid.path("data"));
    // Sorted, all 200 images are used: those of both seeds.
    let scored = read(&grid.path("data/pool/train.npz"));
    assert_eq!((&scored.x, &scored.y, &scored.logp), (&given.x, &given.y, &given.logp));
    assert_eq!(found["data"]["train"]["images"], 200);
    assert!(found["data"]["test"].is_null() && found["rounding"].is_null());
    let told = succeed(&["summary", text(&grid.path("data"))]);
    assert!(told.contains("train.npz (200 world-space images)") && told.contains("samples of the world"), "{told}");

    // The same run on the world itself: the same images, in another order, and the same test images.
    grid.change("[data]\ntrain = 'train.npz'\n", "");
    let own = grid.run(&grid.path("own"));
    let drawn = read(&grid.path("own/pool/train-0.npz"));
    assert_eq!((&scored.x, &scored.y, &scored.logp), (&drawn.x, &drawn.y, &drawn.logp));
    let tests = ["data", "own"].map(|run| std::fs::read(grid.path(run).join("pool/test.npz")).unwrap());
    assert!(tests[0] == tests[1]);
    assert!(own["data"].is_null() && own["cells"][0]["id"] != found["cells"][0]["id"]);
    let near = |a: &Value, b: &Value| (a.as_f64().unwrap() - b.as_f64().unwrap()).abs() < 0.1;
    for (a, b) in own["cells"].as_array().unwrap().iter().zip(found["cells"].as_array().unwrap()) {
        assert_eq!(a["cell"], b["cell"]);
        assert!(near(&a["measured"]["epistemic"]["value"], &b["measured"]["epistemic"]["value"]), "{a}\n{b}");
    }
}

#[test]
fn a_run_on_data_goes_on_without_scoring_again_and_refuses_other_data() {
    let grid = Grid::new(REST);
    sample(&grid, &oracle(&grid), 200, "train.npz");
    let [whole, broken] = ["whole", "broken"].map(|name| grid.path(name));
    grid.run(&whole);
    succeed(&["plan", text(&grid.spec), "--out", text(&broken), "--device", "cpu"]);
    succeed(&["run", "--plan", text(&broken), "--task", "1", "--of", "3", "--device", "cpu"]);
    let pool = broken.join("pool/train.npz");
    let before = std::fs::metadata(&pool).unwrap().modified().unwrap();
    succeed(&["resume", text(&broken), "--device", "cpu"]);
    assert_eq!(std::fs::metadata(&pool).unwrap().modified().unwrap(), before, "scored twice");
    assert!(summary(&whole) == summary(&broken));

    // Other images under the old name are another run.
    std::fs::remove_dir_all(broken.join("cells")).unwrap();
    let mut other = read(&grid.path("train.npz"));
    other.x[0] += 1.0;
    write_npz(&grid.path("train.npz"), &other).unwrap();
    let why = fail(1, &["resume", text(&broken), "--device", "cpu"]);
    assert!(why.contains("data.json") && why.contains("train.npz") && why.contains("another folder"), "{why}");
}

#[test]
fn labels_alone_need_no_posteriors() {
    let grid = Grid::new(&REST.replace("labels = ['drawn', 'posterior']\n", ""));
    sample(&grid, &oracle(&grid), 200, "train.npz");
    let run = grid.path("run");
    let found = grid.run(&run);
    assert_eq!(found["finished"], 4);
    assert!(run.join("pool/test.npz").exists() && !run.join("pool/train.npz").exists());
    // Told the labels only, a classifier gives the same whether posteriors are known or not.
    grid.change("seeds = [0, 1]\n", "seeds = [0, 1]\nlabels = ['posterior', 'drawn']\n");
    let both = grid.run(&grid.path("both"));
    let drawn = |found: &Value| -> Vec<Value> {
        let cells = found["cells"].as_array().unwrap().iter();
        cells.filter(|cell| cell["cell"]["labels"] == "drawn").cloned().collect()
    };
    assert_eq!(drawn(&found), drawn(&both));
}

/// "Real" images that are the world's own: what is measured on them must be what is measured on the world.
#[test]
fn networks_that_learn_the_world_or_data_are_tested_on_both() {
    let data = "[data]\ntrain = 'train.npz'\ntest = 'test.npz'\n[experiment]\nkind = 'transfer'\n";
    let rest = REST.replace("[data]\ntrain = 'train.npz'\n", data).replace("labels = ['drawn', 'posterior']\n", "");
    let grid = Grid::new(&rest);
    let oracle = oracle(&grid);
    sample(&grid, &oracle, 200, "train.npz");
    drawn(&grid, &oracle, 100, "test.npz", ExperimentSpec::test_seed);
    let found = grid.run(&grid.path("both"));
    let cells = found["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 8);
    for cell in cells {
        let (world, real) = (&cell["measured"], &cell["found"]["transfer"]);
        assert_eq!((&real["images"], &real["accuracy"]), (&json!(100), &world["accuracy"]));
        for figure in ["nll", "ece"] {
            let [a, b] = [world, real].map(|of| of[figure]["value"].as_f64().unwrap());
            assert!((a - b).abs() < 1e-9 * a.abs().max(1.0), "{figure}: {a} and {b}");
        }
    }
    let told = succeed(&["summary", text(&grid.path("both"))]);
    assert!(told.contains("real test images") && told.contains("no exact posterior"), "{told}");
    // A cell that learns the world is that of a run without data; one that learns data is another.
    let condition = |cell: &Value| cell["cell"]["condition"].as_u64().unwrap_or(0);
    let [world, real] = [0, 1].map(|number| {
        let of = cells.iter().filter(|cell| condition(cell) == number).map(|cell| &cell["measured"]);
        of.collect::<Vec<_>>()
    });
    grid.change("test = 'test.npz'\n", "");
    let why = fail(1, &["run", text(&grid.spec), "--out", text(&grid.path("none")), "--device", "cpu"]);
    assert!(why.contains("data.test"), "{why}");
    grid.change("[data]\ntrain = 'train.npz'\n[experiment]\nkind = 'transfer'\n", "");
    let own = grid.run(&grid.path("own"));
    let own: Vec<&Value> = own["cells"].as_array().unwrap().iter().map(|cell| &cell["measured"]).collect();
    assert_eq!(world, own);
    assert!(real.iter().zip(&own).all(|(a, b)| a != b));
}

#[test]
fn stored_likelihoods_are_trusted_only_with_proof() {
    let grid = Grid::new(&REST.replace("'train.npz'", "'set'"));
    std::fs::create_dir(grid.path("set")).unwrap();
    let train = grid.path("set/train.npz");
    let true_ones = sample(&grid, &oracle(&grid), 200, "set/train.npz");
    let mut batch = true_ones.clone();
    batch.logp.iter_mut().flatten().for_each(|l| *l -= 1.0);
    write_npz(&train, &batch).unwrap();
    let info = json(&["oracle", "info", &oracle(&grid), "--json"]);
    let weights = info["weights_sha256"].as_str().unwrap();
    let bytes = std::fs::read(&train).unwrap();
    let write = |manifest: Value| std::fs::write(grid.path("set/dataset.json"), manifest.to_string()).unwrap();
    let manifest =
        |tau: f64, hash: &str| json!({ "weights_sha256": weights, "tau": tau, "files": { "train.npz": hash } });
    let proof = |tau: f64, hash: &str| write(manifest(tau, hash));
    let hash = bayescope::data::sha256(&bytes);
    let logp = |run: &str| {
        let found = grid.run(&grid.path(run));
        let of = found["data"]["train"]["of_this_world"].as_bool().unwrap();
        (of, read(&grid.path(run).join("pool/train.npz")).logp.unwrap())
    };
    let scored = true_ones.logp.unwrap();
    assert_eq!(logp("no-proof"), (false, scored.clone()));
    proof(1.5, &hash);
    assert_eq!(logp("other-tau"), (false, scored.clone()));
    // Not the file that was exported, of whatever world.
    for tau in [1.0, 1.5] {
        proof(tau, &hash.replace('a', "b"));
        let why = fail(1, &["run", text(&grid.spec), "--out", text(&grid.path("other-file")), "--device", "cpu"]);
        assert!(why.contains("train.npz") && why.contains("changed after the export"), "{why}");
    }
    proof(1.0, &hash);
    let stored = batch.logp.unwrap();
    assert_eq!(logp("proof"), (true, stored.clone()));
    // The same weights as another world, into which pixels come otherwise.
    for (key, other) in [("pixels", json!("gaussian-0.07")), ("pixel_range", json!([0.0, 255.0]))] {
        let mut manifest = manifest(1.0, &hash);
        manifest[key] = other;
        write(manifest);
        assert_eq!(logp(&format!("other-{key}")), (false, scored.clone()));
    }

    // Labels drawn with another π or T are not this world's, whatever the densities.
    let laws = [
        (json!([9.0, 1.0]), json!(1.0), false),
        (json!([0.5, 0.5]), json!(2.0), false),
        (json!([0.3, 0.3, 0.4]), json!(1.0), false),
        (json!([3.0, 3.0]), json!(1.0), true),
        (json!([]), Value::Null, true),
    ];
    for (i, (prior, smoothing, of_this_world)) in laws.into_iter().enumerate() {
        let mut manifest = manifest(1.0, &hash);
        (manifest["prior"], manifest["smoothing"]) = (prior.clone(), smoothing);
        write(manifest);
        assert_eq!(logp(&format!("law-{i}")), (of_this_world, stored.clone()), "{prior}");
    }
    let told = succeed(&["summary", text(&grid.path("law-0"))]);
    assert!(!told.contains("images of this world"), "{told}");
}

#[test]
fn pictures_enter_as_posterior_maps_them_in() {
    let folder = tempfile::tempdir().unwrap();
    let rest = REST.replace("'train.npz'", "'set/train'\ntest = 'set/test'").replace("[50, 200]", "[20, 60]");
    let grid = Grid::of(folder, "mnist", &rest.replace("images = 100\nwatched = 50", "images = 40\nwatched = 40"));
    for (part, n, seed) in [("train", "60", "1"), ("test", "40", "2")] {
        let out = grid.path(&format!("set/{part}"));
        succeed(&["sample", "mnist", "--n", n, "--seed", seed, "--out", text(&out), "--device", "cpu"]);
    }
    let run = grid.path("run");
    let found = grid.run(&run);
    let told = succeed(&["summary", text(&run)]);
    // Samples of a noisy world hold its noise.
    let held = "8-bit images that hold the world's noise";
    assert!(told.contains("this world's opinion") && told.matches(held).count() >= 2, "{told}");
    let pool = read(&run.join("pool/train.npz"));
    let posterior = json(&["posterior", "mnist", text(&grid.path("set/train")), "--device", "cpu", "--json"]);
    assert_eq!(posterior["dequantisation"], "levels");
    let images = posterior["images"].as_array().unwrap();
    assert_eq!((images.len(), pool.len()), (60, 60));
    for (i, image) in images.iter().enumerate() {
        assert_eq!(image["label"].as_i64().unwrap(), pool.y.as_ref().unwrap()[i]);
        for (k, logp) in image["log_likelihood"].as_array().unwrap().iter().enumerate() {
            let ours = pool.logp.as_ref().unwrap()[10 * i + k];
            assert!((logp.as_f64().unwrap() - ours).abs() < 1e-6 * ours.abs(), "image {i}, class {k}");
        }
    }
    assert_eq!(found["data"]["test"]["images"], 40);
    // A run of an older version does not go on with other noise of its test images.
    let record = run.join("data.json");
    let mut old: Value = serde_json::from_slice(&std::fs::read(&record).unwrap()).unwrap();
    old["test"].as_object_mut().unwrap().remove("noise_from").unwrap();
    std::fs::write(&record, old.to_string()).unwrap();
    let finished = found["cells"][0]["id"].as_str().unwrap();
    std::fs::remove_file(run.join("cells").join(finished).join("result.json")).unwrap();
    let why = fail(1, &["resume", text(&run), "--device", "cpu"]);
    assert!(why.contains("set/test") && why.contains("older version"), "{why}");
}

#[test]
fn what_a_spec_says_of_noise_wins_and_a_second_dose_is_told_of() {
    let rest = "[data]\ntrain = 'set'\n[grid]\narchitectures = ['linear']\ntrain_sizes = [20]\nseeds = [0]\n[test]\n\
                images = 20\nwatched = 20\n[training]\nepochs = 1\n";
    let grid = Grid::of(tempfile::tempdir().unwrap(), "mnist", rest);
    let (set, run) = (grid.path("set"), grid.path("run"));
    succeed(&["sample", "mnist", "--n", "60", "--seed", "1", "--out", text(&set), "--device", "cpu"]);
    let (held, added) = ("8-bit images that hold the world's noise", "8-bit images dequantised by seed:0");
    let told = |words: &[&str]| {
        let plan = succeed(&["plan", text(&grid.spec), "--device", "cpu"]);
        assert!(words.iter().all(|word| plan.contains(word)), "{plan}");
        plan
    };
    assert!(!told(&[held]).contains("second time"));
    succeed(&["plan", text(&grid.spec), "--out", text(&run), "--device", "cpu"]);
    let asked = "'set'\ndequantise = 'seed:0'";
    grid.change("'set'", asked);
    assert!(!told(&[added]).contains("second time"));
    grid.change(asked, "'set'");
    // Another program writes them again, first one of them.
    let folders = std::fs::read_dir(&set).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_dir());
    let pictures: Vec<_> =
        folders.flat_map(|class| std::fs::read_dir(class).unwrap().map(|entry| entry.unwrap().path())).collect();
    let again = |path: &std::path::PathBuf| image::open(path).unwrap().save(path).unwrap();
    again(&pictures[0]);
    told(&[added, "training images: 59 of 60 pictures are of a world's own images", "second time"]);
    pictures.iter().for_each(again);
    told(&[added, "provenance.json calls these pictures samples of this world", "second time"]);
    // The run that was planned before does not go on with another noise, and says how it goes on.
    let why = fail(1, &["resume", text(&run), "--device", "cpu"]);
    let way = "data.dequantise = \"levels\"";
    assert!(why.contains("data.json") && why.contains(held) && why.contains(way), "{why}");
    let spec = std::fs::read_to_string(run.join("run.toml")).unwrap();
    let line = spec.lines().find(|line| line.starts_with("train = ")).unwrap();
    std::fs::write(run.join("run.toml"), spec.replace(line, &format!("{line}\ndequantise = \"levels\""))).unwrap();
    succeed(&["resume", text(&run), "--device", "cpu"]);
    assert!(succeed(&["summary", text(&run)]).contains(held));
}

#[test]
fn what_does_not_fit_is_refused_before_anything_is_computed() {
    let grid = Grid::new(REST);
    let good = sample(&grid, &oracle(&grid), 200, "train.npz");
    let run = grid.path("run");
    let refused = |batch: &WorldBatch, words: &[&str]| {
        write_npz(&grid.path("train.npz"), batch).unwrap();
        for args in [&["run", text(&grid.spec), "--out", text(&run)][..], &["plan", text(&grid.spec)][..]] {
            let why = fail(1, &[args, &["--device", "cpu"]].concat());
            assert!(words.iter().all(|word| why.contains(word)), "{why}");
        }
        assert!(!run.exists());
    };
    let few = |n: usize| WorldBatch {
        x: good.x[..n * 16].to_vec(),
        y: good.y.as_ref().map(|y| y[..n].to_vec()),
        posterior: None,
        logp: None,
        aleatoric: None,
        ..good.clone()
    };
    refused(&few(199), &["train.npz", "has 199 training images", "grid.train_sizes asks for 200"]);
    refused(&WorldBatch { y: None, ..few(200) }, &["train.npz", "no labels"]);
    let wide = bayescope::data::ImageShape { channels: 1, height: 2, width: 8 };
    refused(&WorldBatch { shape: wide, ..few(200) }, &["train.npz", "1×2×8", "1×4×4"]);
    let three = WorldBatch { classes: 3, posterior: Some(vec![1.0 / 3.0; 600]), ..few(200) };
    refused(&three, &["train.npz", "3 classes", "this world 2"]);
    refused(&WorldBatch { y: Some(vec![2; 200]), classes: 0, ..few(200) }, &["class 2", "end at 1"]);
    grid.change("'train.npz'", "'train.npz'\ntest = 'nowhere.npz'");
    refused(&few(200), &["nowhere.npz"]);
    std::fs::copy(grid.path("train.npz"), grid.path("nowhere.npz")).unwrap();
    refused(&few(200), &["nowhere.npz", "are the training images", "data.test"]);
    let mut others = few(200);
    others.x[0] += 1.0;
    write_npz(&grid.path("nowhere.npz"), &others).unwrap();
    grid.change("images = 100", "images = 201");
    refused(&few(200), &["nowhere.npz", "has 200 test images", "test.images asks for 201"]);
    grid.change("images = 201", "images = 200");
    let plan = succeed(&["plan", text(&grid.spec), "--device", "cpu"]);
    assert!(plan.contains("train.npz (200 world-space images)") && plan.contains("start and order alone"), "{plan}");
}

#[test]
fn an_image_that_the_world_cannot_hold_is_named_once_for_all_cells() {
    let rest = REST.replace("[50, 200]", "[20, 30]").replace("images = 100\nwatched = 50", "images = 20\nwatched = 20");
    let grid = Grid::of(tempfile::tempdir().unwrap(), SHARP_DIGITS, &rest);
    let mut batch = sample(&grid, SHARP_DIGITS, 30, "train.npz");
    batch.x[17 * 32 * 32] = 5.0;
    write_npz(&grid.path("train.npz"), &batch).unwrap();
    let why = fail(1, &["run", text(&grid.spec), "--out", text(&grid.path("run")), "--device", "cpu"]);
    let complaint = why.lines().find(|line| line.contains("train.npz")).unwrap();
    assert!(complaint.contains("image 17 has values outside") && !why.contains("could not be finished"), "{why}");
}
