//! Statistics for FID as other programs store them: `mu` and `sigma` of pytorch-fid, or the running
//! sums of torchmetrics. Numbers only; `measure::fidelity::Gaussian` checks them.
//!
//! torchmetrics states are written by `torch.save`, which is a pickle and not read here. Two lines
//! make them readable: `numpy.savez(path, **{k: v.cpu().numpy() for k, v in
//! metric.metric_state.items()})`, or the same with `safetensors.torch.save_file`.

use std::path::Path;

use safetensors::tensor::{Dtype, SafeTensors};

use super::archive::Archive;
use super::npy::{Types, Values};
use super::source::{head, open_file};
use crate::error::{Error, Result};

/// Largest number of features d: Inception has 2,048. A covariance takes 8 d² bytes.
const MOST: usize = 16_384;

/// Largest safetensors file that is read, in bytes.
const LARGEST: u64 = 1 << 32;

/// Mean and covariance, or the sums that they follow from; matrices are [d, d] row by row.
#[derive(Debug, Clone, PartialEq)]
pub enum FidStatistics {
    /// Arrays `mu` [d] and `sigma` [d, d] of pytorch-fid, without the number of images.
    Moments {
        /// Mean [d].
        mean: Vec<f64>,
        /// Unbiased covariance [d, d].
        covariance: Vec<f64>,
    },
    /// torchmetrics' `real_features_sum`, `real_features_cov_sum`, `real_features_num_samples`.
    Sums {
        /// Σ x [d].
        sum: Vec<f64>,
        /// Σ xxᵀ [d, d].
        products: Vec<f64>,
        /// Images n.
        n: usize,
    },
}

/// Reads the statistics of a real data set, float32 or float64, from an npz archive or a
/// safetensors file (detected by content): `mu` and `sigma`, or torchmetrics' three arrays.
///
/// # Errors
/// Names the file, the array and the cause: another kind of file (a pickle of `torch.save` with the
/// way out), missing arrays, shapes that disagree, numbers that are not finite.
pub fn read_fid_statistics(path: &Path) -> Result<FidStatistics> {
    let start = head(path, 16)?;
    let mut file = match &start[..] {
        [b'P', b'K', ..] => File::Npz(Archive::open(path, Types::Numbers)?),
        // A safetensors file begins with the length of its header and the header's brace.
        [_, _, _, _, _, _, _, _, b'{', ..] => File::Safetensors(bytes(path)?),
        _ => {
            let cause = "byte 0: neither an npz archive (begins with PK) nor a safetensors file";
            return Err(Error::file(path, cause));
        }
    };
    let mut read = |name: &str| file.array(path, name);
    let bad = |cause: &str| Error::file(path, cause);
    let found = if let Some(mean) = read("mu")? {
        let covariance = read("sigma")?.ok_or_else(|| bad("array sigma: missing, where mu is there"))?;
        square(&mean, &covariance).map_err(|cause| bad(&format!("arrays mu and sigma: {cause}")))?;
        FidStatistics::Moments { mean: mean.values, covariance: covariance.values }
    } else {
        let (Some(sum), Some(products), Some(count)) =
            (read("real_features_sum")?, read("real_features_cov_sum")?, read("real_features_num_samples")?)
        else {
            return Err(bad(
                "holds neither mu and sigma (pytorch-fid) nor real_features_sum, real_features_cov_sum and \
                 real_features_num_samples (torchmetrics; a pickle of torch.save is not read: save the arrays with \
                 numpy.savez)",
            ));
        };
        square(&sum, &products).map_err(|cause| bad(&format!("arrays real_features_sum and _cov_sum: {cause}")))?;
        let n = match count.values[..] {
            [n] if n >= 2.0 && n.fract() == 0.0 && n < 2f64.powi(53) => n as usize,
            ref other => {
                return Err(bad(&format!("array real_features_num_samples: {other:?}, not a number of images")));
            }
        };
        FidStatistics::Sums { sum: sum.values, products: products.values, n }
    };
    Ok(found)
}

