//! Every repair and every refusal.

use std::io::Write;
use std::path::PathBuf;

use zip::{ZipWriter, write::SimpleFileOptions};

use super::*;
use crate::judge::tests::toy;
use crate::units::Seed;

/// Three images of three classes: cat, dog, horse.
fn world() -> Truth {
    let mut truth = toy(3, 3, 1.0, Seed(1));
    truth.class_names = ["cat", "dog", "horse"].map(str::to_owned).to_vec();
    truth.origin.weights_sha256 = Some("aa".into());
    truth.origin.dataset_sha256 = "bb".into();
    truth
}

struct Files(tempfile::TempDir);

impl Files {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn file(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.0.path().join(name);
        crate::data::write_atomically(&path, |f| f.write_all(bytes)).unwrap();
        path
    }

    fn csv(&self, text: &str) -> Result<Predictions> {
        Predictions::read(&self.file("m.csv", text.as_bytes()), &world(), &ReadOptions::default())
    }

    fn csv_of_kind(&self, text: &str, kind: Kind) -> Result<Predictions> {
        let options = ReadOptions { kind: Some(kind), name: None };
        Predictions::read(&self.file("m.csv", text.as_bytes()), &world(), &options)
    }

    fn npz(&self, arrays: &[(&str, Vec<u8>)]) -> Result<Predictions> {
        let mut zip = ZipWriter::new(std::io::Cursor::new(Vec::new()));
        for (name, bytes) in arrays {
            zip.start_file(format!("{name}.npy"), SimpleFileOptions::default()).unwrap();
            zip.write_all(bytes).unwrap();
        }
        let bytes = zip.finish().unwrap().into_inner();
        Predictions::read(&self.file("m.npz", &bytes), &world(), &ReadOptions::default())
    }
}

fn npy(descr: &str, shape: &str, data: &[u8]) -> Vec<u8> {
    let header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}\n");
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.as_bytes());
    bytes.extend(data);
    bytes
}

fn floats(shape: &str, values: &[f64]) -> Vec<u8> {
    npy("<f8", shape, &values.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<_>>())
}

fn ints(values: &[i64]) -> Vec<u8> {
    npy("<i8", &format!("({},)", values.len()), &values.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<_>>())
}

const LOGITS: [f64; 9] = [1.0, 2.0, 0.0, -1.0, 0.5, 3.0, 4.0, 0.0, 0.0];

fn refused<T: std::fmt::Debug>(found: Result<T>, file: &str, cause: &str) {
    let error = found.unwrap_err().to_string();
    assert!(error.contains(file) && error.contains(cause), "{cause}: {error}");
}

#[test]
fn a_table_that_is_larger_than_its_images_need_is_not_read() {
    let files = Files::new();
    let larger = |name: &str, head: &[u8], bytes: u64| {
        let path = files.file(name, head);
        // Of holes.
        std::fs::OpenOptions::new().append(true).open(&path).unwrap().set_len(bytes).unwrap();
        refused(Predictions::read(&path, &world(), &ReadOptions::default()), name, "is larger than");
    };
    larger("m.csv", b"", 1 << 40);
    let head = npy("<f8", "(150000000, 3)", b"");
    larger("m.npy", &head, head.len() as u64 + 8 * 3 * 150_000_000);
}

#[test]
fn kinds_are_seen() {
    let files = Files::new();
    let kind = |text: &str| files.csv(text).unwrap().kind;
    assert_eq!(kind("0.2,0.3,0.5\n1,0,0\n0.1,0.1,0.8\n"), Kind::Probabilities);
    assert_eq!(kind("cat,dog,horse\n1,2,0\n-1,0.5,3\n4,0,0\n"), Kind::Logits);
    let log = "-1.6094379124341003,-1.2039728043259361,-0.6931471805599453\n".repeat(3);
    assert_eq!(kind(&log), Kind::LogProbabilities);
    // A line of 0, 1, … is a header; as fractions only above one line an image.
    assert_eq!(kind("0,1,2\n1,2,0\n-1,0.5,3\n4,0,0\n"), Kind::Logits);
    refused(files.csv("0,1,2\n-1,0.5,3\n4,0,0\n"), "m.csv", "2 rows for 3 images of toy: the first line (0, 1, 2)");
    let commented = files.csv("# 0,1,2\n0,1,2\n-1,0.5,3\n4,0,0\n").unwrap().log_q;
    assert_eq!(files.csv("0.0,1.0,2.0\n-1,0.5,3\n4,0,0\n").unwrap().log_q, commented);
    assert_eq!(files.csv("0,1,2\n0,1,2\n-1,0.5,3\n4,0,0\n").unwrap().log_q, commented);
    let told = files.csv_of_kind("0.2,0.3,0.5\n0.2,0.3,0.5\n0.1,0.1,0.8\n", Kind::Logits).unwrap();
    assert_eq!(told.notes[1], Note::Taken { kind: Kind::Logits, called: None, told: true });
    let z: f64 = [0.2f64, 0.3, 0.5].map(f64::exp).iter().sum();
    assert!((told.log_q[0] - (0.2 - z.ln())).abs() < 1e-15);
}

