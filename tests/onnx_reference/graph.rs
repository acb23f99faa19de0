//! Networks written by hand, as ONNX files.

use std::path::Path;

use prost::Message;
use serde_json::Value;
use tract_onnx::pb::attribute_proto::AttributeType;
use tract_onnx::pb::tensor_proto::DataType;
use tract_onnx::pb::tensor_shape_proto::{Dimension, dimension};
use tract_onnx::pb::{
    AttributeProto, GraphProto, ModelProto, NodeProto, OperatorSetIdProto, StringStringEntryProto, TensorProto,
    TensorShapeProto, TypeProto, ValueInfoProto, type_proto,
};

use crate::common::fill::Filled;

/// A value of float32 with its axes; below 0: open.
pub fn value(name: &str, dtype: DataType, axes: &[i64]) -> ValueInfoProto {
    let dimension = |&n: &i64| Dimension {
        value: Some(match n {
            0.. => dimension::Value::DimValue(n),
            _ => dimension::Value::DimParam(format!("open{}", -n)),
        }),
        ..Default::default()
    };
    let shape = Some(TensorShapeProto { dim: axes.iter().map(dimension).collect() });
    let tensor = type_proto::Tensor { elem_type: dtype as i32, shape };
    let kind = TypeProto { value: Some(type_proto::Value::TensorType(tensor)), ..Default::default() };
    ValueInfoProto { name: name.into(), r#type: Some(kind), ..Default::default() }
}

pub fn node(operator: &str, inputs: &[&str], output: &str, attribute: Vec<AttributeProto>) -> NodeProto {
    NodeProto {
        op_type: operator.into(),
        name: format!("{output}/{operator}"),
        input: inputs.iter().map(|&name| name.into()).collect(),
        output: vec![output.into()],
        attribute,
        ..Default::default()
    }
}

pub fn ints(name: &str, ints: &[i64]) -> AttributeProto {
    AttributeProto { name: name.into(), r#type: AttributeType::Ints as i32, ints: ints.to_vec(), ..Default::default() }
}

pub fn int(name: &str, i: i64) -> AttributeProto {
    AttributeProto { name: name.into(), r#type: AttributeType::Int as i32, i, ..Default::default() }
}

pub fn float(name: &str, f: f32) -> AttributeProto {
    AttributeProto { name: name.into(), r#type: AttributeType::Float as i32, f, ..Default::default() }
}

pub fn array(name: &str, shape: &[usize], values: &[f32]) -> TensorProto {
    TensorProto {
        name: name.into(),
        dims: shape.iter().map(|&n| n as i64).collect(),
        data_type: DataType::Float as i32,
        raw_data: values.iter().flat_map(|v| v.to_le_bytes()).collect(),
        ..Default::default()
    }
}

/// An array of int64, which nodes read as sizes or axes.
pub fn sizes(name: &str, values: &[i64]) -> TensorProto {
    TensorProto {
        name: name.into(),
        dims: vec![values.len() as i64],
        data_type: DataType::Int64 as i32,
        int64_data: values.to_vec(),
        ..Default::default()
    }
}

/// A file of opset 17 with one input `image` and the outputs named.
pub fn model(
    image: ValueInfoProto,
    node: Vec<NodeProto>,
    outputs: &[&str],
    initializer: Vec<TensorProto>,
) -> ModelProto {
    let graph = GraphProto {
        name: "by hand".into(),
        input: vec![image],
        output: outputs.iter().map(|&name| value(name, DataType::Float, &[-1, -2])).collect(),
        node,
        initializer,
        ..Default::default()
    };
    ModelProto {
        ir_version: 8,
        opset_import: vec![OperatorSetIdProto { version: 17, ..Default::default() }],
        producer_name: "hand".into(),
        graph: Some(graph),
        ..Default::default()
    }
}

/// A network whose scores are the numbers it reads, channel after channel for NCHW.
pub fn mirror(dtype: DataType, axes: &[i64]) -> ModelProto {
    let nodes = vec![
        node("Cast", &["image"], "numbers", vec![int("to", DataType::Double as i64)]),
        node("Flatten", &["numbers"], "scores", vec![]),
    ];
    model(value("image", dtype, axes), nodes, &["scores"], vec![])
}

pub fn say(model: &mut ModelProto, key: &str, value: &str) {
    model.metadata_props.push(StringStringEntryProto { key: key.into(), value: value.into() });
}

pub fn save(model: &ModelProto, path: &Path) {
    bayescope::data::write_atomically(path, |out| out.write_all(&model.encode_to_vec())).unwrap();
}

/// torchvision's ResNet-18 as its legacy export writes it with batch normalisation kept, filled by the formula.
pub fn resnet18(reference: &Value) -> ModelProto {
    let seed = reference["seed"].as_u64().unwrap();
    let table = reference["params"].as_array().unwrap();
    let arrays = table.iter().filter_map(|entry| Filled::parameter(entry, seed));
    let arrays = arrays.map(|filled| array(&filled.name, &filled.shape, &filled.values)).collect();
    let mut net = Net::default();
    let stem = net.convolution("conv1", "bn1", "image", 7, 2);
    let mut x = net.relu(stem, "conv1");
    x = net.add(
        "MaxPool",
        &[&x],
        "maxpool",
        vec![ints("kernel_shape", &[3, 3]), ints("strides", &[2, 2]), ints("pads", &[1; 4])],
    );
    for (layer, first_stride) in [(1, 1), (2, 2), (3, 2), (4, 2)] {
        for block in 0..2 {
            let (at, stride) = (format!("layer{layer}.{block}"), if block == 0 { first_stride } else { 1 });
            let name = |part: &str| format!("{at}.{part}");
            let short = match stride {
                1 => x.clone(),
                _ => net.convolution(&name("downsample.0"), &name("downsample.1"), &x, 1, stride),
            };
            let first = net.convolution(&name("conv1"), &name("bn1"), &x, 3, stride);
            let first = net.relu(first, &name("relu1"));
            let second = net.convolution(&name("conv2"), &name("bn2"), &first, 3, 1);
            let sum = net.add("Add", &[&second, &short], &name("sum"), vec![]);
            x = net.relu(sum, &name("out"));
        }
    }
    x = net.add("GlobalAveragePool", &[&x], "avgpool", vec![]);
    x = net.add("Flatten", &[&x], "flat", vec![int("axis", 1)]);
    net.add("Gemm", &[&x, "fc.weight", "fc.bias"], "logits", vec![int("transB", 1)]);
    model(value("image", DataType::Float, &[-1, 3, 64, 64]), net.nodes, &["logits"], arrays)
}

#[derive(Default)]
struct Net {
    nodes: Vec<NodeProto>,
}

impl Net {
    fn add(&mut self, operator: &str, inputs: &[&str], output: &str, attributes: Vec<AttributeProto>) -> String {
        self.nodes.push(node(operator, inputs, output, attributes));
        output.into()
    }

    fn relu(&mut self, x: String, at: &str) -> String {
        self.add("Relu", &[&x], &format!("{at}/relu"), vec![])
    }

    /// A convolution without bias, padded to keep its size at stride 1, and its batch normalisation.
    fn convolution(&mut self, name: &str, norm: &str, x: &str, kernel: i64, stride: i64) -> String {
        let attributes = vec![
            ints("kernel_shape", &[kernel; 2]),
            ints("strides", &[stride; 2]),
            ints("pads", &[kernel / 2; 4]),
            ints("dilations", &[1; 2]),
            int("group", 1),
        ];
        let y = self.add("Conv", &[x, &format!("{name}.weight")], &format!("{name}/out"), attributes);
        let statistics = ["weight", "bias", "running_mean", "running_var"].map(|part| format!("{norm}.{part}"));
        let [scale, bias, mean, var] = &statistics;
        self.add(
            "BatchNormalization",
            &[&y, scale, bias, mean, var],
            &format!("{norm}/out"),
            vec![float("epsilon", 1e-5)],
        )
    }
}