/// A whole file, up to a size that no statistics reach.
fn bytes(path: &Path) -> Result<Vec<u8>> {
    use std::io::Read;
    let mut bytes = Vec::new();
    open_file(path)?.take(LARGEST).read_to_end(&mut bytes).map_err(|e| Error::io(path, e))?;
    Ok(bytes)
}

/// Numbers of one array, in C order.
struct Numbers {
    shape: Vec<usize>,
    values: Vec<f64>,
}

/// Returns whether a vector and a matrix belong together and hold numbers only.
fn square(vector: &Numbers, matrix: &Numbers) -> Result<(), String> {
    let d = vector.values.len();
    if vector.shape.len() != 1 || d == 0 || d > MOST || matrix.shape != [d, d] {
        return Err(format!(
            "shapes {:?} and {:?}; they are [d] and [d, d] with d from 1 to {MOST}",
            vector.shape, matrix.shape
        ));
    }
    if vector.values.iter().chain(&matrix.values).any(|x| !x.is_finite()) {
        return Err("hold numbers that are not finite".into());
    }
    Ok(())
}

/// An open file of arrays.
enum File<'a> {
    Npz(Archive<'a>),
    Safetensors(Vec<u8>),
}

impl File<'_> {
    /// An array as f64, or `None` where there is none of that name.
    fn array(&mut self, path: &Path, name: &str) -> Result<Option<Numbers>> {
        let bad = |cause: String| Error::file(path, format!("array {name}: {cause}"));
        match self {
            Self::Npz(archive) => {
                let Some(array) = archive.read(name)? else { return Ok(None) };
                let kind = array.values.type_name();
                let values = if matches!(array.values, Values::U8(_)) { None } else { array.values.numbers() };
                let values = values.ok_or_else(|| bad(format!("type {kind}; float64 is expected")))?;
                Ok(Some(Numbers { shape: array.shape, values }))
            }
            Self::Safetensors(bytes) => {
                let file = SafeTensors::deserialize(bytes)
                    .map_err(|e| bad(format!("not a safetensors file, or cut short: {e}")))?;
                let Ok(view) = file.tensor(name) else { return Ok(None) };
                let data = view.data();
                let values = match view.dtype() {
                    Dtype::F64 => numbers(data, f64::from_le_bytes),
                    Dtype::F32 => numbers(data, |b| f64::from(f32::from_le_bytes(b))),
                    Dtype::I64 => numbers(data, |b| i64::from_le_bytes(b) as f64),
                    Dtype::I32 => numbers(data, |b| f64::from(i32::from_le_bytes(b))),
                    other => return Err(bad(format!("type {other:?}; float64 is expected"))),
                };
                Ok(Some(Numbers { shape: view.shape().to_vec(), values }))
            }
        }
    }
}

