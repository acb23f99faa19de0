//! Pictures of any size and kind: what is done to them, and that it is told and kept.

use std::io::Cursor;
use std::path::{Path, PathBuf};

use image::codecs::gif::GifEncoder;
use image::codecs::jpeg::JpegEncoder;
use image::{DynamicImage, Frame, ImageBuffer, Luma, Rgb, RgbImage, Rgba, RgbaImage};
use serde_json::Value;

use crate::run::{fail, json, output, succeed, text};

const CPU: [&str; 2] = ["--device", "cpu"];

/// A photograph held on its side: 400×300 as stored, upright 300×400 by its EXIF data.
fn photograph(folder: &Path) -> PathBuf {
    let image = RgbImage::from_fn(400, 300, |x, y| Rgb([(x / 2) as u8, (y / 2) as u8, 90]));
    let mut plain = Vec::new();
    JpegEncoder::new_with_quality(&mut plain, 90).encode_image(&image).unwrap();
    let tags = b"Exif\0\0II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0\0\0\0\0";
    let mut bytes = vec![0xff, 0xd8, 0xff, 0xe1];
    bytes.extend(((tags.len() + 2) as u16).to_be_bytes());
    bytes.extend(tags);
    bytes.extend(&plain[2..]);
    let path = folder.join("photograph.jpg");
    std::fs::write(&path, bytes).unwrap();
    path
}

/// Pictures of four more kinds.
fn others(folder: &Path) -> Vec<PathBuf> {
    let save = |name: &str, image: DynamicImage| {
        let path = folder.join(name);
        image.save(&path).unwrap();
        path
    };
    let ink = |x: u32, y: u32| if x.abs_diff(60) < 9 && y > 20 && y < 100 { 255 } else { 0 };
    let drawing = RgbaImage::from_fn(120, 120, |x, y| Rgba([0, 0, 0, ink(x, y)]));
    let deep = ImageBuffer::from_fn(200, 160, |x, y| Luma([(300 * x + y) as u16]));
    let mut gif = Cursor::new(Vec::new());
    let frames = [20, 230].map(|level| Frame::new(RgbaImage::from_pixel(70, 50, Rgba([level, level, level, 255]))));
    GifEncoder::new(&mut gif).encode_frames(frames).unwrap();
    let moving = folder.join("moving.gif");
    std::fs::write(&moving, gif.into_inner()).unwrap();
    let large = RgbImage::from_fn(2600, 1900, |x, _| Rgb([(x / 11) as u8, 60, 20]));
    vec![
        save("drawing.png", DynamicImage::ImageRgba8(drawing)),
        save("deep.png", DynamicImage::ImageLuma16(deep)),
        moving,
        save("large.jpg", DynamicImage::ImageRgb8(large)),
    ]
}

fn of<'a>(report: &'a Value, id: &str) -> &'a Value {
    let found = report["images"].as_array().unwrap().iter().find(|image| image["id"] == id);
    &found.unwrap_or_else(|| panic!("no {id} in {report}"))["picture"]
}

#[test]
fn pictures_of_five_kinds_go_into_every_bundled_world() {
    let folder = tempfile::tempdir().unwrap();
    let mut files = vec![photograph(folder.path())];
    files.extend(others(folder.path()));
    let names: Vec<&str> = files.iter().map(|file| text(file)).collect();
    for world in bayescope::oracle::library::names() {
        let report = json(&[&["posterior", world][..], &names, &CPU, &["--json"]].concat());
        assert_eq!(report["images"].as_array().unwrap().len(), 5);
        let photograph = of(&report, "photograph.jpg");
        assert_eq!((&photograph["turned"], &photograph["stored"][0]), (&"right".into(), &400.into()));
        assert_eq!(photograph["cropped"], serde_json::json!({ "x": 0, "y": 50, "width": 300, "height": 300 }));
        assert!(of(&report, "drawing.png")["background"].is_array(), "{report}");
        assert_eq!(of(&report, "deep.png")["bits"], 16);
        assert_eq!(of(&report, "moving.gif")["first_frame"], true);
        assert_eq!(of(&report, "large.jpg")["cropped"]["width"], 1900);
        // Never in silence.
        let told = succeed(&[&["posterior", world][..], &names, &CPU].concat());
        for words in
            ["turned a quarter to the right", "cropped to 300×300 at 0,50", "16 bits", "first frame", "bilinear"]
        {
            assert!(told.contains(words), "no {words} in\n{told}");
        }
    }
    // Dark strokes in a world of light ones: offered, and done when asked for.
    let drawing = [&["posterior", "mnist", text(&files[1])][..], &CPU].concat();
    assert!(succeed(&drawing).contains("--invert exchanges light and dark"));
    let told = succeed(&[&drawing[..], &["--invert"]].concat());
    assert!(told.contains("light and dark exchanged") && !told.contains("--invert"), "{told}");
}

