//! Disks of attempts: a file system in a sparse, unlinked file, mounted without a path, so that it is reachable only
//! through a file descriptor. The kernel limits an attempt to the disk's size, and closing the descriptor removes
//! everything.
//!
//! Needs root, `mkfs.ext4` and loop devices. If one of them is missing, the workspace's growth is watched instead.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};

use nix::libc;
use nix::unistd::{Whence, lseek};
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsconfig_set_flag, fsconfig_set_string, fsmount, fsopen,
};

use crate::workspace::Disk;

/// Maximum number of tries to get a free loop device, because another process may take the device first.
const TRIES: u32 = 64;
/// The file system gets one inode for this many bytes of disk. Every file or folder takes one inode.
const BYTES_OF_AN_INODE: u64 = 16_384;
const INODE: u64 = 256;
/// Bytes that a file system needs for itself in addition to its inodes and blocks.
const OVERHEAD: u64 = 8 << 20;

/// Makes disks of one size, as copies of one empty file system.
#[derive(Debug, Default)]
pub(super) struct DiskImages(Mutex<Template>);

#[derive(Debug, Default)]
enum Template {
    #[default]
    Untried,
    /// Size of the disk in bytes, and an empty file system of that size.
    Ready(u64, File),
    /// Making the first disk failed on this machine, so it is not tried again.
    Missing,
}

impl DiskImages {
    /// Makes a new disk of `bytes` bytes, stored in `folder`. Returns `None` if this machine cannot make disks, or has
    /// no loop device left for this one.
    ///
    /// # Errors
    /// If the disk's file cannot be written although this machine has made disks before.
    pub(super) fn disk(&self, bytes: u64, folder: &Path) -> io::Result<Option<Disk>> {
        let mut template = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if matches!(*template, Template::Missing) {
            return Ok(None);
        }
        let has_worked = matches!(*template, Template::Ready(..));
        let made = match &mut *template {
            Template::Ready(size, file) if *size == bytes => copy(file, folder),
            _ => format(bytes, folder).and_then(|mut file| {
                let copied = copy(&mut file, folder);
                *template = Template::Ready(bytes, file);
                copied
            }),
        };
        match made.map(|image| mount(&image)) {
            Ok(Ok(mount)) => Ok(Some(Disk::new(mount, folder))),
            // All loop devices may be in use. The next attempt may get one.
            Ok(Err(_)) if has_worked => Ok(None),
            Err(error) if has_worked => Err(error),
            _ => {
                *template = Template::Missing;
                Ok(None)
            }
        }
    }
}

/// Makes an empty file system in an unlinked file.
fn format(bytes: u64, folder: &Path) -> io::Result<File> {
    let image = tempfile::NamedTempFile::new_in(folder)?;
    let whole = bytes + bytes / BYTES_OF_AN_INODE * INODE + bytes / 512 + OVERHEAD;
    // Round up to whole blocks.
    image.as_file().set_len(whole.next_multiple_of(4096))?;
    // No journal, because it would double the writes and the disk does not outlive its attempt.
    let features = "^has_journal,^resize_inode,sparse_super2";
    let made = Command::new("mkfs.ext4")
        .args(["-q", "-F", "-m", "0", "-b", "4096", "-I", "256", "-i", "16384", "-O", features])
        .args(["-E", "lazy_itable_init=1,nodiscard,packed_meta_blocks=1"])
        .arg(image.path())
        .env("PATH", "/usr/sbin:/sbin:/usr/bin:/bin")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()?;
    if !made.success() {
        return Err(io::Error::other("mkfs.ext4 failed"));
    }
    Ok(image.into_file())
}

/// Copies a sparse file to an unlinked one in `folder`.
fn copy(from: &mut File, folder: &Path) -> io::Result<File> {
    let length = from.metadata()?.len();
    let mut to = tempfile::tempfile_in(folder)?;
    to.set_len(length)?;
    let mut at = 0;
    while let Ok(begin) = lseek(&*from, at, Whence::SeekData) {
        let end = lseek(&*from, begin, Whence::SeekHole)?;
        let (begin, length) = (begin.cast_unsigned(), (end - begin).cast_unsigned());
        from.seek(SeekFrom::Start(begin))?;
        to.seek(SeekFrom::Start(begin))?;
        io::copy(&mut Read::by_ref(from).take(length), &mut to)?;
        at = end;
    }
    to.flush()?;
    Ok(to)
}

