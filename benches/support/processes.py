"""Processes on Linux: which descend from another, and what they hold."""

from pathlib import Path


def memory(process):
    """Resident memory of a process in MB of 10^6 bytes; 0 if it has ended."""
    return number(process, "status", "VmRSS") * 1024 / 1e6


def share_of_memory(process):
    """Memory of a process in MB of 10^6 bytes, of shared pages its share; 0 if it has ended."""
    return number(process, "smaps_rollup", "Pss") * 1024 / 1e6


def threads(process):
    """Number of threads of a process; 0 if it has ended."""
    return number(process, "status", "Threads")


def number(process, file, name):
    """A number in one of the files that the kernel has about a process; 0 if it has ended."""
    try:
        lines = Path(f"/proc/{process}/{file}").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith(name + ":")), 0)


def descriptors(process):
    """Number of open descriptors of a process; 0 if it has ended."""
    try:
        return len(list(Path(f"/proc/{process}/fd").iterdir()))
    except OSError:
        return 0


def below(process):
    """Ids of the processes that descend from one."""
    parents = {}
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit():
                parents[int(entry.name)] = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
        except OSError:
            pass
    found = {process}
    while True:
        more = {child for child, parent in parents.items() if parent in found} - found
        if not more:
            return found - {process}
        found |= more
