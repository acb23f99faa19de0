//! What a finished grid says: every cell's figures, and how the epistemic part falls with N.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::bayes_reference::Truth;
use super::cell::{Cell, CellResult};
use super::dataset::DataRecord;
use super::law_grades::LawGrades;
use super::laws;
use super::output::Analysis;
use super::spec::ExperimentSpec;
use super::tested::Tested;
use super::trained::measuring;
use crate::classifier::{Architecture, Labels};
use crate::error::Result;
use crate::figure::{Figure, Records, Table};
use crate::measure::{Comparison, Estimate, Forecast, HoldOut, Point, TestImages, compare, hold_out, more_data};
use crate::oracle::rounding::Rounding;
use crate::units::Seed;

/// Damaged cells that a message names.
const NAMED: usize = 3;

/// All that a run found. Nothing in it depends on when, where or in what order the cells ran.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Name of the run.
    pub name: String,
    /// Names of its conditions, in the order in which cells count them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<String>,
    /// Cells planned.
    pub planned: usize,
    /// Cells finished whose result can be read.
    pub finished: usize,
    /// Finished cells whose result cannot be read: nothing else here counts them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub damaged: Vec<DamagedCell>,
    /// Mean entropy of the exact posteriors of the test images, nats: the floor of cross-entropy.
    /// Of the first cell where conditions have their own test images, as the next field.
    pub aleatoric: Option<Estimate>,
    /// Mean largest posterior of the test images: what no classifier's expected accuracy exceeds.
    pub bayes_accuracy: Option<Estimate>,
    /// The dataset, where the images are not all the world's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<DataRecord>,
    /// By name of the file: images of which some do not carry their posterior, because x is rounded
    /// to 32 bits.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub rounding: BTreeMap<String, Rounding>,
    /// Largest relative error of L = A + KL among the cells.
    pub identity_error: f64,
    /// How the epistemic part falls with N, for every architecture and kind of labels.
    pub laws: Vec<Law>,
    /// Laws of every curve, and which way of fitting them forecasts best; absent where cells
    /// differ in more than network, labels, N and seed, where too few N are finished, and in summaries of
    /// older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub curves: Option<LawGrades>,
    /// What the kind of experiment makes of its cells; absent where the laws say it.
    #[serde(default, rename = "finding", skip_serializing_if = "Option::is_none")]
    pub analysis: Option<Analysis>,
    /// The finished cells, in the order of the plan.
    pub cells: Vec<CellResult>,
}

/// A finished cell whose result cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DamagedCell {
    /// The cell's ID.
    pub id: String,
    /// Its label.
    pub cell: String,
    /// The file, what is wrong with it, and the way out where there is one.
    pub why: String,
}

impl DamagedCell {
    /// A warning beside what the other cells say.
    pub fn warning(&self) -> String {
        format!("{} is left out: {}", self.cell, self.why)
    }
}

/// How the epistemic part of one architecture falls with N.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Law {
    /// Network.
    pub architecture: Architecture,
    /// What it is told.
    pub labels: Labels,
    /// With and without a floor, and which of the two; absent where a sentence says why.
    pub fits: Option<Comparison>,
    /// N at which the epistemic part is expected to be no more than `distance`.
    pub forecast: Option<Forecast>,
    /// The law fitted without the largest N, and what came there; absent below four different N.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hold_out: Option<HoldOut>,
    /// The distance to Bayes asked for, nats.
    pub distance: f64,
    /// How long each of its runs was trained, in words; absent in summaries of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub training: Option<String>,
    /// Why there is no law.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why_not: Option<String>,
}

impl Summary {
    /// From the results of finished cells, in the order of the plan, what each scored on each test
    /// image, by ID, and the Bayes error under each condition, both where known.
    ///
    /// # Errors
    /// Never for results this program wrote.
    pub fn of(
        spec: &ExperimentSpec,
        tested: &BTreeMap<String, Tested>,
        cells: Vec<CellResult>,
        truths: &[Option<Truth>],
    ) -> Result<Self> {
        let first = cells.first().map(|result| &result.measured);
        let mut laws = Vec::new();
        // Cells under several conditions follow no one law.
        let architectures = if spec.experiment.has_laws() { &spec.grid.architectures[..] } else { &[] };
        for &architecture in architectures {
            for &labels in &spec.grid.labels {
                let of = |cell: &Cell| cell.architecture == architecture && cell.labels == labels;
                let cells: Vec<&CellResult> = cells.iter().filter(|result| of(&result.cell)).collect();
                let training = spec.training_of(architecture, 0).ok().map(|training| training.length());
                laws.push(Law { training, ..Law::of(architecture, labels, &cells, tested, spec.distance) });
            }
        }
        Ok(Self {
            name: spec.name.clone(),
            conditions: spec.experiment.conditions(),
            planned: spec.cells().len(),
            finished: cells.len(),
            damaged: Vec::new(),
            aleatoric: first.map(|measured| measured.aleatoric),
            bayes_accuracy: first.map(|measured| measured.bayes_accuracy),
            data: None,
            rounding: BTreeMap::new(),
            identity_error: cells.iter().map(|result| result.measured.identity_error).fold(0.0, f64::max),
            curves: spec.experiment.has_laws().then(|| LawGrades::of(spec, &cells)).flatten(),
            laws,
            analysis: spec.experiment.analyse(spec, &cells, truths),
            cells,
        })
    }

