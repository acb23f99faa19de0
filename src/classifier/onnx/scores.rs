//! What a network's numbers mean: found in the graph's last nodes, else by looking at some of them.

use tract_onnx::pb::attribute_proto::AttributeType;
use tract_onnx::pb::tensor_proto::DataType;
use tract_onnx::pb::{AttributeProto, GraphProto, NodeProto, type_proto};

use super::operators;
use super::options::{KnownBy, Scores};
use crate::error::{Error, Result};
use crate::measure::log_softmax;

/// How far the sum of a row of probabilities may be from 1.
const ROUNDING: f64 = 1e-3;
/// The same of what is meant for probabilities: half precision rounds logarithms as much, and no logits are so near in every row.
const NEARLY: f64 = 0.05;

/// The nodes at the end of a graph that pass on what is given to them.
struct Tail {
    /// Place of the last node that computes.
    computes: usize,
    /// Places of those after it.
    after: Vec<usize>,
    /// Whether one of those gives another shape.
    reshapes: bool,
}

impl Tail {
    fn of(graph: &GraphProto, output: &str) -> Option<Self> {
        let mut output = output;
        let mut tail = Self { computes: 0, after: Vec::new(), reshapes: false };
        // It ends: what a node reads is given before it, and no name is given twice.
        loop {
            tail.computes = graph.node.iter().position(|node| node.output.iter().any(|name| name == output))?;
            let node = &graph.node[tail.computes];
            match node.op_type.as_str() {
                "Identity" | "Cast" | "Dropout" => {}
                "Flatten" | "Reshape" | "Squeeze" => tail.reshapes = true,
                _ => return Some(tail),
            }
            tail.after.push(tail.computes);
            output = node.input.first()?;
        }
    }

    /// Has a last Softmax or LogSoftmax give logarithms in double precision, and the nodes after it keep
    /// them.
    fn give_logarithms(&self, graph: &mut GraphProto) {
        for &place in &self.after {
            let node = &mut graph.node[place];
            if ["Cast", "Dropout"].contains(&node.op_type.as_str()) {
                node.op_type = "Identity".into();
                node.attribute.clear();
                node.input.truncate(1);
                node.output.truncate(1);
            }
        }
        let node = &mut graph.node[self.computes];
        node.op_type = "LogSoftmax".into();
        let wide = format!("{} before its logarithm, in double precision", operators::name(node));
        let logits = node.input.iter_mut().take(1).map(|input| std::mem::replace(input, wide.clone())).collect();
        let to = AttributeProto {
            name: "to".into(),
            r#type: AttributeType::Int as i32,
            i: DataType::Double as i64,
            ..Default::default()
        };
        let cast = NodeProto {
            op_type: "Cast".into(),
            name: wide.clone(),
            input: logits,
            output: vec![wide],
            attribute: vec![to],
            ..Default::default()
        };
        graph.node.insert(self.computes, cast);
    }
}

/// Where the scores of a network are found.
pub(super) struct Source {
    /// The value to take.
    pub(super) value: String,
    /// What it means, where the graph tells or the user says.
    pub(super) scores: Option<Scores>,
    /// By what that is known; otherwise the numbers will tell.
    pub(super) known_by: KnownBy,
    /// The Softmax before nodes that reshape, by name: whether it is over the classes, the rows tell
    /// ([`check_over_classes`]).
    pub(super) reshaped: Option<String>,
}

/// The value to take instead of `output`, and what it means where the graph tells. The input of a
/// last Softmax is taken, or its logarithm in double precision where others reshape what it gives:
/// single precision rounds small probabilities to 0, and their logarithm is then lost. The runtime
/// computes a LogSoftmax as the logarithm of a Softmax, so that the same is true of that.
///
/// # Errors
/// When the classes are scored one by one (Sigmoid), and nobody said that these are logits or
/// probabilities; when a last Softmax or LogSoftmax is over another axis than theirs.
pub(super) fn source(graph: &mut GraphProto, output: &str, said: Option<Scores>) -> Result<Source> {
    let known_by = if said.is_some() { KnownBy::User } else { KnownBy::Numbers };
    let as_it_is = Source { value: output.to_owned(), scores: said, known_by, reshaped: None };
    let Some(tail) = Tail::of(graph, output) else { return Ok(as_it_is) };
    let node = &graph.node[tail.computes];
    let operator = node.op_type.as_str();
    let normalises = ["Softmax", "LogSoftmax"].contains(&operator);
    let over = axis(node).filter(|_| normalises && !tail.reshapes);
    if let Some(axis) = over.filter(|&axis| !is_over_classes(axis, rank(graph, output))) {
        return Err(Error::input(format!(
            "its output '{output}' is a {operator} over axis {axis} (node '{}'), and classes are axis 1 of [N, K]: export it over the \
             classes, or without it",
            operators::name(node)
        )));
    }
    if operator == "Sigmoid" && said.is_none() {
        return Err(Error::input(format!(
            "its output '{output}' is a Sigmoid: every class on its own, no distribution over the classes; export the network \
             without it, or say what the numbers are: `bayescope evaluate` with --kind logits or --kind probabilities"
        )));
    }
    // What only somebody who means the numbers themselves says of them.
    let meant = said == Some(if operator == "Softmax" { Scores::Logits } else { Scores::Probabilities });
    match node.input.first().filter(|_| normalises && !meant) {
        None => Ok(as_it_is),
        Some(logits) if !tail.reshapes => {
            let value = logits.clone();
            Ok(Source { value, scores: Some(Scores::Logits), known_by: KnownBy::Softmax, reshaped: None })
        }
        Some(_) => {
            let name = operators::name(node).to_owned();
            tail.give_logarithms(graph);
            Ok(Source { scores: Some(Scores::Logits), known_by: KnownBy::Softmax, reshaped: Some(name), ..as_it_is })
        }
    }
}

