//! Passes this package's folder to the main program's build script, for when cargo has downloaded both.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::metadata=folder={}", std::env::var("CARGO_MANIFEST_DIR").unwrap_or_default());
}