/// As `np.savetxt` writes them, and tables whose columns are lined up.
#[test]
fn columns_may_be_separated_by_spaces() {
    let files = Files::new();
    let by_commas = files.csv("0.2,0.3,0.5\n1,0,0\n0.1,0.1,0.8\n").unwrap();
    for text in [
        "2e-1 3e-1 5e-1\n1 0 0\n0.1 0.1 0.8\n",
        "  0.2  0.3 0.5 \r\n  1    0   0\r\n\r\n  0.1  0.1 0.8\r\n",
        "cat dog horse\n0.2 0.3 0.5\n1 0 0\n0.1 0.1 0.8\n",
        "# a comment, of many words\n# horse dog cat\n0.5 0.3 0.2\n0 0 1\n0.8 0.1 0.1\n",
    ] {
        let read = files.csv(text).unwrap();
        assert!(read.kind == Kind::Probabilities && read.log_q == by_commas.log_q, "{text}");
    }
    // Spaces beside another separator are none, and what spaces do not separate says what would.
    assert_eq!(files.csv("0.2, 0.3, 0.5\n1, 0, 0\n0.1, 0.1, 0.8\n").unwrap().log_q, by_commas.log_q);
    refused(
        files.csv("0.2 0.3 0.5\n1 0\n0.1 0.1 0.8\n"),
        "m.csv",
        "columns are separated by commas, semicolons or tabs",
    );
    refused(
        files.csv("0.2|0.3|0.5\n1|0|0\n0.1|0.1|0.8\n"),
        "m.csv",
        "columns are separated by commas, semicolons or tabs",
    );
}

#[test]
fn probabilities_are_normalised_and_zeros_raised_and_both_said() {
    let files = Files::new();
    let read = files.csv("0.2,0.3,0.5004\n1,0,0\n0.1,0.1,0.8\n").unwrap();
    assert!(
        matches!(read.notes[2], Note::Normalised { largest } if (largest - 4e-4).abs() < 1e-12),
        "{:?}",
        read.notes
    );
    assert_eq!(read.notes[3], Note::Clamped { zeros: 2, images: 1 });
    assert_eq!(read.clamped, [4, 5]);
    assert_eq!(read.log_q[4], f64::from(f32::MIN_POSITIVE).ln());
    assert!((read.log_q[0] - (0.2f64 / 1.0004).ln()).abs() < 1e-15);
    // What an infinite loss would be is said with the verdict, once the posteriors are known.
    let report = crate::judge::judge(&world(), &[read], Seed(1), &mut silent()).unwrap();
    let note = report.models[0].notes.last().unwrap();
    assert!(matches!(note, Note::Infinite { images: 1, clamped_part } if *clamped_part > 1.0), "{note}");
    assert!(note.to_string().contains("infinite"));
    // −∞ among logits is a zero too.
    let logits = files.csv("1,2,-inf\n0,0,5\n4,0,0\n").unwrap();
    assert_eq!(logits.clamped, [2]);
}

