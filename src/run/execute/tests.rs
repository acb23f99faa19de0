use super::super::cell_lock::CellLock;
use super::*;
use crate::flow::weights::{HostTensor, Storage};
use crate::run::{State, Status};

/// A plan of so many cells that lies in a folder.
fn planned(place: &Path, seeds: &[u64]) -> RunFolder {
    let grid = format!("architectures = ['linear']\ntrain_sizes = [100]\nseeds = {seeds:?}\n");
    let text = format!("name = 'x'\n[world]\noracle = 'mnist'\n[grid]\n{grid}");
    RunFolder::create(&place.join("run"), &toml::from_str(&text).unwrap(), "0123", None).unwrap()
}

#[test]
fn a_cell_of_another_job_of_this_process_is_left_to_it_and_not_waited_for() {
    let place = tempfile::tempdir().unwrap();
    let folder = planned(place.path(), &[0]);
    let held = CellLock::take(&folder.cell(&folder.plan[0].id)).unwrap();
    let unfinished = Unfinished::none();
    let mut told = Vec::new();
    let mut events = |event: RunEvent| {
        told.push(event);
        ControlFlow::Continue(())
    };
    let leave = |events: &mut dyn Events<RunEvent>| {
        let mut left = folder.plan.iter();
        let mut one = |_: &Planned, _: &mut dyn Events<RunEvent>| panic!("it is computed");
        run_cells(&folder, (&mut || left.next(), None), &unfinished, &mut one, events).unwrap();
    };
    leave(&mut events);
    let why = wait_for_others(&folder, &unfinished, &mut events).unwrap_err().to_string();
    assert!(why.contains("another job of this program"), "{why}");
    leave(&mut events);
    drop(held);
    assert_eq!(wait_for_others(&folder, &unfinished, &mut events).unwrap(), [&folder.plan[0]]);
    // Another one that finishes it meanwhile.
    let cell = folder.cell(&folder.plan[0].id);
    let held = CellLock::take(&cell).unwrap();
    leave(&mut events);
    std::fs::write(cell.join("result.json"), "{}").unwrap();
    assert!(wait_for_others(&folder, &unfinished, &mut events).unwrap().is_empty());
    drop(held);
    leave(&mut events);
    let finished = |event: &&RunEvent| matches!(event, RunEvent::FinishedElsewhere { .. });
    let left = |event: &&RunEvent| matches!(event, RunEvent::Elsewhere { waiting: false, .. });
    assert_eq!((told.len(), told.iter().filter(left).count(), told.iter().filter(finished).count()), (5, 3, 2));
}

#[test]
fn a_damaged_result_is_named_with_the_way_out_and_no_sitting_ends_well_beside_it() {
    let place = tempfile::tempdir().unwrap();
    let folder = planned(place.path(), &[0, 1]);
    let (id, label) = (&folder.plan[0].id, folder.plan[0].label());
    let result = folder.result_path(id);
    std::fs::create_dir_all(result.parent().unwrap()).unwrap();
    let way_out = format!("delete it: `bayescope resume {}` computes the cell again", folder.path.display());
    for damaged in ["", "{\"id\": 7", "{}"] {
        std::fs::write(&result, damaged).unwrap();
        let found = folder.write_summary().unwrap();
        assert_eq!((found.planned, found.finished, found.damaged.len(), &found.damaged[0].id), (2, 0, 1, id));
        let said = found.damaged[0].warning();
        assert!(said.starts_with(&label) && said.contains("result.json") && said.contains(&way_out), "{said}");
        let written = std::fs::read(folder.path.join("summary.json")).unwrap();
        assert_eq!(serde_json::from_slice::<Summary>(&written).unwrap(), found);
        let why = conclude(&folder, &Unfinished::none(), &mut silent()).unwrap_err().to_string();
        assert_eq!(why, said);
    }
    std::fs::remove_file(&result).unwrap();
    assert!(conclude(&folder, &Unfinished::none(), &mut silent()).unwrap().damaged.is_empty());
}

