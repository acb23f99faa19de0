//! The files of the tests, built byte by byte.

use std::fmt::Debug;
use std::fs;
use std::io::{Cursor, Write};
use std::path::{Path, PathBuf};

use bayescope::data::{Dataset, Input, open};
use bayescope::error::Result;
use zip::{CompressionMethod, ZipWriter, write::SimpleFileOptions};

pub fn put(folder: &Path, name: &str, bytes: &[u8]) -> PathBuf {
    let path = folder.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, bytes).unwrap();
    path
}

/// The message of a failure, which must name `names` and contain `cause`.
pub fn fails<T: Debug>(result: Result<T>, names: &Path, cause: &str) {
    let message = result.unwrap_err().to_string();
    let name = names.file_name().unwrap().to_string_lossy();
    assert!(message.contains(&*name) && message.contains(cause), "expected {name:?} and {cause:?}: {message}");
}

pub fn pixels(path: &Path) -> Dataset {
    match open(path).unwrap() {
        Input::Pixels(dataset) => dataset,
        Input::World(_) => panic!("{} is read as world space", path.display()),
    }
}

pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    out.write_all(bytes).unwrap();
    out.finish().unwrap()
}

pub fn idx(sizes: &[u32], data: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0, 0, 8, sizes.len() as u8];
    bytes.extend(sizes.iter().flat_map(|size| size.to_be_bytes()));
    bytes.extend(data);
    bytes
}

pub fn png(height: u32, width: u32, value: u8, color: image::ColorType) -> Vec<u8> {
    let image = image::DynamicImage::new(width, height, color);
    let image = image.brighten(i32::from(value));
    let mut out = Cursor::new(Vec::new());
    image.write_to(&mut out, image::ImageFormat::Png).unwrap();
    out.into_inner()
}

pub fn npy(descr: &str, shape: &str, data: &[u8]) -> Vec<u8> {
    let header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}\n");
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.as_bytes());
    bytes.extend(data);
    bytes
}

pub fn npz(arrays: &[(&str, Vec<u8>)], method: CompressionMethod) -> Vec<u8> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes) in arrays {
        let options = SimpleFileOptions::default().compression_method(method);
        zip.start_file(format!("{name}.npy"), options).unwrap();
        zip.write_all(bytes).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

pub fn floats(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_le_bytes()).collect()
}
