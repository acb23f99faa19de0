//! The explorer in a real window: Xvfb, Mesa's software Vulkan, the built program. It must show samples of the bundled
//! oracle, save a picture of itself and close cleanly. Skipped, with the reason, where there is no Xvfb or no Vulkan
//! (an error instead where BAYESCOPE_REQUIRE_WINDOW is set).

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::disallowed_methods)]
#![cfg(feature = "gui")]

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// One window at a time: what a window shows in time is not to depend on the others.
static ALONE: Mutex<()> = Mutex::new(());

/// A virtual display; ends when dropped.
struct Display {
    server: Child,
    name: String,
    _alone: MutexGuard<'static, ()>,
}

impl Display {
    fn start() -> Result<Self, String> {
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        // The server picks a free number and writes it to its standard output.
        let args = ["-displayfd", "1", "-screen", "0", "1440x900x24", "-nolisten", "tcp"];
        let spawned = Command::new("Xvfb").args(args).stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
        let mut server = spawned.map_err(|e| format!("Xvfb cannot be started ({e}); apt install xvfb"))?;
        let mut number = String::new();
        let mut out = std::io::BufReader::new(server.stdout.take().expect("piped"));
        std::io::BufRead::read_line(&mut out, &mut number).map_err(|e| e.to_string())?;
        Ok(Self { server, name: format!(":{}", number.trim()), _alone: alone })
    }
}

impl Drop for Display {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

fn has_vulkan() -> bool {
    let doctor = Command::new(env!("CARGO_BIN_EXE_bayescope")).args(["doctor", "--json"]).output().unwrap();
    let report: serde_json::Value = serde_json::from_slice(&doctor.stdout).unwrap();
    let devices = report["devices"].as_array().unwrap();
    devices.iter().any(|device| device["choice"].as_str().is_some_and(|choice| choice.starts_with("wgpu")))
}

/// The display, or why the test is skipped.
fn display() -> Option<Display> {
    let started =
        if has_vulkan() { Display::start() } else { Err("no Vulkan; apt install mesa-vulkan-drivers".into()) };
    match started {
        Ok(display) => Some(display),
        Err(why) if std::env::var_os("BAYESCOPE_REQUIRE_WINDOW").is_some() => panic!("no window to test: {why}"),
        Err(why) => {
            println!("skipped: {why}");
            None
        }
    }
}

/// The explorer on that display, with its state in `home`.
fn explorer(display: &Display, home: &Path) -> Command {
    explorer_on("cpu", display, home)
}

/// The explorer that computes on this device.
fn explorer_on(device: &str, display: &Display, home: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bayescope"));
    command.args(["--device", device, "--quit-after", "100"]);
    command.env("DISPLAY", &display.name).env("XDG_RUNTIME_DIR", home).env("XDG_DATA_HOME", home);
    command.env_remove("WAYLAND_DISPLAY");
    command
}

/// Opens the explorer until it has shown samples; returns its picture and the statistics of its frames.
fn explore(display: &Display, home: &Path, theme: &str) -> (PathBuf, serde_json::Value, Duration) {
    let (picture, frames) = (home.join(format!("{theme}.png")), home.join(format!("{theme}.json")));
    let started = Instant::now();
    let mut command = explorer(display, home);
    command.args(["--theme", theme, "--oracle", "mnist", "--screenshot"]).arg(&picture).arg("--frame-log").arg(&frames);
    let output = command.output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "the explorer did not close cleanly: {stderr}");
    assert!(!stderr.contains("panicked"), "{stderr}");
    let frames = serde_json::from_slice(&std::fs::read(frames).unwrap()).unwrap();
    (picture, frames, started.elapsed())
}

/// Squares of 24 pixels that hold both ink and paper, as a thumbnail of a digit does: nearly black and nearly white.
fn squares_with_digits(picture: &Path) -> usize {
    let picture = image::open(picture).unwrap().to_luma8();
    assert!(picture.width() >= 1000 && picture.height() >= 600, "a picture of {:?}", picture.dimensions());
    let squares = (0..picture.height() / 24).flat_map(|row| (0..picture.width() / 24).map(move |column| (row, column)));
    let counts = squares.map(|(row, column)| {
        let pixels = (0..24 * 24).map(|i| picture.get_pixel(column * 24 + i % 24, row * 24 + i / 24).0[0]);
        let (dark, bright) = pixels.fold((0, 0), |(d, b), v| (d + usize::from(v < 24), b + usize::from(v > 200)));
        dark > 60 && bright > 25
    });
    counts.filter(|digit| *digit).count()
}