#[test]
fn rows_follow_their_ids() {
    let files = Files::new();
    let by_order = files.csv("cat,dog,horse\n1,2,0\n-1,0.5,3\n4,0,0\n").unwrap();
    let sorted = [
        "id,cat,dog,horse\n2,4,0,0\n0,1,2,0\ntest/1,-1,0.5,3\n",
        "filename,cat,dog,horse\nhorse/000002.png,4,0,0\ncat/000000.png,1,2,0\ncat/000001.png,-1,0.5,3\n",
        ",dog,cat,horse\n2,0,4,0\n0,2,1,0\n1,0.5,-1,3\n",
        "2;4;0;0\n0;1;2;0\n1;-1;0.5;3\n",
        "index\tlogit_0\tlogit_2\tlogit_1\n2\t4\t0\t0\n0\t1\t0\t2\n1\t-1\t3\t0.5\n9\t1\t1\t1\n",
    ];
    for text in sorted {
        let read = files.csv(text).unwrap();
        assert_eq!(read.log_q, by_order.log_q, "{text}");
        assert!(read.notes.contains(&Note::RowsSorted { moved: 3 }), "{text}: {:?}", read.notes);
    }
    let npz = files.npz(&[("logits", floats("(3, 3)", &LOGITS)), ("id", ints(&[0, 1, 2]))]).unwrap();
    assert_eq!(npz.log_q, by_order.log_q);
    assert!(!npz.notes.iter().any(|note| matches!(note, Note::RowsSorted { .. })));
}

#[test]
fn ids_that_do_not_fit_are_refused() {
    let files = Files::new();
    let refuse = |rows: &str, cause: &str| refused(files.csv(&format!("id,cat,dog,horse\n{rows}")), "m.csv", cause);
    refuse("0,1,2,0\n2,1,2,0\n", "1 of 3 images have no row: test/000001");
    refuse("7,1,2,0\n8,1,2,0\n9,1,2,0\n", "3 of 3 images have no row: test/000000, test/000001, test/000002");
    refuse("0,1,2,0\n1,1,2,0\n1,1,2,0\n2,1,2,0\n", "rows 1 and 2 have the same id 1");
    refuse("0,1,2,0\nfrog,1,2,0\n2,1,2,0\n", "row 1: id \"frog\" does not end in the number");
    refuse("0,1,2,0\ntrain/1,1,2,0\n2,1,2,0\n", "train images");
    refused(files.csv("1,2,0\n3,2,1\n"), "m.csv", "2 rows for 3 images of toy; without ids");
    let short = files.npz(&[("logits", floats("(3, 3)", &LOGITS)), ("id", ints(&[0, 1]))]);
    refused(short, "m.npz", "2 ids for 3 rows");
}

