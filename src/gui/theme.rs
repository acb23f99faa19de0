//! Colours and distances, light and dark. Classes and curves have the figures' (`figure::colour`).

use eframe::egui::ecolor::Hsva;
use eframe::egui::{self, Color32, Stroke};

use super::prefs::ThemePreference;
use crate::figure;
pub use crate::provenance::Badge;

/// Gap between two thumbnails, points.
pub const TILE_GAP: f32 = 3.0;
/// Height of a posterior bar, points.
pub const BAR_HEIGHT: f32 = 14.0;
/// Space between two sections of a card, points.
pub const SECTION_GAP: f32 = 10.0;

/// The colours of one of the two themes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Theme {
    dark: bool,
}

fn rgb(hex: u32) -> Color32 {
    let [_, r, g, b] = hex.to_be_bytes();
    Color32::from_rgb(r, g, b)
}

impl Theme {
    /// The theme this piece of the window is painted in.
    pub fn of(ui: &egui::Ui) -> Self {
        Self { dark: ui.visuals().dark_mode }
    }

    /// The theme of the whole window.
    pub fn of_window(ctx: &egui::Context) -> Self {
        Self { dark: ctx.global_style().visuals.dark_mode }
    }

    /// Light on dark.
    pub fn is_dark(self) -> bool {
        self.dark
    }

    fn pick(self, light: u32, dark: u32) -> Color32 {
        rgb(if self.dark { dark } else { light })
    }

    /// The colour of a class: of the palette for up to [`figure::COLOURS`] classes, else a wheel of
    /// hues.
    pub fn class(self, class: usize, classes: usize) -> Color32 {
        if classes <= figure::COLOURS {
            return self.curve(class);
        }
        let hue = (class as f32 * 0.618_034).fract();
        let band = (class % 3) as f32 * 0.12;
        // Linear light: what looks half as bright is a fifth.
        let (saturation, value) = if self.dark { (0.45 + band, 0.92 - band) } else { (0.95 - band, 0.2 + 0.4 * band) };
        Hsva::new(hue, saturation, value, 1.0).into()
    }

    /// Outline of images whose label is not the Bayes decision.
    pub fn mismatch(self) -> Color32 {
        self.pick(0xd1381f, 0xff7a5c)
    }

    /// Selection and focus.
    pub fn accent(self) -> Color32 {
        self.pick(0x1668c7, 0x5aa9ff)
    }

    /// Text that may be overlooked.
    pub fn weak(self) -> Color32 {
        self.pick(0x5c626b, 0x9aa2ad)
    }

    pub fn error(self) -> Color32 {
        self.pick(0xb42318, 0xff8a7a)
    }

    pub fn warning(self) -> Color32 {
        self.pick(0x8a5a00, 0xf2c14e)
    }

    pub fn good(self) -> Color32 {
        self.pick(0x1f7a3d, 0x6fd08c)
    }

    /// The ground of a bar.
    pub fn trough(self) -> Color32 {
        self.pick(0xe3e6ea, 0x2c3138)
    }

    pub fn grid(self) -> Color32 {
        self.pick(0xc3c9d1, 0x474e58)
    }

    /// A place where a picture is still to come.
    pub fn placeholder(self) -> Color32 {
        self.pick(0xeceef1, 0x23272d)
    }

    /// The tint of an image of the knobs before.
    pub fn before(self) -> Color32 {
        UNTINTED.gamma_multiply(0.4)
    }

    /// The veil over an image that is still being made, and text on it.
    pub fn unfinished(self) -> Color32 {
        self.pick(0xf7f8fa, 0x181b20).gamma_multiply(0.55)
    }

    /// The ground of a label on [`Self::unfinished`].
    pub fn unfinished_label(self) -> Color32 {
        self.pick(0xf7f8fa, 0x181b20).gamma_multiply(0.85)
    }

    /// Text on [`Self::unfinished`].
    pub fn on_unfinished(self) -> Color32 {
        self.pick(0x10151b, 0xf5f9fd)
    }

    pub fn badge(self, badge: Badge) -> Color32 {
        match badge {
            Badge::Exact => self.good(),
            Badge::Bounded => self.accent(),
            Badge::Estimated => self.warning(),
            Badge::Illustrative => self.weak(),
        }
    }

    /// A heat map's colour, 0 to 1: from the ground to what stands out most.
    pub fn heat(self, share: f32) -> Color32 {
        const STOPS: [[u32; 2]; 4] =
            [[0xeef2f7, 0x1b222b], [0x9cc4e4, 0x1d4f7c], [0x3479b5, 0x3f92cf], [0x0b2f5e, 0xd3ecff]];
        let place = share.clamp(0.0, 1.0) * (STOPS.len() - 1) as f32;
        let first = (place as usize).min(STOPS.len() - 2);
        let stop = |i: usize| self.pick(STOPS[i][0], STOPS[i][1]);
        stop(first).lerp_to_gamma(stop(first + 1), place - first as f32)
    }

    /// Text on a heat map's colour.
    pub fn on_heat(self, share: f32) -> Color32 {
        let strong = if self.dark { share > 0.62 } else { share < 0.5 };
        rgb(if strong { 0x10151b } else { 0xf5f9fd })
    }

