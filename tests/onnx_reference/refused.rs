//! What cannot be run is refused with its reason: no file may bring the program down or be run on a guess.

use std::path::Path;

use bayescope::classifier::onnx::{Layout, Normalisation, OnnxClassifier, OnnxOptions, Scores, describe};
use bayescope::data::ImageShape;
use bayescope::events::silent;
use tract_onnx::pb::TensorProto;
use tract_onnx::pb::tensor_proto::DataType;

use crate::graph::{array, int, ints, mirror, model, node, save, say, sizes, value};
use crate::{as_is, fixture, images, open};

const RGB: ImageShape = ImageShape { channels: 3, height: 12, width: 12 };

fn cause(file: &Path, images: Option<ImageShape>, classes: usize, options: &OnnxOptions) -> String {
    match OnnxClassifier::open(file, images, classes, options) {
        Ok(_) => panic!("{} opens", file.display()),
        Err(error) => error.to_string(),
    }
}

fn says(cause: &str, words: &[&str]) {
    for word in words {
        assert!(cause.contains(word), "no '{word}' in: {cause}");
    }
}

#[test]
fn misfits_of_images_and_classes_are_named() {
    let colour = fixture("convnet_legacy13");
    let grey = ImageShape { channels: 1, ..RGB };
    let large = ImageShape { height: 16, width: 16, ..RGB };
    says(&cause(&colour, Some(RGB), 10, &as_is()), &["convnet_legacy13.onnx", "5 classes", "10"]);
    says(&cause(&colour, Some(grey), 5, &as_is()), &["3 channels", "grey", "--repeat-channels"]);
    says(&cause(&fixture("vit_legacy17"), Some(RGB), 3, &as_is()), &["1 channel(s)", "3"]);
    says(&cause(&colour, Some(large), 5, &as_is()), &["3×12×12", "3×16×16", "--resize"]);
    says(&cause(&fixture("convnet_open18"), None, 5, &as_is()), &["height, width", "say the shape"]);
    says(
        &cause(&colour, Some(RGB), 5, &OnnxOptions::default()),
        &["how images enter", "imagenet", "bayescope.normalisation"],
    );
    let bytes = fixture("bytes_nhwc17");
    says(&cause(&bytes, Some(RGB), 5, &as_is()), &["reads bytes", "as-is"]);
    let figures = |range| OnnxOptions { input: Some(Normalisation::ImageNet), range, ..OnnxOptions::default() };
    says(&cause(&colour, Some(RGB), 5, &figures(None)), &["'imagenet' needs the range", "dataset.json"]);
    let grey_figures = figures(Some([0.0, 1.0]));
    says(&cause(&fixture("vit_legacy17"), None, 3, &grey_figures), &["3 means", "1 channel"]);
    assert!(OnnxClassifier::open(&colour, Some(RGB), 5, &OnnxOptions { batch: 0, ..as_is() }).is_err());
    let network = open("convnet_legacy13", RGB, 5, &as_is());
    says(&network.scores(&[0.0; 100], &mut silent()).unwrap_err().to_string(), &["100", "3×12×12"]);
}

#[test]
fn an_output_is_chosen_by_name_where_there_are_several() {
    let file = fixture("two_outputs17");
    let named = |name: &str| OnnxOptions { output: Some(name.into()), ..as_is() };
    says(&cause(&file, Some(RGB), 5, &as_is()), &["'features', 'logits'", "--output"]);
    says(&cause(&file, Some(RGB), 5, &named("scores")), &["'features', 'logits'", "'scores' is none"]);
    says(&cause(&file, Some(RGB), 5, &named("features")), &["12 classes", "5"]);
    assert!(OnnxClassifier::open(&file, Some(RGB), 12, &named("features")).is_ok());
}

