//! What the trained worlds of the corpora say: ranked, easiest first.

use serde::{Deserialize, Serialize};

use super::class_order::ClassOrder;
use super::published::{Published, published};
use super::repeat::Variant;
use super::spec::HardnessSpec;
use super::worlds::{Tried, Worlds};
use crate::data::{ImageShape, Split};
use crate::error::{Error, Result};
use crate::experiment::bayes_reference::Truth;
use crate::figure::Records;
use crate::measure::{Interval, student_half, wilson};
use crate::oracle::evaluate::Evaluation;
use crate::oracle::folder::{OracleInfo, TrainingRecord};
use crate::oracle::train::ModelSpec;

/// Real images on which a flow was measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Evaluated {
    /// `test`, or `train` for the held-out part of the training images, where there is no test
    /// part.
    pub on: Split,
    /// NLL and accuracy of the flow's own posterior.
    #[serde(flatten)]
    pub evaluation: Evaluation,
}

/// What one corpus gave: the same for the same spec, pixels and device, in however many sittings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CorpusResult {
    /// Hash of what it was told; its folder's name.
    pub id: String,
    /// The corpus.
    pub name: String,
    /// Which of its flows.
    #[serde(flatten)]
    pub variant: Variant,
    /// NLL of the images held out of training, nats: what λ is chosen by. Absent in older files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chosen_by: Option<f64>,
    /// Number of classes.
    pub classes: usize,
    /// Images trained on.
    pub images: usize,
    /// Shape of the images, padding included.
    pub shape: ImageShape,
    /// The epoch that was kept, from 1.
    pub epoch: usize,
    /// Epochs trained.
    pub epochs: usize,
    /// On images it was not trained on.
    pub held_out: Evaluated,
    /// The Bayes error of the trained world at τ = 1 and uniform π.
    pub truth: Truth,
    /// The same where π are the frequencies of the classes in the training part; absent where these are even.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_frequencies: Option<Truth>,
    /// Its classes in order of hardness at several τ; absent of two classes and of very many.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class_order: Option<ClassOrder>,
    /// SHA-256 of the trained weights.
    pub weights_sha256: String,
    /// SHA-256 of the pixels of the training part, as padded.
    pub pixels_sha256: String,
}

impl CorpusResult {
    /// From a finished oracle and the Bayes errors of its world, at uniform π and at the frequencies of the
    /// classes.
    ///
    /// # Errors
    /// When the oracle carries no record of its training.
    pub fn of(
        (id, name, variant): (&str, &str, Variant),
        oracle: OracleInfo,
        shape: ImageShape,
        [truth, at_frequencies]: [Option<Truth>; 2],
    ) -> Result<Self> {
        let truth = truth.ok_or_else(|| Error::input(format!("the Bayes error of {name} is not known")))?;
        let Some(TrainingRecord { pixels_sha256, images, spec, epoch, held_out, test, .. }) = oracle.training else {
            return Err(Error::input(format!("the oracle of {name} has no record of its training")));
        };
        let chosen_by = Some(held_out.nll_nats);
        let held_out = match test {
            Some(evaluation) => Evaluated { on: Split::Test, evaluation },
            None => Evaluated { on: Split::Train, evaluation: held_out },
        };
        Ok(Self {
            id: id.to_owned(),
            name: name.to_owned(),
            variant,
            chosen_by,
            classes: oracle.class_names.len(),
            images,
            shape,
            epoch,
            epochs: spec.training.epochs,
            held_out,
            truth,
            at_frequencies,
            class_order: None,
            weights_sha256: oracle.weights_sha256,
            pixels_sha256,
        })
    }

    /// 95 % interval (Student's) over images of the NLL, nats per image; one image has none.
    pub fn nll_interval(&self) -> Option<Interval> {
        let Evaluation { images, nll_nats, nll_std_error, .. } = self.held_out.evaluation;
        let half = student_half(nll_std_error, images);
        half.is_finite().then_some(Interval { low: nll_nats - half, high: nll_nats + half })
    }

    /// 95 % interval over images (Wilson's) of the accuracy of the flow's own posterior.
    pub fn accuracy_interval(&self) -> Interval {
        let evaluation = &self.held_out.evaluation;
        wilson(evaluation.right(), evaluation.images)
    }

    /// What λ is chosen by, nats; of an older file the NLL it was measured with.
    pub fn held_out_nll(&self) -> f64 {
        self.chosen_by.unwrap_or(self.held_out.evaluation.nll_nats)
    }

