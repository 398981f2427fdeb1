"""Compiles all Python files below a folder, with one process for each processor.

Called with the folder and, if it is to be cut off the paths in the bytecode, a prefix. Standard input is the lock of the
environment. Every process holds it until it ends, and each ends by itself: a pool's workers would wait for ever for the
next file if this process were killed, and with them whoever needs the lock.
"""
import os
import subprocess
import sys

folder, strip = sys.argv[1], sys.argv[2:3]
files = []
for parent, folders, names in os.walk(folder):
    folders[:] = [name for name in folders if name != "__pycache__"]
    files += [os.path.join(parent, name) for name in names if name.endswith(".py") and "\n" not in parent + name]
files.sort()
command = [sys.executable, "-I", "-S", "-m", "compileall", "-q", "-q", "--invalidation-mode", "unchecked-hash"]
for prefix in strip:
    command += ["-s", prefix]
command += ["-i", "-"]
lock = os.dup(0)
count = len(os.sched_getaffinity(0))
workers = []
for number in range(min(count, len(files))):
    worker = subprocess.Popen(command, stdin=subprocess.PIPE, pass_fds=[lock])
    worker.stdin.write(b"".join(os.fsencode(path) + b"\n" for path in files[number::count]))
    worker.stdin.close()
    workers.append(worker)
sys.exit(max([worker.wait() for worker in workers], default=0))
