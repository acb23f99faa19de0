//! Evidence maps and looks from the command line.

use crate::common::reference::path;
use crate::run::{fail, json, succeed, text};

#[test]
fn evidence_adds_up_and_is_drawn() {
    let folder = tempfile::tempdir().unwrap();
    let tarflow = path("tarflow/config1.pth");
    for (oracle, a, b, side) in [("mnist", "3", "8", 32), (text(&tarflow), "2", "0", 4)] {
        let x = folder.path().join(format!("x{side}.npz"));
        succeed(&["sample", oracle, "--n", "2", "--out", text(&x), "--device", "cpu"]);
        let png = folder.path().join(format!("map{side}.png"));
        let args = ["evidence", oracle, text(&x), "--for", a, "--against", b, "--device", "cpu", "--tau", "0.8"];
        let report = json(&[&args[..], &["--json", "--out", text(&png)]].concat());
        assert_eq!((report["for"].to_string(), report["against"].to_string()), (a.into(), b.into()));
        for image in report["images"].as_array().unwrap() {
            assert_eq!((image["rows"].as_u64(), image["columns"].as_u64()), (Some(side), Some(side)));
            let rows = image["cells"].as_array().unwrap();
            let cells: Vec<f64> =
                rows.iter().flat_map(|row| row.as_array().unwrap()).map(|c| c.as_f64().unwrap()).collect();
            let total = image["total"].as_f64().unwrap();
            assert_eq!(cells.len() as u64, side * side);
            assert!((cells.iter().sum::<f64>() - total).abs() <= 1e-6 * (1.0 + total.abs()));
        }
        assert_eq!(&std::fs::read(&png).unwrap()[1..4], b"PNG");
        assert!(succeed(&args).contains("strongest cell"));
        assert!(fail(1, &[&args[..3], &["--for", "elk", "--against", b, "--device", "cpu"]].concat()).contains("elk"));
        let zero = [&args[..9], &["--tau", "0"]].concat();
        assert!(fail(1, &zero).contains("τ"));
    }
}

#[test]
fn looks_write_pictures_and_no_numbers() {
    let folder = tempfile::tempdir().unwrap();
    let tarflow = path("tarflow/afhq_model_2_64_2_2_0.07.pth");
    let [npz, png, pictures] = ["x.npz", "x.png", "pictures"].map(|name| folder.path().join(name));
    let look = ["--guidance", "2", "--guide", "b", "--annealed", "--attention-temperature", "0.9", "--denoise"];
    let tarflow = text(&tarflow);
    fn words<'a>(oracle: &'a str, out: &'a std::path::Path, look: &[&'a str]) -> Vec<&'a str> {
        [&["sample", oracle, "--n", "3", "--device", "cpu", "--out", text(out)], look].concat()
    }
    let message = fail(1, &words(tarflow, &npz, &look));
    assert!(message.contains("x.npz") && message.contains("left the world"), "{message}");
    assert!(!npz.exists());
    assert!(succeed(&words(tarflow, &png, &look)).contains("illustrative"));
    let report = json(&[words(tarflow, &pictures, &look), vec!["--json"]].concat());
    assert_eq!((report["badge"].as_str(), report["guidance"]["what"].as_str()), (Some("illustrative"), Some("b")));
    assert!(fail(1, &words("mnist", &folder.path().join("y.png"), &look)).contains("TarFlow"));
    assert!(fail(2, &["sample", "mnist", "--annealed", "--out", text(&png)]).contains("--guidance"));
}

#[test]
fn what_is_written_is_what_the_name_says_and_nothing_else_is_touched() {
    let folder = tempfile::tempdir().unwrap();
    let [npz, jpg, zero] = ["x.npz", "digits.jpg", "zero.npz"].map(|name| folder.path().join(name));
    succeed(&["sample", "mnist", "--n", "2", "--out", text(&npz), "--device", "cpu"]);
    let before = std::fs::read(&npz).unwrap();
    let evidence =
        |a, out| ["evidence", "mnist", text(&npz), "--for", a, "--against", "9", "--device", "cpu", "--out", out];
    let message = fail(1, &evidence("4", text(&npz)));
    assert!(message.contains("x.npz") && message.contains(".png"), "{message}");
    assert_eq!(std::fs::read(&npz).unwrap(), before);
    assert!(fail(1, &evidence("9", "map.png")).contains("two classes"));
    let sample = |tau, out| ["sample", "mnist", "--n", "2", "--device", "cpu", "--tau", tau, "--out", out];
    let message = fail(1, &sample("1", text(&jpg)));
    assert!(message.contains("digits.jpg") && message.contains(".npz"), "{message}");
    let message = fail(1, &sample("0", text(&zero)));
    assert!(message.contains("zero.npz") && message.contains("no density"), "{message}");
    assert!(!jpg.exists() && !zero.exists());
    let said = succeed(&["posterior", "mnist", text(&npz), "--device", "cpu", "--tau", "1.25"]);
    assert!(said.contains("τ = 1.25, T = 1, class prior uniform"), "{said}");
    let problem = folder.path().join("problem.json");
    let message = fail(1, &["bayes-error", text(&problem), "--samples", "100"]);
    assert!(message.contains("--method mc"), "{message}");
    let message = fail(1, &["bayes-error", "mnist", "--samples", "100", "--device", "cpu", "--prior", "1,2"]);
    assert!(message.contains("2 entries"), "{message}");
}
