//! What an ONNX file says about itself, and where its arrays lie.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fmt;
use std::path::{Path, PathBuf};

use serde::Serialize;
use tract_onnx::pb::tensor_proto::{DataLocation, DataType};
use tract_onnx::pb::tensor_shape_proto::Dimension as Axis;
use tract_onnx::pb::tensor_shape_proto::dimension::Value as Length;
use tract_onnx::pb::{GraphProto, ModelProto, NodeProto, TensorProto, TensorShapeProto, ValueInfoProto, type_proto};

use super::normalisation::Normalisation;
use super::operators::{self, Unsupported};
use crate::error::{Error, Result};

/// Length of one axis of an input or output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Extent {
    /// Fixed by the file.
    Known(usize),
    /// Left open, under the name the file gives it; `?` where it gives none.
    Open(String),
}

impl fmt::Display for Extent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Known(n) => write!(f, "{n}"),
            Self::Open(name) => f.write_str(name),
        }
    }
}

/// An input or output of a network.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Port {
    /// Its name in the file.
    pub name: String,
    /// Format of its numbers, as ONNX calls it: `FLOAT`, `UINT8`, …
    pub dtype: String,
    /// Its axes, where the file gives them.
    pub extents: Option<Vec<Extent>>,
}

impl fmt::Display for Port {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let extents = self.extents.as_ref().map_or("of unknown shape".into(), |extents| {
            format!("[{}]", extents.iter().map(Extent::to_string).collect::<Vec<_>>().join(", "))
        });
        write!(f, "'{}' {extents} {}", self.name, self.dtype)
    }
}

/// What a file says about itself.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Description {
    /// The file.
    pub path: PathBuf,
    /// Program that wrote it and its version; empty where it does not say.
    pub producer: String,
    /// Version of the operators (opset).
    pub opset: i64,
    /// Version of the file format.
    pub ir_version: i64,
    /// Inputs that have to be given; weights that are listed as inputs are none.
    pub inputs: Vec<Port>,
    /// Outputs of the graph, in the order of the file.
    pub outputs: Vec<Port>,
    /// Numbers in floating-point arrays of the file: the parameters, and running statistics where
    /// they are not folded away.
    pub parameters: u64,
    /// Nodes by operator, bodies of loops and conditions included.
    pub operators: BTreeMap<String, usize>,
    /// Operators that cannot be run here.
    pub unsupported: Vec<Unsupported>,
    /// Files beside it that hold weights.
    pub data_files: BTreeSet<String>,
    /// Its `metadata_props`.
    pub metadata: BTreeMap<String, String>,
}

impl fmt::Display for Description {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |ports: &[Port]| ports.iter().map(Port::to_string).collect::<Vec<_>>().join(", ");
        writeln!(f, "{}: {} parameters, opset {}", self.path.display(), self.parameters, self.opset)?;
        if !self.producer.is_empty() {
            writeln!(f, "written by {}", self.producer)?;
        }
        writeln!(f, "input {}", list(&self.inputs))?;
        write!(f, "output {}", list(&self.outputs))?;
        if !self.unsupported.is_empty() {
            write!(f, "\n{}", operators::complaint(&self.unsupported, self.opset))?;
        }
        Ok(())
    }
}

