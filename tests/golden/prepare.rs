//! What the commands read. Nothing here is computed by the program, so that it is the same on every machine.

use std::path::Path;

use toml::{Table, Value};

/// The specs that come with the program at a size for two cores, and train classifiers on samples of the world.
pub const PRESETS: [&str; 10] = [
    "scaling",
    "temperature",
    "self-validation",
    "soft-labels",
    "shift",
    "active-learning",
    "graders",
    "axes",
    "calibration",
    "stopping",
];

/// Problems, predictions, pictures and specs.
pub fn inputs(folder: &Path) {
    let write = |name: &str, text: &str| std::fs::write(folder.join(name), text).unwrap();
    write("problem.json", r#"{"means":[[0,0],[3,1],[1,4]],"cov_diag":[1,2],"priors":[0.5,0.3,0.2]}"#);
    // A classifier that prefers class i modulo 10 for image i, twice as strongly as the others.
    let row = |i: usize| (0..10).map(move |k| if k == i % 10 { "2" } else { "1" }).collect::<Vec<_>>().join(",");
    let logits: Vec<String> = (0..40).map(row).collect();
    let head: Vec<String> = (0..10).map(|k| k.to_string()).collect();
    write("predictions.csv", &format!("{}\n{}\n", head.join(","), logits.join("\n")));
    pictures(folder);
    photographs(folder);
    world(folder);
    for preset in PRESETS {
        let text = std::fs::read_to_string(format!("assets/specs/{preset}-quick.toml")).unwrap();
        write(&format!("{preset}.toml"), &smaller(&text));
    }
    let small = "[model]\nhidden = 4\nlevels = 1\nsteps = 1\n[training]\nepochs = 2\nbatch = 20\nwarm_up_images = 20\n";
    write("oracle.toml", &format!("name = 'small'\n[data]\npath = 'pictures'\nheld_out = 12\n{small}"));
    let corpora = "[[corpora]]\nname = 'all'\ndata = 'pictures'\n[[corpora]]\nname = 'two'\ndata = 'pictures'\nclasses = ['left', 'right']\n";
    let head = "name = 'ranking'\n[experiment]\nkind = 'hardness'\n[images]\nheld_out = 8\n";
    write("hardness.toml", &format!("{head}{small}{corpora}"));
}

/// A world with a map for each class.
fn world(folder: &Path) {
    let to = folder.join("worlds/animals");
    std::fs::create_dir_all(&to).unwrap();
    for entry in std::fs::read_dir("tests/worlds/animals").unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}

/// Three classes of grey pictures of 8×8: bright on the left, on the right, or above.
fn pictures(folder: &Path) {
    for (class, name) in ["left", "right", "top"].into_iter().enumerate() {
        let folder = folder.join("pictures").join(name);
        std::fs::create_dir_all(&folder).unwrap();
        for i in 0..20u32 {
            let pixel = |x: u32, y: u32| {
                let bright = [x < 4, x >= 4, y < 4][class];
                let noise = (i * 37 + x * 11 + y * 23 + x * y * 5) % 60;
                image::Luma([if bright { 180 + noise as u8 } else { noise as u8 }])
            };
            image::GrayImage::from_fn(8, 8, pixel).save(folder.join(format!("{i:02}.png"))).unwrap();
        }
    }
}

/// Ten classes of grey photographs of 28×28, named as digits: a bright bar, the more to the right the later the class.
fn photographs(folder: &Path) {
    for class in 0..10u32 {
        let folder = folder.join("photographs").join(class.to_string());
        std::fs::create_dir_all(&folder).unwrap();
        for i in 0..4u32 {
            let pixel = |x: u32, y: u32| {
                let bright = (4 + i..24).contains(&y) && (2 * class + i..2 * class + i + 5).contains(&x);
                image::Luma([if bright { 255 - ((x * 7 + y * 3) % 40) as u8 } else { 0 }])
            };
            image::GrayImage::from_fn(28, 28, pixel).save(folder.join(format!("{i}.png"))).unwrap();
        }
    }
}

/// A spec with fewer images, epochs, networks and seeds; everything else as it is.
fn smaller(text: &str) -> String {
    let mut spec: Table = toml::from_str(text).unwrap();
    let list = |values: &[i64]| Value::Array(values.iter().map(|&v| v.into()).collect());
    let active = text.contains("kind = \"active-learning\"");
    let sizes: [(&str, &str, Value); 14] = [
        ("grid", "train_sizes", list(if active { &[40] } else { &[40, 80] })),
        ("grid", "seeds", list(&[0, 1])),
        ("grid", "architectures", Value::Array(vec!["linear".into()])),
        ("test", "images", 60.into()),
        ("test", "watched", 20.into()),
        ("training", "epochs", 2.into()),
        ("experiment", "pool", 200.into()),
        ("experiment", "initial", 20.into()),
        ("experiment", "batch", 20.into()),
        ("experiment", "members", 2.into()),
        ("experiment", "annotators", 3.into()),
        ("experiment", "likelihood", 8.into()),
        ("experiment", "labels", list(&[20, 60])),
        ("experiment", "draws", 10.into()),
    ];
    for (section, key, value) in sizes {
        // A key that a spec does not have stays away: this experiment does not know it.
        if let Some(known) = spec.get_mut(section).and_then(|table| table.get_mut(key)) {
            *known = value;
        }
    }
    // Of lists of temperatures and shifts the first, the last and, of long ones, some between.
    for key in ["taus", "settings"] {
        if let Some(all) = spec.get_mut("experiment").and_then(|table| table.get_mut(key)).and_then(Value::as_array_mut)
        {
            let step = (all.len() - 1).div_ceil(3).max(2);
            *all = all.iter().step_by(step).cloned().collect();
        }
    }
    toml::to_string(&spec).unwrap()
}
