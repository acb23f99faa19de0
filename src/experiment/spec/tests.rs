use super::*;

const TEXT: &str = "name = 'x'\n[world]\noracle = 'mnist'\n[grid]\narchitectures = ['linear', 'mlp-500']\n\
                    train_sizes = [200, 100]\nseeds = [3, 4]\n[overrides.linear]\nlearning_rate = 0.5\n";

#[test]
fn a_grid_is_every_combination_small_ones_first() {
    let spec: ExperimentSpec = toml::from_str(TEXT).unwrap();
    spec.validate().unwrap();
    let cells = spec.cells();
    assert_eq!(cells.len(), 8);
    assert!(cells.is_sorted_by_key(|cell| cell.train_size) && distinct(&cells));
}

#[test]
fn a_folder_of_the_same_name_does_not_hide_a_bundled_oracle() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.toml");
    crate::data::write_atomically(&path, |file| file.write_all(TEXT.as_bytes())).unwrap();
    std::fs::create_dir(folder.path().join("mnist")).unwrap();
    assert_eq!(ExperimentSpec::read(&path).unwrap().world.oracle, "mnist");
}

#[test]
fn a_spec_that_is_named_from_its_own_folder_can_be_resumed_from_another() {
    let here = std::env::current_dir().unwrap();
    // Beside the spec, under the folder of the spec, and in the present folder alone.
    for (folder, oracle) in [("", "tests/worlds/animals"), ("tests", "worlds/animals"), ("src", "tests/worlds/animals")]
    {
        let text = format!("{TEXT}[pretrained]\nlinear = 'linear.pth'\n").replace("mnist", oracle);
        let spec = toml::from_str::<ExperimentSpec>(&text).unwrap().relative_to(Path::new(folder)).unwrap();
        assert_eq!(spec.pretrained[&Architecture::Linear], here.join(folder).join("linear.pth"));
        assert_eq!(Path::new(&spec.world.oracle), here.join("tests/worlds/animals"));
    }
    let text = TEXT.replace("mnist", "no/such/oracle");
    let spec = toml::from_str::<ExperimentSpec>(&text).unwrap().relative_to(Path::new("")).unwrap();
    assert_eq!(spec.world.oracle, "no/such/oracle");
}

#[test]
fn overrides_change_what_they_name_and_nothing_else() {
    let spec: ExperimentSpec = toml::from_str(TEXT).unwrap();
    let linear = spec.training_of(Architecture::Linear, 0).unwrap();
    assert_eq!(linear, TrainingSpec { learning_rate: 0.5, ..spec.training });
    assert_eq!(spec.training_of(Architecture::Mlp500, 0).unwrap(), spec.training);
    let wrong = TEXT.replace("learning_rate", "learningrate");
    let spec: ExperimentSpec = toml::from_str(&wrong).unwrap();
    assert!(spec.validate().unwrap_err().to_string().contains("learningrate"));
}

#[test]
fn a_spec_is_the_same_after_writing() {
    let spec: ExperimentSpec = toml::from_str(TEXT).unwrap();
    let again: ExperimentSpec = toml::from_str(&toml::to_string(&spec).unwrap()).unwrap();
    assert_eq!(spec, again);
}
