//! The world card: which world this is, its knobs, and what its samples say about it.

use eframe::egui::{self, Checkbox, ComboBox, DragValue, Rect, RichText, Slider, SliderClamping, Ui, pos2};

use super::bayes_error_view;
use super::command::Command;
use super::connect;
use super::context::Cx;
use super::exactness;
use super::format;
use super::glossary;
use super::guidance;
use super::label_noise;
use super::landmarks::Landmark;
use super::prefs::{MAX_SAMPLES, MAX_TAU};
use super::selection::Side;
use super::session::gallery::Estimates;
use super::theme::{Badge, Theme};
use super::widgets::{badge, fact, facts, heading, hint, list};
use crate::device::DeviceChoice;
use crate::flow::Architecture;
use crate::measure::student_half;
use crate::oracle::evaluate::Evaluation;
use crate::oracle::folder::OracleInfo;
use crate::oracle::library;

pub fn show(ui: &mut Ui, cx: &mut Cx) {
    egui::ScrollArea::vertical().auto_shrink([false, false]).show(ui, |ui| {
        oracle(ui, cx);
        if cx.session.oracle.is_some() {
            knobs(ui, cx);
            prior(ui, cx);
            label_noise::section(ui, cx);
            samples(ui, cx);
            guidance::section(ui, cx);
            estimates(ui, cx);
        }
        device(ui, cx);
        legend(ui);
        ui.add_space(8.0);
    });
}

fn oracle(ui: &mut Ui, cx: &mut Cx) {
    heading(ui, "Oracle", None);
    ui.horizontal(|ui| {
        let current = cx.session.called(&cx.prefs.oracle);
        let combo = ComboBox::from_id_salt("oracle").width(150.0).truncate().selected_text(current);
        let response = combo.show_ui(ui, |ui| {
            for name in library::names() {
                if ui.selectable_label(cx.prefs.oracle == name, name).clicked() {
                    cx.commands.push(Command::OpenOracle(name.into()));
                }
            }
        });
        response.response.accessible_name("Oracle").on_hover_text(cx.prefs.oracle.clone());
        if ui.button("Open…").on_hover_text("Open an oracle folder, a checkpoint or images (Ctrl+O)").clicked() {
            cx.commands.push(Command::Open);
        }
    });
    match cx.session.oracle.clone() {
        Some(info) => {
            oracle_facts(ui, &info);
            if let Some(notice) = info.notice() {
                hint(ui, notice);
            }
            if let Some(sentences) = &info.inferred {
                inferred(ui, &info.name, sentences);
            }
        }
        None if cx.session.stuck.is_none() || cx.session.is_opening() => hint(ui, "Opening…"),
        None => hint(ui, "No oracle is open. Choose one above, or open a folder or checkpoint."),
    }
}

fn oracle_facts(ui: &mut Ui, info: &OracleInfo) {
    let a = &info.architecture;
    // A table of its own for each world: with the rows of another its first frame would be laid out by the heights of those.
    facts(ui, &format!("oracle facts {}", info.weights_sha256), |ui| {
        fact(ui, "Name", info.name.clone(), &format!("weights SHA-256 {}", info.weights_sha256));
        let kind = match a {
            Architecture::Glow(_) => "Glow",
            Architecture::TarFlow(_) => "TarFlow",
        };
        let meaning = if a.has_shared_map() {
            "One invertible map for all classes; class y has base N(μ_y, τ²Σ)."
        } else {
            "The map itself depends on the class; base N(0, τ²·diag(var))."
        };
        fact(ui, "Flow", kind.to_owned(), &format!("{}. {meaning}", a.describe()));
        fact(ui, "Images", format!("{} (C×H×W)", a.shape()), &info.preprocessing);
        let classes = format!("{}: {}", info.class_names.len(), preview(&info.class_names));
        fact(ui, "Classes", classes, &info.class_names.join(", "));
        let Some(training) = &info.training else { return };
        let dims = a.shape().dims();
        evaluation(ui, "Held-out NLL", &training.held_out, dims);
        if let Some(test) = &training.test {
            evaluation(ui, "Test NLL", test, dims);
            let accuracy = format::right(test);
            let meaning =
                format!("Share of {} real test images whose Bayes decision is their label, [95 %].", test.images);
            fact(ui, "Test accuracy", accuracy, &meaning);
        } else {
            let held = &training.held_out;
            let accuracy = format::right(held);
            fact(ui, "Held-out acc.", accuracy, "On the images that chose the epoch; no test part was given.");
        }
    });
}

