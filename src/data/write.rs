//! Writing whole files: a reader sees the old file or the complete new one, never a part.

use std::fs::File;
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use ::png::{ColorType, Encoder, EncodingError};
use image::{ExtendedColorType, ImageEncoder, codecs::png::PngEncoder};
use tempfile::NamedTempFile;

use super::ImageShape;
use super::temp_files::{affixes, sweep_once};
use crate::error::{Error, Result};

/// Largest side of a PNG written here, in pixels.
pub(super) const MAX_SIDE: usize = 1 << 16;

/// A file on its way to the disk, buffered.
pub(super) type Out<'a> = BufWriter<Disk<'a>>;

/// A file that keeps the system's first error, which formats wrap until a full disk looks like a
/// broken archive. After it writes succeed silently: the file is lost, and archives that finish in
/// `drop` would report it again.
pub(super) struct Disk<'a> {
    file: &'a mut File,
    refusal: Option<io::Error>,
}

impl Disk<'_> {
    fn keep<T>(&mut self, done: io::Result<T>) -> io::Result<T> {
        if let Err(e) = &done
            && e.kind() != io::ErrorKind::Interrupted
        {
            self.refusal = Some(e.raw_os_error().map_or_else(|| e.kind().into(), io::Error::from_raw_os_error));
        }
        done
    }
}

impl Write for Disk<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.refusal.is_some() {
            return Ok(bytes.len());
        }
        let done = self.file.write(bytes);
        self.keep(done)
    }

    fn flush(&mut self) -> io::Result<()> {
        let done = self.file.flush();
        self.keep(done)
    }
}

impl Seek for Disk<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let done = self.file.seek(to);
        self.keep(done)
    }
}

/// Writes a file atomically: `fill` writes a temporary file beside it, then fsync, rename over
/// `path`, and fsync of the folder. On an error `path` is unchanged and nothing is left behind.
///
/// # Errors
/// The system's error on `path`, from `fill` or from any of the steps.
pub fn write_atomically(path: &Path, fill: impl FnOnce(&mut (dyn Write + Send)) -> io::Result<()>) -> Result<()> {
    write_whole(path, |file| fill(file).map_err(|e| Error::io(path, e)))
}

/// [`write_atomically`] of `bytes` as file `name` of a folder; the file's path.
///
/// # Errors
/// As [`write_atomically`].
pub fn write_named(folder: &Path, name: &str, bytes: &[u8]) -> Result<PathBuf> {
    let path = folder.join(name);
    write_atomically(&path, |file| file.write_all(bytes))?;
    Ok(path)
}

/// What to do with an existing file of that name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum IfPresent {
    /// The new file takes its place.
    Replace,
    /// It stays, and the new one is dropped: for processes that make the same file at once. All
    /// read the same bytes, and no file disappears under a reader, an error on network file
    /// systems.
    Keep,
}

/// [`write_atomically`] of content that may fail for other reasons than the disk's.
///
/// # Errors
/// The system's first refusal on `path`, else what `fill` returns.
pub fn write_whole(path: &Path, fill: impl FnOnce(&mut (dyn Write + Send)) -> Result<()>) -> Result<()> {
    place_file(path, IfPresent::Replace, |file| fill(file))
}

/// Most symbolic links that lead from one to the next, as systems have it.
const MOST_LINKS: usize = 40;

/// Refuses to put a file in the place of a device, a pipe or a socket: it would be gone.
///
/// # Errors
/// Names it.
pub(super) fn refuse_device(path: &Path) -> Result<()> {
    match std::fs::metadata(path) {
        Ok(there) if !there.is_file() && !there.is_dir() => {
            Err(Error::file(path, "is a device, a pipe or a socket and no file: choose the name of a file"))
        }
        _ => Ok(()),
    }
}

/// Where a file of that name is written: where symbolic links lead, whether there is a file or not.
fn behind_links(path: &Path) -> Result<PathBuf> {
    let mut place = path.to_owned();
    for _ in 0..MOST_LINKS {
        if !place.is_symlink() {
            return Ok(place);
        }
        let leads = std::fs::read_link(&place).map_err(|e| Error::io(path, e))?;
        place = folder_of(&place).join(leads);
    }
    Err(Error::file(path, "is a symbolic link that leads nowhere"))
}