#[test]
fn numbers_that_are_no_predictions_are_refused() {
    let files = Files::new();
    let refuse = |text: &str, cause: &str| refused(files.csv(text), "m.csv", cause);
    refuse("1,2,0\n3,nan,1\n1,1,1\n", "row 1: class 1 is NaN; 1 rows hold NaN");
    refuse("id,cat,dog,horse\n1,2,0,1\n0,3,inf,1\n2,1,1,1\n", "row 1 (id 0): class 1 is inf");
    refuse("0.1,0.2,0.7\n0.2,0.3,0.5\n0.3,0.3,0.3\n", "row 2: adds up to 0.9");
    refuse("0.9,0.2,0.7\n0.2,0.9,0.5\n0.3,0.3,0.3\n", "neither probabilities nor, it seems, logits");
    for (first, sum) in [("90,2,8", 100), ("90,2,7", 99)] {
        refuse(&format!("{first}\n20,30,50\n10,0,90\n"), &format!("row 0: adds up to {sum}: per cent?"));
    }
    refuse("0.1,0.2,0.7\n0.2,,0.5\n0.3,0.3,0.4\n", "row 1: column 1 of 0 to 2: \"\" is no number");
    refuse("cat,dog,horse\n0.2,,0.5\n", "row 0: column dog: \"\" is no number");
    for head in ["", "cat,dog,horse,\n"] {
        refuse(&format!("{head}0.1,0.2,0.7,\n0.2,0.3,0.5,\n0,0,1,\n"), "each line ends with an empty column");
    }
    for head in ["", "cat;dog;horse\n"] {
        refuse(&format!("{head}0,1;0,2;0,7\n0;0,5;0,5\n0;0;1\n"), "numbers must have a decimal point");
    }
    for (head, cause) in [("", "6 classes; this world has 3"), ("cat,dog,horse\n", "row 0: 6 fields")] {
        let told = files.csv(&format!("{head}0,1,0,2,0,7\n0,0,-1,5e-1,0,5\n0,0,0,0,1,0\n")).unwrap_err().to_string();
        assert!(told.contains(cause) && told.contains("numbers must have a decimal point"), "{told}");
    }
    refuse("0,0,1,0,2,0,7\n1,0,0,0,5,0,5\n", "numbers must have a decimal point");
    // Numbers for each of six classes.
    let six = files.csv("0.5,1,0,2,0,7\n").unwrap_err().to_string();
    assert!(six.contains("6 classes") && !six.contains("decimal"), "{six}");
    refuse("0.1,0.2,0.7\n0.2,0.5\n0.3,0.3,0.4\n", "row 1: 2 fields, the first line has 3");
    refuse("", "is empty");
    refuse("-inf,-inf,-inf\n1,2,3\n1,2,3\n", "row 0: every class is −∞");
    // Finite, and infinite as a loss.
    refuse("1,2,0\n1,1e307,0\n1,1,1\n", "row 1: class 0 has log q = -1.0e307 nats, farther from the others");
    refuse("1,2,0\n1,1.7e308,-1.7e308\n1,1,1\n", "row 1: class 0 has log q = -1.7e308");
    assert!(files.csv("1,2,0\n3e38,-3e38,0\n1,1,1\n").is_ok());
    refuse("prob_0,prob_1,prob_2\n-0.1,0.4,0.7\n0.2,0.3,0.5\n0.3,0.3,0.4\n", "row 0: probabilities called prob");
    let told = files.csv_of_kind("-0.1,0.4,0.7\n0.2,0.3,0.5\n0.3,0.3,0.4\n", Kind::Probabilities);
    refused(told, "m.csv", "row 0: class 0 has the negative probability -0.1");
    let told = files.csv_of_kind("1,2,0\n1,2,0\n1,2,0\n", Kind::Probabilities);
    refused(told, "m.csv", "add up to 3.000000, not to 1; if these are logits");
    let told = files.csv_of_kind("1,2,0\n1,2,0\n1,2,0\n", Kind::LogProbabilities);
    refused(told, "m.csv", "not to 1; if these are logits");
    let named = files.npz(&[("probs", floats("(3, 3)", &LOGITS))]);
    refused(named, "m.npz", "row 0: probabilities called probs, but the row adds up to 3.000000");
}

/// Whoever was told to call probabilities logits got the figures of another classifier.
#[test]
fn numbers_between_0_and_1_are_never_said_to_be_logits() {
    let files = Files::new();
    let digits = "write them with more digits or divide each row by its sum";
    let (rounded, head) = ("0.33,0.33,0.33\n0.2,0.3,0.5\n0.3,0.3,0.4\n", "prob_0,prob_1,prob_2\n");
    let (sigmoid, one) = ("0.9,0.2,0.7\n0.2,0.9,0.5\n0.3,0.3,0.1\n", "0.1,0.2,0.7\n0.2,0.3,0.5\n0.3,0.3,0.3\n");
    for (table, advice) in
        [(rounded, digits), (sigmoid, "as by a sigmoid"), (one, "what the model gives for this image")]
    {
        let by_name = files.csv(&format!("{head}{table}"));
        for found in [files.csv(table), by_name, files.csv_of_kind(table, Kind::Probabilities)] {
            let told = found.unwrap_err().to_string();
            assert!(told.contains(advice) && !told.contains("--kind"), "{table}: {told}");
        }
    }
}

#[test]
fn columns_that_are_not_the_classes_are_refused() {
    let files = Files::new();
    let row = "1,2,0\n";
    let refuse = |head: &str, cause: &str| refused(files.csv(&format!("{head}\n{}", row.repeat(3))), "m.csv", cause);
    refuse("cat,dog,frog", "no column for horse; not known: frog");
    refuse("a,b,c", "no column for cat, dog, horse; not known: a, b, c");
    for head in ["p1,p2,p3", "1,2,3", "3,1,2"] {
        refuse(head, "count classes from 1");
    }
    refused(files.csv("p0,p1\n1,2\n"), "m.csv", "columns of 2 classes; this world has 3 (cat, dog, horse)");
    refused(files.csv("p0,p1,p2,p3\n1,2,3,4\n"), "m.csv", "4 classes; this world has 3");
    refused(files.csv("0.5,0.5\n1,0\n0,1\n"), "m.csv", "2 classes; this world has 3");
    refused(files.csv("a,b,c,d,e\n1,2,3,4,5\n"), "m.csv", "5 columns (a, b, c, d, e) are not 3 classes");
    refused(files.npz(&[("logits", floats("(3, 2)", &[0.0; 6]))]), "m.npz", "2 classes; this world has 3");
    refused(files.npz(&[("logits", floats("(3, 4)", &[0.0; 12]))]), "m.npz", "transposed?");
    refused(files.npz(&[("predictions", ints(&[0, 1, 2]))]), "m.npz", "these are decisions");
    refused(files.npz(&[("x", floats("(3, 3)", &LOGITS))]), "m.npz", "no predictions among the arrays x");
}

