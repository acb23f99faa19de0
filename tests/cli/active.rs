//! Active learning from the spec to the picture of what was bought.

use bayescope::data::HeldNoise;
use serde_json::Value;

use crate::experiments::{Grid, summary};
use crate::run::{fail, json, succeed, text};

/// One epoch: the pool is held even where every image is seen once.
const SPEC: &str = "[experiment]\nkind = 'active-learning'\npool = 60\ninitial = 8\nbatch = 8\n\
                    strategies = ['random', 'max-epistemic', 'bald']\nmembers = 2\n[grid]\narchitectures = ['linear']\n\
                    train_sizes = [20]\nseeds = [0, 1]\n[test]\nimages = 200\nwatched = 50\n[training]\nepochs = 1\n\
                    batch = 4\nlearning_rate = 1e-2\n";

#[test]
fn labels_are_bought_compared_and_shown() {
    let grid = Grid::new(SPEC);
    let run = grid.path("run");
    let found = grid.run(&run);
    let contest = &found["finding"]["contests"][0];
    let names: Vec<&str> =
        contest["curves"].as_array().unwrap().iter().map(|curve| curve["strategy"].as_str().unwrap()).collect();
    assert_eq!(names, ["random", "max-epistemic", "bald"]);
    assert_eq!(contest["duels"].as_array().unwrap().len(), 2);
    for curve in contest["curves"].as_array().unwrap() {
        let labels: Vec<u64> =
            curve["stages"].as_array().unwrap().iter().map(|stage| stage["labels"].as_u64().unwrap()).collect();
        assert_eq!((labels, &curve["seeds"]), (vec![8, 16, 20], &serde_json::json!([0, 1])));
    }
    // In any division the same.
    let shared = grid.path("shared");
    succeed(&["plan", text(&grid.spec), "--out", text(&shared), "--device", "cpu"]);
    for task in ["1", "0"] {
        succeed(&["run", "--plan", text(&shared), "--task", task, "--of", "2", "--device", "cpu"]);
    }
    assert_eq!(summary(&shared), summary(&run));

    let cell = found["cells"].as_array().unwrap().iter().find(|cell| cell["cell"]["condition"] == 1).unwrap();
    let (id, sheet) = (cell["id"].as_str().unwrap(), grid.path("bought.png"));
    let shown = json(&["summary", text(&run), "--bought", id, "--png", text(&sheet), "--json"]);
    let rounds = &cell["found"]["active-learning"]["rounds"];
    let chosen: Vec<&Value> =
        (1..3).flat_map(|round| rounds[round]["bought"]["images"].as_array().unwrap().iter()).collect();
    let images = shown["images"].as_array().unwrap();
    assert_eq!(images.iter().map(|image| &image["image"]).collect::<Vec<_>>(), chosen);
    let mean = images[..8].iter().map(|image| image["entropy_nats"].as_f64().unwrap()).sum::<f64>() / 8.0;
    assert!((mean - rounds[1]["bought"]["aleatoric"].as_f64().unwrap()).abs() < 1e-12);
    // Twelve pictures of 4×4, 16 times as large, in rows of eight.
    let picture = image::open(&sheet).unwrap().to_luma8();
    assert!(picture.width() >= 8 * 64 && (2 * 64..3 * 64).contains(&picture.height()));
    assert!(picture.pixels().collect::<std::collections::HashSet<_>>().len() > 8, "the sheet is blank");
    let told = succeed(&["summary", text(&run), "--bought", id]);
    assert!(told.contains("max epistemic: linear on 20 images") && told.contains("its first 12 choices"), "{told}");

    assert!(fail(1, &["summary", text(&run), "--bought", "nothing"]).contains("no cell nothing"));
    // Images of another seed are not taken for those that were bought.
    let pool = |seed: u64| run.join("pool").join(format!("train-{seed}.npz"));
    let seed = cell["cell"]["seed"].as_u64().unwrap();
    std::fs::copy(pool(1 - seed), pool(seed)).unwrap();
    assert!(fail(1, &["summary", text(&run), "--bought", id]).contains("is another"));
    std::fs::remove_file(pool(seed)).unwrap();
    assert!(fail(1, &["summary", text(&run), "--bought", id]).contains("is missing"));
}

#[test]
fn bought_images_of_a_noisy_world_say_that_they_hold_its_noise() {
    let rest = SPEC.replace("pool = 60", "pool = 24").replace(", 'bald'", "").replace("[20]", "[16]");
    let rest = rest
        .replace("seeds = [0, 1]", "seeds = [0]")
        .replace("images = 200\nwatched = 50", "images = 20\nwatched = 20");
    // The digits without the record of their training: how pixels enter is what the description says.
    let place = tempfile::tempdir().unwrap();
    let world = place.path().join("world");
    let description = world.join("oracle.json");
    std::fs::create_dir(&world).unwrap();
    std::fs::copy("assets/oracles/mnist/weights.safetensors", world.join("weights.safetensors")).unwrap();
    let mut info: Value = serde_json::from_slice(&std::fs::read("assets/oracles/mnist/oracle.json").unwrap()).unwrap();
    info.as_object_mut().unwrap().remove("training");
    let describe = |info: &Value| std::fs::write(&description, serde_json::to_vec(info).unwrap()).unwrap();
    describe(&info);
    let grid = Grid::of(place, "world", &rest);
    let (run, sheet) = (grid.path("run"), grid.path("bought.png"));
    let found = grid.run(&run);
    let id = found["cells"][0]["id"].as_str().unwrap();
    let drawn = || {
        succeed(&["summary", text(&run), "--bought", id, "--png", text(&sheet), "--force"]);
        HeldNoise::of_png(&std::fs::read(&sheet).unwrap()).unwrap()
    };
    let weights_sha256 = info["weights_sha256"].as_str().unwrap().to_owned();
    assert_eq!(drawn(), HeldNoise { std: 0.05, weights_sha256 });
    let read = json(&["posterior", text(&world), text(&sheet), "--device", "cpu", "--json"]);
    assert_eq!((&read["dequantisation"], &read["note"]), (&"levels".into(), &Value::Null));
    assert_eq!(read["images"].as_array().unwrap().len(), 8);
    // The same weights with other noise are another world, and nobody knows whose images these are.
    info["pixels"]["std"] = 0.07.into();
    describe(&info);
    assert_eq!(drawn().weights_sha256, "");
}

#[test]
fn other_cells_buy_nothing_and_say_so() {
    let grid = Grid::new(
        "[grid]\narchitectures = ['linear']\ntrain_sizes = [20]\nseeds = [0]\n[test]\nimages = 50\nwatched = 50\n\
         [training]\nepochs = 1\n",
    );
    let found = grid.run(&grid.path("run"));
    let id = found["cells"][0]["id"].as_str().unwrap();
    assert!(fail(1, &["summary", text(&grid.path("run")), "--bought", id]).contains("buys no labels"));
}
