//! Opening the window, or saying why it cannot be opened.

use std::cell::RefCell;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use eframe::egui::ViewportBuilder;
use eframe::egui_wgpu;

use super::in_window::{Lost, Outcome, Running};
use super::prefs::{ThemePreference, settings_file};
use crate::data::write_atomically;
use crate::device::DeviceChoice;
use crate::error::{Caught, Error, Result, catch};
use crate::worker::priority::lower_priority;

/// Names the window to the desktop and its folder of saved state.
pub(super) const APP_ID: &str = "bayescope";
/// What the desktop shows for the window.
const ICON: &[u8] = include_bytes!("../../assets/packaging/bayescope-256.png");
/// Windows opened one after the other when each loses its graphics device soon.
const MOST_WINDOWS: usize = 4;
/// A window that was open for so long was not lost soon.
const LONG: Duration = Duration::from_mins(10);
/// Times that a window is tried again where none can be opened after a loss.
const MOST_REFUSALS: u64 = 5;
/// What to do without a display.
const NO_DISPLAY: &str = "no display: use `bayescope sample mnist --n 64 --out digits.png`, or ssh -X / Xvfb (DISPLAY and WAYLAND_DISPLAY are unset)";

/// How to open the window.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// What to compute on.
    pub device: DeviceChoice,
    /// The oracle to open; empty for the one of the last time.
    pub oracle: String,
    /// Files to open, as if dropped.
    pub open: Vec<PathBuf>,
    /// Save a picture of the window here once the gallery is full, then close.
    pub screenshot: Option<PathBuf>,
    /// Write frame statistics here on closing, as JSON.
    pub frame_log: Option<PathBuf>,
    /// Measure frames at rest, while τ moves and while a pen draws, then close.
    pub measure_frames: bool,
    /// Light or dark, for this time.
    pub theme: Option<ThemePreference>,
    /// Do not offer the tour, even where it was never taken.
    pub no_tour: bool,
    /// Close after so long.
    pub quit_after_secs: Option<f64>,
    /// Take the window's graphics device away after so long, as a driver that resets does: a drill.
    pub lose_device_after_secs: Option<f64>,
}

/// Opens the window and returns when it is closed.
///
/// # Errors
/// Without a display or graphics adapter, saying what to do; when the screenshot or frame log
/// cannot be written.
pub fn run(mut options: Options) -> Result<()> {
    if cfg!(all(unix, not(target_os = "macos"))) {
        let set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        if !["DISPLAY", "WAYLAND_DISPLAY", "WAYLAND_SOCKET"].into_iter().any(set) {
            return Err(Error::input(NO_DISPLAY));
        }
    }
    // Told in the first window.
    let notice = RefCell::new(eframe::storage_dir(APP_ID).and_then(|folder| settings_file::set_aside(&folder)));
    // What computes in parallel does so on these threads. Where there are some already, they stay.
    _ = rayon::ThreadPoolBuilder::new().start_handler(|_| lower_priority()).build_global();
    // Stays here until the next window takes it: what the last one left.
    let lost = RefCell::new(None);
    let (mut windows, mut refusals) = (0, 0);
    let outcome = loop {
        let opened = Instant::now();
        let ended = window(&options, (&notice, &lost));
        // No window took over the state. A driver that resets may need a moment, and a window that
        // was lost while it closed ends the desktop's loop. The engine goes on meanwhile.
        if lost.borrow().is_some() && refusals < MOST_REFUSALS {
            refusals += 1;
            let why = ended.err().map_or_else(|| "no window came".to_owned(), |error| error.to_string());
            tracing::warn!("{why}: the window is tried again in {refusals} s");
            std::thread::park_timeout(Duration::from_secs(refusals));
            continue;
        }
        let mut outcome = ended?;
        if lost.borrow().is_some() {
            return Err(Error::Device("the graphics device was lost, and no window could be opened again".into()));
        }
        refusals = 0;
        // Losses far apart are no sign that the next window is lost, too.
        windows = if opened.elapsed() > LONG { 1 } else { windows + 1 };
        let Some(Lost { why, left }) = outcome.lost.take() else { break outcome };
        if windows == MOST_WINDOWS {
            return Err(Error::Device(format!("the graphics device was lost {windows} times: {why}")));
        }
        tracing::warn!("the graphics device was lost ({why}): the window is opened again");
        #[cfg(feature = "wgpu")]
        crate::device::spare_window();
        // The drill is over.
        options.lose_device_after_secs = None;
        lost.replace(Some(Lost { why, left }));
    };
    if let (Some(path), Some(report)) = (&options.frame_log, &outcome.frames) {
        let text = serde_json::to_vec_pretty(report).map_err(|e| Error::file(path, e.to_string()))?;
        write_atomically(path, |file| file.write_all(&text))?;
    }
    match (options.screenshot, outcome.screenshot) {
        (Some(path), None) => {
            Err(Error::file(path, "no screenshot: the window closed before the gallery showed samples"))
        }
        (_, Some(Err(error))) => Err(error),
        _ => Ok(()),
    }
}

