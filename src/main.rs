//! Parses arguments and picks a face.

fn main() -> std::process::ExitCode {
    bayescope::cli::main()
}