#[test]
fn weights_that_changed_after_the_plan_start_no_cell() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("start.safetensors");
    let write = |value: f32| {
        let array = HostTensor::full([2], value);
        Weights([("fc.bias".to_owned(), array)].into_iter().collect()).write(&file, Storage::F32).unwrap();
    };
    write(1.0);
    let text = format!(
        "name = 'x'\n[world]\noracle = 'mnist'\n[grid]\narchitectures = ['linear', 'mlp-500']\ntrain_sizes = [100]\nseeds = [0]\n\
         [pretrained]\nlinear = {file:?}\n"
    );
    let folder = RunFolder::create(&place.path().join("run"), &toml::from_str(&text).unwrap(), "0123", None).unwrap();
    let cell = |architecture: &str| {
        let named = |planned: &&Planned| planned.cell.architecture.name() == architecture;
        folder.plan.iter().find(named).unwrap().cell
    };
    let found = start(&folder, &cell("linear")).unwrap().unwrap();
    assert_eq!(found.0["fc.bias"].values, [1.0, 1.0]);
    assert!(start(&folder, &cell("mlp-500")).unwrap().is_none());
    write(2.0);
    let refused = start(&folder, &cell("linear")).unwrap_err().to_string();
    assert!(refused.contains("start.safetensors") && refused.contains("planned with"), "{refused}");
}

#[test]
fn cells_that_failed_are_told_with_their_reasons_and_the_way_out() {
    let place = tempfile::tempdir().unwrap();
    let folder = planned(place.path(), &[0, 1, 2, 3, 4]);
    let say = |cells: usize| {
        let unfinished = Unfinished::none();
        let mut left = folder.plan.iter().take(cells);
        let mut one = |planned: &Planned, _: &mut dyn Events<RunEvent>| {
            Err(Failure::Own(Error::input(format!("too small for seed {}", planned.cell.seed))))
        };
        run_cells(&folder, (&mut || left.next(), None), &unfinished, &mut one, &mut silent()).unwrap();
        conclude(&folder, &unfinished, &mut silent()).map_err(|error| error.to_string())
    };
    assert!(say(0).is_ok());
    let again = format!("`bayescope resume {}` tries", folder.path.display());
    let [one, all] = [1, 5].map(|cells| say(cells).unwrap_err());
    let (label, reason) = (folder.plan[0].label(), "too small for seed 0");
    assert_eq!(one, format!("1 cell could not be finished ({again} it again): {label}: {reason}"));
    assert!(
        all.starts_with(&format!("5 cells could not be finished ({again} them again): {label}: {reason}; ")),
        "{all}"
    );
    assert!(
        all.contains("seed 2") && !all.contains("seed 3") && all.ends_with("; 2 more, as `bayescope watch` says"),
        "{all}"
    );
}

#[test]
fn a_cell_that_is_tried_again_neither_failed_nor_is_silent_while_its_images_are_drawn() {
    let place = tempfile::tempdir().unwrap();
    let folder = planned(place.path(), &[0]);
    let planned = &folder.plan[0];
    let path = folder.cell(&planned.id);
    std::fs::create_dir_all(&path).unwrap();
    let progress = Progress { done: 1, total: 2 };
    let drawing = || RunEvent::Drawing { what: "test".into(), progress };
    let silent_since_1970 = |state| {
        Status { heartbeat: 0.0, ..Status::new(state, 3, 10, Some(1.0)) }.write(&path).unwrap();
        CellLog { planned, path: &path, writer: None, heartbeat: Heartbeat::new(&path), error: None }
    };
    let lives = || {
        let status = Status::read(&path).unwrap().unwrap();
        assert_eq!((status.state, status.stale(), status.step, status.steps), (State::Running, false, 3, 10));
    };
    assert!(silent_since_1970(State::Running).preparing(drawing(), &mut silent()).is_continue());
    lives();
    assert!(silent_since_1970(State::Stopped).note(CellEvent::Drawing(progress), &mut silent()).is_continue());
    lives();
    // As soon as the cell is taken.
    silent_since_1970(State::Failed);
    let mut left = folder.plan.iter();
    let mut one = |_: &Planned, _: &mut dyn Events<RunEvent>| {
        lives();
        Err(Failure::Run(Error::Cancelled))
    };
    let queue: Queue<'_, '_, _> = (&mut || left.next(), None);
    run_cells(&folder, queue, &Unfinished::none(), &mut one, &mut silent()).unwrap_err();
    assert_eq!(Status::read(&path).unwrap().unwrap().state, State::Stopped);
}
