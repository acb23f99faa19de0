//! Nodes that tract 0.23 reads wrongly, written so that it reads them right.
//!
//! * It multiplies the bias of a Gemm by a β of float32, whatever the network computes in: half and
//!   double precision fail. Their Gemms become the products and sums they stand for. Those with
//!   factors α or β stay as they are.
//! * It fills a ConstantOfShape that names no value with zeros of float64 where ONNX says float32:
//!   Swin's masks fail, as the newer of PyTorch's exporters writes them.

use std::collections::HashSet;

use tract_onnx::pb::attribute_proto::AttributeType;
use tract_onnx::pb::tensor_proto::DataType;
use tract_onnx::pb::{AttributeProto, GraphProto, NodeProto, TensorProto};

/// Rewrites the nodes of a graph, not those of bodies in it.
pub(super) fn write_out(graph: &mut GraphProto) {
    let other = |dtype: i32| dtype == DataType::Float16 as i32 || dtype == DataType::Double as i32;
    let arrays = graph.initializer.iter().filter(|array| other(array.data_type));
    let arrays: HashSet<_> = arrays.map(|array| array.name.as_str()).collect();
    let write = |node: NodeProto| match node.op_type.as_str() {
        "Gemm" if is_plain(&node) && node.input.iter().any(|name| arrays.contains(name.as_str())) => parts(&node),
        "ConstantOfShape" if node.attribute.is_empty() => vec![NodeProto { attribute: vec![zero()], ..node }],
        _ => vec![node],
    };
    graph.node = std::mem::take(&mut graph.node).into_iter().flat_map(write).collect();
}

/// Whether the factors α and β of a Gemm are 1.
fn is_plain(gemm: &NodeProto) -> bool {
    gemm.attribute.iter().all(|a| !["alpha", "beta"].contains(&a.name.as_str()) || a.f == 1.0)
}

fn zero() -> AttributeProto {
    let zero =
        TensorProto { dims: vec![1], data_type: DataType::Float as i32, float_data: vec![0.0], ..Default::default() };
    AttributeProto { name: "value".into(), r#type: AttributeType::Tensor as i32, t: Some(zero), ..Default::default() }
}

/// The nodes of A·B + C.
fn parts(gemm: &NodeProto) -> Vec<NodeProto> {
    let is_set = |name: &str| gemm.attribute.iter().any(|attribute| attribute.name == name && attribute.i != 0);
    let name = gemm.output.first().map_or("", String::as_str);
    let mut nodes = Vec::new();
    let mut factors = Vec::new();
    for (factor, flag) in gemm.input.iter().zip(["transA", "transB"]) {
        factors.push(if is_set(flag) {
            let turned = format!("{name}/{flag}");
            nodes.push(node("Transpose", vec![factor.clone()], turned.clone()));
            turned
        } else {
            factor.clone()
        });
    }
    match gemm.input.get(2).filter(|bias| !bias.is_empty()) {
        Some(bias) => {
            let product = format!("{name}/product");
            nodes.push(node("MatMul", factors, product.clone()));
            nodes.push(node("Add", vec![product, bias.clone()], name.to_owned()));
        }
        None => nodes.push(node("MatMul", factors, name.to_owned())),
    }
    nodes
}

fn node(operator: &str, input: Vec<String>, output: String) -> NodeProto {
    let perm = || AttributeProto {
        name: "perm".into(),
        r#type: AttributeType::Ints as i32,
        ints: vec![1, 0],
        ..Default::default()
    };
    let attribute = if operator == "Transpose" { vec![perm()] } else { Vec::new() };
    NodeProto {
        op_type: operator.into(),
        name: output.clone(),
        input,
        output: vec![output],
        attribute,
        ..Default::default()
    }
}