/// What was read off the file itself, and from what in it.
fn inferred(ui: &mut Ui, file: &str, sentences: &[String]) {
    egui::CollapsingHeader::new("Inferred from the file").id_salt("inferred").show(ui, |ui| {
        hint(ui, format!("{file} does not describe itself; this was read off its name and arrays."));
        for sentence in sentences {
            ui.add(egui::Label::new(format!("• {sentence}")).wrap());
        }
    });
}

fn preview(names: &[String]) -> String {
    if names.len() <= 10 && names.iter().map(String::len).sum::<usize>() <= 12 {
        return names.join(" ");
    }
    format!("{} … {}", names.first().map_or("", String::as_str), names.last().map_or("", String::as_str))
}

fn evaluation(ui: &mut Ui, name: &str, e: &Evaluation, dims: usize) {
    let half_width = student_half(e.nll_std_error, e.images);
    let nats = format::plus_minus(e.nll_nats, half_width);
    let bits = format::plus_minus(e.bits_per_dim, half_width / (dims as f64 * std::f64::consts::LN_2));
    let meaning = format!(
        "Mean -log p(x|y) of the true class over {} real images, in the space of 8-bit pixels{}.",
        e.images,
        if half_width.is_finite() { ", with its 95 % interval" } else { "" }
    );
    fact(ui, name, format!("{nats} nats/image\n{bits} bits/dim"), &meaning);
}

fn knobs(ui: &mut Ui, cx: &mut Cx) {
    let exact = exactness::of_image(cx.session, cx.prefs.label_noise.as_ref());
    heading(ui, "World", Some((Badge::Exact, &exact)));
    let label = ui.label("Base temperature τ").on_hover_text(
        "The base distribution's covariance × τ² (its standard deviation × τ). Changes images, likelihoods and \
         posteriors. The same latents are used, so images morph. 1 is the trained world; type up to 10.",
    );
    let tau = Slider::new(&mut cx.prefs.tau, 0.0..=3.0).clamping(SliderClamping::Never).max_decimals(3);
    ui.add(tau.suffix(" × std").drag_value_speed(0.01).update_while_editing(false)).labelled_by(label.id);
    cx.prefs.tau = cx.prefs.tau.clamp(0.0, MAX_TAU);
    bayes_error_view::show(ui, cx);
    // As wide as the card, whatever the figures are: what points at it must not move with them.
    let end = pos2(ui.max_rect().right() - 4.0, ui.min_rect().bottom());
    cx.view.landmarks.mark(ui, Landmark::Tau, Rect::from_min_max(label.rect.min, end));
    bayes_error_view::target(ui, cx, "Target Bayes error");
    ui.horizontal(|ui| {
        let label = ui.label("Posterior smoothing T").on_hover_text(
            "p_T(y|x) ∝ (π_y p(x|y))^(1/T), no unit. Changes posteriors and labels, not images. 1 is the posterior of \
             the sampling itself. Labels are drawn from p_T, and the Bayes error is theirs.",
        );
        let speed = (cx.prefs.smoothing * 0.02).max(1e-4);
        let field = DragValue::new(&mut cx.prefs.smoothing).range(1e-3..=1e6).speed(speed).max_decimals(4);
        ui.add(field.update_while_editing(false)).labelled_by(label.id);
    });
    if ui.button("Reset τ, T and π").on_hover_text("τ = 1, T = 1, uniform prior, no label noise").clicked() {
        cx.commands.push(Command::ResetKnobs);
    }
}

/// τ and the Bayes error in one line, while there is no room for the card beside the inspector.
pub fn rail(ui: &mut Ui, cx: &mut Cx) {
    ui.horizontal_wrapped(|ui| {
        let about = "Base temperature τ, a factor of the base distribution's standard deviation";
        let label = ui.label("τ").on_hover_text(about);
        let tau = DragValue::new(&mut cx.prefs.tau).range(0.0..=MAX_TAU).speed(0.01).max_decimals(3);
        ui.add(tau.suffix(" × std").update_while_editing(false)).labelled_by(label.id).on_hover_text(about);
        ui.label("Bayes error");
        bayes_error_view::value(ui, cx);
        if ui.button("Show the world card").on_hover_text("In place of the inspector").clicked() {
            cx.view.toggle(cx.prefs, Side::WorldCard);
        }
    });
}

