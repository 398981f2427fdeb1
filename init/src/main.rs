//! The first process of a sandbox. The harness starts it and speaks to it by its standard input.

fn main() -> std::process::ExitCode {
    autoexperiment_init::main()
}
