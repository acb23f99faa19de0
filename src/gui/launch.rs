//! Opening the window, or saying why it cannot be opened.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use eframe::egui::{self, ColorImage, Ui, ViewportBuilder, ViewportCommand};
use eframe::egui_wgpu;

use super::app::App;
use super::engine::Engine;
use super::overlay::{FrameReport, Phase};
#[cfg(feature = "wgpu")]
use super::paint::Canvas;
use super::prefs::{Look, Prefs};
use super::session::Session;
use crate::data::write_atomically;
use crate::device::DeviceChoice;
use crate::error::{Error, Result};
use crate::oracle::library;
use crate::worker::Worker;

/// Names the window to the desktop and its folder of saved state.
const APP_ID: &str = "bayescope";
/// Windows opened one after the other when each loses its graphics device.
const MOST_WINDOWS: usize = 4;
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
    /// Write frame statistics here on closing, as JSON. Without a screenshot, first measure: paint without pause for five
    /// seconds while the engine rests, for five more while τ moves as under a hand, then close.
    pub frame_log: Option<PathBuf>,
    /// Light or dark, for this time.
    pub theme: Option<Look>,
    /// Close after so long.
    pub quit_after_secs: Option<f64>,
    /// Take the window's graphics device away after so long, as a driver that resets does: a drill.
    pub lose_device_after_secs: Option<f64>,
}

/// Opens the window and returns when it is closed.
///
/// # Errors
/// Without a display or graphics adapter, saying what to do; when the screenshot or frame log cannot be written.
pub fn run(mut options: Options) -> Result<()> {
    if cfg!(all(unix, not(target_os = "macos"))) {
        let set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        if !["DISPLAY", "WAYLAND_DISPLAY", "WAYLAND_SOCKET"].into_iter().any(set) {
            return Err(Error::input(NO_DISPLAY));
        }
    }
    let mut lost = None;
    let mut windows = 0;
    let outcome = loop {
        let mut outcome = window(&options, lost.take())?;
        windows += 1;
        lost = outcome.lost.take();
        match &lost {
            None => break outcome,
            Some(Lost { why, .. }) if windows == MOST_WINDOWS => {
                return Err(Error::Device(format!("the graphics device was lost {windows} times: {why}")));
            }
            // The drill is over.
            Some(_) => options.lose_device_after_secs = None,
        }
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

/// One window, from its opening to its closing. After one whose device was lost, it goes on with what that one left.
fn window(options: &Options, lost: Option<Lost>) -> Result<Outcome> {
    let started = Instant::now();
    let outcome: Arc<Mutex<Outcome>> = Arc::default();
    let viewport = ViewportBuilder::default().with_app_id(APP_ID).with_title("Bayescope");
    let native = eframe::NativeOptions {
        viewport: viewport.with_inner_size([1280.0, 800.0]).with_min_inner_size([960.0, 560.0]),
        renderer: eframe::Renderer::Wgpu,
        wgpu_options: graphics(),
        ..Default::default()
    };
    let (shared, wanted) = (outcome.clone(), options.clone());
    let create = move |cc: &eframe::CreationContext<'_>| {
        Ok(Box::new(Running::new(cc, (wanted, lost), shared, started)) as Box<_>)
    };
    let painted = catch_unwind(AssertUnwindSafe(|| eframe::run_native(APP_ID, native, Box::new(create))));
    match painted {
        Ok(result) => result.map_err(|error| explain(&error))?,
        Err(panic) => return begin_again(panic),
    }
    Ok(std::mem::take(&mut *outcome.lock().unwrap_or_else(PoisonError::into_inner)))
}

/// What a window leaves that fell in the middle of a frame: egui's painter does not live through the loss of its device. Jobs are
/// gone with it; what they keep on disk is not.
fn begin_again(panic: Box<dyn std::any::Any + Send>) -> Result<Outcome> {
    #[cfg(feature = "wgpu")]
    if let Some(why) = crate::device::window_lost() {
        return Ok(Outcome { lost: Some(Lost { why, left: None }), ..Outcome::default() });
    }
    resume_unwind(panic)
}

/// A graphics device that the engine can compute on, too.
fn graphics() -> egui_wgpu::WgpuConfiguration {
    let mut options = egui_wgpu::WgpuConfiguration::default();
    #[cfg(feature = "wgpu")]
    if let egui_wgpu::WgpuSetup::CreateNew(create) = &mut options.wgpu_setup {
        let window_only = create.device_descriptor.clone();
        // Burn does not compute over OpenGL.
        create.device_descriptor = Arc::new(move |adapter| match adapter.get_info().backend {
            wgpu::Backend::Gl => window_only(adapter),
            _ => crate::device::descriptor(adapter),
        });
    }
    options
}

/// Lends the window's device to the engine, and has pictures painted where they are made.
#[cfg(feature = "wgpu")]
fn share(cc: &eframe::CreationContext<'_>, apart: bool) {
    if let Some(state) = &cc.wgpu_render_state {
        crate::device::lend(&state.instance, &state.adapter, (&state.device, &state.queue), apart);
        Canvas::install(&cc.egui_ctx, state);
    }
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

/// What the window leaves behind.
#[derive(Default)]
struct Outcome {
    screenshot: Option<Result<()>>,
    frames: Option<FrameReport>,
    lost: Option<Lost>,
}

/// A window's graphics device was lost.
struct Lost {
    why: String,
    /// What outlives the window, if it could be taken out of it.
    left: Option<Left>,
}

/// The engine and what is known of it.
struct Left {
    engine: Rc<dyn Engine>,
    bell: Arc<Bell>,
    session: Session,
}

/// Wakes the window there is.
#[derive(Default)]
struct Bell(Mutex<Option<egui::Context>>);

impl Bell {
    fn hang(&self, ctx: &egui::Context) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(ctx.clone());
    }

    fn ring(&self) {
        if let Some(ctx) = &*self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            ctx.request_repaint();
        }
    }
}