/// The share of a picture that has the colour `ground` exactly, of three bytes.
fn share_of(ground: u32, picture: &Path) -> f64 {
    let picture = image::open(picture).unwrap().to_rgb8();
    let [_, red, green, blue] = ground.to_be_bytes();
    let of_it = picture.pixels().filter(|pixel| pixel.0 == [red, green, blue]).count();
    of_it as f64 / f64::from(picture.width() * picture.height())
}

/// Times are measured, not asserted: machines differ, and the hundreds of steps of a TarFlow's pictures outrun the slider on free cores
/// alone. What is asserted is that they are measured, and that the gallery of a Glow follows the slider.
#[test]
fn frames_are_measured_at_rest_and_while_sampling() {
    let Some(display) = display() else { return };
    for world in ["mnist", "cells"] {
        let home = tempfile::tempdir().unwrap();
        let log = home.path().join("frames.json");
        let mut command = explorer(&display, home.path());
        let output = command.args(["--oracle", world, "--measure-frames", "--frame-log"]).arg(&log).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let frames: serde_json::Value = serde_json::from_slice(&std::fs::read(log).unwrap()).unwrap();
        println!("{world}: {frames}");
        let share = frames["share_of_newest_tau_mean"].as_f64().unwrap_or_else(|| panic!("{world}: {frames}"));
        let measured =
            ["interval_at_rest_ms_p50", "interval_sampling_ms_p50", "ui_work_sampling_ms_p99", "images_in_view"];
        let of_followers = ["fresh_pictures_per_second", "slider_to_paint_ms_p99", "exact_after_rest_ms"];
        let follows = world == "mnist" || share > 0.9;
        for field in measured.into_iter().chain(of_followers.into_iter().filter(|_| follows)) {
            assert!(frames[field].as_f64().is_some_and(|ms| ms > 0.0), "{field} is missing in {world}: {frames}");
        }
        assert!(world != "mnist" || share > 0.5, "{frames}");
    }
}

#[test]
fn the_window_shows_samples_and_closes_cleanly() {
    let Some(display) = display() else { return };
    let home = tempfile::tempdir().unwrap();
    for theme in ["light", "dark"] {
        let (picture, frames, took) = explore(&display, home.path(), theme);
        let digits = squares_with_digits(&picture);
        println!("{theme}: {digits} squares with digits; open for {:.1} s; frames: {frames}", took.as_secs_f64());
        assert!(digits >= 60, "{theme}: only {digits} squares look like digits");
        // The window is cleared with the theme's ground, and panels are not filled again.
        let ground = share_of(if theme == "light" { 0xf7_f8fa } else { 0x18_1b20 }, &picture);
        assert!(ground > 0.3, "{theme}: {:.0} % of the window have the colour of its panels", 100.0 * ground);
        assert!(frames["first_frame_ms"].as_f64().is_some_and(|ms| ms > 0.0));
        if let Some(keep) = std::env::var_os("BAYESCOPE_WINDOW_OUT") {
            std::fs::copy(&picture, Path::new(&keep).join(format!("explorer-{theme}.png"))).unwrap();
        }
    }
}

/// The drill takes the device away before the gallery is full, so the picture is of the second window. Later there is an
/// inspected image, too, and where its evidence lies, both painted on the device that goes.
#[test]
fn a_window_whose_graphics_device_is_lost_is_opened_again() {
    let Some(display) = display() else { return };
    let home = tempfile::tempdir().unwrap();
    for (device, after) in [("cpu", "0.3"), ("wgpu", "0.3"), ("wgpu", "12")] {
        let picture = home.path().join(format!("after-{device}.png"));
        let mut command = explorer_on(device, &display, home.path());
        let drill = ["--theme", "light", "--oracle", "mnist", "--lose-device-after", after, "--screenshot"];
        let output = command.args(drill).arg(&picture).output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{device}: {stderr}");
        assert!(stderr.contains("the window is opened again"), "{device}: {stderr}");
        assert!(!stderr.contains("panicked"), "{device}: {stderr}");
        let digits = squares_with_digits(&picture);
        assert!(digits >= 60, "{device}: only {digits} squares look like digits");
    }
}

