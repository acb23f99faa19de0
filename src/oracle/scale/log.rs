//! What one shard has computed: an append-only file of blocks, each synced before the next is
//! begun.
//!
//! ```text
//! file   = magic, job id (64 hexadecimal digits), entry*
//! entry  = head [7 × u64], payload, checksum (16 bytes: the first of SHA-256 of head and payload)
//! head   = kind, bytes of the payload, then of a block: first image, images, first class, classes, maps M
//! block  = Σ_d (z_d − μ_d)²/σ_d² [images, classes] and log |det| − ½ Σ log(2πσ_d²) [images, M], f64
//! ```
//!
//! All numbers are little-endian. M is 1 where all classes share one map. A file whose end does not
//! add up (a killed process, a full disk) is read up to its last whole entry.
//!
//! No [`Store`](crate::data::Store) with a file a piece: a block is what a device computes within
//! seconds, so that 1.3 million images would be hundreds of thousands of files, and which images
//! and classes are a block changes from start to start.

use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::io::{BufReader, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::data::{lock_file, open_regular};
use crate::error::{Error, Result};
use crate::flow::Scores;
use crate::units::ClassId;

const MAGIC: &[u8; 8] = b"BSCOPE\x01\n";
const HEAD: usize = 7;
const CHECKSUM: usize = 16;
/// Kinds of entries: statistics, and the name of a device that computed from here on.
const BLOCK: u64 = 1;
const DEVICE: u64 = 2;
/// No entry is larger: what a damaged head announces is not believed.
const LARGEST: u64 = 1 << 34;

/// What every block of a shard must agree with.
#[derive(Debug, Clone)]
pub struct Frame {
    /// The job.
    pub id: String,
    /// The shard's images.
    pub images: Range<usize>,
    /// Number of classes K.
    pub classes: usize,
    /// Images of one pass.
    pub images_per_pass: usize,
    /// 1 or K.
    pub maps: usize,
}

/// Where the statistics of some images under some classes lie.
#[derive(Debug, Clone)]
struct Block {
    images: Range<usize>,
    classes: Range<ClassId>,
    at: u64,
}

/// The file of one shard.
#[derive(Debug)]
pub struct Log {
    path: PathBuf,
    file: File,
    /// Held while this process appends.
    _lock: Option<File>,
    frame: Frame,
    /// The blocks of every pass, as indices into `blocks`.
    passes: Vec<Vec<usize>>,
    blocks: Vec<Block>,
    devices: Vec<String>,
    end: u64,
}

impl Log {
    /// Opens the file to go on with it, alone: a second process is refused until this one ends.
    /// Returns how many bytes of a torn end were dropped.
    ///
    /// # Errors
    /// Names the file and the cause.
    pub fn append(path: &Path, frame: Frame) -> Result<(Self, u64)> {
        let io = |e| Error::io(path, e);
        let create = |path: &Path| OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path);
        let busy = "another process is working on this shard: wait for it, or stop it";
        let lock = lock_file(&path.with_extension("lock"), busy)?;
        let file = create(path).map_err(io)?;
        let length = file.metadata().map_err(io)?.len();
        let mut log = Self { _lock: Some(lock), ..Self::of(path, file, frame) };
        let started = (MAGIC.len() + log.frame.id.len()) as u64;
        if length < started {
            log.file.set_len(0).and_then(|()| log.start()).map_err(io)?;
            return Ok((log, length));
        }
        log.scan()?;
        let dropped = length - log.end;
        if dropped > 0 {
            log.file.set_len(log.end).and_then(|()| log.file.sync_all()).map_err(io)?;
        }
        Ok((log, dropped))
    }

    /// Reads the file of a shard that others may be working on; empty where there is none.
    ///
    /// # Errors
    /// Names the file and the cause.
    pub fn read(path: &Path, frame: Frame) -> Result<Option<Self>> {
        let file = match open_regular(path) {
            Ok(file) => file,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(Error::io(path, e)),
        };
        let mut log = Self::of(path, file, frame);
        if log.file.metadata().map_err(|e| Error::io(path, e))?.len() < (MAGIC.len() + log.frame.id.len()) as u64 {
            return Ok(None);
        }
        log.scan()?;
        Ok(Some(log))
    }

    fn of(path: &Path, file: File, frame: Frame) -> Self {
        let passes = vec![Vec::new(); frame.images.len().div_ceil(frame.images_per_pass)];
        let path = path.to_owned();
        Self { path, file, _lock: None, frame, passes, blocks: Vec::new(), devices: Vec::new(), end: 0 }
    }

    fn start(&mut self) -> std::io::Result<()> {
        let head = [&MAGIC[..], self.frame.id.as_bytes()].concat();
        self.file.seek(SeekFrom::Start(0))?;
        self.file.write_all(&head)?;
        self.file.sync_all()?;
        self.end = head.len() as u64;
        Ok(())
    }

    /// Reads entry after entry until one does not add up.
    fn scan(&mut self) -> Result<()> {
        let io = |e| Error::io(&self.path, e);
        let mut reader = BufReader::new(self.file.try_clone().map_err(io)?);
        reader.seek(SeekFrom::Start(0)).map_err(io)?;
        let mut start = vec![0u8; MAGIC.len() + self.frame.id.len()];
        reader.read_exact(&mut start).map_err(io)?;
        if start != [&MAGIC[..], self.frame.id.as_bytes()].concat() {
            return Err(Error::file(
                &self.path,
                "is not of the job described in job.json beside it: remove it, or give --out another folder",
            ));
        }
        self.end = start.len() as u64;
        while let Some((head, payload)) = next_entry(&mut reader) {
            let at = self.end + (HEAD * 8) as u64;
            let size = payload.len() as u64;
            if head[0] == DEVICE {
                self.devices.push(String::from_utf8_lossy(&payload).into_owned());
            } else if let Some(block) = self.block(&head, at) {
                self.keep(block);
            } else {
                break;
            }
            self.end = at + size + CHECKSUM as u64;
        }
        Ok(())
    }

    /// The block a head announces, if it belongs into this shard.
    fn block(&self, head: &[u64; HEAD], at: u64) -> Option<Block> {
        let [kind, size, first, images, class, classes, maps] = *head;
        let number = |value: u64| usize::try_from(value).ok();
        let images = number(first)?..number(first.checked_add(images)?)?;
        let classes = number(class)?..number(class.checked_add(classes)?)?;
        let columns = if self.frame.maps == 1 { 1 } else { classes.len() };
        let fits = kind == BLOCK
            && images.start >= self.frame.images.start
            && images.end <= self.frame.images.end
            && classes.end <= self.frame.classes
            && number(maps)? == columns
            && number(size)? == images.len() * (classes.len() + columns) * 8;
        fits.then_some(Block { images, classes, at })
    }

    fn keep(&mut self, block: Block) {
        for pass in self.passes_of(&block.images) {
            self.passes[pass].push(self.blocks.len());
        }
        self.blocks.push(block);
    }

    /// Passes that a range of this shard's images touches.
    fn passes_of(&self, images: &Range<usize>) -> Range<usize> {
        let (first, each) = (self.frame.images.start, self.frame.images_per_pass);
        (images.start - first) / each..(images.end - first).div_ceil(each)
    }

    /// Passes of this shard.
    pub fn passes(&self) -> usize {
        self.passes.len()
    }

    /// The images of some passes.
    pub fn images_of(&self, passes: Range<usize>) -> Range<usize> {
        let (first, each) = (self.frame.images.start, self.frame.images_per_pass);
        first + passes.start * each..self.frame.images.end.min(first + passes.end * each)
    }

    /// Classes under which a pass has not been computed, in order.
    pub fn gaps(&self, pass: usize) -> Vec<Range<ClassId>> {
        let mut known: Vec<&Range<ClassId>> = self.passes[pass].iter().map(|&b| &self.blocks[b].classes).collect();
        known.sort_by_key(|range| range.start);
        let (mut gaps, mut next) = (Vec::new(), 0);
        for range in known {
            if range.start > next {
                gaps.push(next..range.start);
            }
            next = next.max(range.end);
        }
        if next < self.frame.classes {
            gaps.push(next..self.frame.classes);
        }
        gaps
    }

    /// Pairs of a pass and a class still to be computed.
    pub fn missing(&self) -> usize {
        (0..self.passes()).map(|pass| self.gaps(pass).iter().map(Range::len).sum::<usize>()).sum()
    }

    /// Devices that computed this shard, each once.
    pub fn devices(&self) -> BTreeSet<String> {
        self.devices.iter().cloned().collect()
    }

    /// Writes down what computes from here on.
    ///
    /// # Errors
    /// The system's.
    pub fn note_device(&mut self, device: &str) -> Result<()> {
        if self.devices.last().is_some_and(|last| last == device) {
            return Ok(());
        }
        self.devices.push(device.to_owned());
        self.write([DEVICE, device.len() as u64, 0, 0, 0, 0, 0], device.as_bytes()).map(drop)
    }

    /// Appends the statistics of whole passes of images, `first` being the first of them, under
    /// `classes`; durable when this returns.
    ///
    /// # Errors
    /// The system's. What a full disk took of the entry then lies behind the end of the whole ones: readers leave it out, and
    /// the next entry or the next [`Log::append`] takes its place.
    pub fn push(&mut self, first: usize, classes: Range<ClassId>, scores: &Scores) -> Result<()> {
        let (images, maps) = (scores.len(), scores.log_norm.len());
        let numbers = scores.quad.iter().copied().chain(constants(scores));
        let payload: Vec<u8> = numbers.flat_map(f64::to_le_bytes).collect();
        let head = [first, images, classes.start, classes.len(), maps].map(|n| n as u64);
        let [first_image, n, class, k, m] = head;
        let at = self.write([BLOCK, payload.len() as u64, first_image, n, class, k, m], &payload)?;
        self.keep(Block { images: first..first + images, classes, at });
        Ok(())
    }

    /// Appends an entry and returns where its payload lies.
    fn write(&mut self, head: [u64; HEAD], payload: &[u8]) -> Result<u64> {
        let head: Vec<u8> = head.into_iter().flat_map(u64::to_le_bytes).collect();
        let entry = [&head, payload, &checksum(&head, payload)[..]].concat();
        self.file
            .seek(SeekFrom::Start(self.end))
            .and_then(|_| self.file.write_all(&entry))
            .and_then(|()| self.file.sync_data())
            .map_err(|e| Error::io(&self.path, e))?;
        let at = self.end + head.len() as u64;
        self.end += entry.len() as u64;
        Ok(at)
    }

    /// Copies what is known of `images` into `sheet`, whose rows are images from `first` on under
    /// every class.
    ///
    /// # Errors
    /// The system's.
    pub fn fill(&self, images: &Range<usize>, first: usize, sheet: &mut Scores) -> Result<()> {
        let images = images.start.max(self.frame.images.start)..images.end.min(self.frame.images.end);
        if images.is_empty() {
            return Ok(());
        }
        let mut blocks: Vec<usize> =
            self.passes_of(&images).flat_map(|pass| self.passes[pass].iter().copied()).collect();
        blocks.sort_unstable();
        blocks.dedup();
        for block in blocks.into_iter().map(|block| &self.blocks[block]) {
            let wanted = images.start.max(block.images.start)..images.end.min(block.images.end);
            let (skip, n) = (wanted.start - block.images.start, wanted.len());
            let (k, m) = (block.classes.len(), if self.frame.maps == 1 { 1 } else { block.classes.len() });
            let quad = self.numbers(block.at + (skip * k * 8) as u64, n * k)?;
            let constants = block.at + (block.images.len() * k * 8) as u64;
            let constant = self.numbers(constants + (skip * m * 8) as u64, n * m)?;
            put(sheet, wanted.start - first, &block.classes, &quad, &constant);
        }
        Ok(())
    }

    fn numbers(&self, at: u64, n: usize) -> Result<Vec<f64>> {
        let mut bytes = vec![0u8; n * 8];
        let mut file = &self.file;
        file.seek(SeekFrom::Start(at))
            .and_then(|_| file.read_exact(&mut bytes))
            .map_err(|e| Error::io(&self.path, e))?;
        Ok(bytes.as_chunks::<8>().0.iter().map(|&b| f64::from_le_bytes(b)).collect())
    }
}

