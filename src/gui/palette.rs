//! Ctrl+P: every command by name.

use eframe::egui::{self, Id, Key, Modal, Modifiers, RichText, TextEdit, vec2};

use super::command::{Command, Entry};
use super::theme::Theme;
use super::widgets;

/// Height of the list, and what of the window's height is not for it: the field, edges and a margin; points.
const LIST: f32 = 340.0;
const BESIDE: f32 = 90.0;

/// The palette; closed by default.
#[derive(Default)]
pub struct Palette {
    open: bool,
    text: String,
    chosen: usize,
}

impl Palette {
    pub fn toggle(&mut self) {
        *self = Self { open: !self.open, ..Self::default() };
    }

    pub fn is_open(&self) -> bool {
        self.open
    }

    /// Shows it, if open, and returns the command that was chosen.
    pub fn show(&mut self, ctx: &egui::Context, entries: impl FnOnce() -> Vec<Entry>) -> Option<Command> {
        if !self.open {
            return None;
        }
        // Before the field, which would take them.
        let (up, down, enter) = ctx.input_mut(|input| {
            let mut key = |key| input.consume_key(Modifiers::NONE, key);
            (key(Key::ArrowUp), key(Key::ArrowDown), key(Key::Enter))
        });
        let modal = Modal::new(Id::unique("palette")).show(ctx, |ui| {
            ui.set_width(440.0);
            let field = TextEdit::singleline(&mut self.text).hint_text("Type a command").desired_width(f32::INFINITY);
            let field = ui.add(field).accessible_name("Command");
            field.request_focus();
            if field.changed() {
                self.chosen = 0;
            }
            // After the field: in a slow frame the Enter key comes together with what was typed before it.
            let matching = matching(&self.text, entries());
            let last = matching.len().saturating_sub(1);
            self.chosen = (self.chosen + usize::from(down)).saturating_sub(usize::from(up)).min(last);
            let clicked = list(ui, &matching, self.chosen, up || down);
            enter.then_some(self.chosen).or(clicked).and_then(|place| Some(matching.get(place)?.command.clone()))
        });
        if modal.inner.is_some() || modal.should_close() {
            *self = Self::default();
        }
        modal.inner
    }
}

/// The entries that a text finds, the best first.
fn matching(text: &str, entries: Vec<Entry>) -> Vec<Entry> {
    let found = entries.into_iter().filter_map(|entry| Some((score(text, &entry.title)?, entry)));
    let mut found: Vec<((u8, i32), Entry)> = found.collect();
    found.sort_by_key(|(score, _)| *score);
    found.into_iter().map(|(_, entry)| entry).collect()
}

/// Shows the entries, and brings the chosen one into view where a key `moved`. Returns the one that was clicked.
fn list(ui: &mut egui::Ui, entries: &[Entry], chosen: usize, moved: bool) -> Option<usize> {
    // egui would give a long list no more room than the short one before had.
    let room = (ui.ctx().content_rect().height() - BESIDE).clamp(0.0, LIST);
    let mut clicked = None;
    widgets::list(room).auto_shrink([false, true]).show(ui, |ui| {
        for (place, entry) in entries.iter().enumerate() {
            let line = line(ui, entry, place == chosen);
            if moved && place == chosen {
                line.scroll_to_me(None);
            }
            if line.clicked() {
                clicked = Some(place);
            }
        }
        if entries.is_empty() {
            ui.label("No command of that name.");
        }
    });
    clicked
}

fn line(ui: &mut egui::Ui, entry: &Entry, chosen: bool) -> egui::Response {
    let keys = entry.shortcut.map(|keys| ui.ctx().format_shortcut(&keys)).unwrap_or_default();
    let weak = Theme::of(ui).weak();
    let button = egui::Button::selectable(chosen, &entry.title).right_text(RichText::new(keys).color(weak));
    ui.add(button.min_size(vec2(ui.available_width(), 0.0)))
}