#[test]
fn classes_scored_one_by_one_are_no_distribution() {
    let file = fixture("sigmoid17");
    says(&cause(&file, Some(RGB), 5, &as_is()), &["Sigmoid", "no distribution", "--kind logits"]);
    assert!(
        OnnxClassifier::open(&file, Some(RGB), 5, &OnnxOptions { scores: Some(Scores::Logits), ..as_is() }).is_ok()
    );
    // Nodes that reshape do not hide it, nor a softmax that is over some of the classes.
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("reshaped.onnx");
    let refused = |nodes, words: &[&str]| {
        let arrays = vec![sizes("halves", &[-1, 2, 216])];
        save(&model(value("image", DataType::Float, &[-1, 3, 12, 12]), nodes, &["scores"], arrays), &file);
        says(&cause(&file, Some(RGB), 432, &as_is()), words);
    };
    let flat = || node("Flatten", &["p"], "scores", vec![]);
    refused(vec![node("Sigmoid", &["image"], "p", vec![]), flat()], &["Sigmoid", "no distribution"]);
    let halves = node("Reshape", &["image", "halves"], "two", vec![]);
    let over = node("Softmax", &["two"], "p", vec![int("axis", 2)]);
    refused(vec![halves, over, flat()], &["node 'p/Softmax'", "not over its 432 classes", "add up to 2.000"]);
}

#[test]
fn every_missing_operator_is_named_with_its_nodes() {
    let shape = Some(ImageShape { channels: 1, height: 12, width: 12 });
    says(&cause(&fixture("vit_dynamo23"), shape, 3, &as_is()), &["opset 23", "Attention", "opset_version"]);
    let described = describe(&fixture("vit_dynamo23")).unwrap();
    assert_eq!(described.unsupported.len(), 1);
    assert_eq!(described.unsupported[0].nodes.len(), 2);

    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("exotic.onnx");
    let mut foreign = node("Warp", &["b"], "c", vec![]);
    foreign.domain = "my.company".into();
    let nodes = vec![
        node("Frobnicate", &["image"], "a", vec![]),
        node("Frobnicate", &["a"], "b", vec![]),
        foreign,
        // Known, but not with this attribute.
        node("BatchNormalization", &["c", "w", "w", "w", "w"], "d", vec![int("spatial", 0)]),
        node("Flatten", &["d"], "scores", vec![]),
        node("Elsewhere", &["image"], "other", vec![]),
    ];
    let weights = vec![array("w", &[3], &[1.0; 3])];
    save(&model(value("image", DataType::Float, &[-1, 3, 12, 12]), nodes, &["scores", "other"], weights), &file);
    let options = OnnxOptions { output: Some("scores".into()), ..as_is() };
    let said = cause(&file, Some(RGB), 5, &options);
    says(
        &said,
        &[
            "opset 17",
            "Frobnicate ('a/Frobnicate', 'b/Frobnicate')",
            "my.company::Warp",
            "BatchNormalization",
            "spatial",
        ],
    );
    // What the chosen output does not need does not matter.
    assert!(!said.contains("Elsewhere"), "{said}");
    assert!(describe(&file).unwrap().to_string().contains("Elsewhere"));
}

