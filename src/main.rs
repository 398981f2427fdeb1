//! The binary: acts as a sandbox's first process if started as such, and as the command line otherwise.

fn main() -> std::process::ExitCode {
    // Must come first: as pid 1 of a sandbox this process must not start threads or read the command line.
    if let Some(code) = autoexperiment::sandbox::init_if_asked() {
        return code;
    }
    autoexperiment::cli::main()
}
