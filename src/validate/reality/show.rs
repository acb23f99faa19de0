//! Tables and figure of a reality check.

use super::Reality;
use crate::figure::{Axis, Figure, Point, Series, Style, Table, Value};
use crate::measure::{BINS, Estimate};

impl Reality {
    /// The figures side by side, and the reliability of the posterior.
    pub fn tables(&self) -> Vec<Table> {
        vec![self.errors(), self.bins()]
    }

    fn errors(&self) -> Table {
        let (n, images) = (self.images, format!("{} real images", self.images));
        let mut rows: Vec<(String, Value, String)> = vec![
            (
                "error of the world's decision".into(),
                Value::of(self.decision_error, 100.0),
                format!("{images}; Clopper-Pearson"),
            ),
            (
                "mean of 1 - max p".into(),
                Value::of(self.doubt, 100.0),
                format!("the same {images}; BCa bootstrap, rule of three"),
            ),
            (
                "the second less the first".into(),
                Value::of(self.surplus, 100.0),
                format!("the same {images}, paired; 0 where the world is nature"),
            ),
            (
                "Bayes error E of the world at τ = 1".into(),
                Value::of(self.of_the_world(), 100.0),
                self.world.how.clone(),
            ),
            ("calibration error ECE".into(), Value::of(self.ece, 100.0), format!("{images}, {BINS} bins; 0 is best")),
        ];
        if let Some(published) = &self.spec.published {
            let (name, error) = (format!("error of {}", published.name), 100.0 * published.error);
            rows.push((name, error.into(), "as published, without an interval".into()));
        }
        let part = if self.held_out { "the test part of " } else { "" };
        let caption = format!(
            "{n} images, {part}{}. World at τ = 1, T = 1, class prior {}. 95 % intervals. The upper end of the first figure bounds \
             nature's Bayes error where the images are held out; E of the world bounds it on neither side.",
            self.corpus,
            self.spec.prior.describe()
        );
        Table::of(&rows)
            .words("figure", |(figure, ..)| figure.as_str())
            .column("value", "%", 2, |(_, value, _)| value.clone())
            .words("from", |(.., from)| from.as_str())
            .named("reality", "The world's decisions on real images", caption)
    }

    fn bins(&self) -> Table {
        let caption = format!(
            "Real images in bins of max p, of {BINS} equal ones those that hold images. Where the world is nature, the share of right \
             decisions is the mean of max p. 95 % Wilson intervals."
        );
        Table::of(&self.reliability)
            .words("max p", |bin| format!("{:.3} to {:.3}", bin.low, bin.high))
            .words("images", |bin| bin.count.to_string())
            .column("mean of max p", "%", 2, |bin| 100.0 * bin.claimed)
            .column("right", "%", 2, |bin| Value::of(bin.right, 100.0))
            .named("reality-reliability", "Reliability of the posterior on real labels", caption)
    }

    /// Share of right decisions over what the posterior claims.
    pub fn figure(&self) -> Figure {
        let point = |bin: &super::RealBin| {
            let Estimate { value, interval } = bin.right;
            let label = Some(format!("{} images", bin.count));
            Point { label, ..Point::new(bin.claimed, value).within(interval.low, interval.high) }
        };
        let real = Series {
            name: "real images".into(),
            style: Style::Points,
            points: self.reliability.iter().map(point).collect(),
            ..Series::default()
        };
        let diagonal = vec![Point::new(0.0, 0.0), Point::new(1.0, 1.0)];
        let calibrated =
            Series { name: "calibrated".into(), colour: 1, points: diagonal, dashed: true, ..Series::default() };
        let said = [
            ("badge", "estimated: 95 % intervals over real images".to_owned()),
            ("oracle", self.spec.oracle.clone()),
            ("weights SHA-256", self.weights_sha256.clone()),
            ("τ", "1".into()),
            ("T", "1".into()),
            ("class prior π", self.spec.prior.describe()),
            ("real images", format!("{}, {} images", self.corpus, self.images)),
            ("seed", self.spec.seed.0.to_string()),
            ("program", format!("bayescope {}", env!("CARGO_PKG_VERSION"))),
        ];
        Figure {
            id: "reality-reliability".into(),
            title: "Reliability of the posterior on real labels".into(),
            caption: "Share of real images whose label is the world's decision, in bins of max p. Below the line the world is surer than \
                      it is right, above it doubts more than it errs."
                .into(),
            provenance: said.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
            x: Axis { range: Some([0.0, 1.0]), ..Axis::linear("mean of max p") },
            y: Axis { range: Some([0.0, 1.0]), ..Axis::linear("share of right decisions") },
            series: vec![calibrated, real],
            ..Figure::default()
        }
    }
}
