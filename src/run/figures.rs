//! Figures and tables of a run with their provenance, and their files.

use std::path::{Path, PathBuf};

use super::folder::RunFolder;
use crate::data::write_named;
use crate::error::{Error, Result};
use crate::experiment::Summary;
use crate::figure::{Figure, RenderOptions, Table, csv, pdf, png, svg, thin};
use crate::oracle::folder::glance;
use crate::oracle::library;
use crate::oracle::posterior::Prior;

/// Dots of a PNG for each of the figure's pixels: sharp in print.
const PNG_SCALE: f32 = 2.0;
/// Dots an inch of a PNG whose size on paper is known.
const PAPER_DOTS: f64 = 300.0;
/// Points of a long line for each pixel of a picture: more are not told apart.
const POINTS_A_PIXEL: f64 = 2.0;

impl RunFolder {
    /// SHA-256 of the oracle's weights, where it is at hand and still the one of the plan.
    pub fn world_sha256(&self) -> Option<String> {
        self.planned_on().map(|(_, hash)| hash)
    }

    /// What opens the oracle of the plan: the name in the spec, or that of an earlier bundled world of this name.
    pub fn oracle(&self) -> String {
        self.planned_on().map_or_else(|| self.spec.world.oracle.clone(), |(oracle, _)| oracle)
    }

    /// What opens the oracle of the plan, where it is at hand, and the SHA-256 of its weights.
    pub fn planned_on(&self) -> Option<(String, String)> {
        let named = &self.spec.world.oracle;
        let oracles = std::iter::once(named.clone()).chain(library::versions(named));
        let mut known = oracles.filter_map(|oracle| Some((glance(&oracle)?, oracle)));
        let (info, oracle) = known.find(|(info, _)| self.is_on(&info.world_id()).unwrap_or(false))?;
        Some((oracle, info.weights_sha256))
    }

    /// The figures of a summary of this run; `world` is [`Self::world_sha256`].
    pub fn figures(&self, summary: &Summary, world: Option<&str>) -> Vec<Figure> {
        let mut figures = summary.figures();
        let provenance = self.provenance(summary, world);
        for figure in &mut figures {
            // What a figure says of itself stands; the rest is the run's.
            let said = |name: &str| figure.provenance.iter().any(|(known, _)| known == name);
            let more: Vec<_> = provenance.iter().filter(|(name, _)| !said(name)).cloned().collect();
            figure.provenance.extend(more);
        }
        figures
    }

    fn provenance(&self, summary: &Summary, world: Option<&str>) -> Vec<(String, String)> {
        let spec = &self.spec;
        let prior = match Prior::new(&spec.world.prior) {
            Ok(prior) => prior.describe(),
            // None is given.
            Err(_) => "uniform".into(),
        };
        let mut said = vec![
            ("run", spec.name.clone()),
            ("experiment", spec.experiment.about().name.to_owned()),
            ("oracle", spec.world.oracle.clone()),
            ("weights SHA-256", world.unwrap_or("not at hand").to_owned()),
        ];
        if spec.experiment.tau(0).is_none() {
            said.push(("τ", spec.world.tau.get().to_string()));
        }
        said.extend([
            ("T", spec.world.smoothing.get().to_string()),
            ("class prior π", prior),
            ("world seed", spec.world.seed.to_string()),
            ("test images", spec.test.images.to_string()),
            ("cells", format!("{} of {}", summary.finished, summary.planned)),
            ("program", format!("bayescope {}", env!("CARGO_PKG_VERSION"))),
        ]);
        said.extend(spec.world.label_noise.as_ref().map(|noise| ("label noise", noise.describe())));
        said.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }
}

/// A kind of file a figure can become.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Its points as comma-separated values.
    Csv,
    /// A drawing.
    Svg,
    /// A page.
    Pdf,
    /// A picture.
    Png,
}