    /// Why a run is not whole though every cell was finished: the first of its damaged cells, in words.
    pub fn damage(&self) -> Option<String> {
        let mut named: Vec<String> = self.damaged.iter().take(NAMED).map(DamagedCell::warning).collect();
        let others = self.damaged.len() - named.len();
        if others > 0 {
            named.push(format!("{others} more, as `bayescope summary` says"));
        }
        (!named.is_empty()).then(|| named.join("; "))
    }

    /// Adds what is known of its images. For test images of another origin the gaps to the Bayes
    /// error of the world are left out.
    #[must_use]
    pub fn with_images(mut self, data: Option<DataRecord>, rounding: BTreeMap<String, Rounding>) -> Self {
        let tested = data.as_ref().filter(|data| !data.both).and_then(|data| data.test.as_ref());
        let foreign = tested.is_some_and(|test| !test.of_this_world);
        if foreign && let Some(without) = self.analysis.as_ref().and_then(|found| found.without_gaps_to_the_world()) {
            self.analysis = Some(without);
        }
        Self { data, rounding, ..self }
    }

    /// What has to be said about images that are not the world's own or do not carry their
    /// posterior.
    pub fn caveats(&self) -> Vec<String> {
        let counted = |(name, rounding): (&String, &Rounding)| {
            let (name, at) = match name.split_once("-tau-") {
                Some((name, tau)) => (name, format!(" at τ = {tau}")),
                None => (name.as_str(), String::new()),
            };
            let which = match name.strip_prefix("train-") {
                Some(seed) => format!("training images of seed {seed}{at}"),
                None => format!("{name} images{at}"),
            };
            (rounding.rounded > 0).then(|| rounding.count(&which))
        };
        let counted: Vec<String> = self.rounding.iter().filter_map(counted).collect();
        let rounded = (!counted.is_empty()).then(|| {
            let sentence = Rounding::sentence(&counted.join(", "));
            format!(
                "Rounding: {sentence}. Figures are with the posteriors before rounding, from which the labels are drawn: L and \
                 accuracy are exact for them, and what rounding hides from a classifier counts as epistemic"
            )
        });
        let cells = || self.cells.iter().map(|result| &result.cell);
        self.data.iter().flat_map(|data| data.sentences(cells())).chain(rounded).collect()
    }

    /// Its figures, those first that answer the question, each with the caveats about the images.
    pub fn figures(&self) -> Vec<Figure> {
        let mut figures = self.analysis.as_ref().map_or_else(|| laws::figures(self), Analysis::figures);
        let said = self.caveats();
        if !said.is_empty() {
            figures.iter_mut().for_each(|figure| figure.provenance.push(("images".into(), said.join(". "))));
        }
        figures
    }

    /// Its tables, likewise.
    pub fn tables(&self) -> Vec<Table> {
        let mut tables = self.analysis.as_ref().map_or_else(|| laws::tables(self), |analysis| analysis.tables());
        let said = self.caveats();
        if !said.is_empty() {
            tables.iter_mut().for_each(|table| table.caption += &format!(" Images: {}.", said.join(". ")));
        }
        tables
    }