#[test]
fn each_fit_is_carried_out_or_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = photograph(folder.path());
    let common = [&["posterior", "mnist", text(&file)][..], &CPU].concat();
    let with = |more: &[&str]| -> Value {
        let report = json(&[&common[..], &["--json"], more].concat());
        report["images"][0]["picture"].clone()
    };
    assert_eq!(with(&[]), with(&["--fit", "crop"]));
    assert_eq!(with(&["--fit", "pad"])["scaled"]["to"], serde_json::json!([24, 32]));
    assert_eq!(with(&["--fit", "stretch"])["scaled"]["from"], serde_json::json!([300, 400]));
    let framed = with(&["--frame", "10,150,200"]);
    assert_eq!(framed["cropped"], serde_json::json!({ "x": 10, "y": 150, "width": 200, "height": 200 }));
    let wrong = |code, more: &[&str]| fail(code, &[&common[..], more].concat());
    let none = wrong(1, &["--fit", "none"]);
    assert!(none.contains("photograph.jpg") && none.contains("crop, pad or stretch"), "{none}");
    assert!(wrong(1, &["--frame", "10,250,200"]).contains("300×400"));
    assert!(wrong(1, &["--fit", "pad", "--frame", "0,0,9"]).contains("--frame"));
    assert!(wrong(2, &["--frame", "1,2"]).contains("X,Y,WIDTH"));
    assert!(wrong(1, &[text(&file), "--frame", "0,0,9"]).contains("one picture"));
}

#[test]
fn what_is_done_to_pictures_is_refused_for_an_archive_with_a_folder_and_without() {
    let folder = tempfile::tempdir().unwrap();
    let (archive, out) = (folder.path().join("a.npz"), folder.path().join("job"));
    succeed(&[&["sample", "mnist", "--n", "2", "--out", text(&archive)][..], &CPU].concat());
    let common = [&["posterior", "mnist", text(&archive)][..], &CPU].concat();
    let forms: [&[&str]; 2] = [&[], &["--out", text(&out)]];
    for fit in [&["--invert"][..], &["--fit", "stretch"], &["--frame", "0,0,9"]] {
        for to in forms {
            let why = fail(1, &[&common[..], fit, to].concat());
            assert!(why.contains("a.npz") && why.contains("is a dataset and no picture"), "{fit:?} {to:?}: {why}");
        }
    }
}

#[test]
fn what_was_done_is_kept_beside_what_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let file = photograph(folder.path());
    let map = folder.path().join("map.png");
    let args = ["evidence", "mnist", text(&file), "--for", "3", "--against", "5", "--out", text(&map)];
    assert!(succeed(&[&args[..], &CPU].concat()).contains("cropped to 300×300"));
    let kept = std::fs::read_to_string(folder.path().join("map.png.provenance.json")).unwrap();
    assert!(kept.contains("picture photograph.jpg") && kept.contains("cropped to 300×300 at 0,50"), "{kept}");
    let job = folder.path().join("job");
    let args = ["posterior", "mnist", text(&file), "--no-compare", "--out", text(&job)];
    assert!(succeed(&[&args[..], &CPU].concat()).contains("1 cropped"));
    let kept: Value = serde_json::from_slice(&std::fs::read(job.join("job.json")).unwrap()).unwrap();
    assert!(kept["input"]["fitted"].as_str().unwrap().contains("1 turned"), "{kept}");
    // Another frame is another job.
    let other = fail(1, &[&args[..], &CPU, &["--fit", "pad"]].concat());
    assert!(other.contains("job"), "{other}");
    let walk = ["walk", "mnist", "--from", text(&file), "--to", "sample:1", "--steps", "3", "--json"];
    let report = json(&[&walk[..], &CPU].concat());
    assert_eq!(
        (&report["pictures"][0]["end"], &report["pictures"][0]["turned"]),
        (&text(&file).into(), &"right".into())
    );
}

