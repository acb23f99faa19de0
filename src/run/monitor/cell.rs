//! The courses of chosen cells of a run in one figure: coloured by what they are, means over their seeds.

use std::collections::BTreeSet;

use super::picture::{Drawing, Drawn, Group, points_each};
use super::track::{Over, Quantity, Seen};
use crate::classifier::{Architecture, TrainingSpec};
use crate::experiment::{Cell, Watched};
use crate::figure::{Figure, Point};

/// How a cell's training went, as far as it is known.
#[derive(Debug, Clone, PartialEq)]
pub struct CellCourse {
    /// The cell's ID.
    pub id: String,
    /// The cell.
    pub cell: Cell,
    /// Name of its condition, where its experiment has several.
    pub under: Option<String>,
    /// How it is trained, and on how many images; `None` where it is several trainings.
    pub training: Option<(TrainingSpec, usize)>,
    /// Training loss, nats, against steps.
    pub train: Vec<[f64; 2]>,
    /// The watched test images.
    pub watched: Vec<Watched>,
}

impl CellCourse {
    /// The label of the cell, behind the name of its condition, if it has one.
    pub fn label(&self) -> String {
        self.named(&self.cell.label())
    }

    fn named(&self, cell: &str) -> String {
        self.under.as_ref().map_or_else(|| cell.to_owned(), |under| format!("{under}: {cell}"))
    }

    /// Whether a step of it is known.
    pub fn is_known(&self) -> bool {
        !(self.train.is_empty() && self.watched.is_empty())
    }

    /// What it can be drawn over. No cell writes down when it made a step.
    pub fn axes(&self) -> &'static [Over] {
        const COUNTED: [Over; 3] = [Over::Steps, Over::Epochs, Over::Images];
        if self.training.is_some() { &COUNTED } else { &COUNTED[..1] }
    }

    /// Where it stands after a step; `None` where nobody can say.
    pub fn at(&self, step: f64, over: Over) -> Option<f64> {
        match (over, self.training) {
            (Over::Steps, _) => Some(step),
            (Over::Epochs, Some((training, images))) => Some(step / training.epoch_steps(images).max(1) as f64),
            (Over::Images, Some((training, images))) => Some(training.images_after(images, step as usize) as f64),
            (Over::Seconds, _) | (_, None) => None,
        }
    }

    /// A quantity over an axis: the training loss at every step that was written down, others where test images were watched.
    pub fn points(&self, quantity: Quantity, over: Over) -> Vec<Point> {
        let trained = |[step, loss]: &[f64; 2]| Some(Point::new(self.at(*step, over)?, *loss));
        let watched = |watched: &Watched| {
            let (y, interval) = Seen::Watched(*watched).number(quantity)?;
            let point = Point::new(self.at(watched.step as f64, over)?, y);
            Some(interval.map_or(point.clone(), |[low, high]| point.within(low, high)))
        };
        match quantity {
            Quantity::TrainLoss => self.train.iter().filter_map(trained).collect(),
            _ => self.watched.iter().filter_map(watched).collect(),
        }
    }

    fn floor(&self, quantity: Quantity) -> Option<f64> {
        self.watched.last().and_then(|watched| Seen::Watched(*watched).floor(quantity))
    }
}

/// What cells must share to share a colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(missing_docs, reason = "the names say it")]
pub enum ColourBy {
    #[default]
    Line,
    Architecture,
    TrainSize,
    Seed,
}

impl ColourBy {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Line, Self::Architecture, Self::TrainSize, Self::Seed];

    /// As it is read.
    pub fn name(self) -> &'static str {
        match self {
            Self::Line => "every line by itself",
            Self::Architecture => "architecture",
            Self::TrainSize => "training images N",
            Self::Seed => "seed",
        }
    }

    /// What a cell shares with others; `None` where every line has a colour of its own.
    fn of(self, cell: &Cell) -> Option<(Option<Architecture>, u64)> {
        match self {
            Self::Line => None,
            Self::Architecture => Some((Some(cell.architecture), 0)),
            Self::TrainSize => Some((None, cell.train_size as u64)),
            Self::Seed => Some((None, cell.seed)),
        }
    }
}