fn prior(ui: &mut Ui, cx: &mut Cx) {
    let classes = cx.prefs.prior.len();
    let title = if cx.prefs.prior_is_uniform() { "Class prior π (uniform)" } else { "Class prior π" };
    ui.add_space(4.0);
    egui::CollapsingHeader::new(title).id_salt("prior").show(ui, |ui| {
        if ui.button("Uniform π").on_hover_text("π = 1/K for every class").clicked() {
            cx.commands.push(Command::UniformPrior);
        }
        let mut changed = None;
        list(260.0).id_salt("prior scroll").show(ui, |ui| {
            let theme = Theme::of(ui);
            for class in 0..classes {
                ui.horizontal(|ui| {
                    ui.spacing_mut().slider_width = 100.0;
                    let name = RichText::new(cx.session.class_name(class)).color(theme.class(class, classes)).strong();
                    let label = ui.add_sized([44.0, 18.0], egui::Label::new(name).truncate());
                    let mut percent = 100.0 * cx.prefs.prior[class];
                    // Clamping an unedited value would round it, and with it every other share.
                    let slider = Slider::new(&mut percent, 0.0..=100.0).clamping(SliderClamping::Edits);
                    let slider = slider.suffix(" %").max_decimals(2);
                    let slider = ui.add(slider.update_while_editing(false)).labelled_by(label.id);
                    let slider = slider.accessible_name(format!("Prior of class {}", cx.session.class_name(class)));
                    if slider.changed() {
                        changed = Some((class, percent / 100.0));
                    }
                });
            }
        });
        if let Some((class, value)) = changed {
            cx.prefs.set_prior(class, value);
        }
        hint(ui, "The others keep their proportions; π sums to 100 %.");
    });
}

fn samples(ui: &mut Ui, cx: &mut Cx) {
    heading(ui, "Samples", Some((Badge::Illustrative, "Pictures are clipped and rounded to 8 bits for the eye.")));
    let label = ui.label("Samples n (images)");
    let slider = Slider::new(&mut cx.prefs.n, 1..=MAX_SAMPLES).logarithmic(true).update_while_editing(false);
    ui.add(slider).labelled_by(label.id);
    ui.horizontal(|ui| {
        let label = glossary::label(ui, "Seed".into());
        let mut seed = cx.prefs.seed as f64;
        let field = DragValue::new(&mut seed).range(0.0..=9e15).max_decimals(0).update_while_editing(false);
        if ui.add(field).labelled_by(label.id).changed() {
            cx.prefs.seed = seed as u64;
        }
        if ui.button("New samples").on_hover_text("Other classes, latents and labels (Space)").clicked() {
            cx.commands.push(Command::NewSamples);
        }
    });
}

fn estimates(ui: &mut Ui, cx: &mut Cx) {
    let gallery = &cx.session.gallery;
    let progress = gallery.progress();
    let Some(Estimates { n, entropy, bayes_error }) = gallery.estimates() else {
        match gallery.failed() {
            0 if progress.total > 0 && cx.session.oracle.is_some() => {
                let stopped = if cx.view.halted { ", where drawing was stopped" } else { "" };
                let (done, total) = (progress.done, progress.total);
                hint(ui, format!("Figures from samples come with the last: {done} of {total}{stopped}."));
            }
            0 => {}
            n => hint(
                ui,
                format!("No figures from samples: {n} left the finite numbers, and the rest is no fair sample."),
            ),
        }
        return;
    };
    let why =
        format!("Mean over {n} samples of this world, with its 95 % interval, which holds what so few do not show.");
    heading(ui, &format!("From {} samples", format::count(n)), Some((Badge::Estimated, &why)));
    facts(ui, "estimates", |ui| {
        let value = format::with_ends(entropy.value, entropy.interval, "nats");
        fact(ui, "Aleatoric (mean H)", value, "Aleatoric uncertainty E_x[H(p(y|x))], from exact posteriors.");
        let (low, high) = bayes_error.interval;
        let value = format::with_ends(100.0 * bayes_error.value, (100.0 * low, 100.0 * high), "%");
        fact(ui, "Bayes error", value, "E_x[1 - max_y p(y|x)], from exact posteriors: no classifier errs less.");
    });
    if !gallery.asks_for(cx.prefs.tau) {
        hint(ui, "Of the settings before.");
    } else if !gallery.complete() {
        hint(ui, format!("Of the previous settings; {} of {} computed.", progress.done, progress.total));
    }
}