#[test]
fn one_sample_is_written_as_itself_and_read_back_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let [one, sheet] = ["one.png", "sheet.png"].map(|name| folder.path().join(name));
    let sample = |out: &Path, more: &[&str]| {
        succeed(&[&["sample", "mnist", "--n", "1", "--seed", "4", "--out", text(out)][..], &CPU, more].concat())
    };
    sample(&one, &[]);
    sample(&sheet, &["--sheet"]);
    let [small, large] = [&one, &sheet].map(|path| image::open(path).unwrap().to_luma8());
    assert_eq!((small.dimensions(), large.dimensions()), ((32, 32), (64, 64)));
    assert!((0..32).all(|at| small.get_pixel(at, 16) == large.get_pixel(2 * at, 33)));
    let report = json(&[&["posterior", "mnist", text(&one), "--json"][..], &CPU].concat());
    let picture = &report["images"][0]["picture"];
    assert!(picture["scaled"].is_null() && picture["cropped"].is_null() && picture["colour"] == "kept", "{picture}");
    let told = succeed(&[&["evidence", "mnist", text(&one), "--for", "3", "--against", "5"][..], &CPU].concat());
    assert!(told.contains("one.png: 32×32 pixels"), "{told}");
    // The two classes that matter most, if none are named; several images have no such two.
    let classes = &report["classes"];
    let mut p: Vec<(f64, usize)> = report["images"][0]["posterior"]
        .as_array()
        .unwrap()
        .iter()
        .enumerate()
        .map(|(class, p)| (p.as_f64().unwrap(), class))
        .collect();
    p.sort_by(|a, b| b.0.total_cmp(&a.0));
    let told = succeed(&[&["evidence", "mnist", text(&one)][..], &CPU].concat());
    let leading = [0, 1].map(|place: usize| classes[p[place].1].as_str().unwrap());
    assert!(told.starts_with(&format!("log p(x|{}) - log p(x|{})", leading[0], leading[1])), "{told}");
    let why = fail(1, &[&["evidence", "mnist", text(&one), text(&sheet)][..], &CPU].concat());
    assert!(why.contains("say --for and --against"), "{why}");
    let why = fail(2, &[&["evidence", "mnist", text(&one), "--for", "3"][..], &CPU].concat());
    assert!(why.contains("--against"), "{why}");
}

/// Folders of some classes only, sorted by name, say which classes of the world these are.
#[test]
fn folders_of_classes_are_classes_of_the_world() {
    let folder = tempfile::tempdir().unwrap();
    let pictures = folder.path().join("pictures");
    for (class, seed) in [("7", "1"), ("3", "2")] {
        let sample = ["sample", "mnist", "--n", "2", "--class", class, "--seed", seed, "--force", "--tau", "0.5"];
        succeed(&[&sample[..], &CPU, &["--out", text(&pictures)]].concat());
    }
    let posterior = [&["posterior", "mnist", text(&pictures), "--json"][..], &CPU].concat();
    let report = json(&posterior);
    let labels = |report: &Value| -> Vec<Value> {
        report["images"].as_array().unwrap().iter().map(|image| image["label"].clone()).collect()
    };
    let found = labels(&report);
    assert!(found.contains(&3.into()) && found.contains(&7.into()), "{found:?}");
    assert!(found.iter().all(|label| [3, 7].map(Value::from).contains(label)), "{found:?}");
    assert!(report["summary"]["accuracy"].as_f64().unwrap() > 0.5 && report["summary"]["labelled"].is_null());
    // What the world does not know has no label, and that is said.
    std::fs::rename(pictures.join("3"), pictures.join("three")).unwrap();
    let told = output(&posterior);
    let report: Value = serde_json::from_slice(&told.stdout).unwrap();
    let found = labels(&report);
    assert!(found.contains(&7.into()) && found.contains(&Value::Null) && !found.contains(&1.into()), "{found:?}");
    let known = found.iter().filter(|label| !label.is_null()).count();
    assert_eq!(report["summary"]["labelled"], known);
    let said = String::from_utf8_lossy(&told.stderr).into_owned();
    assert_eq!(said.matches("have no label: three").count(), 1, "{said}");
}