    /// Lower end of the Bayes error at the frequencies of the classes in the corpus: what errors on its images can be
    /// held against.
    pub fn least_bayes_error(&self) -> f64 {
        self.at_frequencies.as_ref().unwrap_or(&self.truth).bayes_error.interval.0
    }

    /// Whether the posterior of the flow itself errs less on real images than the Bayes error of its world, beyond both
    /// intervals: then that is none of the corpus.
    pub fn refutes_itself(&self) -> bool {
        1.0 - self.accuracy_interval().low < self.least_bayes_error()
    }

    /// Which images it was measured on: those of the test part, or those held out.
    pub fn part(&self) -> &'static str {
        match self.held_out.on {
            Split::Test => "test",
            Split::Train => "held out",
        }
    }

    /// Which images it was measured on, and how many.
    pub fn measured_on(&self) -> String {
        format!("{}, {}", self.part(), self.held_out.evaluation.images)
    }
}

/// A corpus that could not be finished.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trouble {
    /// The corpus.
    pub corpus: String,
    /// Why, with file and cause.
    pub why: String,
}

/// All that a run found. Nothing in it depends on when or in how many sittings the corpora were
/// trained.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ranking {
    /// Name of the run.
    pub name: String,
    /// Seed of everything random.
    pub seed: u64,
    /// The Glow, unless a corpus overrides it.
    pub model: ModelSpec,
    /// Corpora planned.
    pub planned: usize,
    /// Flows planned, where a corpus has several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flows: Option<usize>,
    /// The finished ones, that of the least Bayes error first.
    pub corpora: Vec<CorpusResult>,
    /// Those that failed, in the order of the spec.
    pub troubles: Vec<Trouble>,
    /// Every flow, where a corpus has several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tried: Vec<Tried>,
    /// How far worlds of one corpus differ, where it has several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub worlds: Vec<Worlds>,
}

impl Ranking {
    /// From the results of the finished flows of a spec, and what is known of those that failed. A corpus is
    /// ranked by its first world, with the λ that was chosen there.
    pub fn of(spec: &HardnessSpec, results: Vec<CorpusResult>, troubles: Vec<Trouble>) -> Self {
        let HardnessSpec { name, seed, model, repeat, .. } = spec;
        let tried = Tried::all(&results);
        let worlds = Worlds::all(&tried, repeat.bootstrap);
        let chosen = results.into_iter().zip(&tried).filter(|(_, tried)| tried.chosen && tried.world == 0);
        let mut corpora: Vec<CorpusResult> = chosen.map(|(result, _)| result).collect();
        corpora.sort_by(|a, b| a.truth.bayes_error.value.total_cmp(&b.truth.bayes_error.value));
        let tried = if repeat.is_once() { Vec::new() } else { tried };
        let (name, planned) = (name.clone(), spec.corpora.len());
        let flows = (!repeat.is_once()).then(|| planned * repeat.variants().len());
        Self { name, seed: *seed, model: *model, planned, flows, corpora, troubles, tried, worlds }
    }

