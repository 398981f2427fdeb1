//! The graphics processors of this machine, as NVIDIA's driver lists them.

use std::path::Path;

/// Folder in which the driver describes itself and its devices.
pub(super) const DRIVER: &str = "/proc/driver/nvidia";

/// A graphics processor.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct NvidiaDevice {
    /// Name of the model, such as `NVIDIA A100-SXM4-40GB`.
    pub model: String,
    /// Identity of the device, such as `GPU-` and 32 hexadecimal digits.
    pub uuid: String,
    /// Number in the name of the device file, such as 0 for `/dev/nvidia0`.
    pub minor: String,
}

/// Returns the devices that the driver lists in this folder, in order of their models.
pub(super) fn devices(driver: &Path) -> Vec<NvidiaDevice> {
    let entries = std::fs::read_dir(driver.join("gpus")).into_iter().flatten().flatten();
    let mut devices: Vec<NvidiaDevice> = entries
        .filter_map(|entry| {
            let text = std::fs::read_to_string(entry.path().join("information")).ok()?;
            let field = |name: &str| {
                let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
                Some(value.trim().to_owned())
            };
            Some(NvidiaDevice { model: field("Model")?, uuid: field("GPU UUID")?, minor: field("Device Minor")? })
        })
        .collect();
    devices.sort();
    devices
}

/// Returns the driver's description of its version.
pub(super) fn version(driver: &Path) -> String {
    let text = std::fs::read_to_string(driver.join("version")).unwrap_or_default();
    text.lines().next().unwrap_or_default().to_owned()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Writes the files of a driver with devices of these models into a folder. The device of number 1 is `GPU-1-a`.
    pub(crate) fn write_driver(driver: &Path, version: &str, models: &[&str]) {
        for (number, model) in models.iter().enumerate() {
            let folder = driver.join(format!("gpus/0000:0{number}:00.0"));
            std::fs::create_dir_all(&folder).unwrap();
            let text = format!(
                "Model: \t\t {model}\nIRQ:   \t\t 24\nGPU UUID: \t GPU-{number}-a\nBus Type: \t PCIe\nDevice Minor: \t {number}\n"
            );
            std::fs::write(folder.join("information"), text).unwrap();
        }
        std::fs::write(driver.join("version"), format!("NVRM version: {version}\nGCC version: 12\n")).unwrap();
    }

    #[test]
    fn devices_and_version_are_read_from_the_drivers_files() {
        let driver = tempfile::tempdir().unwrap();
        assert_eq!((devices(driver.path()), version(driver.path())), (Vec::new(), String::new()));
        write_driver(driver.path(), "535.1", &["NVIDIA T4", "NVIDIA A100"]);
        let device = |model: &str, number: u32| NvidiaDevice {
            model: model.to_owned(),
            uuid: format!("GPU-{number}-a"),
            minor: number.to_string(),
        };
        assert_eq!(devices(driver.path()), [device("NVIDIA A100", 1), device("NVIDIA T4", 0)]);
        assert_eq!(version(driver.path()), "NVRM version: 535.1");
    }
}