/// The window on a display, as its server sees it.
#[cfg(target_os = "linux")]
mod server {
    use std::io::Read;
    use std::process::Child;
    use std::time::{Duration, Instant};

    use x11rb::connection::Connection;
    use x11rb::protocol::xproto::{ConfigureWindowAux, ConnectionExt, ImageFormat, Window};
    use x11rb::rust_connection::RustConnection;

    use super::Display;

    /// The explorer; ends when dropped.
    pub struct Explorer(pub Child);

    impl Explorer {
        /// Ends it: what it said.
        pub fn end(&mut self) -> String {
            let _ = self.0.kill();
            let _ = self.0.wait();
            let mut said = String::new();
            self.0.stderr.take().unwrap().read_to_string(&mut said).unwrap();
            said
        }
    }

    impl Drop for Explorer {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    /// Longer than anything takes here.
    const PATIENCE: Duration = Duration::from_secs(60);

    pub struct Server {
        connection: RustConnection,
        root: Window,
    }

    impl Server {
        pub fn of(display: &Display) -> Self {
            let (connection, screen) = x11rb::connect(Some(&display.name)).unwrap();
            let root = connection.setup().roots[screen].root;
            Self { connection, root }
        }

        /// Waits for the explorer's window: no other is that wide.
        pub fn explorer(&self) -> Window {
            wait("a window", || {
                let children = self.connection.query_tree(self.root).unwrap().reply().unwrap().children;
                let width = |window: &Window| Some(self.connection.get_geometry(*window).ok()?.reply().ok()?.width);
                children.into_iter().find(|window| width(window).is_some_and(|width| width > 900))
            })
        }

        /// Makes a window of another size, which nobody hinders: no window manager is there.
        pub fn resize(&self, window: Window, [width, height]: [u16; 2]) {
            let size = ConfigureWindowAux::new().x(0).y(0).width(u32::from(width)).height(u32::from(height));
            self.connection.configure_window(window, &size).unwrap().check().unwrap();
        }

        /// Waits until the screen is bright within `corner` and black beyond it.
        pub fn painted_up_to(&self, corner: [u16; 2]) {
            wait(&format!("a window painted up to {corner:?}"), || {
                let bright = |at: [u16; 2]| {
                    let [x, y] = at.map(|at| at as i16);
                    let image = self.connection.get_image(ImageFormat::Z_PIXMAP, self.root, x, y, 1, 1, !0);
                    image.unwrap().reply().unwrap().data[..3].iter().all(|&level| level > 150)
                };
                let [x, y] = corner;
                (bright([x - 3, y - 3]) && !bright([x + 3, y + 3])).then_some(())
            });
        }
    }

    fn wait<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
        let began = Instant::now();
        loop {
            if let Some(seen) = look() {
                return seen;
            }
            assert!(began.elapsed() < PATIENCE, "not seen: {what}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// On a shared device wgpu refuses a window its size while the engine computes: the engine stands aside, and no frame is lost for
/// longer than that takes.
#[test]
#[cfg(target_os = "linux")]
fn a_window_that_changes_its_size_while_the_engine_computes_is_painted() {
    let Some(display) = display() else { return };
    let home = tempfile::tempdir().unwrap();
    let mut command = explorer_on("wgpu", &display, home.path());
    command.args(["--theme", "light", "--oracle", "tests/worlds/animals", "--no-tour"]).stderr(Stdio::piped());
    let mut explorer = server::Explorer(command.spawn().unwrap());
    let server = server::Server::of(&display);
    let window = server.explorer();
    server.painted_up_to([1280, 800]);
    // Four hundred samples take a minute here.
    std::thread::sleep(Duration::from_secs(3));
    for size in [[1000, 600], [1240, 700], [1100, 650], [1278, 790], [1010, 720], [1300, 640]] {
        server.resize(window, size);
        server.painted_up_to(size);
    }
    let stderr = explorer.end();
    assert!(!stderr.contains("painting:") && !stderr.contains("panicked"), "{stderr}");
}