/// Checks that rows [n, K] of logarithms, those of a Softmax before nodes that reshape, are
/// distributions.
///
/// # Errors
/// When they are not: the Softmax is over another axis.
pub(super) fn check_over_classes(rows: &[f64], classes: usize, node: &str) -> Result<()> {
    let mut sums = rows.chunks(classes).map(|row| row.iter().map(|v| v.exp()).sum::<f64>());
    match sums.find(|sum| (sum - 1.0).abs() > ROUNDING) {
        None => Ok(()),
        Some(sum) => Err(Error::input(format!(
            "its Softmax (node '{node}') is not over its {classes} classes: the probabilities of an image add up to {sum:.3}; export it \
             over the classes, or without it"
        ))),
    }
}

fn axis(node: &NodeProto) -> Option<i64> {
    node.attribute.iter().find(|attribute| attribute.name == "axis").map(|attribute| attribute.i)
}

/// Whether an axis of scores [N, K], [N, K, 1, 1] or [K] is that of the classes.
fn is_over_classes(axis: i64, rank: Option<i64>) -> bool {
    match rank {
        Some(rank @ 2..) => axis.rem_euclid(rank) == 1,
        Some(_) => [0, -1].contains(&axis),
        None => [1, -1].contains(&axis),
    }
}

/// Number of axes that the file says of an output.
fn rank(graph: &GraphProto, output: &str) -> Option<i64> {
    let declared = graph.output.iter().find(|declared| declared.name == output)?;
    let Some(type_proto::Value::TensorType(tensor)) = &declared.r#type.as_ref()?.value else { return None };
    i64::try_from(tensor.shape.as_ref()?.dim.len()).ok()
}

impl Scores {
    /// What rows [n, K] look like: probabilities where every one of them adds up to 1.
    ///
    /// # Errors
    /// When they look like probabilities, and every one adds up to 100 or is off by a little.
    pub(super) fn of(rows: &[f64], classes: usize) -> Result<Self> {
        if rows.chunks(classes).all(is_distribution) {
            return Ok(Self::Probabilities);
        }
        let sum = |row: &[f64]| row.iter().sum::<f64>();
        let all = |whole: f64| rows.chunks(classes).all(|row| (sum(row) / whole - 1.0).abs() <= NEARLY);
        if rows.iter().all(|v| *v >= 0.0) && (all(1.0) || all(100.0)) {
            return Err(Error::input(format!(
                "its scores of an image add up to {:.4}: are they per cent, or probabilities times a factor? Export it so that \
                 they add up to 1, or say what they are: `bayescope evaluate` with --kind logits",
                sum(&rows[..classes])
            )));
        }
        Ok(Self::Logits)
    }

    /// log q(y|x) [n, K] in nats of rows [n, K], those of images `first` and on.
    ///
    /// # Errors
    /// Names the first image whose row is no distribution.
    pub(super) fn log_probabilities(self, rows: &[f64], classes: usize, first: usize) -> Result<Vec<f64>> {
        let mut log_q = Vec::with_capacity(rows.len());
        for (i, row) in rows.chunks(classes).enumerate() {
            if let Some(cause) = self.misfit(row) {
                return Err(Error::Numeric(format!("image {}: {cause}", first + i)));
            }
            // Less the largest in f64: what single precision then rounds is a distance of logits.
            let largest = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let logits: Vec<f32> = match self {
                Self::Logits | Self::LogProbabilities => row.iter().map(|v| (v - largest) as f32).collect(),
                Self::Probabilities => row.iter().map(|v| v.max(0.0).ln() as f32).collect(),
            };
            let from = log_q.len();
            log_q.extend(log_softmax(&logits, classes));
            if log_q[from..].iter().any(|v| v.is_nan()) || row.iter().any(|v| v.is_nan()) {
                return Err(Error::Numeric(format!("image {}: the network gives {row:?}", first + i)));
            }
        }
        Ok(log_q)
    }