impl Format {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Svg, Self::Pdf, Self::Png, Self::Csv];
    /// Those of a folder of figures: its page shows the pictures, and a drawing becomes a PDF anywhere.
    const OF_A_FOLDER: [Self; 3] = [Self::Svg, Self::Png, Self::Csv];

    /// Extension of its files.
    pub fn extension(self) -> &'static str {
        match self {
            Self::Csv => "csv",
            Self::Svg => "svg",
            Self::Pdf => "pdf",
            Self::Png => "png",
        }
    }

    /// The kind that the extension of a file asks for.
    pub fn of(path: &Path) -> Option<Self> {
        let extension = path.extension()?.to_ascii_lowercase();
        Self::ALL.into_iter().find(|format| extension == format.extension())
    }

    /// The file of a figure. Pictures have of a long line what they can show, comma-separated values every point.
    ///
    /// # Errors
    /// When a picture cannot be encoded.
    pub fn encode(self, figure: &Figure, look: &RenderOptions) -> Result<Vec<u8>> {
        let seen = || thin(figure, figure.x.range, (POINTS_A_PIXEL * look.width) as usize);
        Ok(match self {
            Self::Csv => csv(figure).into_bytes(),
            Self::Svg => svg(&seen(), look).into_bytes(),
            Self::Pdf => pdf(&seen(), look)?,
            Self::Png => {
                png(&seen(), look, look.paper.map_or(PNG_SCALE, |points| (points * PAPER_DOTS / 72.0) as f32))?
            }
        })
    }
}

/// Writes figures and tables into a folder, and a page with all (`figures.md`). Returns the files.
///
/// # Errors
/// Names the file that cannot be written.
pub fn write_figures(figures: &[Figure], tables: &[Table], folder: &Path, title: &str) -> Result<Vec<PathBuf>> {
    std::fs::create_dir_all(folder).map_err(|e| Error::io(folder, e))?;
    let mut written = Vec::new();
    let mut page = format!("# {title}\n");
    for figure in figures {
        for format in Format::OF_A_FOLDER {
            let name = format!("{}.{}", figure.id, format.extension());
            written.push(write_named(folder, &name, &format.encode(figure, &RenderOptions::default())?)?);
        }
        page += &format!("\n## {}\n\n![{}]({}.png)\n\n{}\n", figure.title, figure.title, figure.id, figure.caption);
        let said = figure.provenance.iter().map(|(name, value)| format!("{name}: {value}"));
        page += &format!("\n_{}_\n", said.collect::<Vec<_>>().join(" · "));
    }
    for table in tables {
        // A figure of the same name has it.
        let taken = figures.iter().any(|figure| figure.id == table.id);
        let name = if taken { format!("{}-table.csv", table.id) } else { format!("{}.csv", table.id) };
        written.push(write_named(folder, &name, table.csv().as_bytes())?);
        page += &format!("\n{}", table.markdown());
    }
    written.push(write_named(folder, "figures.md", page.as_bytes())?);
    Ok(written)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::Axis;

    #[test]
    fn a_table_leaves_the_figure_of_its_name_alone() {
        let folder = tempfile::tempdir().unwrap();
        let figure = Figure { id: "gain".into(), x: Axis::linear("n"), y: Axis::linear("gain"), ..Figure::default() };
        let table = |id: &str| Table::of([1usize; 0]).words("n", |n| n).named(id, "Gains", "of a table");
        let written = write_figures(&[figure], &[table("gain"), table("laws")], folder.path(), "run").unwrap();
        let mut names: Vec<String> =
            written.iter().map(|path| path.file_name().unwrap().to_string_lossy().into_owned()).collect();
        names.sort();
        assert_eq!(names, ["figures.md", "gain-table.csv", "gain.csv", "gain.png", "gain.svg", "laws.csv"]);
        let text = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
        assert!(text("gain-table.csv").contains("of a table") && !text("gain.csv").contains("of a table"));
    }
}