/// Mounts an image at no path: only the returned descriptor leads to it.
fn mount(image: &File) -> io::Result<OwnedFd> {
    let (_device, path) = attach(image)?;
    let context = fsopen("ext4", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_set_string(&context, "source", path.as_str())?;
    // These mount options are safe and save time: nothing needs to survive a loss of power, and the kernel clears inode
    // tables when they are first used.
    for flag in ["nobarrier", "noinit_itable"] {
        fsconfig_set_flag(&context, flag)?;
    }
    fsconfig_create(&context)?;
    let attributes =
        MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV | MountAttrFlags::MOUNT_ATTR_NOATIME;
    Ok(fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, attributes)?)
}

const LOOP_CONFIGURE: libc::c_ulong = 0x4c0a;
const LOOP_CTL_GET_FREE: libc::c_ulong = 0x4c82;
/// Flag that makes a loop device release its file once the device is no longer used.
const LO_FLAGS_AUTOCLEAR: u32 = 4;

/// `struct loop_config` of `linux/loop.h`.
#[repr(C)]
struct LoopConfig {
    fd: u32,
    block_size: u32,
    info: LoopInfo,
    reserved: [u64; 8],
}

/// `struct loop_info64`.
#[repr(C)]
struct LoopInfo {
    numbers: [u64; 5],
    number: u32,
    encrypt_type: u32,
    encrypt_key_size: u32,
    flags: u32,
    names: [u8; 160],
    init: [u64; 2],
}

/// Attaches a file to a free loop device. Returns the device, which must stay open until it is mounted, and its path.
fn attach(image: &File) -> io::Result<(File, String)> {
    let open = |path: &str| OpenOptions::new().read(true).write(true).open(path);
    let control = open("/dev/loop-control")?;
    let info = LoopInfo {
        numbers: [0; 5],
        number: 0,
        encrypt_type: 0,
        encrypt_key_size: 0,
        flags: LO_FLAGS_AUTOCLEAR,
        names: [0; 160],
        init: [0; 2],
    };
    let config = LoopConfig { fd: image.as_raw_fd().cast_unsigned(), block_size: 4096, info, reserved: [0; 8] };
    for _ in 0..TRIES {
        // SAFETY: the call takes no pointer.
        let number = unsafe { libc::ioctl(control.as_raw_fd(), LOOP_CTL_GET_FREE as _) };
        if number < 0 {
            return Err(io::Error::last_os_error());
        }
        let path = format!("/dev/loop{number}");
        let device = open(&path)?;
        // SAFETY: the struct is alive and has the layout that the call reads.
        if unsafe { libc::ioctl(device.as_raw_fd(), LOOP_CONFIGURE as _, &raw const config) } == 0 {
            return Ok((device, path));
        }
        let error = io::Error::last_os_error();
        if error.raw_os_error() != Some(libc::EBUSY) {
            return Err(error);
        }
    }
    Err(io::ErrorKind::ResourceBusy.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_after_the_first_disk_is_an_error_and_does_not_end_the_use_of_disks() {
        let folder = tempfile::tempdir().unwrap();
        let template = tempfile::tempfile_in(folder.path()).unwrap();
        let images = DiskImages(Mutex::new(Template::Ready(1 << 20, template)));
        // In a folder that is gone, no disk can be made.
        let gone = folder.path().to_owned();
        drop(folder);
        for _ in 0..2 {
            assert!(images.disk(1 << 20, &gone).is_err());
        }
        let untried = DiskImages::default();
        assert!(untried.disk(1 << 20, &gone).unwrap().is_none());
        assert!(matches!(*untried.0.lock().unwrap(), Template::Missing));
    }

    #[test]
    #[ignore = "needs root and loop devices"]
    fn a_disk_image_holds_the_requested_size_and_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let images = DiskImages::default();
        let bytes = 64 << 20;
        let begun = std::time::Instant::now();
        let disks: Vec<Disk> = (0..8).map(|_| images.disk(bytes, folder.path()).unwrap().unwrap()).collect();
        println!("8 disks in {:?}", begun.elapsed());
        for disk in &disks {
            let path = disk.place().root.join("file");
            let mut file = File::create(&path).unwrap();
            std::fs::remove_file(&path).unwrap();
            let block = vec![1; 1 << 20];
            let written = (0_u64..200).take_while(|_| file.write_all(&block).is_ok()).count() as u64;
            assert!(written << 20 >= bytes && written << 20 < bytes + bytes / 8, "{written} MiB");
        }
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "no file has a name");
        let begun = std::time::Instant::now();
        drop(disks);
        println!("gone in {:?}", begun.elapsed());
        let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
        assert!(!mounts.contains(&folder.path().display().to_string()));
    }
}
