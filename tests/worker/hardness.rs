//! Rankings of corpora as jobs of the worker.

use std::path::Path;

use bayescope::experiment::HardnessSpec;
use bayescope::oracle::train::TrainEvent;
use bayescope::run::Share;
use bayescope::run::hardness::{HardnessEvent, RankCorpora};
use bayescope::worker::protocol::{Event, Job, Outcome};

use super::common::pictures::pictures;
use super::{Bench, request};

fn job(data: &Path, folder: &Path) -> Job {
    let data = data.join("data").display().to_string();
    let corpus = |name: &str, more: &str| format!("[[corpora]]\nname = '{name}'\ndata = '{data}'\n{more}");
    let text = format!(
        "name = 'tiny'\n[experiment]\nkind = 'hardness'\n[images]\npad_to = 8\nheld_out = 16\n[model]\nhidden = 8\nlevels = 1\n\
         steps = 2\n[training]\nepochs = 6\nbatch = 16\nwarm_up_images = 32\nema_decay = 0.8\n{}{}",
        corpus("all", ""),
        corpus("some", "limit = 50\n")
    );
    let spec: HardnessSpec = toml::from_str(&text).unwrap();
    Job::task(RankCorpora { spec: Some(spec), folder: folder.to_owned(), share: Share::ALL })
}

#[test]
fn corpora_are_ranked_while_the_window_is_served_and_a_cancelled_ranking_goes_on() {
    let mut bench = Bench::new();
    let folder = tempfile::tempdir().unwrap();
    pictures(folder.path());
    let [whole, stopped] = ["whole", "stopped"].map(|name| folder.path().join(name));
    let first = bench.worker.submit(job(folder.path(), &whole));
    bench.worker.show(request(1, 20, 1.0, Vec::new()));
    assert!(!bench.gallery(1).is_empty());
    let outcome = bench.outcome(first);
    assert!(matches!(&outcome, Outcome::Done(text) if text.contains("2 of 2 corpora")), "{outcome:?}");

    let second = bench.worker.submit(job(folder.path(), &stopped));
    let epoch = |event: &HardnessEvent| match event {
        HardnessEvent::Training { said, .. } => matches!(**said, TrainEvent::Epoch { .. }),
        _ => false,
    };
    bench.until(|event| match event {
        Event::Task { id, news } if *id == second => news.event::<RankCorpora>().filter(|said| epoch(said)).map(drop),
        _ => None,
    });
    bench.worker.cancel(second);
    assert_eq!(bench.outcome(second), Outcome::Cancelled);
    assert!(!stopped.join("summary.json").exists(), "it was cancelled within the first corpus");
    let third = bench.worker.submit(Job::task(RankCorpora { spec: None, folder: stopped.clone(), share: Share::ALL }));
    let outcome = bench.outcome(third);
    assert!(matches!(outcome, Outcome::Done(_)), "{outcome:?}");
    let summary = |run: &Path| std::fs::read(run.join("summary.json")).unwrap();
    assert_eq!(summary(&whole), summary(&stopped), "a cancel changed the ranking");
}