#[test]
fn what_is_no_classifier_of_images_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("other.onnx");
    let refused_by = |made, options: &OnnxOptions, words: &[&str]| {
        save(&made, &file);
        says(&cause(&file, Some(RGB), 5, options), words);
    };
    let refused = |made, words: &[&str]| refused_by(made, &as_is(), words);
    refused(mirror(DataType::Float, &[-1, 432]), &["'image' [open1, 432] FLOAT", "no classifier of images"]);
    refused(mirror(DataType::Int64, &[-1, 3, 12, 12]), &["INT64", "UINT8"]);
    refused(mirror(DataType::Float, &[-1, 12, 12, 12]), &["[open1, 12, 12, 12]", "1 or 3"]);
    save(&mirror(DataType::Float, &[1, 3, 1 << 40, 1 << 40]), &file);
    says(&cause(&file, None, 5, &as_is()), &["3×1099511627776×1099511627776", "268435456 numbers"]);
    let empty = ImageShape { height: 0, ..RGB };
    says(&cause(&fixture("convnet_open18"), Some(empty), 5, &as_is()), &["3×0×12"]);
    let mut two = mirror(DataType::Float, &[-1, 3, 12, 12]);
    let graph = two.graph.as_mut().unwrap();
    graph.input.push(value("mask", DataType::Float, &[-1, 432]));
    graph.node.push(node("Add", &["numbers", "mask"], "sum", vec![]));
    graph.node.push(node("Flatten", &["sum"], "masked", vec![]));
    graph.output = vec![value("masked", DataType::Float, &[-1, -2])];
    refused(two, &["2 inputs", "'mask'"]);
    let mut map = mirror(DataType::Float, &[-1, 3, 12, 12]);
    map.graph.as_mut().unwrap().output = vec![value("numbers", DataType::Float, &[-1, -2])];
    refused(map, &["[8, 3, 12, 12]", "[N, K]"]);
    let mut unclear = mirror(DataType::Float, &[-1, 3, 12, 12]);
    say(&mut unclear, "mean", "0.5");
    // Metadata that nobody asks for are not in the way.
    save(&unclear, &file);
    assert!(OnnxClassifier::open(&file, Some(RGB), 432, &as_is()).is_ok());
    refused_by(unclear, &OnnxOptions::default(), &["'mean' without 'std'"]);
}

#[test]
fn no_graph_reads_itself_and_no_node_asks_for_any_size() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("strange.onnx");
    let image = || value("image", DataType::Float, &[-1, 3, 12, 12]);
    let refused = |nodes, arrays, words: &[&str]| {
        save(&model(image(), nodes, &["x"], arrays), &file);
        says(&cause(&file, Some(RGB), 5, &as_is()), words);
    };
    let itself = vec![node("Identity", &["image"], "x", vec![]), node("Identity", &["x"], "x", vec![])];
    refused(itself, vec![], &["'x/Identity'", "gives 'x', which was there before it"]);
    refused(vec![node("Identity", &["x"], "x", vec![])], vec![sizes("x", &[1])], &["was there before it"]);
    for (operator, inputs, asked) in [
        ("Pad", &["image", "s"][..], &[0, 0, 0, 0, 0, 0, 0, 513][..]),
        ("Tile", &["image", "s"], &[1, 1, 256, 257]),
        ("Expand", &["image", "s"], &[1 << 20, 3, 12, 12]),
        ("ConstantOfShape", &["s"], &[1 << 20, 1 << 20]),
        ("Resize", &["image", "", "", "s"], &[1, 3, 1 << 20, 1 << 20]),
    ] {
        let words = ["strange.onnx", operator, "sizes that no network of images has"];
        refused(vec![node(operator, inputs, "x", vec![])], vec![sizes("s", asked)], &words);
    }
    let steps = vec![node("Range", &["from", "to", "step"], "x", vec![])];
    let ends = [("from", 0), ("to", 1 << 40), ("step", 1)];
    let ends = ends.map(|(name, number)| TensorProto { dims: vec![], ..sizes(name, &[number]) });
    refused(steps, ends.to_vec(), &["Range", "sizes that no network of images has"]);
    // What is computed is looked at when it is known.
    let wide = vec![node("Mul", &["a", "a"], "s", vec![]), node("Pad", &["image", "s"], "x", vec![])];
    let words = ["cannot be run here", "268435456 numbers are the most"];
    refused(wide, vec![sizes("a", &[0, 0, 0, 0, 0, 0, 512, 512])], &words);
}

