//! Passes this package's folder to the main program's build script, which needs it if cargo has downloaded both
//! packages.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::metadata=folder={}", std::env::var("CARGO_MANIFEST_DIR").unwrap_or_default());
}
