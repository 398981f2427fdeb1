//! Gives each attempt one of this machine's graphics processors, if the user asks for `each`.
//!
//! The list of devices comes from `CUDA_VISIBLE_DEVICES`, which Slurm sets for a job, else from Slurm's own variables,
//! else from the driver's device files. Each device has a file in the scratch folder, and the process that holds the
//! file's lock has the device. So several processes can share the devices, and a killed process returns its devices at
//! once.

use std::collections::HashSet;
use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::sync::Notify;

use super::nvidia::{self, DRIVER, NvidiaDevice};
use crate::error::{Error, Result};
use crate::sandbox::{Gpu, Gpus};

/// Interval at which a waiting process checks for devices freed by other processes.
const AGAIN: Duration = Duration::from_millis(250);

/// Value of Slurm's variables in a job without devices.
const NONE: &str = "NoDevFiles";

/// The graphics processors that attempts get; none by default.
#[derive(Debug, Default)]
pub struct Graphics {
    asked: Option<Gpus>,
    scratch: PathBuf,
    /// The pool of devices. It is created just before attempts are made, because a machine that only plans a run may
    /// have no devices.
    pool: OnceLock<GpuPool>,
}

/// Devices that are each given to one attempt at a time.
#[derive(Debug)]
struct GpuPool {
    gpus: Vec<Gpu>,
    /// The machine's devices, from which the number of a device is found if the device is named by its UUID.
    known: Vec<NvidiaDevice>,
    /// Folder of the lock files.
    folder: PathBuf,
    freed: Arc<Notify>,
}

/// Exclusive use of a device, until dropped.
#[derive(Debug)]
pub struct Lease {
    gpu: Gpu,
    lock: Option<File>,
    freed: Arc<Notify>,
}

impl Lease {
    /// Returns the reserved device.
    #[must_use]
    pub const fn gpu(&self) -> &Gpu {
        &self.gpu
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        // Unlock the device before waking a task that waits for a device.
        drop(self.lock.take());
        self.freed.notify_one();
    }
}

impl Graphics {
    /// Stores which devices the user asked for. The devices are looked up only before the first attempt. Their lock
    /// files will be in the folder `scratch`.
    #[must_use]
    pub fn new(asked: Option<Gpus>, scratch: &Path) -> Self {
        Self { asked, scratch: scratch.to_owned(), pool: OnceLock::new() }
    }

    /// Description of the requested devices and their driver, for the keys of cached results; empty if no devices were
    /// requested. `None` if it is not known which models attempts get, so that results must not be cached.
    #[must_use]
    pub fn kind(&self) -> Option<String> {
        self.kind_with(Path::new(DRIVER))
    }

    fn kind_with(&self, driver: &Path) -> Option<String> {
        let Some(asked) = self.asked else { return Some(String::new()) };
        let models: Vec<String> = nvidia::devices(driver).into_iter().map(|device| device.model).collect();
        let first = models.first()?;
        let models = match asked {
            Gpus::All => models.join(", "),
            Gpus::Count(_) | Gpus::Each(_) if models.iter().all(|model| model == first) => first.clone(),
            Gpus::Count(_) | Gpus::Each(_) => return None,
        };
        Some(format!("{} of {models}; {}", asked.kind(), nvidia::version(driver)))
    }

    /// Limits `jobs` to the number of attempts that can run at once.
    ///
    /// # Errors
    /// Kind `Machine` if each attempt needs a device and there are too few, or if the folder of the lock files cannot be
    /// created.
    pub fn at_once(&self, jobs: usize) -> Result<usize> {
        Ok(self.pool()?.map_or(jobs, |pool| jobs.min(pool.gpus.len())))
    }

    /// Waits for a free device for an attempt; `None` if attempts do not get devices of their own.
    ///
    /// # Errors
    /// Same as [`at_once`](Self::at_once), and if the lock file cannot be created.
    pub async fn take(&self) -> Result<Option<Lease>> {
        match self.pool()? {
            None => Ok(None),
            Some(pool) => pool.take().await.map(Some),
        }
    }