#[test]
fn scores_that_depend_on_the_other_images_of_a_pass_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("coupled.onnx");
    let refused = |nodes, words: &[&str]| {
        save(&model(value("image", DataType::Float, &[-1, 3, 12, 12]), nodes, &["scores"], vec![]), &file);
        says(&cause(&file, Some(RGB), 432, &as_is()), words);
    };
    // As batch normalisation in training does.
    let centred = vec![
        node("ReduceMean", &["image"], "mean", vec![ints("axes", &[0])]),
        node("Sub", &["image", "mean"], "rest", vec![]),
        node("Flatten", &["rest"], "scores", vec![]),
    ];
    refused(centred, &["coupled.onnx", "depend on the other images of a pass", "model.eval()"]);
    for operator in ["Softmax", "LogSoftmax"] {
        let over = node(operator, &["flat"], "scores", vec![int("axis", 0)]);
        let name = format!("node 'scores/{operator}'");
        refused(vec![node("Flatten", &["image"], "flat", vec![]), over], &[operator, "over axis 0", &name]);
    }
}

#[test]
fn an_order_of_axes_is_found_or_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("open.onnx");
    let (image, sees) = (value("image", DataType::Float, &[-1, -2, -3, -4]), |n: &OnnxClassifier| n.info().sees.1);
    let open = |shape, classes, layout| {
        OnnxClassifier::open(&file, Some(shape), classes, &OnnxOptions { layout, ..as_is() }).unwrap()
    };
    save(&mirror(DataType::Float, &[-1, -2, -3, -4]), &file);
    says(&cause(&file, Some(RGB), 432, &as_is()), &["[open1, open2, open3, open4]", "[N, H, W, C] alike", "--layout"]);
    let said = open(RGB, 432, Some(Layout::Nhwc));
    assert!(sees(&said) == Layout::Nhwc && !said.info().tried);
    let grey = open(ImageShape { channels: 1, ..RGB }, 144, None);
    assert!(sees(&grey) == Layout::Nchw && !grey.info().tried);
    // The mean of each channel: twelve classes if the channels came first.
    let means = vec![node("ReduceMean", &["image"], "scores", vec![ints("axes", &[1, 2]), int("keepdims", 0)])];
    save(&model(image, means, &["scores"], vec![]), &file);
    let found = open(RGB, 3, None);
    assert!(sees(&found) == Layout::Nhwc && found.info().tried);
    says(&cause(&file, Some(RGB), 5, &as_is()), &["12 classes", "5"]);
}

#[test]
fn a_network_that_writes_all_images_into_one_row_is_given_single_ones() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("row.onnx");
    let x = images(3, RGB, true);
    for shape in [&[1, -1][..], &[-1]] {
        let image = value("image", DataType::Float, &[-1, 3, 12, 12]);
        let nodes = vec![node("Reshape", &["image", "s"], "scores", vec![])];
        save(&model(image, nodes, &["scores"], vec![sizes("s", shape)]), &file);
        let network = OnnxClassifier::open(&file, Some(RGB), 432, &as_is()).unwrap();
        assert_eq!(network.batch(), 1);
        let expected: Vec<f64> = x.iter().map(|&v| f64::from(v)).collect();
        assert_eq!(network.scores(&x, &mut silent()).unwrap(), expected);
    }
}

#[test]
fn what_other_domains_call_by_onnxs_names_is_not_run() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("foreign.onnx");
    let with = |domain: &str, operator: &str| {
        let mut foreign = node(operator, &["image"], "a", vec![]);
        foreign.domain = domain.into();
        let nodes = vec![foreign, node("Flatten", &["a"], "x", vec![])];
        save(&model(value("image", DataType::Float, &[-1, 3, 12, 12]), nodes, &["x"], vec![]), &file);
        OnnxClassifier::open(&file, Some(RGB), 432, &as_is()).map(drop)
    };
    with("", "Relu").unwrap();
    with("com.microsoft", "QuickGelu").unwrap();
    says(&with("com.microsoft", "Relu").unwrap_err().to_string(), &["com.microsoft::Relu ('a/Relu')"]);
    says(&with("my.company", "QuickGelu").unwrap_err().to_string(), &["my.company::QuickGelu"]);
    let mut sparse = mirror(DataType::Float, &[-1, 3, 12, 12]);
    sparse.graph.as_mut().unwrap().sparse_initializer.push(Default::default());
    save(&sparse, &file);
    says(&cause(&file, Some(RGB), 432, &as_is()), &["sparse weights"]);
}