/// Returns whether the letters of `wanted` occur in `title` in this order; smaller is better. First comes what is
/// called so (a title may say before its colon what is done with what), then what has `wanted` as whole words, then as the
/// beginning of a word, then anywhere, then with gaps.
fn score(wanted: &str, title: &str) -> Option<(u8, i32)> {
    let title = title.to_lowercase();
    let phrase = wanted.trim().to_lowercase();
    if phrase.is_empty() {
        return Some((0, 0));
    }
    let apart = |letter: Option<char>| letter.is_none_or(|letter| !letter.is_alphanumeric());
    let kind = |(at, found): (usize, &str)| {
        let begins = apart(title[..at].chars().next_back());
        let ends = apart(title[at + found.len()..].chars().next());
        [3, 2, 1][usize::from(begins) + usize::from(begins && ends)]
    };
    let name = title.split_once(": ").map_or(&*title, |(_, name)| name);
    let kind = match name == phrase {
        true => 0,
        false => title.match_indices(&phrase).map(kind).min().unwrap_or(4),
    };
    let mut from = 0;
    let mut gaps = 0;
    for letter in wanted.to_lowercase().chars().filter(|letter| !letter.is_whitespace()) {
        let found = title[from..].find(letter)?;
        gaps += found as i32;
        from += found + letter.len_utf8();
    }
    Some((kind, gaps))
}

#[cfg(test)]
mod tests {
    use eframe::egui::{Context, Event, Pos2, RawInput, Rect};

    use super::*;

    #[test]
    fn letters_in_order_match_and_closer_ones_come_first() {
        assert!(score("nsm", "New samples").is_some());
        assert!(score("zq", "New samples").is_none());
        assert!(score("new", "New samples") < score("new", "Nothing else with w"));
        assert_eq!([score("", "New samples"), score(" ", "Open oracle: mnist")], [Some((0, 0)); 2], "in their order");
        let best = ["Show panel: Draw", "Drawing: save it", "Redraw Figure 1", "Do run always when"];
        assert!(best.windows(2).all(|pair| score("draw", pair[0]) < score("draw", pair[1])));
        let named = ["Show panel: Bayes error", "Bayes error of a run", "Copy the Bayes error"];
        assert!(named.windows(2).all(|pair| score("bayes error", pair[0]) < score("bayes error", pair[1])));
    }
    #[test]
    fn the_list_is_as_high_again_after_a_short_one() {
        let entry = |i: usize| Entry { title: format!("Line {i}"), shortcut: None, command: Command::Palette };
        let (ctx, mut palette) = (Context::default(), Palette::default());
        let height = |palette: &mut Palette| {
            for _ in 0..4 {
                let screen_rect = Some(Rect::from_min_size(Pos2::ZERO, vec2(1280.0, 800.0)));
                let mut output = ctx.run_ui(RawInput { screen_rect, ..RawInput::default() }, |ui| {
                    let picked = palette.show(ui.ctx(), || (0..40).map(entry).collect());
                    assert_eq!(picked, None);
                });
                output.textures_delta.clear();
            }
            ctx.memory(|memory| memory.area_rect(Id::unique("palette"))).unwrap().height()
        };
        palette.toggle();
        let whole = height(&mut palette);
        palette.text = "17".into();
        assert!(height(&mut palette) < 0.5 * whole && whole > LIST);
        palette.toggle();
        palette.toggle();
        assert_eq!(height(&mut palette), whole);
    }

    #[test]
    fn what_is_typed_in_the_frame_of_the_enter_key_counts() {
        let oracle = |i: usize| Command::OpenOracle(i.to_string());
        let entry = |i: usize| Entry { title: format!("Line {i}"), shortcut: None, command: oracle(i) };
        let (ctx, mut palette) = (Context::default(), Palette::default());
        palette.toggle();
        let mut frame = |events: Vec<Event>| {
            let mut picked = None;
            let mut output = ctx.run_ui(RawInput { events, ..RawInput::default() }, |ui| {
                picked = picked.take().or(palette.show(ui.ctx(), || (0..40).map(entry).collect()));
            });
            output.textures_delta.clear();
            picked
        };
        assert_eq!((0..3).find_map(|_| frame(Vec::new())), None);
        let (key, modifiers) = (Key::Enter, Modifiers::NONE);
        let enter = Event::Key { key, physical_key: None, pressed: true, repeat: false, modifiers };
        assert_eq!(frame(vec![Event::Text("17".into()), enter]), Some(oracle(17)));
    }
}
