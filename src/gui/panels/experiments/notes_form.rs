//! What people say of the run that is shown: its name, tags and notes, as they are typed.

use std::collections::BTreeMap;
use std::path::PathBuf;

use eframe::egui::{self, Button, TextEdit, Ui};

use crate::gui::command::Command;
use crate::gui::command::RunCommand;
use crate::gui::context::Cx;
use crate::gui::session::runs::RunView;
use crate::gui::widgets::hint;
use crate::run::RunNotes;

/// Width of a field, points.
const FIELD: f32 = 360.0;
/// Lines of the field for notes.
const LINES: usize = 3;

/// The fields, and what they were filled with.
#[derive(Default)]
pub struct NotesForm {
    of: Option<(PathBuf, RunNotes)>,
    name: String,
    tags: String,
    notes: String,
    /// What was typed of other runs and not saved yet, by their folders: name, tags and notes.
    drafts: BTreeMap<PathBuf, [String; 3]>,
}

impl NotesForm {
    /// The fields of a run, folded until they are asked for.
    pub fn show(&mut self, ui: &mut Ui, cx: &mut Cx, run: &RunView) {
        let known = run.notes.clone().unwrap_or_default();
        let typed = self.typed();
        match &mut self.of {
            Some((folder, before)) if *folder == run.folder => {
                // What is being typed stays, whatever the file says meanwhile.
                if known == typed {
                    *before = known;
                } else if *before == typed {
                    self.fill(run.folder.clone(), known);
                }
            }
            _ => self.turn_to(run.folder.clone(), known),
        }
        egui::CollapsingHeader::new("Name, tags and notes").id_salt("notes of a run").show(ui, |ui| {
            if run.notes.is_err() {
                hint(ui, "Its notes.toml cannot be read: what is saved here replaces it.");
            }
            self.fields(ui);
            let notes = self.typed();
            let changed = run.notes.as_ref() != Ok(&notes);
            let save = ui.add_enabled(changed, Button::new("Save name, tags and notes"));
            let save = save.on_hover_text("Into notes.toml in the folder of the run, for everybody who opens it");
            if save.on_disabled_hover_text("Nothing has changed.").clicked() {
                cx.commands.push(Command::Run(RunCommand::Notes(run.folder.clone(), notes)));
            }
        });
    }

    /// Another run is shown. What was typed of the one before waits for it; what waits for this one comes back.
    fn turn_to(&mut self, folder: PathBuf, known: RunNotes) {
        let typed = self.typed();
        if let Some((left, _)) = self.of.take_if(|(_, before)| *before != typed) {
            self.drafts.insert(left, [&mut self.name, &mut self.tags, &mut self.notes].map(std::mem::take));
        }
        let draft = self.drafts.remove(&folder);
        self.fill(folder, known);
        if let Some([name, tags, notes]) = draft {
            (self.name, self.tags, self.notes) = (name, tags, notes);
        }
    }

    fn typed(&self) -> RunNotes {
        RunNotes::typed(&self.name, &self.tags, &self.notes)
    }

    fn fill(&mut self, folder: PathBuf, notes: RunNotes) {
        (self.name, self.tags, self.notes) = (notes.name.clone(), notes.tags.join(", "), notes.notes.clone());
        self.of = Some((folder, notes));
    }

    fn fields(&mut self, ui: &mut Ui) {
        let fields = [
            ("Own name", &mut self.name, "What lists and legends call this run, in place of the name of its folder", 1),
            ("Tags", &mut self.tags, "Words to find it by, with commas between them", 1),
            ("Notes", &mut self.notes, "Anything worth remembering about it", LINES),
        ];
        egui::Grid::new("fields of notes").num_columns(2).show(ui, |ui| {
            for (name, text, about, lines) in fields {
                let label = ui.label(name);
                let field =
                    if lines > 1 { TextEdit::multiline(text).desired_rows(lines) } else { TextEdit::singleline(text) };
                ui.add(field.desired_width(FIELD)).labelled_by(label.id).on_hover_text(about);
                ui.end_row();
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_typed_of_a_run_outlasts_a_look_at_another() {
        let mut form = NotesForm::default();
        let (first, second) = (PathBuf::from("/runs/first"), PathBuf::from("/runs/second"));
        let known = RunNotes::typed("known", "", "");
        form.turn_to(first.clone(), known.clone());
        form.notes = "half a sentence".into();
        form.turn_to(second.clone(), RunNotes::default());
        assert_eq!((form.typed(), form.drafts.len()), (RunNotes::default(), 1));
        form.turn_to(first.clone(), known.clone());
        assert_eq!((form.typed(), form.drafts.len()), (RunNotes::typed("known", "", "half a sentence"), 0));
        // What was saved is no draft.
        form.of = Some((first, form.typed()));
        form.turn_to(second, RunNotes::default());
        assert!(form.drafts.is_empty());
    }
}
