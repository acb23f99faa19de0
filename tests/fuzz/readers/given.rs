//! What a command is given beside an oracle: matrices of label noise, features of graders, latents.

use bayescope::events::silent;
use bayescope::experiment::FeatureFile;
use bayescope::flow::Precision;
use bayescope::oracle::folder as oracle_folder;
use bayescope::oracle::label_noise::LabelNoise;
use bayescope::oracle::latents::save_latents;
use bayescope::oracle::world::Settings;
use burn::tensor::Device;
use zip::CompressionMethod;

use super::data::{archive, floats, npy};
use crate::common::tiny;
use crate::forms::Form;
use crate::watch::{Reader, Whole};

/// Classes of a matrix that is used after it was read, at most.
const CLASSES: usize = 64;

#[test]
fn fuzz_label_noise() {
    let table = "# rows: classes\n0.9, 0.05,0.05\n0,1,0\n\n0.3333333,0.3333333,0.3333334\n";
    let list = "[[0.9, 0.1, 0], [0.0, 1.0, 0.0], [2.5e-1, 0.25, 0.5]]";
    Reader {
        name: "label-noise",
        wholes: vec![Whole::new("c.csv", Form::Text, table), Whole::new("c.json", Form::Text, list)],
        few: 3000,
        read: &|path| {
            let noise = LabelNoise::parse(path.to_str().unwrap())?;
            if let Some(classes) = (2..=CLASSES).find(|&classes| noise.check(classes).is_ok()) {
                let p = vec![1.0 / classes as f64; classes];
                let sum: f64 = noise.labels(&p).iter().sum();
                assert!((sum - 1.0).abs() < 1e-9, "{} is no law: {sum}", noise.describe());
                let _ = (noise.reach(classes), noise.floor(&p), noise.symmetric_rate(classes), noise.is_none());
            }
            Ok(())
        },
    }
    .run();
}

#[test]
fn fuzz_features_of_graders() {
    const POOL: &str = "train-0-tau-1";
    const LABELS: [usize; 3] = [1, 0, 1];
    let labels: Vec<u8> = LABELS.iter().flat_map(|&label| (label as i64).to_le_bytes()).collect();
    let proof = format!("{POOL}-y");
    let whole = |features: Vec<u8>, labels: Vec<u8>, method| {
        Whole::new("f.npz", Form::Zip, archive(&[(POOL, features), (proof.as_str(), labels)], method))
    };
    let doubles: Vec<u8> = [0.5f64, 1.0, 1.5, -2.0, 2.5, 3.0].iter().flat_map(|v| v.to_be_bytes()).collect();
    Reader {
        name: "features",
        wholes: vec![
            whole(
                npy("<f4", "(3, 2)", &floats(&[0.5, 1.0, 1.5, -2.0, 2.5, 3.0])),
                npy("<i8", "(3,)", &labels),
                CompressionMethod::Stored,
            ),
            whole(npy(">f8", "(3, 2)", &doubles), npy("|u1", "(3,)", &[1, 0, 1]), CompressionMethod::Deflated),
            whole(
                npy("<f2", "(3, 1)", &[0, 0x3c, 0, 0xc0, 0, 0]),
                npy("<i8", "(3,)", &labels),
                CompressionMethod::Stored,
            ),
        ],
        few: 1500,
        read: &|path| {
            // As a run does: when it is planned, and when a cell is trained on fewer images than the pool has.
            let planned = FeatureFile::all(&[path], &[POOL.to_owned()], LABELS.len())?;
            let (x, dim) = planned[0].read((POOL, LABELS.len()), &LABELS[..2])?;
            assert!(x.len() == 2 * dim && x.iter().all(|value| value.is_finite()), "{x:?}");
            Ok(())
        },
    }
    .run();
}

#[test]
fn fuzz_latents() {
    let place = tempfile::tempdir().unwrap();
    let (info, weights) = oracle_folder::read(tiny::gaussian_file(place.path()).to_str().unwrap()).unwrap();
    let world = info.build(weights, &Device::flex(), Precision::F32, 8).unwrap().world;
    let noise: Vec<f32> = (0..48).map(|i| (i % 11) as f32 / 4.0 - 1.25).collect();
    let wide: Vec<u8> = noise.iter().flat_map(|&z| f64::from(z).to_be_bytes()).collect();
    let plain = [("x", npy("<f4", "(3, 1, 4, 4)", &floats(&noise))), ("y", npy("|u1", "(3,)", &[1, 0, 1]))];
    let packed = [("x", npy(">f8", "(3, 1, 4, 4)", &wide)), ("y", npy("<i2", "(3, 1)", &[0, 0, 1, 0, 1, 0]))];
    Reader {
        name: "latents",
        wholes: vec![
            Whole::new("z.npz", Form::Zip, archive(&plain, CompressionMethod::Stored)),
            Whole::new("z.npz", Form::Zip, archive(&packed, CompressionMethod::Deflated)),
        ],
        few: 500,
        read: &|path| {
            let out = path.with_file_name("out.npz");
            save_latents(&world, path, &Settings::default_for(2), &out, &mut silent()).map(drop)
        },
    }
    .run();
}
