//! ONNX: what a file says, and the network made ready and run on noise.

use bayescope::classifier::onnx::{Normalisation, OnnxClassifier, OnnxOptions, describe};
use bayescope::data::ImageShape;

use super::reference;
use crate::forms::Form;
use crate::watch::{Reader, Whole};

fn network(name: &str) -> Whole {
    Whole::new("n.onnx", Form::Message, reference(&format!("onnx/{name}.onnx")))
}

#[test]
fn fuzz_onnx_description() {
    let outside = Whole::new("e.onnx", Form::Message, reference("onnx/convnet_external18.onnx"))
        .beside("convnet_external18.onnx.data", reference("onnx/convnet_external18.onnx.data"));
    Reader {
        name: "onnx-description",
        wholes: vec![
            network("convnet_legacy13"),
            network("convnet_open18"),
            network("two_outputs17"),
            network("mobile_legacy13"),
            outside,
        ],
        few: 1000,
        read: &|path| describe(path).map(drop),
    }
    .run();
}

/// Networks of few nodes: what is made ready and run is theirs, not the runtime's every operator.
#[test]
fn fuzz_onnx_network() {
    Reader {
        name: "onnx-network",
        wholes: vec![network("convnet_legacy13"), network("convnet_open18"), network("softmax13")],
        few: 60,
        read: &|path| {
            let shape = ImageShape { channels: 3, height: 12, width: 12 };
            let (input, range) = (Some(Normalisation::ZeroToOne), Some([0.0, 1.0]));
            let options = OnnxOptions { input, range, ..OnnxOptions::default() };
            OnnxClassifier::open(path, Some(shape), 5, &options).map(drop)
        },
    }
    .run();
}