/// Runs one window until it closes, with the state of one whose device was lost.
fn window(options: &Options, (notice, lost): (&RefCell<Option<String>>, &RefCell<Option<Lost>>)) -> Result<Outcome> {
    let started = Instant::now();
    let outcome: Arc<Mutex<Outcome>> = Arc::default();
    let viewport = ViewportBuilder::default().with_app_id(APP_ID).with_title("Bayescope");
    let viewport = match eframe::icon_data::from_png_bytes(ICON) {
        Ok(icon) => viewport.with_icon(icon),
        Err(_) => viewport,
    };
    let native = eframe::NativeOptions {
        viewport: viewport.with_inner_size([1280.0, 800.0]).with_min_inner_size([960.0, 560.0]),
        renderer: eframe::Renderer::Wgpu,
        wgpu_options: graphics(),
        ..Default::default()
    };
    let (shared, wanted) = (outcome.clone(), options.clone());
    let create = |cc: &eframe::CreationContext<'_>| {
        Ok(Box::new(Running::new(cc, (wanted, notice.take(), lost.take()), shared, started)) as Box<_>)
    };
    let painted = catch(|| eframe::run_native(APP_ID, native, Box::new(create)));
    let outcome = std::mem::take(&mut *outcome.lock().unwrap_or_else(PoisonError::into_inner));
    match painted {
        Ok(result) => result.map_err(|error| explain(&error))?,
        // What it knew was taken out of it in time.
        Err(_) if outcome.lost.is_some() => {}
        Err(panic) => return begin_again(panic),
    }
    Ok(outcome)
}

/// The outcome of a panic in a frame: egui's painter does not survive the loss of its device. Jobs
/// are lost; their files stay.
fn begin_again(panic: Caught) -> Result<Outcome> {
    #[cfg(feature = "wgpu")]
    if let Some(why) = crate::device::window_lost() {
        return Ok(Outcome { lost: Some(Lost { why, left: None }), ..Outcome::default() });
    }
    panic.resume()
}

/// A graphics device that the engine can compute on, too.
fn graphics() -> egui_wgpu::WgpuConfiguration {
    let mut options = egui_wgpu::WgpuConfiguration::default();
    #[cfg(feature = "wgpu")]
    if let egui_wgpu::WgpuSetup::CreateNew(create) = &mut options.wgpu_setup {
        let window_only = create.device_descriptor.clone();
        // The engine does not share a window that paints over OpenGL.
        create.device_descriptor = Arc::new(move |adapter| match adapter.get_info().backend {
            wgpu::Backend::Gl => window_only(adapter),
            _ => crate::device::descriptor(adapter),
        });
    }
    options
}

fn explain(error: &eframe::Error) -> Error {
    match error {
        eframe::Error::Wgpu(error) => Error::Device(format!(
            "no graphics adapter can draw a window ({error}); install a driver (on Debian and Ubuntu: mesa-vulkan-drivers)"
        )),
        eframe::Error::Winit(_) | eframe::Error::WinitEventLoop(_) => Error::input(format!(
            "the display cannot be opened ({error}); check DISPLAY and WAYLAND_DISPLAY, or use `bayescope sample mnist --n 64 --out digits.png`"
        )),
        error => Error::input(format!("the window cannot be opened: {error}")),
    }
}