#[test]
fn a_classifier_of_the_classes_that_occur_is_told_to_give_the_others_nothing() {
    let (files, mut truth) = (Files::new(), world());
    truth.posterior = [0.4, 0.6, 0.0].repeat(3);
    let advice = "give those that never occur probability 0, or minus infinity as logits";
    for table in ["0.5,0.5\n", "p0,p1\n0.5,0.5\n", "cat,dog\n0.5,0.5\n"] {
        let path = files.file("m.csv", table.as_bytes());
        refused(Predictions::read(&path, &truth, &ReadOptions::default()), "m.csv", advice);
        let said = files.csv(table).unwrap_err().to_string();
        assert!(!said.contains(advice), "{said}");
    }
}

#[test]
fn numbers_name_columns_too() {
    let files = Files::new();
    let logits = || ("logits", floats("(3, 3)", &LOGITS));
    let plain = files.npz(&[logits()]).unwrap();
    let turned = files.npz(&[logits(), ("classes", ints(&[2, 0, 1]))]).unwrap();
    assert_eq!(turned.log_q[..3], [plain.log_q[1], plain.log_q[2], plain.log_q[0]]);
    assert_eq!(turned.notes[0], Note::ColumnsSorted { moved: 3 });
    assert_eq!(files.npz(&[logits(), ("classes", floats("(3,)", &[2.0, 0.0, 1.0]))]).unwrap().log_q, turned.log_q);
    let none = files.npz(&[logits(), ("classes", floats("(3,)", &[2.5, 0.0, 1.0]))]).unwrap();
    assert_eq!(none.notes[0], Note::ColumnsIgnored { names: vec!["classes".into()] });
    refused(
        files.npz(&[logits(), ("classes", ints(&[1, 2, 3]))]),
        "m.npz",
        "array classes: columns count classes from 1",
    );
    // A class for each image is no name of a column.
    assert_eq!(files.npz(&[logits(), ("classes", ints(&[2, 0, 1, 1]))]).unwrap().log_q, plain.log_q);
    let table = "1,2,0\n-1,0.5,3\n4,0,0\n";
    // One line more than images: it names the columns. Else it is an image.
    assert_eq!(files.csv(&format!("2,0,1\n{table}")).unwrap().log_q, turned.log_q);
    assert_eq!(files.csv(table).unwrap().log_q, plain.log_q);
    // As np.savetxt writes a header.
    for head in ["# 2,0,1\n", "# made by a script\n\n# horse,cat,dog\n", "#horse, cat, dog\n", "# p2,p0,p1\n"] {
        let read = files.csv(&format!("{head}{table}")).unwrap();
        assert_eq!((&read.log_q, &read.notes[0]), (&turned.log_q, &turned.notes[0]), "{head}");
    }
    for head in ["# 0,1\n", "# cat,dog,frog\n", "# 2,0,1\n# made by a script\n", "# horse,cat,dog,more\n"] {
        assert_eq!(files.csv(&format!("{head}{table}")).unwrap().log_q, plain.log_q, "{head}");
    }
    let with_ids = "2,4,0,0\n0,1,2,0\n1,-1,0.5,3\n";
    for (head, table) in [("id,horse,cat,dog", with_ids), ("logit_horse,logit_cat,logit_dog", table)] {
        let [commented, said] = ["# ", ""].map(|sign| files.csv(&format!("{sign}{head}\n{table}")).unwrap());
        assert_eq!((&commented.log_q, &commented.notes), (&said.log_q, &said.notes), "{head}");
        assert_eq!(commented.log_q, turned.log_q, "{head}");
    }
}

