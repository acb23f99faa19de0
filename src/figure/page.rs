//! A page of figures and tables that is complete in itself: Markdown, and the files it shows.

use super::csv::comment;
use super::{Figure, RenderOptions, Table, csv, svg};

/// The page.
#[derive(Debug, Clone, PartialEq)]
pub struct Page {
    /// Name of its file.
    pub name: String,
    /// What stands above tables and figures: Markdown, with the title.
    pub head: String,
    /// Its figures.
    pub figures: Vec<Figure>,
    /// Its tables.
    pub tables: Vec<Table>,
    /// Where all its numbers come from.
    pub provenance: Vec<(String, String)>,
}

impl Page {
    /// Returns names and contents of `ID.csv` of each table, `ID.svg` and `ID-figure.csv` of each
    /// figure, and the page last.
    pub fn files(&self) -> Vec<(String, Vec<u8>)> {
        let mut files = Vec::new();
        let mut page = self.head.clone();
        for table in &self.tables {
            let lines = self.provenance.iter().map(|(name, value)| comment(&format!("{name}: {value}")));
            files.push((format!("{}.csv", table.id), (lines.collect::<String>() + &table.csv()).into_bytes()));
            page += &format!("\n{}", table.markdown());
        }
        for figure in &self.figures {
            let Figure { id, title, caption, .. } = figure;
            files.push((format!("{id}.svg"), svg(figure, &RenderOptions::default()).into_bytes()));
            // A table of the same name has the name alone.
            files.push((format!("{id}-figure.csv"), csv(figure).into_bytes()));
            page += &format!("\n## {title}\n\n![{title}]({id}.svg)\n\n{caption}\n");
        }
        page += "\n## Provenance\n\n";
        for (name, value) in &self.provenance {
            page += &format!("* {name}: {value}\n");
        }
        files.push((self.name.clone(), page.into_bytes()));
        files
    }
}
