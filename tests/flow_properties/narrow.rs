//! Images drawn with narrow matrix products: other images, nearly the same, and densities in 32 bits.

use bayescope::device::{DeviceChoice, MatmulPrecision, choose};
use bayescope::events::silent;
use bayescope::flow::base::latents;
use bayescope::flow::sampling::Strategy;
use bayescope::flow::tarflow::engine::Engine;
use bayescope::flow::tarflow::{TarFlowOracle, TensorTarFlow};
use bayescope::flow::{Flow, Precision};
use bayescope::oracle::world::{SampleSpec, Settings, World};
use bayescope::units::Seed;
use burn::tensor::Device;

use crate::common::{max_abs, tiny};

const NARROW: [MatmulPrecision; 2] = [MatmulPrecision::Bf16, MatmulPrecision::F16];

/// What the inverse of both blocks makes of latents, by the loop.
fn inverted(engine: &dyn Engine, z: &[f64]) -> Vec<f64> {
    let conditions: Vec<_> = (0..4).map(|i| Some(i % 3)).collect();
    (0..2).rev().fold(z.to_vec(), |x, block| {
        engine.invert(block, &x, &conditions, Strategy::Loop, None, &mut |_| Ok(())).unwrap().x
    })
}

#[test]
fn narrow_products_draw_images_near_those_of_32_bits() {
    let config = tiny::tarflow_config(1, 8, 2, 3);
    let weights = tiny::tarflow_weights(&config, 31);
    let wide = TensorTarFlow::new(&config, weights, &Device::flex(), Precision::F32).unwrap();
    let z: Vec<f64> = latents(Seed(2), 0, 4, 64).into_iter().map(f64::from).collect();
    let exact = inverted(&wide, &z);
    let size = exact.iter().fold(0f64, |size, x| size.max(x.abs()));
    let off = NARROW.map(|products| {
        let found = max_abs(&inverted(wide.narrowed(products).unwrap().as_ref(), &z), &exact) / size;
        println!("{products:?}: at most {found:.1e} of the largest value off");
        found
    });
    // A product of 64 terms rounded to 8 and to 11 bits, four layers and 16 tokens deep.
    assert!(off[0] > 1e-4 && off[0] < 0.05 && off[1] > 1e-5 && off[1] < 0.01 && off[1] < off[0], "{off:?}");
}

/// The posterior of an image says what it says, whoever drew it.
#[test]
fn images_of_narrow_products_have_the_posteriors_of_the_flow() {
    let chosen = match choose(DeviceChoice::Wgpu(None)) {
        Ok(chosen) => chosen,
        Err(error) => return println!("skipped: {error}"),
    };
    let config = tiny::tarflow_config(1, 8, 2, 3);
    let pixels = bayescope::flow::preprocess::Preprocessing::Gaussian { std: 0.1 };
    let weights = tiny::tarflow_weights(&config, 32);
    let flow = TarFlowOracle::new(&config, weights, pixels, &chosen.device, Precision::F32).unwrap();
    let formats = flow.formats();
    assert_eq!(formats[0], MatmulPrecision::F32);
    let world = World::new(Box::new(flow), ["a", "b", "c"].map(String::from).to_vec(), 8).unwrap();
    let (settings, indices) = (Settings::default_for(3), [0, 1, 2, 3, 4, 5]);
    let wide = world.sample_indices(&SampleSpec::new(6, Seed(3)), &settings, &indices).unwrap();
    for products in NARROW {
        let spec = SampleSpec { products, ..SampleSpec::new(6, Seed(3)) };
        if !formats.contains(&products) {
            let said = world.sample_indices(&spec, &settings, &indices).unwrap_err().to_string();
            assert!(said.contains("take products f32"), "{said}");
            println!("{}: {said}", chosen.report.used.name);
            continue;
        }
        assert!(world.sample_resident(&spec, &settings, &indices, &mut silent()).unwrap().is_none());
        let drawn = world.sample_indices(&spec, &settings, &indices).unwrap();
        for (drawn, wide) in drawn.iter().zip(&wide) {
            assert_eq!((drawn.index, drawn.source), (wide.index, wide.source));
            assert_ne!(drawn.x, wide.x, "{products:?} drew the image of 32 bits");
            let scores = world.flow().score(&drawn.x).unwrap();
            assert!(drawn.posterior.distance(&world.posterior(&scores, 0, &settings)) < 1e-5, "{products:?}");
        }
    }
    // Those in 32 bits are what they were.
    assert_eq!(world.sample_indices(&SampleSpec::new(6, Seed(3)), &settings, &indices).unwrap(), wide);
}

#[test]
fn who_cannot_draw_with_narrow_products_says_so() {
    let config = tiny::tarflow_config(1, 8, 2, 3);
    let own = tiny::tarflow(&config, 33, Precision::F32);
    assert_eq!(own.formats(), [MatmulPrecision::F32]);
    let said = own.narrowed(MatmulPrecision::Bf16).map(drop).unwrap_err().to_string();
    assert!(said.contains("kernels on the CPU") && said.contains("bfloat16"), "{said}");
    let glow = tiny::flow(&tiny::config(1, 4, 1, 1), 34, Precision::F32);
    assert_eq!(glow.formats(), [MatmulPrecision::F32]);
    let said = glow.narrowed(MatmulPrecision::F16).map(drop).unwrap_err().to_string();
    assert!(said.contains("together with their densities") && said.contains("half precision"), "{said}");
}