/// The folder that a file lies in.
fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// [`write_whole`] for formats that seek. A symbolic link stays: the file is written where it leads.
pub(super) fn place_file(path: &Path, present: IfPresent, fill: impl FnOnce(&mut Out<'_>) -> Result<()>) -> Result<()> {
    refuse_device(path)?;
    let place = behind_links(path)?;
    let path = place.as_path();
    let folder = folder_of(path);
    let refused = |e: io::Error| match e.kind() {
        io::ErrorKind::NotFound if !folder.is_dir() => Error::file(
            path,
            "cannot be written: its folder is not there, or was deleted; start again, or choose another",
        ),
        _ => Error::io(path, e),
    };
    sweep_once(folder);
    let mut temp = create_temp_file(path, folder).map_err(refused)?;
    let mut buffer = BufWriter::new(Disk { file: temp.as_file_mut(), refusal: None });
    let filled = fill(&mut buffer).and_then(|()| buffer.flush().map_err(refused));
    if let Some(refusal) = buffer.get_mut().refusal.take() {
        return Err(refused(refusal));
    }
    drop(buffer);
    filled?;
    let place = || -> io::Result<()> {
        temp.as_file().sync_all()?;
        let kept = if present == IfPresent::Keep { add(temp, path)? } else { Some(temp) };
        if let Some(temp) = kept {
            temp.persist(path).map_err(|e| e.error)?;
        }
        sync_folder(folder)
    };
    place().map_err(refused)
}

/// Renames a file unless the name is taken. Returns the file where the file system cannot do that
/// in one step: there the last of several equal files wins.
fn add(temp: NamedTempFile, path: &Path) -> io::Result<Option<NamedTempFile>> {
    match temp.persist_noclobber(path) {
        Ok(_) => Ok(None),
        Err(failed) if failed.error.kind() == io::ErrorKind::AlreadyExists => Ok(None),
        Err(failed) => Ok(Some(failed.file)),
    }
}

/// A hidden temporary file with the permissions an ordinary new file would get.
fn create_temp_file(path: &Path, folder: &Path) -> io::Result<NamedTempFile> {
    let name = path.file_name().ok_or_else(|| io::Error::other("is not the name of a file"))?;
    let (prefix, suffix) = affixes(&name.to_string_lossy());
    let mut builder = tempfile::Builder::new();
    builder.prefix(&prefix).suffix(suffix);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        // The process's umask takes away what it takes from every new file.
        builder.permissions(std::fs::Permissions::from_mode(0o666));
    }
    builder.tempfile_in(folder)
}

/// Makes the renaming itself durable, where folders can be synced.
fn sync_folder(folder: &Path) -> io::Result<()> {
    if cfg!(unix) { File::open(folder)?.sync_all() } else { Ok(()) }
}

/// Writes an 8-bit image `pixels` (CHW), grey or RGB, as PNG. Same image, same bytes.
///
/// # Errors
/// When `pixels` is not `shape` or no PNG has that shape, and the system's error on `path`.
pub fn write_png(path: &Path, shape: ImageShape, pixels: &[u8]) -> Result<()> {
    let bytes = encode_png(shape, pixels).map_err(|e| Error::input(format!("{}: {e}", path.display())))?;
    write_atomically(path, |out| out.write_all(&bytes))
}

/// Returns the PNG of an 8-bit image `pixels` (CHW), grey or RGB. Same image, same bytes.
///
/// # Errors
/// When `pixels` is not `shape` or no PNG has that shape.
pub fn encode_png(shape: ImageShape, pixels: &[u8]) -> Result<Vec<u8>> {
    encode(shape, pixels, [ExtendedColorType::L8, ExtendedColorType::Rgb8], |pixels| pixels)
}

/// [`encode_png`] with texts in it, each under its name.
///
/// # Errors
/// As [`encode_png`].
pub(super) fn encode_png_with(shape: ImageShape, pixels: &[u8], texts: &[(&str, String)]) -> Result<Vec<u8>> {
    let colour = match shape.channels {
        1 => ColorType::Grayscale,
        3 => ColorType::Rgb,
        other => return Err(Error::input(format!("a PNG has 1 or 3 channels, not {other}"))),
    };
    check_image(shape, pixels.len())?;
    let encoded = || -> std::result::Result<Vec<u8>, EncodingError> {
        let mut png = Vec::new();
        let mut encoder = Encoder::new(&mut png, shape.width as u32, shape.height as u32);
        encoder.set_color(colour);
        for (name, text) in texts {
            encoder.add_text_chunk((*name).to_owned(), text.clone())?;
        }
        let mut writer = encoder.write_header()?;
        writer.write_image_data(&interleave(shape, pixels))?;
        writer.finish()?;
        Ok(png)
    };
    encoded().map_err(|e| Error::input(format!("no PNG could be made of the image: {e}")))
}

/// [`encode_png`] of an image with 16 bits a value.
///
/// # Errors
/// As [`encode_png`].
pub fn encode_png16(shape: ImageShape, pixels: &[u16]) -> Result<Vec<u8>> {
    // The encoder takes the machine's own order of bytes.
    let bytes = |pixels: Vec<u16>| pixels.into_iter().flat_map(u16::to_ne_bytes).collect();
    encode(shape, pixels, [ExtendedColorType::L16, ExtendedColorType::Rgb16], bytes)
}

/// The bytes of a PNG of a grey or RGB image.
fn encode<T: Copy>(
    shape: ImageShape,
    pixels: &[T],
    [grey, rgb]: [ExtendedColorType; 2],
    bytes: impl Fn(Vec<T>) -> Vec<u8>,
) -> Result<Vec<u8>> {
    let color = match shape.channels {
        1 => grey,
        3 => rgb,
        other => {
            return Err(Error::input(format!("a PNG has 1 or 3 channels, not {other}")));
        }
    };
    check_image(shape, pixels.len())?;
    let mut png = Vec::new();
    PngEncoder::new(&mut png)
        .write_image(&bytes(interleave(shape, pixels)), shape.width as u32, shape.height as u32, color)
        .map_err(|e| Error::input(format!("no PNG could be made of the image: {e}")))?;
    Ok(png)
}

