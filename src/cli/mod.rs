//! The command line.
use std::ops::ControlFlow;
/// temporary
pub fn main() -> std::process::ExitCode {
    let args: Vec<String> = std::env::args().collect();
    let spec = crate::oracle::train::TrainSpec::read(args[1].as_ref()).unwrap();
    let t0 = std::time::Instant::now();
    let mut sink = |e: crate::oracle::train::TrainEvent| {
        use crate::oracle::train::TrainEvent::*;
        match &e {
            Step { step, loss, epoch, .. } if *step % 20 == 0 || *epoch == 1 && *step < 20 => eprintln!("{:.1}s {epoch} {step} {loss:?}", t0.elapsed().as_secs_f64()),
            Step { .. } => {}
            Samples{..} => {}
            other => eprintln!("{:.1}s {other:?}", t0.elapsed().as_secs_f64()).to_owned(),
        }
        ControlFlow::Continue(())
    };
    let out = crate::oracle::train::train(&spec, args[2].as_ref(), &burn::tensor::Device::flex(), &mut sink).unwrap();
    println!("{:?} {:?}", out.held_out, out.test);
    std::process::ExitCode::SUCCESS
}