fn sample(path: &Path, extra: &[&str]) {
    succeed(&[&["sample", "mnist", "--out", text(path)][..], &CPU, extra].concat());
}

fn posterior(path: &Path, extra: &[&str]) -> Value {
    json(&[&["posterior", "mnist", text(path), "--json"][..], &CPU, extra].concat())
}

/// Once they got a second dose of the world's noise, and 234 of 300 were called not of this world.
#[test]
fn pictures_of_samples_are_read_as_images_of_their_world() {
    let folder = tempfile::tempdir().unwrap();
    let [arrays, pictures, sheet, one] =
        ["a.npz", "pictures", "sheet.png", "one.png"].map(|name| folder.path().join(name));
    for out in [&arrays, &pictures, &sheet] {
        sample(out, &["--n", "40"]);
    }
    sample(&one, &["--n", "1", "--seed", "5"]);
    let exact = posterior(&arrays, &[]);
    let decided = |report: &Value| -> Vec<Value> {
        report["images"].as_array().unwrap().iter().map(|image| image["decision"].clone()).collect()
    };
    let differ = |report: &Value| {
        let (mine, theirs) = (decided(report), decided(&exact));
        mine.iter().zip(&theirs).filter(|(one, other)| one != other).count()
    };
    let beyond = |report: &Value| {
        ["outside", "far_outside"].map(|band| report["typicality"][band].as_u64().unwrap()).iter().sum::<u64>()
    };
    // In the order of their numbers, as the archive has them.
    let from_sheet = posterior(&sheet, &[]);
    assert_eq!((&from_sheet["dequantisation"], &from_sheet["note"]), (&"levels".into(), &Value::Null));
    assert!(differ(&from_sheet) <= 3 && beyond(&from_sheet) <= 3, "{}", from_sheet["typicality"]);
    let twice = posterior(&sheet, &["--dequantise", "seed:0"]);
    assert!(twice["dequantisation"] == "seed:0" && beyond(&twice) >= 15, "{}", twice["typicality"]);
    let from_folder = posterior(&pictures, &[]);
    assert!(from_folder["dequantisation"] == "levels" && beyond(&from_folder) <= 3, "{}", from_folder["typicality"]);
    let told = succeed(&[&["posterior", "mnist", text(&one)][..], &CPU].concat());
    assert!(told.contains("that hold the world's noise") && !told.contains("dequantised by"), "{told}");
    // Beside another picture, in another size, or in another world: said.
    let plain = folder.path().join("plain.png");
    image::open(&one).unwrap().save(&plain).unwrap();
    let mixed = json(&[&["posterior", "mnist", text(&one), text(&plain), "--json"][..], &CPU].concat());
    assert_eq!(mixed["dequantisation"], "seed:0");
    assert!(mixed["note"].as_str().unwrap().starts_with("1 of 2 pictures are of a world's own images"), "{mixed}");
    let inverted = posterior(&one, &["--invert"]);
    assert!(inverted["dequantisation"] == "seed:0" && inverted["note"].is_string(), "{inverted}");
    let elsewhere = json(&[&["posterior", "fashion", text(&one), "--json"][..], &CPU].concat());
    assert_eq!(elsewhere["dequantisation"], "levels");
    assert!(elsewhere["note"].as_str().unwrap().contains("another world (weights "), "{elsewhere}");
}

#[test]
fn numbers_that_are_no_pixels_and_worlds_without_density_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let [arrays, out] = ["a.npz", "job"].map(|name| folder.path().join(name));
    sample(&arrays, &["--n", "2"]);
    let ask = |code: i32, more: &[&str]| fail(code, &[&["posterior", "mnist", text(&arrays)][..], &CPU, more].concat());
    for job in [&[][..], &["--out", text(&out)]] {
        let why = ask(1, &[&["--dequantise", "midpoint"], job].concat());
        assert!(why.contains("--dequantise midpoint is of 8-bit pixels"), "{why}");
        let why = ask(1, &[&["--tau", "0"], job].concat());
        assert!(why.contains("--tau 0") && why.contains("no posterior"), "{why}");
    }
    assert!(!out.exists());
    let why = ask(2, &["--typicality", "100", "--out", text(&out)]);
    assert!(why.contains("--typicality"), "{why}");
    assert!(ask(2, &["--typicality", "100", "--class-batch", "3"]).contains("--class-batch"));
}
