//! The command line.

fn main() -> std::process::ExitCode {
    autoexperiment::cli::main()
}