#[test]
fn a_table_without_a_header_is_in_the_order_of_the_classes_whatever_they_are_called() {
    let (files, mut truth) = (Files::new(), world());
    truth.class_names = ["1", "0", "2"].map(str::to_owned).to_vec();
    let read = |name: &str, bytes: &[u8]| {
        let found = Predictions::read(&files.file(name, bytes), &truth, &ReadOptions::default());
        found.unwrap().log_q
    };
    let array = read("m.npy", &floats("(3, 3)", &LOGITS));
    assert_eq!(read("m.csv", b"1,2,0\n-1,0.5,3\n4,0,0\n"), array);
    assert_eq!(read("ids.csv", b"0,1,2,0\n1,-1,0.5,3\n2,4,0,0\n"), array);
}

#[test]
fn an_array_that_is_larger_than_its_images_need_is_not_unpacked() {
    let files = Files::new();
    let logits = || ("logits", floats("(3, 3)", &LOGITS));
    let large = |shape: &str| files.npz(&[("logits", floats(shape, &[]))]);
    refused(
        large("(100000000, 3)"),
        "m.npz",
        "array logits: type <f8 of shape [100000000, 3] is larger than 3 images of 3",
    );
    let ids = npy("<U1000000", "(100,)", b"");
    refused(files.npz(&[logits(), ("id", ids)]), "m.npz", "array id: type <U1000000 of shape [100] is larger than");
}

#[test]
fn arrays_name_their_columns_and_their_world() {
    let files = Files::new();
    let text = |word: &str| npy(&format!("|S{}", word.len()), "()", word.as_bytes());
    let logits = || ("logits", floats("(3, 3)", &LOGITS));
    let plain = files.npz(&[logits()]).unwrap();
    let named = files.npz(&[logits(), ("class_names", npy("|S5", "(3,)", b"dog\0\0cat\0\0horse"))]).unwrap();
    assert_eq!(named.log_q[0], plain.log_q[1]);
    assert_eq!(named.notes[0], Note::ColumnsSorted { moved: 2 });
    let both = [("weights_sha256", text("AA")), ("dataset_sha256", text("bb")), logits()];
    assert_eq!(files.npz(&both).unwrap().log_q, plain.log_q);
    refused(files.npz(&[logits(), ("weights_sha256", text("cc"))]), "m.npz", "another world: weights_sha256 is cc");
    refused(files.npz(&[logits(), ("dataset_sha256", text("cc"))]), "m.npz", "another dataset");
    let two = files.npz(&[logits(), ("probs", floats("(3, 3)", &[1.0 / 3.0; 9]))]).unwrap();
    assert_eq!(two.notes[0], Note::ColumnsIgnored { names: vec!["probs".into()] });
    let more = [logits(), ("y", ints(&[0, 1, 2])), ("id", ints(&[0, 1, 2])), ("labels", ints(&[0, 1, 2]))];
    assert_eq!(files.npz(&more).unwrap().notes[0], Note::ColumnsIgnored { names: vec!["labels".into(), "y".into()] });
    assert_eq!(files.npz(&[("arr_0", floats("(3, 3)", &LOGITS))]).unwrap().log_q, plain.log_q);
    let computed = Predictions::of_logits("net", &LOGITS, &world()).unwrap();
    assert_eq!(computed.log_q, plain.log_q);
    refused(Predictions::of_logits("net", &[f64::NAN; 9], &world()), "net", "image test/000000: class 0 is NaN");
    assert!(Predictions::of_logits("net", &LOGITS[..6], &world()).is_err());
}

#[test]
fn damaged_files_are_refused_wherever_they_end() {
    let folder = std::path::Path::new("tests/reference/judge");
    let (files, truth) = (Files::new(), crate::judge::tests::truth());
    for name in ["list.parquet", "columns.parquet", "half.npz", "probs.npy"] {
        let whole = std::fs::read(folder.join(name)).unwrap();
        for cut in (0..whole.len()).step_by(97) {
            let path = files.file(name, &whole[..cut]);
            assert!(Predictions::read(&path, &truth, &ReadOptions::default()).is_err(), "{name} at {cut}");
        }
    }
    let other = files.file("m.pkl", b"x");
    refused(Predictions::read(&other, &truth, &ReadOptions::default()), "m.pkl", "are read from .npz");
}