fn legend(ui: &mut Ui) {
    heading(ui, "What the marks mean", None);
    ui.horizontal_wrapped(|ui| {
        for (kind, why) in [
            (Badge::Exact, "Follows from this world without approximation, to the stated precision."),
            (Badge::Bounded, "Lies within a stated bound."),
            (Badge::Estimated, "Estimated from samples, with its 95 % interval."),
            (Badge::Illustrative, "For the eye only: clipped, rounded to 8 bits or otherwise outside the world."),
        ] {
            badge(ui, kind, why);
        }
    });
}

/// Returns whether the window's device is no longer computed on, whatever the box says.
fn is_spared() -> bool {
    #[cfg(feature = "wgpu")]
    return crate::device::window_is_spared();
    #[cfg(not(feature = "wgpu"))]
    false
}

/// Format of the products that draw samples, where there is a choice.
fn drawing(ui: &mut Ui, cx: &mut Cx) {
    if cx.session.formats.len() < 2 {
        return;
    }
    ui.horizontal(|ui| {
        let label = ui.label("Draw in");
        let combo = ComboBox::from_id_salt("products").selected_text(cx.prefs.products.label());
        let chosen = combo.show_ui(ui, |ui| {
            for products in &cx.session.formats {
                ui.selectable_value(&mut cx.prefs.products, *products, products.label());
            }
        });
        let why = "Format of the matrix products that draw samples. Narrow ones draw images a little beside those of the flow, faster \
                   on many GPUs; log p(x|y) and the posteriors of these very images are computed in 32 bits all the same.";
        chosen.response.labelled_by(label.id).on_hover_text(why);
    });
}

fn device(ui: &mut Ui, cx: &mut Cx) {
    heading(ui, "Device", None);
    let selected = cx.prefs.device;
    let combo = ComboBox::from_id_salt("device").width(220.0).truncate().selected_text(selected.to_string());
    let response = combo.show_ui(ui, |ui| {
        let mut offer = |ui: &mut Ui, choice: DeviceChoice, text: String| {
            if ui.selectable_label(selected == choice, text).clicked() {
                cx.commands.push(Command::UseDevice(choice));
            }
        };
        offer(ui, DeviceChoice::Auto, "auto: the first GPU that works, otherwise the CPU".into());
        for candidate in cx.devices {
            offer(ui, candidate.choice, format!("{}: {} ({})", candidate.choice, candidate.name, candidate.driver));
        }
        if cx.devices.is_empty() {
            offer(ui, DeviceChoice::Cpu, "cpu".into());
        }
        for choice in &cx.prefs.machines {
            offer(ui, *choice, format!("{choice}: another machine"));
        }
        if ui.selectable_label(false, "Another machine…").clicked() {
            cx.commands.push(Command::ShowConnect);
        }
    });
    let about = "Where worlds are computed: on a graphics adapter, on the processor, or on another machine";
    response.response.accessible_name("Device").on_hover_text(about);
    match cx.session.device.clone() {
        Some(report) => {
            ui.label(&report.used.name).on_hover_text(&report.used.driver);
            if matches!(report.used.choice, DeviceChoice::Wgpu(_)) {
                let why = "Shared with the window, pictures are painted where they are made, and frames wait for kernels under \
                           way. Apart, frames do not wait, and pictures travel over the host.";
                let mut always = true;
                let spared = is_spared();
                let apart = if spared { &mut always } else { &mut cx.prefs.device_apart };
                let apart = ui.add_enabled(!spared, Checkbox::new(apart, "apart from the window"));
                apart.on_hover_text(why).on_disabled_hover_text(
                    "A window's graphics device was lost, perhaps to a kernel: until the program ends, the engine computes apart \
                     from it.",
                );
            }
            drawing(ui, cx);
            hint(ui, format!("Why: {}.", report.reason));
            connect::card(ui, cx, &report);
        }
        None => hint(ui, "Looking for a device…"),
    }
}