    /// One line a corpus, easiest first.
    pub fn csv(&self) -> String {
        let of_paper = |corpus: &CorpusResult, of: fn(&Published) -> f64| {
            published(&corpus.name).map_or_else(String::new, |row| of(row).to_string())
        };
        let nll_end = |corpus: &CorpusResult, of: fn(Interval) -> f64| {
            corpus.nll_interval().map_or_else(String::new, |interval| of(interval).to_string())
        };
        Records::of(self.corpora.iter().enumerate())
            .field("rank", |(place, _)| place + 1)
            .field("corpus", |(_, corpus)| &corpus.name)
            .field("classes", |(_, corpus)| corpus.classes)
            .field("images", |(_, corpus)| corpus.images)
            .field("dims", |(_, corpus)| corpus.shape.dims())
            .field("epoch", |(_, corpus)| corpus.epoch)
            .field("measured_on", |(_, corpus)| corpus.part())
            .field("measured_images", |(_, corpus)| corpus.held_out.evaluation.images)
            .field("nll_nats", |(_, corpus)| corpus.held_out.evaluation.nll_nats)
            .field("nll_low", |(_, corpus)| nll_end(corpus, |interval| interval.low))
            .field("nll_high", |(_, corpus)| nll_end(corpus, |interval| interval.high))
            .field("bits_per_dim", |(_, corpus)| corpus.held_out.evaluation.bits_per_dim)
            .field("bayes_error", |(_, corpus)| corpus.truth.bayes_error.value)
            .field("bayes_error_low", |(_, corpus)| corpus.truth.bayes_error.interval.0)
            .field("bayes_error_high", |(_, corpus)| corpus.truth.bayes_error.interval.1)
            .field("accuracy", |(_, corpus)| corpus.held_out.evaluation.accuracy)
            .field("accuracy_low", |(_, corpus)| corpus.accuracy_interval().low)
            .field("accuracy_high", |(_, corpus)| corpus.accuracy_interval().high)
            .field("ebo_nll_nats", |(_, corpus)| of_paper(corpus, |row| row.nll.0))
            .field("ebo_bayes_error", |(_, corpus)| of_paper(corpus, |row| row.bayes_error))
            .field("ebo_sota_error", |(_, corpus)| of_paper(corpus, |row| row.sota_error))
            .text()
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::bayes::{Badge, Figure};
    use crate::units::Tau;

    /// A finished corpus with such a Bayes error.
    pub(in super::super) fn result(name: &str, error: f64, on: Split) -> CorpusResult {
        let evaluation = Evaluation {
            images: 400,
            nll_nats: 900.0,
            nll_std_error: 10.0,
            bits_per_dim: 900.0 / (1024.0 * std::f64::consts::LN_2),
            accuracy: 0.9,
            entropy_nats: None,
            entropy_std_error: None,
        };
        CorpusResult {
            id: format!("id of {name}"),
            name: name.into(),
            variant: Variant::default(),
            chosen_by: None,
            classes: 10,
            images: 5000,
            shape: ImageShape { channels: 1, height: 32, width: 32 },
            epoch: 3,
            epochs: 4,
            held_out: Evaluated { on, evaluation },
            truth: Truth {
                tau: Tau::ONE,
                bayes_error: Figure::new(error, 0.1 * error, 1.0),
                badge: Badge::Estimated,
                how: "separation of variables: 10 classes".into(),
            },
            at_frequencies: None,
            class_order: None,
            weights_sha256: "ab".repeat(32),
            pixels_sha256: "cd".repeat(32),
        }
    }

    /// A ranking of two of EBO's corpora and another one, and one that failed.
    pub(in super::super) fn ranking() -> Ranking {
        let corpora =
            ["cifar10", "MNIST", "mine, own"].map(|name| format!("[[corpora]]\nname = '{name}'\ndata = 'd'\n"));
        let text = format!("name = 'x'\n[experiment]\nkind = 'hardness'\n{}", corpora.concat());
        let spec: HardnessSpec = toml::from_str(&text).unwrap();
        let results = vec![
            result("cifar10", 0.2, Split::Test),
            result("MNIST", 1e-3, Split::Test),
            result("mine, own", 0.01, Split::Train),
        ];
        Ranking::of(&spec, results, vec![Trouble { corpus: "gone".into(), why: "/gone: not there".into() }])
    }

    #[test]
    fn the_easiest_comes_first_in_the_list_and_in_the_lines() {
        let found = ranking();
        let names: Vec<&str> = found.corpora.iter().map(|corpus| corpus.name.as_str()).collect();
        assert_eq!(names, ["MNIST", "mine, own", "cifar10"]);
        let text = found.csv();
        let mut lines = csv::Reader::from_reader(text.as_bytes());
        let rows: Vec<csv::StringRecord> = lines.records().map(Result::unwrap).collect();
        assert_eq!((&rows[1][1], &rows[1][6], &rows[1][19]), ("mine, own", "held out", ""));
        assert_eq!((&rows[0][19], &rows[2][19]), ("0.000107", "0.0246"));
        let back: Ranking = serde_json::from_str(&serde_json::to_string(&found).unwrap()).unwrap();
        assert_eq!(back, found);
    }

    #[test]
    fn intervals_are_of_95_percent() {
        let found = result("a", 0.1, Split::Test);
        let of = |images: usize| {
            let mut found = found.clone();
            found.held_out.evaluation.images = images;
            found.nll_interval()
        };
        // t of 399 and of one degree of freedom; one image says nothing about its spread.
        for (images, half) in [(400, 19.659), (2, 127.062)] {
            let nll = of(images).unwrap();
            assert!((nll.high - 900.0 - half).abs() < 0.01 && (900.0 - nll.low - half).abs() < 0.01, "{nll:?}");
        }
        assert_eq!(of(1), None);
        // Wilson's interval of 360 of 400.
        let accuracy = found.accuracy_interval();
        assert!((accuracy.low - 0.8667).abs() < 5e-4 && (accuracy.high - 0.9257).abs() < 5e-4, "{accuracy:?}");
    }
}
