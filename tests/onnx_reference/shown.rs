//! What a network is shown: scale, order of the axes, size and channels. A network that gives back the numbers it reads tells.

use std::ops::ControlFlow;
use std::path::Path;

use bayescope::classifier::onnx::{KEY, Layout, Normalisation, OnnxClassifier, OnnxOptions};
use bayescope::data::ImageShape;
use bayescope::error::Error;
use bayescope::events::{Progress, silent};
use tract_onnx::pb::tensor_proto::DataType;
use tract_onnx::pb::{ModelProto, TensorProto};

use crate::common::max_abs;
use crate::common::reference::numbers;
use crate::graph::{array, mirror, node, save, say};
use crate::{IMAGES, as_is, images, open, scores_json, shape};

const RGB: ImageShape = ImageShape { channels: 3, height: 4, width: 5 };

fn saved(model: &ModelProto, folder: &Path) -> std::path::PathBuf {
    let file = folder.join("mirror.onnx");
    save(model, &file);
    file
}

/// What a mirror shows of images.
fn seen(model: &ModelProto, images: ImageShape, x: &[f32], options: &OnnxOptions) -> Vec<f64> {
    let folder = tempfile::tempdir().unwrap();
    let file = saved(model, folder.path());
    let described = bayescope::classifier::onnx::describe(&file).unwrap();
    let axes: Vec<usize> =
        described.inputs[0].extents.as_ref().unwrap()[1..].iter().map(|n| n.to_string().parse().unwrap()).collect();
    let network =
        OnnxClassifier::open(&file, Some(images), axes.iter().product(), options).unwrap_or_else(|e| panic!("{e}"));
    network.scores(x, &mut silent()).unwrap()
}

#[test]
fn both_orders_of_axes_and_every_format() {
    let x = images(3, RGB, true);
    let same: Vec<f64> = x.iter().map(|&v| f64::from(v)).collect();
    let (planes, dims) = (RGB.height * RGB.width, RGB.dims());
    let interleaved: Vec<f64> = (0..3 * dims).map(|i| same[i / dims * dims + i % 3 * planes + i % dims / 3]).collect();
    for (dtype, allowed) in [(DataType::Float, 0.0), (DataType::Double, 0.0), (DataType::Float16, 3e-4)] {
        assert!(max_abs(&seen(&mirror(dtype, &[-1, 3, 4, 5]), RGB, &x, &as_is()), &same) <= allowed, "{dtype:?}");
        assert!(
            max_abs(&seen(&mirror(dtype, &[-1, 4, 5, 3]), RGB, &x, &as_is()), &interleaved) <= allowed,
            "{dtype:?}"
        );
    }
    // Bytes need not be asked for, and what lies outside is cut.
    let bright: Vec<f32> = x.iter().map(|v| 1.5 * v - 0.25).collect();
    let bytes = seen(
        &mirror(DataType::Uint8, &[-1, 3, 4, 5]),
        RGB,
        &bright,
        &OnnxOptions { range: Some([0.0, 1.0]), ..OnnxOptions::default() },
    );
    let expected: Vec<f64> = bright.iter().map(|&v| (255.0 * f64::from(v)).round().clamp(0.0, 255.0)).collect();
    assert_eq!(bytes, expected);
    assert!(bytes.contains(&0.0) && bytes.contains(&255.0));
}

#[test]
fn the_files_own_scale_counts_unless_another_is_asked_for() {
    let x = images(2, RGB, false);
    let range = Some([-1.0, 1.0]);
    let mut model = mirror(DataType::Float, &[2, 3, 4, 5]);
    say(&mut model, KEY, "imagenet");
    let shown = seen(&model, RGB, &x, &OnnxOptions { range, ..OnnxOptions::default() });
    let figures = [(0.485, 0.229), (0.456, 0.224), (0.406, 0.225)];
    let expected = x.iter().enumerate().map(|(i, &v)| {
        let (mean, std) = figures[i / 20 % 3];
        ((f64::from(v) + 1.0) / 2.0 - mean) / std
    });
    assert!(max_abs(&shown, &expected.collect::<Vec<_>>()) < 1e-6);
    let asked = OnnxOptions { range, input: Some(Normalisation::ZeroToOne), ..OnnxOptions::default() };
    let expected: Vec<f64> = x.iter().map(|&v| (f64::from(v) + 1.0) / 2.0).collect();
    assert!(max_abs(&seen(&model, RGB, &x, &asked), &expected) < 1e-7);
    // The same in a file of PyTorch's.
    let shape = ImageShape { channels: 3, height: 12, width: 12 };
    let x = images(2, shape, true);
    let by_hand: Vec<f32> = x
        .iter()
        .enumerate()
        .map(|(i, &v)| {
            let (mean, std) = figures[i / 144 % 3];
            ((f64::from(v) - mean) / std) as f32
        })
        .collect();
    let unit = OnnxOptions { range: Some([0.0, 1.0]), ..OnnxOptions::default() };
    let written = open("convnet_imagenet17", shape, 5, &unit).scores(&x, &mut silent()).unwrap();
    let asked = open("convnet_imagenet17", shape, 5, &as_is()).scores(&by_hand, &mut silent()).unwrap();
    assert!(max_abs(&written, &asked) < 1e-6);
}

