//! Passes this package's folder to the main program's build script, wherever cargo keeps it.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // A target folder outlives the place where it was made.
    println!("cargo::rerun-if-env-changed=CARGO_MANIFEST_DIR");
    println!("cargo::metadata=folder={}", std::env::var("CARGO_MANIFEST_DIR").unwrap_or_default());
}
