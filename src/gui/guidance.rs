//! Looks that leave the world: how pictures are made where they need not be samples.

use eframe::egui::{self, DragValue, Slider, SliderClamping, Ui};

use super::context::Cx;
use super::format;
use super::prefs::{GuidancePrefs, Prefs};
use super::session::Session;
use super::theme::Badge;
use super::widgets::{badge, hint};
use crate::flow::sampling::{Guided, SamplerOptions};
use crate::oracle::look::Looks;

/// Why such a picture is only illustrative.
pub const WHY: &str = "These pictures have left the world: guidance and denoising change an image in ways its density does not \
                       describe. They are for the eye, are never fed to a posterior, and every figure beside them is that of \
                       the sample of the same latent without the look.";

/// Which looks the open oracle can have.
pub fn available(session: &Session) -> Looks {
    let none = Looks { guidance: false, denoise: false };
    session.oracle.as_ref().map_or(none, |info| Looks::of(&info.architecture, info.pixels))
}

/// Returns the sampler options of the pictures on show; `None` for plain samples.
pub fn options(session: &Session, prefs: &Prefs) -> Option<SamplerOptions> {
    let looks = available(session);
    let GuidancePrefs { guidance, denoise, .. } = prefs.guidance;
    let wanted = GuidancePrefs {
        guidance: if looks.guidance { guidance } else { 0.0 },
        denoise: denoise && looks.denoise,
        ..prefs.guidance
    };
    wanted.look()
}

/// A look in words.
pub fn describe(look: &SamplerOptions) -> String {
    let mut words = Vec::new();
    if let Some(guidance) = &look.guidance {
        let what = match guidance.what {
            Guided::A => "a",
            Guided::B => "b",
            Guided::Ab => "a and b",
        };
        let annealed = if guidance.annealed { ", annealed" } else { "" };
        let temperature = match guidance.attention_temperature {
            1.0 => String::new(),
            temperature => format!(", attention temperature {}", format::digits(temperature)),
        };
        words.push(format!("guidance {} on {what}{annealed}{temperature}", format::digits(guidance.scale)));
    }
    if look.denoise {
        words.push("denoised".into());
    }
    words.join(", ")
}

/// The section of the world card; nothing where the open oracle has no looks.
pub fn section(ui: &mut Ui, cx: &mut Cx) {
    let looks = available(cx.session);
    if !looks.any() {
        return;
    }
    let on = options(cx.session, cx.prefs);
    let title =
        on.as_ref().map_or_else(|| "Look (leaves the world): off".to_owned(), |on| format!("Look: {}", describe(on)));
    ui.add_space(4.0);
    egui::CollapsingHeader::new(title).id_salt("look").show(ui, |ui| {
        ui.horizontal_wrapped(|ui| {
            badge(ui, Badge::Illustrative, WHY);
            hint(ui, "Changes pictures only, never a figure.");
        });
        if looks.guidance {
            guidance(ui, &mut cx.prefs.guidance);
        }
        if looks.denoise {
            let meaning = "One step of Tweedie's formula, x + σ²∇ log p(x|y) at τ = 1: the mean of the images that the world's \
                           noise could have made x from.";
            ui.checkbox(&mut cx.prefs.guidance.denoise, "Denoise (one Tweedie step)").on_hover_text(meaning);
        }
        if ui.add_enabled(on.is_some(), egui::Button::new("Look off")).on_hover_text("Show the samples themselves").clicked() {
            cx.prefs.guidance = GuidancePrefs::default();
        }
    });
}

fn guidance(ui: &mut Ui, prefs: &mut GuidancePrefs) {
    let meaning = "Classifier-free guidance g, no unit: a + g(a - a_none), b + g(b - b_none), where a_none and b_none come from \
                   the pass without a class. 0 is off.";
    let label = ui.label("Guidance g (0 = off)").on_hover_text(meaning);
    let slider = Slider::new(&mut prefs.guidance, 0.0..=8.0).clamping(SliderClamping::Never).max_decimals(2);
    ui.add(slider.update_while_editing(false)).labelled_by(label.id);
    prefs.guidance = if prefs.guidance.is_finite() { prefs.guidance.clamp(0.0, 100.0) } else { 0.0 };
    ui.add_enabled_ui(prefs.guidance > 0.0, |ui| {
        ui.horizontal_wrapped(|ui| {
            ui.label("moves").on_hover_text("Which of a block's two outputs is moved");
            for (what, text, meaning) in [
                (Guided::Ab, "a and b", "Scale and shift"),
                (Guided::A, "a", "The log-scale alone"),
                (Guided::B, "b", "The shift alone"),
            ] {
                let option = ui.selectable_label(prefs.what == what, text).on_hover_text(meaning);
                if option.accessible_name(format!("Guidance moves {text}")).clicked() {
                    prefs.what = what;
                }
            }
        });
        let meaning = "g grows along the patches of a block, from 1/(T-1) of itself to all of it.";
        ui.checkbox(&mut prefs.annealed, "Annealed").on_hover_text(meaning);
        ui.horizontal(|ui| {
            let meaning =
                "Softmax temperature of the attention in the pass without a class, no unit; 1 is the trained flow.";
            let label = ui.label("Attention temperature").on_hover_text(meaning);
            let field = DragValue::new(&mut prefs.attention_temperature).range(0.05..=20.0).speed(0.02).max_decimals(3);
            ui.add(field.update_while_editing(false)).labelled_by(label.id);
        });
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_is_told_in_words_and_off_is_none() {
        let mut prefs = GuidancePrefs::default();
        assert_eq!(prefs.look(), None);
        prefs = GuidancePrefs { guidance: 2.5, annealed: true, denoise: true, ..prefs };
        assert_eq!(describe(&prefs.look().unwrap()), "guidance 2.5 on a and b, annealed, denoised");
        assert_eq!(describe(&GuidancePrefs { guidance: 0.0, ..prefs }.look().unwrap()), "denoised");
    }
}