    /// One line a cell.
    pub fn csv(&self) -> String {
        let condition = |cell: Cell| self.conditions.get(cell.condition).map_or("", String::as_str);
        Records::of(self.cells.iter())
            .field("id", |result| &result.id)
            .field("architecture", |result| result.cell.architecture.name())
            .field("train_size", |result| result.cell.train_size)
            .field("labels", |result| result.cell.labels.name())
            .field("seed", |result| result.cell.seed)
            .field("parameters", |result| result.parameters)
            .field("steps", |result| result.steps)
            .field("train_loss_nats", |result| result.train_loss)
            .field("cross_entropy_nats", |result| result.measured.cross_entropy.value)
            .field("aleatoric_nats", |result| result.measured.aleatoric.value)
            .field("epistemic_nats", |result| result.measured.epistemic.value)
            .field("epistemic_low", |result| result.measured.epistemic.interval.low)
            .field("epistemic_high", |result| result.measured.epistemic.interval.high)
            .field("accuracy", |result| result.measured.accuracy.value)
            .field("expected_accuracy", |result| result.measured.expected_accuracy.value)
            .field("bayes_accuracy", |result| result.measured.bayes_accuracy.value)
            .field("gap", |result| result.measured.gap.value)
            .field("ece", |result| result.measured.ece.value)
            .field("exact_calibration_error", |result| result.measured.exact_calibration_error.value)
            .field("condition", |result| condition(result.cell))
            .text()
    }
}

/// A cell as a point of its law. Its interval is over the test images, which all cells share.
fn point(result: &CellResult) -> Point {
    let Estimate { value, interval } = result.measured.epistemic;
    Point { n: result.cell.train_size as f64, seed: result.cell.seed, value, error: interval.log_error(value) }
}

/// The test images of some cells, to be drawn anew by the draws behind the cells' intervals. `None`
/// where a cell lacks its figures on each image, or the images differ.
fn test_images(cells: &[&CellResult], tested: &BTreeMap<String, Tested>) -> Option<TestImages> {
    let known = cells.iter().map(|result| tested.get(&result.id)).collect::<Option<Vec<&Tested>>>()?;
    let same = known.windows(2).all(|two| two[0].image == two[1].image);
    let values: Vec<&[f64]> = known.iter().map(|tested| &tested.kl[..]).collect();
    TestImages::of(&values, &measuring()).ok().filter(|_| same)
}

impl Law {
    fn of(
        architecture: Architecture,
        labels: Labels,
        cells: &[&CellResult],
        tested: &BTreeMap<String, Tested>,
        distance: f64,
    ) -> Self {
        let seed = Seed(0).split("power law");
        let points: Vec<Point> = cells.iter().map(|result| point(result)).collect();
        let (points, images) = (&points[..], test_images(cells, tested));
        let fitted = compare(points, images.as_ref(), seed);
        let (fits, why_not) = match fitted {
            Ok(fits) => (Some(fits), None),
            Err(error) => (None, Some(error.to_string())),
        };
        let forecast = fits.as_ref().and_then(|fits| more_data(fits, distance).ok());
        let hold_out = hold_out(points, images.as_ref(), seed).ok();
        Self { architecture, labels, fits, forecast, hold_out, distance, training: None, why_not }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::hand_made::{around, measured, result, spec};
    use crate::measure::{ImageError, PowerLaw};

    #[test]
    fn laws_draw_images_anew_only_where_all_cells_were_tested_on_the_same() {
        let spec = spec(
            "[world]\noracle = 'mnist'\n[grid]\narchitectures = ['linear']\ntrain_sizes = [100, 200, 400, 800]\nseeds = [0]\n",
        );
        let of = |cell: &Cell| {
            let mut measured = measured(0.1, 0.1, 0.1);
            measured.epistemic = around(1.0 / cell.train_size as f64, 1e-4);
            result(*cell, measured)
        };
        let cells: Vec<CellResult> = spec.cells().iter().map(of).collect();
        let scored = |result: &CellResult| {
            let kl = [0.5, 1.5, 1.0].map(|part| part * result.measured.epistemic.value).to_vec();
            (result.id.clone(), Tested { image: vec![1.0, 2.0, 3.0], kl, nll: vec![0.0; 3] })
        };
        let all: BTreeMap<String, Tested> = cells.iter().map(scored).collect();
        let law = |tested: &BTreeMap<String, Tested>| -> PowerLaw {
            let summary = Summary::of(&spec, tested, cells.clone(), &[]).unwrap();
            summary.laws[0].fits.as_ref().unwrap().law().clone()
        };
        assert_eq!(law(&all).image_error, ImageError::Resampled);
        let (mut others, mut fewer) = (all.clone(), all.clone());
        others.get_mut(&cells[2].id).unwrap().image[1] = 7.0;
        fewer.remove(&cells[3].id);
        for other in [others, fewer, BTreeMap::new()] {
            assert_eq!(law(&other).image_error, ImageError::Common);
        }
    }
}