    /// A diverging map's colour, −1 to 1: blue, the ground at 0, orange.
    pub fn diverging(self, share: f32) -> Color32 {
        let [r, g, b] = figure::diverging(share.into(), self.dark);
        pixel(r, g, b)
    }

    /// The same as a veil over a picture: transparent at 0, covering by `strength`, 0 to 1, at the
    /// ends.
    pub fn veil(self, share: f32, strength: f32) -> Color32 {
        let end = if share < 0.0 { rgb(0x2f7fe0) } else { rgb(0xff8a1f) };
        end.gamma_multiply(strength * share.abs().min(1.0).sqrt())
    }

    /// Curves of a plot: the colour of a series in the figures.
    pub fn curve(self, n: usize) -> Color32 {
        let [r, g, b] = figure::colour(n, self.dark);
        pixel(r, g, b)
    }
}

/// The colour of a class, sRGB, on a light and on a dark ground.
pub fn both_grounds(class: usize, classes: usize) -> [[u8; 3]; 2] {
    [false, true].map(|dark| {
        let colour = Theme { dark }.class(class, classes);
        [colour.r(), colour.g(), colour.b()]
    })
}

/// Pictures are shown as they are, whatever the theme.
pub const UNTINTED: Color32 = Color32::WHITE;
/// No colour: what an atlas page holds before its first tile, and the fill of panels where the window is cleared with theirs.
pub const EMPTY: Color32 = Color32::TRANSPARENT;

pub fn pixel(r: u8, g: u8, b: u8) -> Color32 {
    Color32::from_rgb(r, g, b)
}

/// Light or dark as the user wants it.
pub fn preference(wanted: ThemePreference) -> egui::ThemePreference {
    match wanted {
        ThemePreference::System => egui::ThemePreference::System,
        ThemePreference::Light => egui::ThemePreference::Light,
        ThemePreference::Dark => egui::ThemePreference::Dark,
    }
}

/// Sets egui's fonts and styles once.
pub fn install(ctx: &egui::Context) {
    // Ubuntu has no ∝, ∇ or ‖; Hack, which comes with egui too, has.
    let mut fonts = egui::FontDefinitions::default();
    if let Some(proportional) = fonts.families.get_mut(&egui::FontFamily::Proportional) {
        proportional.push("Hack".into());
    }
    ctx.set_fonts(fonts);
    // The size of everything is a setting with keys of its own.
    ctx.options_mut(|options| options.zoom_with_keyboard = false);
    for (kind, dark) in [(egui::Theme::Light, false), (egui::Theme::Dark, true)] {
        let theme = Theme { dark };
        ctx.style_mut_of(kind, |style| {
            style.text_styles.insert(egui::TextStyle::Small, egui::FontId::proportional(11.0));
            style.spacing.item_spacing = egui::vec2(8.0, 5.0);
            style.spacing.button_padding = egui::vec2(8.0, 3.0);
            style.spacing.slider_width = 130.0;
            // Bars are always there, so edges need not fade, which a panel without a fill of its own could not.
            style.spacing.scroll = egui::style::ScrollStyle::solid();
            style.spacing.scroll.fade.strength = 0.0;
            style.interaction.tooltip_delay = 0.35;
            let visuals = &mut style.visuals;
            visuals.panel_fill = theme.pick(0xf7f8fa, 0x181b20);
            visuals.window_fill = theme.pick(0xffffff, 0x1f2329);
            visuals.extreme_bg_color = theme.pick(0xffffff, 0x101317);
            visuals.selection.bg_fill = theme.pick(0xbcd9fb, 0x1f4e80);
            visuals.selection.stroke = Stroke::new(1.0, theme.pick(0x0b3a70, 0xe6f1ff));
            visuals.hyperlink_color = theme.accent();
            visuals.error_fg_color = theme.error();
            visuals.warn_fg_color = theme.warning();
            visuals.slider_trailing_fill = true;
            let text = theme.pick(0x20242a, 0xd7dce2);
            visuals.widgets.noninteractive.fg_stroke.color = text;
            visuals.widgets.inactive.fg_stroke.color = text;
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_painted_on_a_ground_of_the_window_is_visible_there() {
        let ctx = egui::Context::default();
        install(&ctx);
        let bytes = |colour: Color32| [colour.r(), colour.g(), colour.b()];
        for (kind, dark) in [(egui::Theme::Light, false), (egui::Theme::Dark, true)] {
            let (theme, visuals) = (Theme { dark }, ctx.style_of(kind).visuals.clone());
            let words = [theme.weak(), theme.error(), theme.warning(), theme.good(), theme.accent()];
            let words = words.into_iter().chain([visuals.text_color()]).map(|colour| (colour, 4.5));
            let data = (0..figure::COLOURS).map(|i| (theme.curve(i), 3.0));
            for (colour, least) in words.chain(data) {
                for ground in [visuals.panel_fill, visuals.window_fill, visuals.extreme_bg_color] {
                    let contrast = figure::contrast(bytes(colour), bytes(ground));
                    assert!(contrast >= least, "{colour:?} on {ground:?}: {contrast}");
                }
            }
        }
    }
}
