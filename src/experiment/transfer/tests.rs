use super::*;
use crate::experiment::hand_made::{around, measured, near, result, spec, whole_at_any_time};
use crate::experiment::identity::Files;
use crate::experiment::output::Findings;
use crate::experiment::{Cell, Experiment};

const SPEC: &str = "[world]\noracle = 'mnist'\n[data]\ntrain = 'digits'\n[grid]\narchitectures = ['linear', 'convnet']\n\
                    train_sizes = [100, 400]\nseeds = [0, 1]\n[experiment]\nkind = 'transfer'\n";

/// Error of each cell: trained on world or real images, tested on world or real images; seed 1 has 0.01 more when it
/// learns real images.
const ERRORS: [[f64; 2]; 2] = [[0.10, 0.30], [0.25, 0.20]];

fn results(spec: &ExperimentSpec) -> Vec<CellResult> {
    let of = |cell: &Cell| {
        let [world, real] =
            ERRORS[cell.condition].map(|error| error + 0.01 * (cell.seed * cell.condition as u64) as f64);
        let accuracy = around(1.0 - real, 0.01);
        let output = OnReal {
            images: 500,
            accuracy,
            nll: around(2.0 * real, 0.02),
            ece: around(0.1 * real, 0.01),
            blocks: None,
        };
        CellResult { output: Some(CellOutput::new(output)), ..result(*cell, measured(world, world, 0.05)) }
    };
    spec.cells().iter().map(of).collect()
}

#[test]
fn each_cell_learns_one_kind_of_images_and_is_tested_on_both() {
    let spec = spec(SPEC);
    let found = FourCells::of(&spec, &results(&spec));
    // 2 networks × 2 N × 2 × 2.
    assert_eq!((found.cells.len(), found.gains.len()), (16, 8));
    for cell in &found.cells {
        let [learned, tested] = [cell.learned, cell.tested].map(|origin| usize::from(origin == Origin::Real));
        let error = ERRORS[learned][tested] + 0.005 * learned as f64;
        assert!(near(cell.accuracy.value, 1.0 - error) && cell.accuracy.seeds == 2, "{cell:?}");
        assert_eq!(cell.epistemic.is_some(), cell.tested == Origin::World, "only the world has exact posteriors");
    }
    for gain in &found.gains {
        // Learning real images costs 15 and 16 pp on the world, and gains 10 and 9 on real images.
        let value = if gain.tested == Origin::World { -0.155 } else { 0.095 };
        assert!(near(gain.accuracy.value, value) && gain.accuracy.seeds == 2, "{gain:?}");
        let interval = gain.accuracy.interval.unwrap();
        assert!((interval.high - (value + 12.706_204_736 * 0.005)).abs() < 1e-8, "{interval:?}");
    }
    assert!(near(found.gains[1].nll.value, -0.19));
}

#[test]
fn the_two_conditions_are_two_cells_and_none_is_that_of_a_plain_grid_on_data() {
    let spec = spec(SPEC);
    let learns: Vec<bool> = [0, 1, 2].map(|condition| spec.experiment.learns_the_world(condition)).into();
    assert_eq!(learns, [true, false, false]);
    let id = |spec: &ExperimentSpec, condition: usize| {
        Cell { condition, ..spec.cells()[0] }.id(spec, &Files::of(spec, "w", None, &[]).unwrap()).unwrap()
    };
    let plain = ExperimentSpec { experiment: Experiment::default(), ..spec.clone() };
    let ids = [id(&spec, 0), id(&spec, 1), id(&plain, 0)];
    assert!(ids[0] != ids[1] && ids[1] != ids[2] && ids[0] != ids[2], "{ids:?}");
}

#[test]
fn figures_and_tables_have_what_is_there() {
    let spec = spec(SPEC);
    let all = results(&spec);
    whole_at_any_time(&spec, &all);
    let found = FourCells::of(&spec, &all);
    let figures = found.figures();
    let series = |id: &str| figures.iter().find(|figure| figure.id == id).unwrap().series.len();
    let ends = ["linear-drawn", "convnet-drawn"];
    for end in ends {
        assert_eq!(["accuracy", "nll", "ece"].map(|what| series(&format!("transfer-{what}-{end}"))), [4; 3]);
        assert_eq!(series(&format!("transfer-epistemic-{end}")), 2);
    }
    assert_eq!((series("transfer-gain-accuracy"), series("transfer-gain-nll"), figures.len()), (4, 4, 10));
    // The two sides of a gain learn other images.
    let gains = found.tables()[1].caption.clone();
    for caption in
        figures.iter().filter(|figure| figure.id.contains("gain")).map(|figure| &figure.caption).chain([&gains])
    {
        assert!(caption.contains("training images of its own kind") && !caption.contains("same training"), "{caption}");
    }
    // Real test images have no KL: the table leaves it out.
    let table = &found.tables()[0];
    let kl = table.columns.len() - 1;
    for row in table.shown() {
        assert_eq!(row[kl] == "–", row[3] == "real images", "{row:?}");
    }
}

#[test]
fn what_real_images_cannot_give_is_refused() {
    let wrong = |from: &str, to: &str| {
        let spec: ExperimentSpec = toml::from_str(&format!("name = 'x'\n{}", SPEC.replace(from, to))).unwrap();
        spec.validate().unwrap_err().to_string()
    };
    assert!(wrong("[data]\ntrain = 'digits'\n", "").contains("[data]"));
    let told = wrong("seeds = [0, 1]", "seeds = [0, 1]\nlabels = ['drawn', 'posterior']");
    assert!(told.contains("no exact posteriors"), "{told}");
}
