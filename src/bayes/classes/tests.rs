use super::super::compute::Spec;
use super::super::labels::{bayes_error, limit_at_zero, tau_of_error};
use super::*;
use crate::events::silent;
use rand::distr::{Distribution, StandardUniform};

fn random(count: usize, dims: usize, seed: u64) -> Vec<Vec<f64>> {
    let mut rng = crate::units::Seed(seed).rng(0);
    (0..count).map(|_| (0..dims).map(|_| StandardUniform.sample(&mut rng)).collect()).collect()
}

fn uniform(count: usize) -> Vec<f64> {
    vec![1.0 / count as f64; count]
}

#[test]
fn reduction_keeps_every_distance() {
    for (count, dims, rank) in [(1, 5, 0), (2, 784, 1), (10, 3072, 9), (10, 4, 4), (40, 30, 30)] {
        let means = random(count, dims, 7);
        let classes = GaussianClasses::new(means.clone(), uniform(count)).unwrap();
        assert_eq!((classes.rank(), classes.dims()), (rank, dims));
        for a in 0..count {
            for b in 0..count {
                let direct = distance(&means[a], &means[b]);
                assert!((classes.distance(a, b) - direct).abs() < 1e-13 * (1.0 + direct), "{count} {dims}");
            }
        }
    }
}

#[test]
fn means_in_a_plane_have_rank_two_wherever_the_plane_is() {
    let (basis, inside) = (random(2, 500, 3), random(9, 2, 4));
    let place = |c: &Vec<f64>| (0..500).map(|i| 1e3 + c[0] * basis[0][i] + c[1] * basis[1][i]).collect();
    let means = inside.iter().map(place);
    assert_eq!(GaussianClasses::new(means.collect(), uniform(9)).unwrap().rank(), 2);
}

#[test]
fn near_pairs_survive_far_clusters() {
    // Clusters 1e3 apart, pairs in them 1e-6 apart in a direction of their own.
    let means = vec![vec![0.0, 0.0, 0.0], vec![0.0, 1e-6, 0.0], vec![1e3, 0.0, 0.0], vec![1e3, 0.0, 3e-6]];
    let classes = GaussianClasses::new(means, uniform(4)).unwrap();
    assert_eq!(classes.rank(), 3);
    assert!((classes.distance(0, 1) / 1e-6 - 1.0).abs() < 1e-6);
    assert!((classes.distance(2, 3) / 3e-6 - 1.0).abs() < 1e-6);
}

#[test]
fn means_too_far_away_to_be_computed_with_are_named() {
    let of = |means: &[[f64; 2]]| {
        let means: Vec<Vec<f64>> = means.iter().map(|mean| mean.to_vec()).collect();
        let count = means.len();
        GaussianClasses::new(means, uniform(count)).map(|classes| classes.scene(Tau::ONE, Merge::Best).count())
    };
    let refused = |means: &[[f64; 2]]| of(means).map(drop).unwrap_err().to_string();
    let said = refused(&[[0.0, 0.0], [1e155, 1.0]]);
    assert!(said.contains("means[1][0] is 1.0e155 standard deviations"), "{said}");
    assert!(refused(&[[0.0, 0.0], [2.0, 0.0], [0.0, -2e200]]).contains("means[2][1]"));
    // Squares are finite here, but the first two would be one class.
    let said = refused(&[[0.0, 0.0], [2.0, 0.0], [1e20, 0.0]]);
    assert!(said.contains("means[0] and means[1] cannot be told apart"), "{said}");
    assert_eq!(of(&[[0.0, 0.0], [1e99, 1.0]]).unwrap(), 2);
    assert_eq!(of(&[[1.0, 0.0], [1.0, 0.0], [1e20, 0.0]]).unwrap(), 2, "they are one class");
    assert_eq!(of(&[[0.0, 0.0], [2.0, 0.0], [1e6, 0.0]]).unwrap(), 3);
}

#[test]
fn means_that_rounding_hides_are_one_class_only_where_that_is_harmless() {
    // Beside 1e6 a double keeps 1e-10 of a mean, and distances less: 5e-8 is lost, which at τ = 1e-8 is 5 standard deviations.
    let means = |second: f64| vec![vec![0.0], vec![second], vec![1e6]];
    let of = |second: f64| GaussianClasses::new(means(second), vec![0.34, 0.33, 0.33]).unwrap();
    let error = |classes: &GaussianClasses, tau: f64| {
        bayes_error(classes, Tau::new(tau).unwrap(), &Spec::default(), &mut silent())
    };
    let told = |said: Error| {
        let said = said.to_string();
        assert!(said.contains("means[0] and means[1] cannot be told apart") && said.contains("leave it out"), "{said}");
    };
    let near = of(5e-8);
    // Apart by 5e-8 standard deviations, they are taken for each other in a third of all images, to 1e-8.
    assert!((error(&near, 1.0).unwrap().figure.value - 0.33).abs() < 1e-7);
    told(error(&near, 1e-8).unwrap_err());
    told(limit_at_zero(&near).unwrap_err());
    told(tau_of_error(&near, 0.01, &Spec::default(), &mut silent()).unwrap_err());
    told(
        bayes_error(
            &near.with_smoothing(Smoothing::new(2.0).unwrap()),
            Tau::new(1e-8).unwrap(),
            &Spec::default(),
            &mut silent(),
        )
        .unwrap_err(),
    );
    // Equal as given they are one class at every τ.
    assert!((error(&of(0.0), 1e-8).unwrap().figure.value - 0.33).abs() < 1e-15);
    assert!((limit_at_zero(&of(0.0)).unwrap().figure.value - 0.33).abs() < 1e-15);
    // Without the far class nothing hides them: Φ(−2.5).
    let two = GaussianClasses::new(means(5e-8)[..2].to_vec(), vec![0.5; 2]).unwrap();
    assert!((error(&two, 1e-8).unwrap().figure.value - 0.006_209_665_325_776).abs() < 1e-12);
}

#[test]
fn coincident_classes_and_empty_priors_leave_the_scene() {
    let means = vec![vec![0.0, 1.0], vec![0.0, 1.0], vec![2.0, 0.0], vec![5.0, 5.0]];
    let classes = GaussianClasses::new(means, vec![0.3, 0.2, 0.5, 0.0]).unwrap();
    let scene = classes.scene(Tau::new(2.0).unwrap(), Merge::Best);
    assert_eq!(scene.members, [vec![0, 1], vec![2]]);
    assert_eq!((scene.weights.as_slice(), scene.hidden), ([0.3, 0.5].as_slice(), 0.2));
    assert!((scene.distance(0, 1) - 5f64.sqrt() / 2.0).abs() < 1e-14);
    let scene = classes.scene(Tau::ONE, Merge::Sum);
    let entropy = -(0.3 * 0.6f64.ln() + 0.2 * 0.4f64.ln());
    assert!((scene.weights[0] - 0.5).abs() < 1e-15 && (scene.hidden - entropy).abs() < 1e-15);
}