/// Where the screenshot is.
enum Shot {
    /// Not asked for.
    No,
    /// The gallery is filling; how many full frames were painted since it is full.
    Waiting(u32),
    /// Asked for.
    Asked(Arc<Mutex<Option<Arc<ColorImage>>>>),
}

/// Length of each part of the measurement.
const MEASURED: Duration = Duration::from_secs(5);

/// Where the measurement of the frames is.
enum Measurement {
    /// Not asked for, or over.
    No,
    /// The gallery is filling.
    Waiting,
    /// Frames at rest, since then.
    Rest(Instant),
    /// Frames while the engine samples, since then.
    Sampling(Instant),
}

/// The app, and what only a real window needs.
struct Running {
    app: App,
    options: Options,
    outcome: Arc<Mutex<Outcome>>,
    started: Instant,
    shot: Shot,
    measurement: Measurement,
    engine: Rc<dyn Engine>,
    bell: Arc<Bell>,
}

impl Running {
    fn new(
        cc: &eframe::CreationContext<'_>,
        (options, lost): (Options, Option<Lost>),
        outcome: Arc<Mutex<Outcome>>,
        started: Instant,
    ) -> Self {
        let mut prefs = App::saved_prefs(cc.storage);
        let saved = &prefs.oracle;
        if !options.oracle.is_empty() {
            prefs.oracle.clone_from(&options.oracle);
        } else if library::find(saved).is_none() && !Path::new(saved).exists() {
            prefs.oracle = library::DEFAULT.into();
        }
        if options.device != DeviceChoice::Auto {
            prefs.device = options.device;
        }
        if let Some(look) = options.theme {
            prefs.look = look;
        }
        // A device that was lost once may have been lost to a kernel: the next window keeps its own for itself.
        #[cfg(feature = "wgpu")]
        share(cc, prefs.device_apart || lost.is_some());
        let (engine, bell) = match lost.as_ref().and_then(|lost| lost.left.as_ref()) {
            Some(left) => (left.engine.clone(), left.bell.clone()),
            None => start(&prefs),
        };
        bell.hang(&cc.egui_ctx);
        let mut app = App::new(&cc.egui_ctx, prefs, engine.clone());
        app.began(started);
        app.restore(&cc.egui_ctx, cc.storage);
        match lost {
            Some(Lost { why, left }) => app.succeed(left.map(|left| left.session), &why),
            None => app.open(options.open.clone()),
        }
        let shot = if options.screenshot.is_some() { Shot::Waiting(0) } else { Shot::No };
        let measured = options.frame_log.is_some() && options.screenshot.is_none();
        let measurement = if measured { Measurement::Waiting } else { Measurement::No };
        Self { app, options, outcome, started, shot, measurement, engine, bell }
    }

    /// Closes a window that cannot be painted any more; what it knew goes on in another.
    #[cfg(feature = "wgpu")]
    fn leave_if_lost(&mut self, ctx: &egui::Context) {
        if let Some(secs) = self.options.lose_device_after_secs {
            if self.started.elapsed().as_secs_f64() > secs {
                self.options.lose_device_after_secs = None;
                crate::device::lose_window();
            }
            ctx.request_repaint();
        }
        let mut outcome = self.outcome.lock().unwrap_or_else(PoisonError::into_inner);
        if outcome.lost.is_none()
            && let Some(why) = crate::device::window_lost()
        {
            let (engine, bell) = (self.engine.clone(), self.bell.clone());
            outcome.lost = Some(Lost { why, left: Some(Left { engine, bell, session: self.app.retire() }) });
            ctx.send_viewport_cmd(ViewportCommand::Close);
        }
    }