#[test]
fn images_are_resized_as_pytorch_does_it() {
    let json = scores_json();
    let from = shape(&json["resized"]["shape"]);
    let x = images(1, from, false);
    let options = OnnxOptions { resize: true, ..as_is() };
    for case in json["resized"]["cases"].as_array().unwrap() {
        let [height, width] = [0, 1].map(|i| case["size"][i].as_i64().unwrap());
        let golden = numbers(&case["values"]);
        for (layout, axes) in [(Layout::Nchw, [-1, 2, height, width]), (Layout::Nhwc, [-1, height, width, 2])] {
            let shown = seen(&mirror(DataType::Float, &axes), from, &x, &options);
            let pixels = golden.len() / 2;
            let golden: Vec<f64> = match layout {
                Layout::Nchw => golden.clone(),
                Layout::Nhwc => (0..golden.len()).map(|i| golden[i % 2 * pixels + i / 2]).collect(),
            };
            // PyTorch computes it in single precision.
            let apart = max_abs(&shown, &golden);
            assert!(apart < 1e-6, "{axes:?}: {apart}");
        }
    }
}

#[test]
fn grey_images_enter_colour_networks_only_when_asked_to() {
    let (grey, colour) = (ImageShape { channels: 1, ..RGB }, mirror(DataType::Float, &[-1, 3, 4, 5]));
    let x = images(2, grey, false);
    let options = OnnxOptions { repeat_channels: true, ..as_is() };
    let shown = seen(&colour, grey, &x, &options);
    let expected: Vec<f64> = x.chunks(20).flat_map(|plane| plane.repeat(3)).map(f64::from).collect();
    assert_eq!(shown, expected);
}

#[test]
fn every_size_of_batch_gives_the_same() {
    let shape = ImageShape { channels: 3, height: 12, width: 12 };
    let x = images(IMAGES, shape, false);
    let one = open("convnet_one17", shape, 5, &as_is());
    let four = open("convnet_four18", shape, 5, &as_is());
    assert_eq!((one.batch(), four.batch()), (1, 4));
    let golden = one.scores(&x, &mut silent()).unwrap();
    let mut networks = vec![four];
    for batch in [1, 2, 5, 64] {
        networks.push(open("convnet_dynamo18", shape, 5, &OnnxOptions { batch, ..as_is() }));
        assert_eq!(networks.last().unwrap().batch(), batch);
    }
    for network in &networks {
        let apart = max_abs(&network.scores(&x, &mut silent()).unwrap(), &golden);
        assert!(apart < 1e-6, "{}: {apart}", network.batch());
    }
    assert!(one.scores(&[], &mut silent()).unwrap().is_empty());
}

#[test]
fn a_graph_that_takes_single_images_gets_single_images() {
    // Open in its first axis, and with one image written into its middle, as some exporters leave it.
    let mut model = mirror(DataType::Float, &[-1, 3, 4, 5]);
    let graph = model.graph.as_mut().unwrap();
    let sides = [1i64, 60].iter().flat_map(|n| n.to_le_bytes()).collect();
    let sides =
        TensorProto { data_type: DataType::Int64 as i32, dims: vec![2], raw_data: sides, ..array("sides", &[2], &[]) };
    graph.initializer.push(sides);
    graph.node[1] = node("Reshape", &["numbers", "sides"], "scores", vec![]);
    let x = images(3, RGB, true);
    assert_eq!(seen(&model, RGB, &x, &as_is()), x.iter().map(|&v| f64::from(v)).collect::<Vec<_>>());
    let folder = tempfile::tempdir().unwrap();
    let file = saved(&model, folder.path());
    assert_eq!(OnnxClassifier::open(&file, Some(RGB), 60, &as_is()).unwrap().batch(), 1);
}

#[test]
fn open_sides_take_the_images_own() {
    for (height, width) in [(12, 12), (20, 9)] {
        let shape = ImageShape { channels: 3, height, width };
        let network = open("convnet_open18", shape, 5, &as_is());
        assert_eq!(network.info().sees, (shape, Layout::Nchw));
        assert_eq!(network.scores(&images(2, shape, false), &mut silent()).unwrap().len(), 10);
    }
}

#[test]
fn progress_is_told_and_a_stop_is_heeded() {
    let shape = ImageShape { channels: 3, height: 12, width: 12 };
    let network = open("convnet_legacy13", shape, 5, &OnnxOptions { batch: 1, ..as_is() });
    let n = 3 * rayon::current_num_threads() + 1;
    let x = images(n, shape, false);
    let mut told = Vec::new();
    let mut tell = |progress: Progress| {
        told.push(progress.done);
        ControlFlow::Continue(())
    };
    network.scores(&x, &mut tell).unwrap();
    assert!(told.is_sorted() && told.len() == 5 && told[0] == 0 && told[4] == n, "{told:?}");
    for limit in 1..4 {
        let mut heard = 0;
        let mut stop = |_: Progress| {
            heard += 1;
            if heard < limit { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        };
        assert!(matches!(network.log_probabilities(&x, 0, &mut stop), Err(Error::Cancelled)));
        assert_eq!(heard, limit);
    }
}