    fn pool(&self) -> Result<Option<&GpuPool>> {
        let Some(Gpus::Each(wanted)) = self.asked else { return Ok(None) };
        if let Some(pool) = self.pool.get() {
            return Ok(Some(pool));
        }
        let (numbers, devices) = found(Path::new("/dev"));
        let gpus = choose(wanted, |name| std::env::var(name).ok(), &numbers, &devices)?;
        let folder = self.scratch.join("gpus");
        std::fs::create_dir_all(&folder).map_err(|error| Error::io("create", &folder, error))?;
        let known = nvidia::devices(Path::new(DRIVER));
        Ok(Some(self.pool.get_or_init(|| GpuPool { gpus, known, folder, freed: Arc::default() })))
    }
}

impl GpuPool {
    async fn take(&self) -> Result<Lease> {
        loop {
            let freed = self.freed.notified();
            for gpu in &self.gpus {
                if let Some(lock) = self.lock(gpu)? {
                    return Ok(Lease { gpu: gpu.clone(), lock: Some(lock), freed: self.freed.clone() });
                }
            }
            let _ = tokio::time::timeout(AGAIN, freed).await;
        }
    }

    fn lock(&self, gpu: &Gpu) -> Result<Option<File>> {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
        let name = lock_name(&gpu.name, &self.known);
        let name: String = name.chars().map(|c| if is_plain(c) { c } else { '_' }).collect();
        let path = self.folder.join(name);
        let failed = |error| Error::io("lock", &path, error);
        let file = File::options().create(true).append(true).open(&path).map_err(failed)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(file)),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(failed(error)),
        }
    }
}

/// Returns the name under which a device is locked: its number on this machine, even if it is named by its UUID or by the
/// beginning of its UUID. Another process may name the same device by its number.
fn lock_name<'a>(name: &'a str, known: &'a [NvidiaDevice]) -> &'a str {
    let is_it = |device: &&NvidiaDevice| name.starts_with("GPU-") && device.uuid.starts_with(name);
    known.iter().find(is_it).map_or(name, |device| device.minor.as_str())
}

/// The driver's device files in a folder: the numbers of single devices, and the paths of all files.
fn found(dev: &Path) -> (Vec<u32>, Vec<PathBuf>) {
    let entries = std::fs::read_dir(dev).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.path())
        .filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("nvidia")))
        .filter(|path| !path.is_dir())
        .collect();
    files.sort();
    let number = |path: &PathBuf| path.file_name()?.to_str()?.strip_prefix("nvidia")?.parse().ok();
    let mut numbers: Vec<u32> = files.iter().filter_map(number).collect();
    numbers.sort_unstable();
    (numbers, files)
}