#[test]
fn weights_beside_the_file_are_looked_for() {
    let folder = tempfile::tempdir().unwrap();
    let (file, data) =
        (folder.path().join("convnet_external18.onnx"), folder.path().join("convnet_external18.onnx.data"));
    std::fs::copy(fixture("convnet_external18"), &file).unwrap();
    says(&cause(&file, Some(RGB), 5, &as_is()), &["'convnet_external18.onnx.data'", "into one folder"]);
    let weights = std::fs::read(fixture("convnet_external18").with_extension("onnx.data")).unwrap();
    bayescope::data::write_atomically(&data, |out| out.write_all(&weights[..weights.len() - 100])).unwrap();
    says(&cause(&file, Some(RGB), 5, &as_is()), &["cut off"]);
    bayescope::data::write_atomically(&data, |out| out.write_all(&weights)).unwrap();
    let network = OnnxClassifier::open(&file, Some(RGB), 5, &as_is()).unwrap();
    assert_eq!(network.describe().data_files.len(), 1);
    let x = images(3, RGB, false);
    let within = open("convnet_dynamo18", RGB, 5, &as_is()).scores(&x, &mut silent()).unwrap();
    assert_eq!(network.scores(&x, &mut silent()).unwrap(), within);
}

#[test]
fn damaged_files_are_refused_and_bring_nothing_down() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("damaged.onnx");
    says(&cause(&file, None, 5, &as_is()), &["damaged.onnx"]);
    says(&cause(folder.path(), None, 5, &as_is()), &["not a regular file"]);
    let write = |bytes: &[u8]| bayescope::data::write_atomically(&file, |out| out.write_all(bytes)).unwrap();
    write(b"");
    says(&cause(&file, None, 5, &as_is()), &["no ONNX file"]);
    write(b"\x89PNG\r\n\x1a\n and so on");
    says(&cause(&file, None, 5, &as_is()), &["no ONNX file"]);
    let whole = std::fs::read(fixture("convnet_legacy13")).unwrap();
    for part in 1..16 {
        write(&whole[..whole.len() * part / 16]);
        says(&cause(&file, Some(RGB), 5, &as_is()), &["damaged.onnx"]);
    }
    // One byte wrong: run it or refuse it. Weights have no checksum.
    let mut opened = 0;
    for i in 0..200 {
        let mut bytes = whole.clone();
        bytes[whole.len() * i / 200] ^= 0x55;
        write(&bytes);
        if let Ok(network) = OnnxClassifier::open(&file, Some(RGB), 5, &as_is()) {
            opened += 1;
            drop(network.log_probabilities(&images(1, RGB, false), 0, &mut silent()));
        }
    }
    println!("{opened} of 200 damaged files still run");
    assert!(opened < 200);
}

#[test]
fn a_description_tells_what_a_file_holds() {
    let text = describe(&fixture("mobile_dynamo18")).unwrap().to_string();
    says(&text, &["mobile_dynamo18.onnx", "opset 18", "pytorch", "'image' [", "3, 12, 12] FLOAT", "'scores'"]);
    let described = describe(&fixture("convnet_imagenet17")).unwrap();
    assert_eq!(described.normalisation().unwrap(), Some(Normalisation::ImageNet));
    // 3·8·9 + 8 and 8·12·9 + 12 with the normalisation folded in, and 12·5 + 5.
    assert_eq!(described.parameters, 224 + 876 + 65);
    assert!(serde_json::to_string(&described).unwrap().contains("\"opset\":17"));
    let toml = "input = 'mean=0.5;std=0.25'\nbatch = 4\nscores = 'probabilities'";
    let options: OnnxOptions = toml::from_str(toml).unwrap();
    assert_eq!(toml::from_str::<OnnxOptions>(&toml::to_string(&options).unwrap()).unwrap(), options);
    assert!(toml::from_str::<OnnxOptions>("batches = 4").is_err());
}