/// What is drawn of chosen cells, and how.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct CellChoice {
    /// What, of [`CELL_QUANTITIES`].
    pub quantity: Quantity,
    /// Over what.
    pub over: Over,
    /// Axes on which equal ratios are equal distances: across and up.
    pub log: [bool; 2],
    /// Weight of what came before in a running mean, 0 to 1: 0 smooths nothing.
    pub smoothing: f64,
    /// What gives lines their colour.
    pub colour: ColourBy,
    /// Cells that differ by seed alone become one line, their mean.
    pub over_seeds: bool,
}

/// What is known of every cell in its training.
pub const CELL_QUANTITIES: [Quantity; 4] =
    [Quantity::TrainLoss, Quantity::CrossEntropy, Quantity::Epistemic, Quantity::ExpectedError];

/// What its caption calls them.
const WORDS: [&str; 3] = ["cell", "a mean over its seeds", "choose fewer cells, or draw means over seeds"];

/// What all of these cells can be drawn over.
pub fn common_axes<'a>(courses: impl IntoIterator<Item = &'a CellCourse>) -> &'static [Over] {
    courses.into_iter().map(CellCourse::axes).min_by_key(|axes| axes.len()).unwrap_or(&[Over::Steps])
}

/// The courses of cells in one figure, in the order given. An axis that not all of them have is replaced by steps.
pub fn cells_picture(courses: &[&CellCourse], choice: &CellChoice) -> Figure {
    let CellChoice { quantity, log, smoothing, .. } = *choice;
    let over = if common_axes(courses.iter().copied()).contains(&choice.over) { choice.over } else { Over::Steps };
    let most = points_each(courses.len());
    let drawn: Vec<Drawn> = courses
        .iter()
        .map(|one| Drawn::through(one.points(quantity, over), one.floor(quantity), smoothing, most))
        .collect();
    let mut lines: Vec<(String, Vec<usize>)> = Vec::new();
    for (i, one) in courses.iter().enumerate() {
        let name = if choice.over_seeds { one.named(&one.cell.without_seed()) } else { one.label() };
        match lines.iter_mut().find(|(known, _)| *known == name) {
            Some((_, of)) => of.push(i),
            None => lines.push((name, vec![i])),
        }
    }
    // A mean over seeds has none.
    let by = if choice.over_seeds && choice.colour == ColourBy::Seed { ColourBy::Line } else { choice.colour };
    let shared: BTreeSet<(Option<Architecture>, u64)> = courses.iter().filter_map(|one| by.of(&one.cell)).collect();
    let colour = |cell: &Cell| by.of(cell).and_then(|value| shared.iter().position(|one| *one == value));
    let group = |(place, (name, of)): (usize, &(String, Vec<usize>))| Group {
        name: if of.len() > 1 { format!("{name}, mean of {} seeds", of.len()) } else { courses[of[0]].label() },
        colour: colour(&courses[of[0]].cell).unwrap_or(place),
        of: of.iter().map(|i| &drawn[*i]).collect(),
    };
    let groups: Vec<Group<'_>> = lines.iter().enumerate().map(group).collect();
    let labels: Vec<String> = courses.iter().map(|one| one.label()).collect();
    let floors: Vec<(&str, Option<f64>)> =
        labels.iter().zip(courses).map(|(label, one)| (label.as_str(), one.floor(quantity))).collect();
    Drawing { id: "cells", words: WORDS, quantity, over, log, smoothing, most }.figure(&groups, &floors)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::ExperimentSpec;

    const SPEC: &str = "name = 'x'\n[world]\noracle = 'mnist'\n[grid]\narchitectures = ['linear', 'mlp-500']\n\
                        train_sizes = [1000, 95]\nseeds = [3, 7]\n[training]\nepochs = 4\nbatch = 10";

    /// Every cell of the grid; its loss at each step is the step times a number of the seed.
    fn courses() -> Vec<CellCourse> {
        let spec: ExperimentSpec = toml::from_str(SPEC).unwrap();
        let course = |cell: Cell| CellCourse {
            id: format!("{cell:?}"),
            cell,
            under: None,
            training: spec.only_training(&cell),
            train: [1.0, 10.0, 15.0].map(|step| [step, step * cell.seed as f64]).into(),
            watched: Vec::new(),
        };
        spec.cells().into_iter().map(course).collect()
    }

    fn drawn(courses: &[CellCourse], choice: CellChoice) -> Figure {
        let choice = CellChoice { quantity: Quantity::TrainLoss, ..choice };
        cells_picture(&courses.iter().collect::<Vec<_>>(), &choice)
    }

    #[test]
    fn cells_that_differ_by_seed_alone_become_their_mean_with_a_band() {
        let figure = drawn(&courses(), CellChoice { over_seeds: true, ..CellChoice::default() });
        let names: Vec<&str> = figure.series.iter().map(|series| series.name.as_str()).collect();
        assert_eq!(names[0], "linear on 95 images, mean of 2 seeds");
        assert_eq!(names.len(), 4, "{names:?}");
        for series in &figure.series {
            assert!(series.band && series.points.len() == 3);
            for point in &series.points {
                assert_eq!(point.y, 5.0 * point.x);
                // Student's t of one degree of freedom times s/√2 = 2 steps.
                assert!((point.high.unwrap() - point.y - 12.706_204_736 * 2.0 * point.x).abs() < 1e-6 * point.x);
            }
        }
        // A running mean over steps keeps the share that the spread over seeds has of it.
        let smooth = drawn(&courses(), CellChoice { over_seeds: true, smoothing: 0.5, ..CellChoice::default() });
        assert_eq!((smooth.series.len(), smooth.series[0].name.ends_with(", as logged")), (8, true));
        for series in smooth.series.iter().skip(1).step_by(2) {
            let share = |point: &Point| (point.high.unwrap() - point.y) / point.y;
            assert!(series.points.iter().all(|point| (share(point) - 12.706_204_736 * 2.0 / 5.0).abs() < 1e-6));
        }
        // One seed alone has no spread over seeds.
        let one = drawn(&courses()[..1], CellChoice { over_seeds: true, ..CellChoice::default() });
        assert_eq!(one.series[0].name, "linear on 95 images, seed 3");
        assert!(one.series[0].points.iter().all(|point| point.high.is_none()));
    }

    #[test]
    fn lines_share_a_colour_where_and_only_where_they_share_what_was_chosen() {
        let courses = courses();
        for (colour, value) in [
            (ColourBy::Architecture, (|cell: &Cell| cell.architecture as u64) as fn(&Cell) -> u64),
            (ColourBy::TrainSize, |cell| cell.train_size as u64),
            (ColourBy::Seed, |cell| cell.seed),
            (ColourBy::Line, |cell| 10_000 * cell.architecture as u64 + 10 * cell.train_size as u64 + cell.seed),
        ] {
            let figure = drawn(&courses, CellChoice { colour, ..CellChoice::default() });
            let colours: Vec<usize> = figure.series.iter().map(|series| series.colour).collect();
            for i in 0..8 {
                for j in 0..8 {
                    let same = value(&courses[i].cell) == value(&courses[j].cell);
                    assert_eq!(colours[i] == colours[j], same, "{colour:?}: {colours:?}");
                }
            }
        }
        // Fewer images come first, wherever they stand in the grid.
        let figure = drawn(&courses, CellChoice { colour: ColourBy::TrainSize, ..CellChoice::default() });
        assert!(figure.series.iter().all(|series| series.colour == usize::from(series.name.contains("1000"))));
    }

    #[test]
    fn steps_count_as_epochs_and_images_where_a_cell_is_one_training_and_never_as_time() {
        let mut courses = courses();
        let xs = |courses: &[CellCourse], over| {
            let figure = drawn(courses, CellChoice { over, ..CellChoice::default() });
            (figure.x.title.clone(), figure.series[0].points.iter().map(|point| point.x).collect::<Vec<_>>())
        };
        // 95 images in batches of 10: ten steps an epoch, of nine or ten images.
        assert_eq!(xs(&courses, Over::Epochs), ("epoch".into(), vec![0.1, 1.0, 1.5]));
        assert_eq!(xs(&courses, Over::Images), ("training images seen".into(), vec![9.0, 95.0, 142.0]));
        assert_eq!(common_axes(&courses), [Over::Steps, Over::Epochs, Over::Images]);
        let steps = ("optimisation step".to_owned(), vec![1.0, 10.0, 15.0]);
        assert_eq!(xs(&courses, Over::Seconds), steps);
        courses[5].training = None;
        assert_eq!((xs(&courses, Over::Epochs), common_axes(&courses)), (steps, &[Over::Steps][..]));
    }
}