/// Refuses so many values as an image of a shape where they are none, or none that a PNG has.
fn check_image(shape: ImageShape, values: usize) -> Result<()> {
    let sides = 1..=MAX_SIDE;
    if sides.contains(&shape.width) && sides.contains(&shape.height) && values == shape.dims() {
        return Ok(());
    }
    let cause = format!("{values} values are no image of shape {shape} (sides from 1 to {MAX_SIDE})");
    Err(Error::input(cause))
}

/// CHW → HWC.
pub(super) fn interleave<T: Copy>(shape: ImageShape, pixels: &[T]) -> Vec<T> {
    let plane = shape.height * shape.width;
    (0..plane).flat_map(|at| (0..shape.channels).map(move |c| pixels[c * plane + at])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_write_leaves_the_old_file_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        write_atomically(&path, |out| out.write_all(b"old")).unwrap();
        let failed = write_atomically(&path, |out| {
            out.write_all(b"half of the n")?;
            Err(io::Error::other("power cut"))
        });
        assert!(failed.unwrap_err().to_string().contains("power cut"));
        assert_eq!(std::fs::read(&path).unwrap(), b"old");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
        let nowhere = folder.path().join("missing").join("file");
        let cause = write_atomically(&nowhere, |_| Ok(())).unwrap_err().to_string();
        assert!(cause.contains("missing"), "{cause}");
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn every_name_that_the_disk_takes_is_written() {
        let folder = tempfile::tempdir().unwrap();
        // 255 bytes, the longest that Linux knows, and signs of two bytes across every cut.
        for name in ["a".repeat(255), format!("{}a", "é".repeat(127)), format!("a{}", "é".repeat(127))] {
            let path = folder.path().join(&name);
            write_atomically(&path, |out| out.write_all(b"whole")).unwrap();
            assert_eq!(std::fs::read(&path).unwrap(), b"whole", "{name}");
        }
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 3);
    }

    #[test]
    #[cfg(unix)]
    fn a_link_stays_and_its_file_is_written() {
        use std::os::unix::fs::symlink;
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        std::fs::create_dir(at("far")).unwrap();
        symlink("far/file", at("link")).unwrap();
        symlink("link", at("again")).unwrap();
        // First where no file is yet.
        for (name, text) in [("link", "one"), ("again", "two")] {
            write_atomically(&at(name), |out| out.write_all(text.as_bytes())).unwrap();
            assert_eq!(std::fs::read_to_string(at("far/file")).unwrap(), text);
            assert!(at("link").is_symlink() && at("again").is_symlink());
        }
        symlink("circle", at("circle")).unwrap();
        assert!(write_atomically(&at("circle"), |_| Ok(())).unwrap_err().to_string().contains("leads nowhere"));
    }

    #[test]
    #[cfg(unix)]
    fn what_is_no_file_stays_what_it_is() {
        let place = tempfile::tempdir().unwrap();
        let socket = place.path().join("socket");
        let _bound = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        let null = place.path().join("null");
        std::os::unix::fs::symlink("/dev/null", &null).unwrap();
        for path in [&socket, &null] {
            let why = write_atomically(path, |_| Ok(())).unwrap_err().to_string();
            assert!(why.contains("no file") && std::fs::metadata(path).is_ok_and(|there| !there.is_file()), "{why}");
        }
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_full_disk_is_said_once_and_as_what_it_is() {
        let mut full = File::options().write(true).open("/dev/full").unwrap();
        let mut disk = Disk { file: &mut full, refusal: None };
        assert_eq!(disk.write_all(&[0; 100]).unwrap_err().kind(), io::ErrorKind::StorageFull);
        // What an archive does when it is dropped is for nobody.
        disk.write_all(&[0; 100]).unwrap();
        assert_eq!(disk.refusal.unwrap().kind(), io::ErrorKind::StorageFull);
    }

    #[test]
    fn of_several_writers_of_one_file_the_first_wins_where_that_is_asked_for() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let write = |out: &mut Out<'_>, bytes: &[u8]| out.write_all(bytes).map_err(|e| Error::io(&path, e));
        place_file(&path, IfPresent::Keep, |out| {
            // The other one begins later and is ready sooner.
            place_file(&path, IfPresent::Keep, |out| write(out, b"first"))?;
            write(out, b"second")
        })
        .unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"first");
        write_atomically(&path, |out| out.write_all(b"third")).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"third");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn sixteen_bits_come_back_as_they_were() {
        let shape = ImageShape { channels: 3, height: 1, width: 2 };
        let pixels = [0, 65535, 1, 256, 4097, 255];
        let png = encode_png16(shape, &pixels).unwrap();
        let read = image::load_from_memory(&png).unwrap();
        assert_eq!(read.color(), image::ColorType::Rgb16);
        assert_eq!(read.into_rgb16().into_raw(), [0, 1, 4097, 65535, 256, 255]);
        assert!(encode_png16(shape, &pixels[1..]).is_err());
    }
}