/// Chooses the devices to give out, based on the environment and the device files.
fn choose(
    wanted: Option<u32>,
    variable: impl Fn(&str) -> Option<String>,
    numbers: &[u32],
    devices: &[PathBuf],
) -> Result<Vec<Gpu>> {
    let list = |name: &str| -> Option<Vec<String>> {
        let text = variable(name)?;
        let ids = text.split(',').map(str::trim).take_while(|id| *id != "-1" && *id != NONE);
        let mut known = HashSet::new();
        Some(ids.filter(|id| !id.is_empty() && known.insert(*id)).map(ToOwned::to_owned).collect())
    };
    let by_slurm = list("SLURM_STEP_GPUS").or_else(|| list("SLURM_JOB_GPUS"));
    let visible = list("CUDA_VISIBLE_DEVICES").or_else(|| by_slurm.clone());
    let is_listed = visible.is_some();
    let count = wanted.map(|count| count as usize);
    let visible = visible.unwrap_or_else(|| match wanted {
        // The user gave this number, so it is not checked against the machine's devices.
        Some(count) => (0..count).map(|number| number.to_string()).collect(),
        None => numbers.iter().map(ToString::to_string).collect(),
    });
    if visible.is_empty() || count.is_some_and(|count| count > visible.len()) {
        let wanted = count.map_or_else(|| "any".to_owned(), |count| count.to_string());
        let place = if is_listed { "the environment lists" } else { "this machine has" };
        return Err(Error::machine(format!(
            "{wanted} graphics processors were requested, and {place} {}",
            visible.len()
        ))
        .hint("check the variable `CUDA_VISIBLE_DEVICES`, or give the number of devices to use: `--gpus each:N`"));
    }
    // Name devices by Slurm's numbers, which are unique on the machine: `CUDA_VISIBLE_DEVICES` may number a job's own
    // devices from 0.
    let names = by_slurm.filter(|names| names.len() == visible.len()).unwrap_or_else(|| visible.clone());
    let gpus = visible.into_iter().zip(names).take(count.unwrap_or(usize::MAX));
    Ok(gpus.map(|(visible, name)| Gpu { visible, name, devices: devices.to_vec() }).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::nvidia::tests::write_driver;

    fn chosen(wanted: Option<u32>, variables: &[(&str, &str)], numbers: &[u32]) -> Result<Vec<(String, String)>> {
        let variable =
            |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
        let gpus = choose(wanted, variable, numbers, &[])?;
        Ok(gpus.into_iter().map(|gpu| (gpu.visible, gpu.name)).collect())
    }

    fn same(ids: &[&str]) -> Vec<(String, String)> {
        ids.iter().map(|id| ((*id).to_owned(), (*id).to_owned())).collect()
    }

    #[test]
    fn devices_come_from_the_environment_or_else_from_the_machine() {
        assert_eq!(chosen(None, &[], &[0, 1]).unwrap(), same(&["0", "1"]));
        assert_eq!(
            chosen(None, &[("CUDA_VISIBLE_DEVICES", "3, GPU-ab,3,-1,5")], &[0]).unwrap(),
            same(&["3", "GPU-ab"])
        );
        assert_eq!(chosen(Some(2), &[], &[]).unwrap(), same(&["0", "1"]));
        assert_eq!(chosen(Some(1), &[("CUDA_VISIBLE_DEVICES", "4,5")], &[]).unwrap(), same(&["4"]));
        assert_eq!(chosen(None, &[("SLURM_JOB_GPUS", "2")], &[]).unwrap(), same(&["2"]));
        // Slurm's variables contain the machine's numbers of the devices; inside the job, the same devices may be
        // numbered from 0.
        let fenced = [("CUDA_VISIBLE_DEVICES", "0,1"), ("SLURM_STEP_GPUS", "2,3"), ("SLURM_JOB_GPUS", "0,1,2,3")];
        let pairs = [("0".to_owned(), "2".to_owned()), ("1".to_owned(), "3".to_owned())];
        assert_eq!(chosen(None, &fenced, &[]).unwrap(), pairs);
        for (wanted, variables) in [
            (None, [].as_slice()),
            (None, &[("CUDA_VISIBLE_DEVICES", "")]),
            (None, &[("CUDA_VISIBLE_DEVICES", NONE)]),
            (Some(3), &[("CUDA_VISIBLE_DEVICES", "0,1")]),
        ] {
            let error = chosen(wanted, variables, &[]).unwrap_err();
            assert!(error.message.contains("graphics processors were requested"), "{error}");
        }
    }

    #[test]
    fn a_device_has_the_same_lock_whether_it_is_named_by_number_or_by_uuid() {
        let driver = tempfile::tempdir().unwrap();
        write_driver(driver.path(), "535", &["T4", "T4"]);
        let known = nvidia::devices(driver.path());
        let names = ["1", "GPU-1-a", "GPU-1", "GPU-7", "MIG-1-a"];
        assert_eq!(names.map(|name| lock_name(name, &known)), ["1", "1", "1", "GPU-7", "MIG-1-a"]);
    }

    #[test]
    fn cached_results_are_of_one_model_of_device_and_one_driver() {
        let kind = |asked: Option<&str>, version: &str, models: &[&str]| {
            let driver = tempfile::tempdir().unwrap();
            write_driver(driver.path(), version, models);
            let asked = asked.map(|text| text.parse().unwrap());
            Graphics::new(asked, Path::new("/nowhere")).kind_with(driver.path())
        };
        assert_eq!(kind(None, "1", &[]), Some(String::new()));
        // The models are unknown if the driver lists no devices, or if the devices differ, so that an attempt may get
        // either model. Results are then not cached.
        assert_eq!(kind(Some("each"), "1", &[]), None);
        assert_eq!(kind(Some("each"), "1", &["A100", "T4"]), None);
        let same = kind(Some("each"), "1", &["A100", "A100"]);
        assert!(same.is_some() && same == kind(Some("each:1"), "1", &["A100"]));
        for other in [
            kind(Some("each"), "1", &["T4"]),
            kind(Some("each"), "2", &["A100"]),
            kind(Some("2"), "1", &["A100", "A100"]),
            kind(Some("all"), "1", &["A100", "A100"]),
            kind(Some("all"), "1", &["A100", "T4"]),
        ] {
            assert!(other.is_some() && other != same, "{other:?}");
        }
    }

    #[test]
    fn the_drivers_files_are_found_by_their_names() {
        let dev = tempfile::tempdir().unwrap();
        for name in ["nvidia10", "nvidia0", "nvidiactl", "nvidia-uvm", "null"] {
            std::fs::write(dev.path().join(name), "").unwrap();
        }
        std::fs::create_dir(dev.path().join("nvidia-caps")).unwrap();
        let (numbers, files) = found(dev.path());
        assert_eq!((numbers, files.len()), (vec![0, 10], 4));
    }

    /// A pool with these devices, as one process would create it.
    fn pool(folder: &Path, names: &[&str]) -> GpuPool {
        let gpu = |name: &&str| Gpu { visible: (*name).to_owned(), name: (*name).to_owned(), devices: Vec::new() };
        let gpus = names.iter().map(gpu).collect();
        GpuPool { gpus, known: Vec::new(), folder: folder.to_owned(), freed: Arc::default() }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn no_device_is_held_twice_at_once_and_all_come_back_after_errors_panics_and_cancelled_waits() {
        use std::sync::Mutex;
        let folder = tempfile::tempdir().unwrap();
        let held: Arc<Mutex<HashSet<String>>> = Arc::default();
        let mut used = HashSet::new();
        let mut tasks = tokio::task::JoinSet::new();
        // Two pools, as if in two processes: they share nothing but the folder of lock files.
        let pools = [(); 2].map(|()| Arc::new(pool(folder.path(), &["a/0", "b", "GPU-c"])));
        for turn in 0..60 {
            let (pool, held) = (pools[turn % 2].clone(), held.clone());
            tasks.spawn(async move {
                let lease = pool.take().await.unwrap();
                let name = lease.gpu().name.clone();
                assert!(held.lock().unwrap().insert(name.clone()), "{name} is held twice");
                tokio::task::yield_now().await;
                assert!(held.lock().unwrap().remove(&name));
                // Every third task panics while it holds its device.
                assert!(turn % 3 != 0, "as meant");
                name
            });
        }
        while let Some(ended) = tasks.join_next().await {
            match ended {
                Ok(name) => _ = used.insert(name),
                Err(error) => assert!(error.into_panic().downcast_ref::<&str>().is_some_and(|it| *it == "as meant")),
            }
        }
        assert!(!used.is_empty());
        // All devices are free again, for both pools.
        let mut leases = Vec::new();
        for _ in 0..3 {
            leases.push(pools[0].take().await.unwrap());
        }
        let names: HashSet<&str> = leases.iter().map(|lease| lease.gpu().name.as_str()).collect();
        assert_eq!(names.len(), 3);
        // A cancelled wait reserves no device.
        assert!(tokio::time::timeout(Duration::from_millis(1), pools[1].take()).await.is_err());
        let freed = leases.pop().unwrap().gpu().name.clone();
        assert_eq!(pools[1].take().await.unwrap().gpu().name, freed);
    }
}
