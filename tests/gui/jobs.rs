//! The list of jobs at the bottom of the window.

use egui_kittest::kittest::Queryable;

use super::{drop_in, full, labels};

#[test]
fn a_few_jobs_are_in_view_without_scrolling() {
    let (mut harness, _fake) = full();
    for folder in ["/data/a", "/data/b", "/data/c", "/data/d"] {
        drop_in(&mut harness, [folder]);
        harness.run_steps(6);
    }
    let status = harness.get_by_label_contains("4 jobs").rect();
    let buttons: Vec<_> = harness.query_all_by_label_contains("Cancel job ").map(|node| node.rect()).collect();
    assert_eq!(buttons.len(), 4, "{:?}", labels(&harness));
    for rect in buttons {
        assert!(rect.bottom() <= status.top(), "a row at {rect:?} is cut off by the status line at {status:?}");
    }
}