    fn measure(&mut self, ctx: &egui::Context) {
        match self.measurement {
            Measurement::No => return,
            Measurement::Waiting if self.app.settled() => {
                self.app.count_frames(Phase::Rest);
                self.measurement = Measurement::Rest(Instant::now());
            }
            Measurement::Waiting => {}
            Measurement::Rest(since) if since.elapsed() > MEASURED => {
                self.app.count_frames(Phase::Sampling);
                self.measurement = Measurement::Sampling(Instant::now());
            }
            Measurement::Rest(_) => {}
            Measurement::Sampling(since) if since.elapsed() > MEASURED => {
                self.measurement = Measurement::No;
                ctx.send_viewport_cmd(ViewportCommand::Close);
            }
            // A slow sweep: another τ in every frame.
            Measurement::Sampling(since) => self.app.slide(1.0 + 0.4 * since.elapsed().as_secs_f64().sin()),
        }
        ctx.request_repaint();
    }

    fn photograph(&mut self, ctx: &egui::Context) {
        match &mut self.shot {
            Shot::No => {}
            Shot::Waiting(frames) => {
                if self.app.settled() {
                    *frames += 1;
                    ctx.request_repaint();
                }
                // Textures of what is in view are uploaded over a few frames.
                if *frames > 12 {
                    let image: Arc<Mutex<Option<Arc<ColorImage>>>> = Arc::default();
                    let (slot, waker) = (image.clone(), ctx.clone());
                    ctx.request_screenshot(move |picture| {
                        *slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(picture);
                        waker.request_repaint();
                    });
                    self.shot = Shot::Asked(image);
                }
            }
            Shot::Asked(image) => {
                let Some(image) = image.lock().unwrap_or_else(PoisonError::into_inner).take() else { return };
                if let Some(path) = &self.options.screenshot {
                    let mut outcome = self.outcome.lock().unwrap_or_else(PoisonError::into_inner);
                    outcome.screenshot = Some(save_png(path, &image));
                }
                self.shot = Shot::No;
                ctx.send_viewport_cmd(ViewportCommand::Close);
            }
        }
    }
}

/// The engine, and the bell it rings.
fn start(prefs: &Prefs) -> (Rc<dyn Engine>, Arc<Bell>) {
    let bell: Arc<Bell> = Arc::default();
    let rung = bell.clone();
    let worker = Worker::start(prefs.device, prefs.oracle.clone(), Arc::new(move || rung.ring()));
    (Rc::new(worker), bell)
}

fn save_png(path: &Path, image: &ColorImage) -> Result<()> {
    let [width, height] = image.size.map(|side| side as u32);
    let saved = image::save_buffer_with_format(
        path,
        image.as_raw(),
        width,
        height,
        image::ExtendedColorType::Rgba8,
        image::ImageFormat::Png,
    );
    saved.map_err(|error| match error {
        image::ImageError::IoError(error) => Error::io(path, error),
        error => Error::file(path, error.to_string()),
    })
}

impl eframe::App for Running {
    fn logic(&mut self, ctx: &egui::Context, frame: &mut eframe::Frame) {
        #[cfg(feature = "wgpu")]
        self.leave_if_lost(ctx);
        self.app.logic(ctx, frame);
    }

    fn ui(&mut self, ui: &mut Ui, frame: &mut eframe::Frame) {
        // A frame without shapes needs nothing of a device that is gone.
        if self.outcome.lock().unwrap_or_else(PoisonError::into_inner).lost.is_some() {
            return;
        }
        self.app.ui(ui, frame);
        let ctx = ui.ctx().clone();
        self.photograph(&ctx);
        self.measure(&ctx);
        if let Some(secs) = self.options.quit_after_secs {
            match Duration::try_from_secs_f64(secs).unwrap_or_default().checked_sub(self.started.elapsed()) {
                Some(left) if !left.is_zero() => ctx.request_repaint_after(left),
                _ => ctx.send_viewport_cmd(ViewportCommand::Close),
            }
        }
    }

    fn save(&mut self, storage: &mut dyn eframe::Storage) {
        self.app.save(storage);
    }

    fn on_exit(&mut self) {
        let mut outcome = self.outcome.lock().unwrap_or_else(PoisonError::into_inner);
        outcome.frames = Some(self.app.frame_report());
    }
}
