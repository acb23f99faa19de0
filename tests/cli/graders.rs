//! Features from a file: rows that are the pixels give what the pixels give, and what does not belong to the run is refused by name.

use std::path::Path;

use bayescope::data::{Column, Input, Stored, read_npz, write_table};
use serde_json::Value;

use crate::experiments::Grid;
use crate::run::{fail, succeed, text};

const POOL: &str = "train-0-tau-1";
const IMAGES: usize = 60;
const DIMS: usize = 16;

/// Features of the first `rows` images of the pool, and the labels beside them.
fn write(path: &Path, rows: usize, x: &[f32], y: &[i64]) {
    let columns = [
        Column { name: POOL, stored: Stored::F32, shape: vec![DIMS] },
        Column { name: &format!("{POOL}-y"), stored: Stored::I64, shape: Vec::new() },
    ];
    write_table(path, rows, &columns, &mut |column, range| {
        Ok(match column {
            0 => x[range.start * DIMS..range.end * DIMS].iter().map(|&v| f64::from(v)).collect(),
            _ => y[range].iter().map(|&label| label as f64).collect(),
        })
    })
    .unwrap();
}

/// What an estimator says on pixels, and on the file.
fn pairs(cell: &Value) -> Vec<[Value; 2]> {
    let all = cell["found"]["graders"]["estimates"].as_array().unwrap();
    let of_file = all.iter().filter(|one| one["features"]["file"].is_string());
    let beside = |one: &Value| {
        let same = |other: &&Value| other["estimator"] == one["estimator"] && other["features"].is_null();
        [one["graded"].clone(), all.iter().find(same).unwrap()["graded"].clone()]
    };
    of_file.map(beside).collect()
}

#[test]
fn pixels_from_a_file_are_graded_as_pixels_and_rows_of_other_images_are_refused() {
    let grid = Grid::new(
        "[experiment]\nkind = 'graders'\ntaus = [1.0]\nmembers = 2\n[grid]\narchitectures = ['linear']\n\
         train_sizes = [40, 60]\nseeds = [0]\n[test]\nimages = 100\nwatched = 50\n[training]\nepochs = 2\n",
    );
    let first = grid.run(&grid.path("first"));
    let Input::World(pool) = read_npz(&grid.path("first").join(format!("pool/{POOL}.npz"))).unwrap() else {
        panic!("no pool")
    };
    let labels = pool.y.unwrap();
    assert_eq!((pool.x.len(), labels.len()), (IMAGES * DIMS, IMAGES));
    let file = grid.path("features.npz");
    write(&file, IMAGES, &pool.x, &labels);
    grid.change("members", "features = ['pixels', { file = 'features.npz' }]\nmembers");
    let second = grid.run(&grid.path("second"));
    for (before, cell) in first["cells"].as_array().unwrap().iter().zip(second["cells"].as_array().unwrap()) {
        let pairs = pairs(cell);
        assert_eq!(pairs.len(), 7, "{cell}");
        assert!(pairs.iter().all(|[file, pixels]| file == pixels), "{pairs:?}");
        assert!(pairs[0][0]["estimate"].is_f64(), "the nearest neighbour always says something: {pairs:?}");
        assert_eq!(cell["found"]["graders"]["files"][0]["sha256"].as_str().map(str::len), Some(64));
        assert_ne!(before["id"], cell["id"], "other features are other cells");
    }
    let tables = succeed(&["summary", text(&grid.path("second"))]);
    assert!(tables.contains("1-NN on features.npz"), "{tables}");

    // A run that is planned, and a file that is another one by the time it goes on.
    let planned = grid.path("planned");
    succeed(&["plan", text(&grid.spec), "--out", text(&planned), "--device", "cpu"]);
    let mut broken = pool.x.clone();
    broken[DIMS * 50 + 3] = f32::NAN;
    write(&file, IMAGES, &broken, &labels);
    let resumed = fail(1, &["resume", text(&planned), "--device", "cpu"]);
    assert!(resumed.contains("features.npz") && resumed.contains("planned with"), "{resumed}");
    let refused = |words: &[&str]| {
        let out = grid.path("refused");
        let why = fail(1, &["run", text(&grid.spec), "--out", text(&out), "--device", "cpu"]);
        assert!(why.contains("features.npz") && words.iter().all(|word| why.contains(word)), "{why}");
        let _ = std::fs::remove_dir_all(out);
    };
    refused(&[POOL, "number 3 of image 50 is NaN"]);
    let turned: Vec<i64> = labels.iter().map(|label| 1 - label).collect();
    write(&file, IMAGES, &pool.x, &turned);
    refused(&["train-0-tau-1-y", "image 0 has label", "other images"]);
    write(&file, IMAGES - 1, &pool.x, &labels);
    refused(&[POOL, "[59, 16]", "[60, D]"]);
    std::fs::remove_file(&file).unwrap();
    refused(&[]);
}