fn numbers<const N: usize>(data: &[u8], number: impl Fn([u8; N]) -> f64) -> Vec<f64> {
    data.as_chunks::<N>().0.iter().map(|&b| number(b)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use safetensors::tensor::TensorView;
    use std::io::Write;

    /// An npz as NumPy writes it: arrays of float64 with their shapes.
    fn npz(path: &Path, arrays: &[(&str, &str, Vec<u8>)]) {
        let mut zip = zip::ZipWriter::new(std::fs::File::create(path).unwrap());
        for (name, header, bytes) in arrays {
            zip.start_file(format!("{name}.npy"), zip::write::SimpleFileOptions::default()).unwrap();
            let text = format!("{{{header}, }}\n");
            zip.write_all(b"\x93NUMPY\x01\x00").unwrap();
            zip.write_all(&(text.len() as u16).to_le_bytes()).unwrap();
            zip.write_all(text.as_bytes()).unwrap();
            zip.write_all(bytes).unwrap();
        }
        zip.finish().unwrap();
    }

    fn header(descr: &str, shape: &str) -> String {
        format!("'descr': '{descr}', 'fortran_order': False, 'shape': ({shape})")
    }

    fn wide(values: &[f64]) -> Vec<u8> {
        values.iter().flat_map(|v| v.to_le_bytes()).collect()
    }

    fn sums() -> FidStatistics {
        FidStatistics::Sums { sum: vec![1.0, 2.0], products: vec![4.0, 1.0, 1.0, 9.0], n: 7 }
    }

    #[test]
    fn both_layouts_are_read_from_npz() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("stats.npz");
        let (vector, matrix, narrow) = (header("<f8", "2,"), header("<f8", "2, 2"), header("<f4", "2,"));
        let mu = [0.5f32, -1.0].iter().flat_map(|v| v.to_le_bytes()).collect();
        npz(&path, &[("mu", &narrow, mu), ("sigma", &matrix, wide(&[1.0, 0.5, 0.5, 2.0]))]);
        let expected = FidStatistics::Moments { mean: vec![0.5, -1.0], covariance: vec![1.0, 0.5, 0.5, 2.0] };
        assert_eq!(read_fid_statistics(&path).unwrap(), expected);
        let count = (header("<i8", ""), 7i64.to_le_bytes().to_vec());
        let three = [
            ("real_features_sum", &vector[..], wide(&[1.0, 2.0])),
            ("real_features_cov_sum", &matrix[..], wide(&[4.0, 1.0, 1.0, 9.0])),
            ("real_features_num_samples", &count.0[..], count.1),
        ];
        npz(&path, &three);
        assert_eq!(read_fid_statistics(&path).unwrap(), sums());
        npz(&path, &three[..2]);
        assert!(read_fid_statistics(&path).unwrap_err().to_string().contains("numpy.savez"));
    }

    #[test]
    fn sums_are_read_from_safetensors() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("stats.safetensors");
        let (sum, products, n) = (wide(&[1.0, 2.0]), wide(&[4.0, 1.0, 1.0, 9.0]), 7i64.to_le_bytes());
        let views = [
            ("real_features_sum", TensorView::new(Dtype::F64, vec![2], &sum).unwrap()),
            ("real_features_cov_sum", TensorView::new(Dtype::F64, vec![2, 2], &products).unwrap()),
            ("real_features_num_samples", TensorView::new(Dtype::I64, vec![], &n).unwrap()),
        ];
        std::fs::File::create(&path).unwrap().write_all(&safetensors::serialize(views, None).unwrap()).unwrap();
        assert_eq!(read_fid_statistics(&path).unwrap(), sums());
    }

    #[test]
    fn what_is_no_statistics_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("stats.npz");
        let (vector, matrix) = (header("<f8", "2,"), header("<f8", "2, 2"));
        let cause = |arrays: &[(&str, &str, Vec<u8>)]| {
            npz(&path, arrays);
            read_fid_statistics(&path).unwrap_err().to_string()
        };
        let mu = || ("mu", &vector[..], wide(&[1.0, 2.0]));
        assert!(cause(&[mu()]).contains("sigma: missing"));
        assert!(cause(&[mu(), ("sigma", &vector, wide(&[1.0, 2.0]))]).contains("[d, d]"));
        assert!(cause(&[mu(), ("sigma", &matrix, wide(&[1.0, f64::NAN, 0.0, 1.0]))]).contains("not finite"));
        assert!(cause(&[mu(), ("sigma", &matrix, wide(&[1.0]))]).contains("array sigma"));
        std::fs::File::create(&path).unwrap().write_all(b"\x80\x02pickle of torch").unwrap();
        assert!(read_fid_statistics(&path).unwrap_err().to_string().contains("neither"));
        assert!(read_fid_statistics(&folder.path().join("none.npz")).is_err());
    }
}