impl Description {
    pub(super) fn of(path: &Path, model: &ModelProto) -> Self {
        let nothing = GraphProto::default();
        let graph = model.graph.as_ref().unwrap_or(&nothing);
        let given: HashSet<_> = graph.initializer.iter().map(|array| array.name.as_str()).collect();
        let nodes = operators::nodes(graph);
        let arrays = arrays(graph, &nodes);
        let numbers = |array: &&TensorProto| array.dims.iter().map(|&n| u64::try_from(n).unwrap_or(0)).product::<u64>();
        let mut operators = BTreeMap::new();
        nodes.iter().for_each(|node| *operators.entry(node.op_type.clone()).or_default() += 1);
        Self {
            path: path.to_owned(),
            producer: format!("{} {}", model.producer_name, model.producer_version).trim().to_owned(),
            opset: operators::opset(model),
            ir_version: model.ir_version,
            inputs: graph.input.iter().filter(|input| !given.contains(input.name.as_str())).map(port).collect(),
            outputs: graph.output.iter().map(port).collect(),
            parameters: arrays.iter().filter(|array| is_float(array)).map(numbers).sum(),
            operators,
            unsupported: operators::unsupported(model, path),
            data_files: arrays.iter().filter_map(|array| external(array, "location").map(str::to_owned)).collect(),
            metadata: model.metadata_props.iter().map(|entry| (entry.key.clone(), entry.value.clone())).collect(),
        }
    }

    /// The normalisation the file asks for; `None` where it is silent.
    ///
    /// # Errors
    /// When what it says is none.
    pub fn normalisation(&self) -> Result<Option<Normalisation>> {
        Normalisation::of_metadata(|key| self.metadata.get(key).map(String::as_str))
            .map_err(|e| Error::file(&self.path, e.to_string()))
    }
}

fn is_float(array: &TensorProto) -> bool {
    use DataType::{Bfloat16, Double, Float, Float16};
    DataType::try_from(array.data_type).is_ok_and(|dtype| [Float, Double, Float16, Bfloat16].contains(&dtype))
}

fn port(value: &ValueInfoProto) -> Port {
    let tensor = value.r#type.as_ref().and_then(|kind| kind.value.as_ref()).map(|type_proto::Value::TensorType(t)| t);
    let extent = |dimension: &Axis| match &dimension.value {
        Some(Length::DimValue(n)) if *n > 0 => Extent::Known(usize::try_from(*n).unwrap_or(usize::MAX)),
        Some(Length::DimParam(name)) if !name.is_empty() => Extent::Open(name.clone()),
        // Some exporters write 0 or −1 for an open axis.
        _ => Extent::Open("?".into()),
    };
    let dtype = tensor.and_then(|tensor| DataType::try_from(tensor.elem_type).ok());
    Port {
        name: value.name.clone(),
        dtype: dtype.map_or("no tensor", |dtype| dtype.as_str_name()).to_owned(),
        extents: tensor.and_then(|tensor| tensor.shape.as_ref()).map(|shape| shape.dim.iter().map(extent).collect()),
    }
}

/// All arrays of a file: its own, those of bodies, and those of constant nodes.
pub(super) fn arrays<'a>(graph: &'a GraphProto, nodes: &[&'a NodeProto]) -> Vec<&'a TensorProto> {
    let attributes = || nodes.iter().flat_map(|node| &node.attribute);
    let bodies = attributes().filter_map(|attribute| attribute.g.as_ref()).flat_map(|body| &body.initializer);
    let constants = attributes().filter_map(|attribute| attribute.t.as_ref());
    graph.initializer.iter().chain(bodies).chain(constants).collect()
}

/// What an array that lies in another file says about that.
pub(super) fn external<'a>(array: &'a TensorProto, key: &str) -> Option<&'a str> {
    let outside = array.data_location == Some(DataLocation::External as i32);
    array.external_data.iter().find(|entry| outside && entry.key == key).map(|entry| entry.value.as_str())
}

/// Where files beside it lie.
pub(super) fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// Gives an input the shape it is run with.
pub(super) fn fix_shape(model: &mut ModelProto, input: &str, axes: [usize; 4]) {
    let inputs = model.graph.iter_mut().flat_map(|graph| &mut graph.input).filter(|value| value.name == input);
    for kind in inputs.filter_map(|value| value.r#type.as_mut()?.value.as_mut()) {
        let type_proto::Value::TensorType(tensor) = kind;
        let dim = axes.map(|n| Axis { value: i64::try_from(n).ok().map(Length::DimValue), ..Default::default() });
        tensor.shape = Some(TensorShapeProto { dim: dim.to_vec() });
    }
}