    /// Why a row is none of these, where it is none.
    fn misfit(self, row: &[f64]) -> Option<String> {
        let logarithms = || row.iter().map(|v| v.exp()).sum::<f64>();
        match self {
            Self::Probabilities if !is_distribution(row) => {
                Some(format!("its probabilities add up to {}", row.iter().sum::<f64>()))
            }
            Self::LogProbabilities if (logarithms() - 1.0).abs() > NEARLY => {
                Some(format!("its log-probabilities are of probabilities that add up to {:.3}, not to 1", logarithms()))
            }
            _ => None,
        }
    }
}

fn is_distribution(row: &[f64]) -> bool {
    let sum: f64 = row.iter().sum();
    row.iter().all(|v| *v >= -ROUNDING) && (sum - 1.0).abs() <= ROUNDING
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logits_and_their_probabilities_are_the_same_distribution() {
        let logits = [0.5, -1.0, 2.0, 1e4, 0.0, -1e4];
        let from_logits = Scores::Logits.log_probabilities(&logits, 3, 0).unwrap();
        assert!(from_logits.chunks(3).all(|row| (row.iter().map(|v| v.exp()).sum::<f64>() - 1.0).abs() < 1e-12));
        assert_eq!(from_logits[3..], [0.0, -1e4, -2e4]);
        let p: Vec<f64> = from_logits[..3].iter().map(|v| v.exp()).collect();
        let from_probabilities = Scores::Probabilities.log_probabilities(&p, 3, 0).unwrap();
        assert!(from_logits.iter().zip(&from_probabilities).all(|(a, b)| (a - b).abs() < 1e-6));
        assert_eq!(Scores::Probabilities.log_probabilities(&[1.0, 0.0], 2, 0).unwrap(), [0.0, f64::NEG_INFINITY]);
    }

    #[test]
    fn the_axis_of_the_classes_is_known_by_the_number_of_axes() {
        for (axis, rank) in [(1, Some(2)), (-1, Some(2)), (1, Some(4)), (-3, Some(4)), (0, Some(1)), (-1, None)] {
            assert!(is_over_classes(axis, rank), "{axis} {rank:?}");
        }
        for (axis, rank) in [(0, Some(2)), (-2, Some(2)), (-1, Some(4)), (0, None)] {
            assert!(!is_over_classes(axis, rank), "{axis} {rank:?}");
        }
    }

    #[test]
    fn rows_are_told_apart_by_their_sums() {
        assert_eq!(Scores::of(&[0.2, 0.8, 0.5, 0.5], 2).unwrap(), Scores::Probabilities);
        assert_eq!(Scores::of(&[0.2, 0.8, 0.5, 0.6], 2).unwrap(), Scores::Logits);
        assert_eq!(Scores::of(&[2.0, -1.0], 2).unwrap(), Scores::Logits);
        for off in [[20.0, 80.0, 50.0, 50.0], [0.198, 0.792, 0.495, 0.495]] {
            assert!(Scores::of(&off, 2).unwrap_err().to_string().contains("per cent"));
        }
        for logits in [[20.0, 80.0, 50.0, 56.0], [120.0, -20.0, 50.0, 50.0], [0.0; 4], [1.1, -0.1, 0.0, 1.01]] {
            assert_eq!(Scores::of(&logits, 2).unwrap(), Scores::Logits);
        }
    }

    #[test]
    fn rows_without_a_distribution_are_named() {
        let named = |result: Result<Vec<f64>>| result.unwrap_err().to_string();
        assert!(named(Scores::Probabilities.log_probabilities(&[0.5, 0.5, 0.9, 0.9], 2, 0)).contains("image 1"));
        assert!(named(Scores::LogProbabilities.log_probabilities(&[0.2, 0.8], 2, 3)).contains("image 3: its log-prob"));
        assert!(named(Scores::LogProbabilities.log_probabilities(&[f64::NAN, 0.0], 2, 0)).contains("gives [NaN"));
        let row = [0.2f64.ln(), 0.8f64.ln()];
        assert_eq!(
            Scores::LogProbabilities.log_probabilities(&row, 2, 0).unwrap(),
            Scores::Logits.log_probabilities(&row, 2, 0).unwrap()
        );
        // Of a later piece of the images.
        assert!(named(Scores::Probabilities.log_probabilities(&[0.5, 0.5, 0.9, 0.9], 2, 1024)).contains("image 1025"));
        assert!(named(Scores::Logits.log_probabilities(&[f64::NAN, 0.0], 2, 1024)).contains("image 1024"));
        for bad in [[f64::NAN, 0.0], [0.0, f64::NAN], [f64::INFINITY, 0.0], [f64::NEG_INFINITY; 2]] {
            assert!(named(Scores::Logits.log_probabilities(&bad, 2, 0)).contains("image 0"), "{bad:?}");
        }
    }
}