/// Statistics of images of which nothing is known yet: every distance is infinite.
pub fn blank(images: usize, classes: usize, maps: usize, dims: usize) -> Scores {
    Scores {
        classes,
        dims,
        quad: vec![f64::INFINITY; images * classes],
        log_det: vec![0.0; images * maps],
        log_norm: vec![0.0; maps],
    }
}

/// log |det| − ½ Σ log(2πσ_d²) of every image under every map, [N, M].
pub fn constants(scores: &Scores) -> Vec<f64> {
    let rows = scores.log_det.chunks(scores.log_norm.len());
    rows.flat_map(|row| row.iter().zip(&scores.log_norm).map(|(log_det, norm)| log_det - norm)).collect()
}

/// Enters the statistics of some classes, from row `row` on, into a sheet of all.
pub fn put(sheet: &mut Scores, row: usize, classes: &Range<ClassId>, quad: &[f64], constant: &[f64]) {
    let (all, maps) = (sheet.classes, sheet.log_norm.len());
    place(&mut sheet.quad, all, row, classes.start, quad, classes.len());
    let (column, width) = if maps == 1 { (0, 1) } else { (classes.start, classes.len()) };
    place(&mut sheet.log_det, maps, row, column, constant, width);
}

/// Copies rows of `width` numbers into a matrix of `columns` columns, from `row` and `column` on.
fn place(matrix: &mut [f64], columns: usize, row: usize, column: usize, values: &[f64], width: usize) {
    for (i, values) in values.chunks(width.max(1)).enumerate() {
        let at = (row + i) * columns + column;
        matrix[at..at + width].copy_from_slice(values);
    }
}

fn checksum(head: &[u8], payload: &[u8]) -> [u8; CHECKSUM] {
    let digest = Sha256::new().chain_update(head).chain_update(payload).finalize();
    let mut short = [0; CHECKSUM];
    short.copy_from_slice(&digest[..CHECKSUM]);
    short
}

/// The next whole entry; none at the end, or where the rest is not one.
fn next_entry(reader: &mut impl Read) -> Option<([u64; HEAD], Vec<u8>)> {
    let mut bytes = [0u8; HEAD * 8];
    reader.read_exact(&mut bytes).ok()?;
    let mut head = [0u64; HEAD];
    head.iter_mut().zip(bytes.as_chunks::<8>().0).for_each(|(word, &bytes)| *word = u64::from_le_bytes(bytes));
    if head[1] > LARGEST {
        return None;
    }
    let mut payload = Vec::new();
    reader.by_ref().take(head[1]).read_to_end(&mut payload).ok()?;
    let mut sum = [0u8; CHECKSUM];
    reader.read_exact(&mut sum).ok()?;
    (payload.len() as u64 == head[1] && sum == checksum(&bytes, &payload)).then_some((head, payload))
}
