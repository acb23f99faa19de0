//! `parquet/train.parquet`: pictures with labels and posteriors as Hugging Face's `datasets` reads
//! them: an image is a group of PNG bytes and a path, and the features stand as JSON in the footer.

use std::io;
use std::sync::Arc;

use parquet::basic::Compression;
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, FloatType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;

use super::pictures::{encode, picture};
use super::pieces::SplitImages;
use super::rounded::name_of;
use super::{ExportEvent, Format, Stage};
use crate::data::{Levels, read_array, write_whole};
use crate::error::{Error, Result};
use crate::events::{Events, Progress};
use crate::parallel;

/// Folder of the files: `datasets` tells the kind of a folder by what is in it.
const FOLDER: &str = "parquet";

/// The columns, those of pictures that lose the truth under names of their own.
fn schema(costly: bool) -> String {
    let [posterior, aleatoric] = ["posterior", "aleatoric"].map(|column| name_of(column, costly));
    format!(
        "message schema {{
    optional group image {{ optional binary bytes; optional binary path (UTF8); }}
    optional int64 label;
    optional int64 id;
    optional group {posterior} (LIST) {{ repeated group list {{ optional float element; }} }}
    optional double {aleatoric};
    optional double drift;
}}"
    )
}

/// The features, as `datasets` writes them into the footer. Pillow reduces 16-bit RGB to 8 bits:
/// for such pictures the reader is told to return their bytes.
fn features(class_names: &[String], decode: bool, costly: bool) -> String {
    let value = |dtype: &str| serde_json::json!({ "dtype": dtype, "_type": "Value" });
    let image = if decode {
        serde_json::json!({ "_type": "Image" })
    } else {
        serde_json::json!({ "decode": false, "_type": "Image" })
    };
    let features = serde_json::json!({ "info": { "features": {
        "image": image,
        "label": { "names": class_names, "_type": "ClassLabel" },
        "id": value("int64"),
        name_of("posterior", costly): { "feature": value("float32"), "_type": "List" },
        name_of("aleatoric", costly): value("float64"),
        "drift": value("float64"),
    } } });
    features.to_string()
}

/// Rows of a piece.
struct Rows {
    png: Vec<ByteArray>,
    names: Vec<ByteArray>,
    labels: Vec<i64>,
    ids: Vec<i64>,
    /// [N, K].
    posterior: Vec<f32>,
    aleatoric: Vec<f64>,
    drift: Vec<f64>,
    classes: usize,
}

/// Writes `parquet/SPLIT.parquet`, a row group a piece; returns its name.
pub(super) fn write(
    pieces: &SplitImages<'_>,
    levels: Levels,
    costly: bool,
    events: &mut dyn Events<ExportEvent>,
) -> Result<Vec<String>> {
    let name = format!("{FOLDER}/{}.parquet", pieces.split);
    let path = pieces.work.folder.join(&name);
    if path.is_file() {
        return Ok(vec![name]);
    }
    let folder = pieces.work.folder.join(FOLDER);
    std::fs::create_dir_all(&folder).map_err(|e| Error::io(&folder, e))?;
    let schema = parse_message_type(&schema(costly)).map_err(|e| Error::file(&path, e.to_string()))?;
    let world = pieces.work.world;
    let decode = levels.bits == 8 || world.shape().channels == 1;
    let features = KeyValue::new("huggingface".to_owned(), features(world.class_names(), decode, costly));
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_created_by(format!("bayescope {}", env!("CARGO_PKG_VERSION")))
        .set_key_value_metadata(Some(vec![features]))
        .build();
    let total = pieces.images();
    let refused = |e: ParquetError| Error::io(&path, io::Error::other(e));
    write_whole(&path, |out| {
        let mut file = SerializedFileWriter::new(out, Arc::new(schema), Arc::new(properties)).map_err(refused)?;
        for range in pieces.ranges() {
            let progress = Progress { done: range.start, total };
            let event = ExportEvent { stage: Stage::Writing(pieces.split, Format::Parquet), progress };
            events.report(event)?;
            let rows = Rows::of(pieces, &range, levels)?;
            file.next_row_group().and_then(|group| rows.write(group)).map_err(refused)?;
        }
        file.finish().map(drop).map_err(refused)
    })?;
    Ok(vec![name])
}

impl Rows {
    fn of(pieces: &SplitImages<'_>, range: &std::ops::Range<usize>, levels: Levels) -> Result<Self> {
        let (shape, rounded) = (pieces.work.world.shape(), pieces.rounded(range, levels.bits));
        let x = pieces.x(range)?;
        let dims = shape.dims();
        let png = parallel::try_map(x.len() / dims, |i| {
            let pixels: Vec<u16> = x[i * dims..(i + 1) * dims].iter().map(|&x| levels.level(x)).collect();
            encode(shape, levels.bits, &pixels).map(ByteArray::from)
        })?;
        Ok(Self {
            png,
            names: range.clone().map(|id| ByteArray::from(picture(id).into_bytes())).collect(),
            labels: pieces.labels(range)?.into_iter().map(|label| label as i64).collect(),
            ids: range.clone().map(|id| id as i64).collect(),
            posterior: read_array(&rounded, "posterior")?.into_iter().map(|p| p as f32).collect(),
            aleatoric: read_array(&rounded, "aleatoric")?,
            drift: read_array(&rounded, "drift")?,
            classes: pieces.classes(),
        })
    }

    fn write<W: io::Write + Send>(&self, mut group: SerializedRowGroupWriter<'_, W>) -> Result<(), ParquetError> {
        let n = self.ids.len();
        // Levels count the optional and repeated steps down to a value: every value is there.
        let there = |level: i16, count: usize| vec![level; count];
        column::<ByteArrayType, W>(&mut group, &self.png, &there(2, n), None)?;
        column::<ByteArrayType, W>(&mut group, &self.names, &there(2, n), None)?;
        column::<Int64Type, W>(&mut group, &self.labels, &there(1, n), None)?;
        column::<Int64Type, W>(&mut group, &self.ids, &there(1, n), None)?;
        let first_of_row = |i: usize| i16::from(!i.is_multiple_of(self.classes));
        let repeated: Vec<i16> = (0..self.posterior.len()).map(first_of_row).collect();
        column::<FloatType, W>(&mut group, &self.posterior, &there(3, self.posterior.len()), Some(&repeated))?;
        column::<DoubleType, W>(&mut group, &self.aleatoric, &there(1, n), None)?;
        column::<DoubleType, W>(&mut group, &self.drift, &there(1, n), None)?;
        group.close().map(drop)
    }
}

/// The next column of a row group.
fn column<T: DataType, W: io::Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    values: &[T::T],
    definition: &[i16],
    repetition: Option<&[i16]>,
) -> Result<(), ParquetError> {
    let mut column =
        group.next_column()?.ok_or_else(|| ParquetError::General("the schema has no such column".into()))?;
    column.typed::<T>().write_batch(values, Some(definition), repetition)?;
    column.close()
}
