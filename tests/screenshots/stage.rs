//! A window with the real engine, worked as a hand would.

use std::fs::File;
use std::io::BufWriter;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bayescope::device::DeviceChoice;
use bayescope::gui::{App, Prefs};
use bayescope::worker::Worker;
use eframe::egui::{Event, Key, Modifiers, MouseWheelSource, MouseWheelUnit, Role, TouchPhase, pos2, vec2};
use egui_kittest::Harness;
use egui_kittest::kittest::Queryable;
use image::DynamicImage;
use image::codecs::png::{CompressionType, FilterType, PngEncoder};

/// Size of a window that is opened for the first time, points.
const SIZE: [f32; 2] = [1280.0, 800.0];
/// Longest wait for anything the engine does.
const PATIENCE: Duration = Duration::from_secs(1800);
/// Where the docked panels begin under their tabs, and how far from there a thing was brought to the top, points.
const TOP: f32 = 60.0;
const NEAR: f32 = 60.0;

/// The window.
pub struct Stage {
    pub window: Harness<'static, App>,
}

impl Stage {
    /// On a bundled oracle, its gallery full.
    pub fn open(oracle: &str, theme: &str) -> Self {
        // By name, so that a preference this build does not know is left out.
        let prefs = serde_json::json!({ "oracle": oracle, "look": theme, "toured": true, "device": "cpu" });
        let prefs: Prefs = serde_json::from_value(prefs).unwrap();
        let worker = Worker::start(DeviceChoice::Cpu, oracle.into(), Arc::new(|| {}));
        let builder = Harness::builder().with_size(SIZE).with_step_dt(1.0 / 30.0).with_render_cursor(false).wgpu();
        let mut window = builder.build_eframe(move |cc| App::new(&cc.egui_ctx, prefs, Rc::new(worker)));
        window.run_steps(2);
        let mut stage = Self { window };
        stage.wait("a full gallery", |window| window.state().session().gallery_complete());
        stage.rest(4.0);
        stage
    }

    /// On the guide's world, of 5 % Bayes error.
    pub fn at_five_percent() -> Self {
        let mut stage = Self::open("mnist", "Light");
        stage.write("Target Bayes error", "5 %");
        stage.enter();
        stage.wait("τ of the target", |window| (window.state().prefs().tau - 1.1806).abs() < 1e-3);
        // The card as it was, from its top.
        stage.window.get_by_label("Held-out NLL").scroll_to_me();
        stage.window.run_steps(20);
        stage
    }

    /// Steps until something holds.
    pub fn wait(&mut self, what: &str, holds: impl Fn(&Harness<'_, App>) -> bool) {
        let begun = Instant::now();
        while !holds(&self.window) {
            assert!(begun.elapsed() < PATIENCE, "{what} did not come; the window shows:\n{:?}", self.window);
            self.window.step();
            std::thread::sleep(Duration::from_millis(15));
        }
        self.window.run_steps(6);
    }

    /// Steps for so long, while the engine works.
    pub fn rest(&mut self, secs: f64) {
        let begun = Instant::now();
        self.wait("the end of a rest", |_| begun.elapsed().as_secs_f64() > secs);
    }

    pub fn panel(&mut self, id: &'static str) {
        self.window.state_mut().show_panel(id);
        self.window.run_steps(6);
    }

    pub fn click(&mut self, label: &str) {
        self.window.get_by_label(label).scroll_to_me();
        self.window.run_steps(8);
        self.window.get_by_label(label).click();
        self.window.run_steps(6);
    }

    pub fn click_containing(&mut self, label: &str) {
        self.window.get_by_label_contains(label).scroll_to_me();
        self.window.run_steps(8);
        self.window.get_by_label_contains(label).click();
        self.window.run_steps(6);
    }

    /// Opens a list and takes an entry.
    pub fn choose(&mut self, list: &str, entry: &str) {
        self.window.get_by_role_and_label(Role::ComboBox, list).click();
        self.window.run_steps(6);
        self.click(entry);
    }

    /// Writes into a field in place of what is there.
    pub fn write(&mut self, field: &str, text: &str) {
        let find = |window: &Harness<'_, App>| window.get_by_role_and_label(Role::TextInput, field).rect();
        self.window.get_by_role_and_label(Role::TextInput, field).scroll_to_me();
        self.window.run_steps(8);
        assert!(find(&self.window).is_positive());
        self.window.get_by_role_and_label(Role::TextInput, field).focus();
        self.window.run_steps(2);
        self.window.key_press_modifiers(Modifiers::COMMAND, Key::A);
        self.window.run_steps(2);
        self.window.get_by_role_and_label(Role::TextInput, field).type_text(text);
        self.window.run_steps(4);
    }

    pub fn enter(&mut self) {
        self.window.key_press(Key::Enter);
        self.window.run_steps(4);
    }

    /// Turns the wheel over the docked panels until the first thing with this label stands at their top, or nothing moves any more.
    pub fn raise(&mut self, label: &str) {
        let top = |window: &Harness<'_, App>| {
            window
                .query_all_by_label(label)
                .map(|node| node.rect().top())
                .reduce(f32::min)
                .expect("something with this label")
        };
        let mut before = f32::INFINITY;
        loop {
            let now = top(&self.window);
            if now < TOP + NEAR || now >= before {
                break;
            }
            before = now;
            self.window.hover_at(pos2(620.0, 600.0));
            let delta = vec2(0.0, -(now - TOP).clamp(20.0, 240.0));
            let (unit, phase, source) = (MouseWheelUnit::Point, TouchPhase::Move, MouseWheelSource::Unknown);
            self.window.event(Event::MouseWheel { unit, delta, phase, source, modifiers: Modifiers::NONE });
            self.window.run_steps(20);
        }
    }

    /// Takes the picture, once toasts are gone and nothing is hovered.
    pub fn shot(&mut self, name: &str) {
        self.window.remove_cursor();
        if self.window.query_by_label("Clear finished").is_some() {
            self.click("Clear finished");
            self.window.remove_cursor();
        }
        self.wait("what was asked for", |window| window.state().settled());
        self.window.run_steps(300);
        let folder = std::env::var("BAYESCOPE_PICTURES").unwrap();
        let picture = self.window.render().expect("a software Vulkan to paint with");
        let file = BufWriter::new(File::create(format!("{folder}/{name}.png")).unwrap());
        // Everything is opaque; pages are opened more often than pictures are taken.
        let small = PngEncoder::new_with_quality(file, CompressionType::Best, FilterType::Adaptive);
        DynamicImage::from(picture).into_rgb8().write_with_encoder(small).unwrap();
        println!("{folder}/{name}.png");
    }
}
