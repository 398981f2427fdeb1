#!/usr/bin/env python3
"""A real conda channel made from this machine's own CPython, for tests that must not depend on a public one.

    conda_channel.py CACHE     makes it below CACHE, or finds it there, and prints its alias, a file: URL

The alias holds two channels. `conda-forge`, so that an environment.yml that names it needs no change:

  cpython-libraries   the shared libraries that CPython needs beside the C library, so that it runs in an empty container
  python              CPython without its tests, made relocatable, with bytecode; a .conda package
  pip                 from the wheel that CPython carries; noarch
  demo-activate       an activation script, and files that hold the prefix (text and binary)
  demo-library        1.0, 1.1 and 2.0, noarch python with a command
  demo-left, -right   need demo-library <2 and >=2: together they cannot be solved
  demo-native         needs a glibc that no machine has

and `other`, with demo-library 3.0 and demo-extra, for the order of channels.

Needs Python 3.10 to 3.13 (the newest one found is packed), `patchelf`, and only the standard library. The folder's name
is a digest of all its sources, and the folder appears whole or not at all."""
import bz2
import configparser
import glob
import hashlib
import importlib.util
import io
import json
import os
import py_compile
import re
import shutil
import struct
import subprocess
import sys
import tarfile
import tempfile
import zipfile

OLDEST, NEWEST = (3, 10), (3, 13)
TIME = 1_700_000_000
# The text that installers replace by the prefix; long, because in binary files the prefix must fit into it.
PLACEHOLDER = "/opt/" + "placeholder_" * 20 + "end"
# The C library and its parts are taken from the machine, as in conda.
OF_THE_MACHINE = re.compile(r"(lib(c|m|dl|pthread|rt|util|resolv|nsl)|ld-linux.*|linux-vdso)\.so")
LEFT_OUT = shutil.ignore_patterns(
    "site-packages", "dist-packages", "test", "tests", "idle_test", "config-*", "idlelib", "turtledemo", "tkinter",
    "ensurepip", "lib2to3", "_test*.so", "_ctypes_test*.so", "_tkinter*.so", "_xxtest*.so", "xx*.so", "EXTERNALLY-MANAGED",
)
# Conda's name for this machine's platform.
SUBDIR = {"x86_64": "linux-64", "aarch64": "linux-aarch64"}[os.uname().machine]


def newest_python():
    """Returns the newest suitable CPython in the usual places; a Debian one last, because its layout is for /usr."""
    home = os.path.expanduser("~")
    found = []
    for pattern in [sys.base_prefix, home + "/.pyenv/versions/*", home + "/.local/share/uv/python/*", "/usr/local", "/usr"]:
        for prefix in glob.glob(pattern):
            for minor in range(OLDEST[1], NEWEST[1] + 1):
                program = f"{prefix}/bin/python3.{minor}"
                if os.access(program, os.X_OK) and os.path.isfile(f"{prefix}/lib/python3.{minor}/os.py"):
                    found.append((prefix != "/usr", minor, os.path.realpath(program)))
    if not found:
        sys.exit("conda_channel.py: no CPython from 3.10 to 3.13 was found")
    return max(found)[2]


class Package:
    """A package being made: files are staged in a folder, then packed."""

    def __init__(self, name, version, build="0", depends=(), subdir="noarch", noarch="generic", fields=None):
        self.stage = tempfile.mkdtemp(prefix=name + "-")
        self.commands = []
        self.index = {
            "name": name, "version": version, "build": build, "build_number": 0, "depends": list(depends),
            "subdir": subdir, "license": "MIT", "timestamp": TIME * 1000, **(fields or {}),
        }
        if subdir == "noarch":
            self.index["noarch"] = noarch

    def path(self, relative):
        path = os.path.join(self.stage, relative)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        return path

    def write(self, relative, content, mode=0o644):
        with open(self.path(relative), "wb") as file:
            file.write(content if isinstance(content, bytes) else content.encode())
        os.chmod(self.path(relative), mode)

    def entries(self):
        """Returns the entries of info/paths.json, sorted."""
        entries = []
        for folder, folders, files in os.walk(self.stage):
            links = [name for name in folders if os.path.islink(os.path.join(folder, name))]
            for name in files + links:
                path = os.path.join(folder, name)
                entry = {"_path": os.path.relpath(path, self.stage), "path_type": "hardlink"}
                content = b""
                if os.path.islink(path):
                    entry["path_type"] = "softlink"
                else:
                    with open(path, "rb") as file:
                        content = file.read()
                entry["sha256"], entry["size_in_bytes"] = hashlib.sha256(content).hexdigest(), len(content)
                if PLACEHOLDER.encode() in content:
                    entry["prefix_placeholder"] = PLACEHOLDER
                    entry["file_mode"] = "binary" if b"\0" in content else "text"
                entries.append(entry)
        return sorted(entries, key=lambda entry: entry["_path"])

    def info(self, entries):
        documents = {
            "index.json": self.index,
            "paths.json": {"paths": entries, "paths_version": 1},
            "about.json": {"summary": "made for tests out of the machine's own files"},
        }
        if self.index.get("noarch") == "python":
            documents["link.json"] = {
                "noarch": {"type": "python", "entry_points": self.commands}, "package_metadata_version": 1,
            }
        texts = {name: json.dumps(value, indent=1) for name, value in documents.items()}
        texts["files"] = "".join(entry["_path"] + "\n" for entry in entries)
        return texts

    def tar(self, info, entries):
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w", format=tarfile.GNU_FORMAT) as tar:
            def plain(member):
                member.uid = member.gid = 0
                member.uname = member.gname = ""
                member.mtime = TIME
                return member

            for name, text in info.items():
                member = tarfile.TarInfo("info/" + name)
                member.size, member.mode = len(text.encode()), 0o644
                tar.addfile(plain(member), io.BytesIO(text.encode()))
            for entry in entries:
                tar.add(os.path.join(self.stage, entry["_path"]), entry["_path"], recursive=False, filter=plain)
        return buffer.getvalue()

    def pack(self, channel, modern=False):
        """Writes the package into a channel's folder and its record into the channel's index."""
        entries = self.entries()
        info = self.info(entries)
        stem = "-".join([self.index["name"], self.index["version"], self.index["build"]])
        if modern:
            name, content = stem + ".conda", self.modern(stem, info, entries)
        else:
            name, content = stem + ".tar.bz2", bz2.compress(self.tar(info, entries), 1)
        folder = os.path.join(channel, self.index["subdir"])
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, name), "wb") as file:
            file.write(content)
        index = read_index(folder)
        index["packages.conda" if modern else "packages"][name] = dict(
            self.index, size=len(content), md5=hashlib.md5(content).hexdigest(), sha256=hashlib.sha256(content).hexdigest(),
        )
        with open(os.path.join(folder, "repodata.json"), "w") as file:
            json.dump(index, file, indent=1)
        shutil.rmtree(self.stage)

    def modern(self, stem, info, entries):
        """Packs the .conda format: an uncompressed zip of two tars."""
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as packed:
            def add(name, content):
                packed.writestr(zipfile.ZipInfo(name, (2023, 11, 14, 0, 0, 0)), content)

            add("metadata.json", json.dumps({"conda_pkg_format_version": 2}))
            add(f"pkg-{stem}.tar.zst", zstd(self.tar({}, entries)))
            add(f"info-{stem}.tar.zst", zstd(self.tar(info, [])))
        return buffer.getvalue()


def read_index(folder):
    path = os.path.join(folder, "repodata.json")
    if os.path.exists(path):
        with open(path) as file:
            return json.load(file)
    return {"info": {"subdir": os.path.basename(folder)}, "packages": {}, "packages.conda": {}, "repodata_version": 1}


def zstd(content):
    """Makes a Zstandard frame of raw blocks (RFC 8878, 3.1.1): valid and quick to make, but not compressed."""
    block = 1 << 17
    parts = [b"\x28\xb5\x2f\xfd", b"\x00", b"\x38"]  # magic; no size, no checksum; a window of 128 KiB
    for start in range(0, max(len(content), 1), block):
        part = content[start : start + block]
        last = start + block >= len(content)
        parts += [struct.pack("<I", len(part) << 3 | last)[:3], part]
    return b"".join(parts)


def libraries_of(path):
    """Returns names and paths of the shared libraries that a program or library needs."""
    listed = subprocess.run(["ldd", path], capture_output=True, text=True).stdout
    found = re.findall(r"^\s*(\S+) => (/\S+)", listed, re.MULTILINE)
    return {name: place for name, place in found if not OF_THE_MACHINE.match(name)}


def relocate(path, rpath):
    """Makes a program or library find its libraries relative to itself. Like conda, sets the old kind of rpath, which
    also applies to extension modules from elsewhere. Removes debugging symbols, which are half the size."""
    os.chmod(path, 0o755)
    if shutil.which("strip"):
        subprocess.run(["strip", "--strip-debug", path], check=False, stderr=subprocess.DEVNULL)
    subprocess.run(["patchelf", "--force-rpath", "--set-rpath", rpath, path], check=True)


def bytecode(stage, library):
    """Adds bytecode for all modules, from the machine or compiled here, that is valid whatever the files' times are."""
    for folder, folders, files in os.walk(os.path.join(stage, library)):
        folders[:] = [name for name in folders if name != "__pycache__"]
        for name in files:
            if not name.endswith(".py"):
                continue
            source = os.path.join(folder, name)
            target = importlib.util.cache_from_source(source)
            with open(source, "rb") as file:
                text = file.read()
            if PLACEHOLDER.encode() in text:
                # The bytecode would contain the placeholder, which installers cannot replace there.
                if os.path.exists(target):
                    os.remove(target)
                continue
            digest = importlib.util.source_hash(text)
            try:
                with open(target, "rb") as file:
                    compiled = file.read()
                if compiled[:4] != importlib.util.MAGIC_NUMBER:
                    raise OSError
                # The header: magic, flags (a hash, not to be checked), the hash.
                with open(target, "wb") as file:
                    file.write(compiled[:4] + struct.pack("<I", 1) + digest + compiled[16:])
            except OSError:
                seen = os.path.relpath(source, stage)
                mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
                try:
                    py_compile.compile(source, target, seen, doraise=True, invalidation_mode=mode)
                except py_compile.PyCompileError:
                    pass  # a template, not a module
        for name in os.listdir(os.path.join(folder, "__pycache__")) if os.path.isdir(folder + "/__pycache__") else []:
            if re.search(r"\.opt-\d", name) or not os.path.exists(os.path.join(folder, name.split(".")[0] + ".py")):
                os.remove(os.path.join(folder, "__pycache__", name))


def debian_as_everywhere(package, library):
    """Makes Debian's Python install packages to the usual folders, and look for them there, instead of its own ones."""
    path = package.path(library + "/sysconfig.py")
    if not os.path.exists(path):
        return
    with open(path) as file:
        text = file.read()
    changed = text.replace("prefix_scheme = 'posix_local'", "prefix_scheme = 'posix_prefix'")
    if changed != text:
        package.write(library + "/sysconfig.py", changed)
        cached = importlib.util.cache_from_source(path)
        if os.path.exists(cached):
            os.remove(cached)
        # The module `site` is frozen into the program and cannot be changed.
        usual = f"import site, sys; site.addsitedir(sys.prefix + '/{library}/site-packages')\n"
        package.write("lib/python3/dist-packages/usual.pth", usual)


def without_own_paths(stage, prefix):
    """Replaces this machine's prefix in texts by the placeholder."""
    for folder, _, files in os.walk(stage):
        for file in files:
            path = os.path.join(folder, file)
            # A bare /usr would also match where it does not mean the prefix.
            if prefix == "/usr" or os.path.islink(path):
                continue
            with open(path, "rb") as opened:
                content = opened.read()
            if prefix.encode() not in content or b"\0" in content:
                continue
            if file.endswith(".py") and os.path.exists(importlib.util.cache_from_source(path)):
                os.remove(importlib.util.cache_from_source(path))
            with open(path, "wb") as opened:
                opened.write(content.replace(prefix.encode(), PLACEHOLDER.encode()))


def cpython(channel):
    """Makes the packages `cpython-libraries` and `python`."""
    version = "%d.%d.%d" % sys.version_info[:3]
    name = "python%d.%d" % sys.version_info[:2]
    library = "lib/" + name
    prefix = sys.base_prefix
    package = Package("python", version, "0_cpython", [], SUBDIR, fields={"license": "Python-2.0"})
    shutil.copy2(os.path.realpath(f"{prefix}/bin/{name}"), package.path("bin/" + name))
    for link in ("python3", "python"):
        os.symlink(name, package.path("bin/" + link))
    shutil.copytree(f"{prefix}/{library}", package.path(library), symlinks=False, ignore=LEFT_OUT, ignore_dangling_symlinks=True)
    if os.path.isdir(f"{prefix}/include/{name}"):
        shutil.copytree(f"{prefix}/include/{name}", package.path("include/" + name))
    package.write(library + "/site-packages/README.txt", "Packages are installed here.\n")
    debian_as_everywhere(package, library)

    needed = libraries_of(f"{prefix}/bin/{name}")
    own = {link: place for link, place in needed.items() if link.startswith("libpython")}
    for link, place in own.items():
        shutil.copy2(place, package.path("lib/" + link))
        relocate(package.path("lib/" + link), "$ORIGIN")
    relocate(package.path("bin/" + name), "$ORIGIN/../lib")
    for module in glob.glob(f"{package.stage}/{library}/lib-dynload/*.so"):
        needed.update(libraries_of(module))
        relocate(module, "$ORIGIN/../..")
    # Compiled packages from PyPI expect these two in the environment.
    known = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True).stdout
    for link in ("libstdc++.so.6", "libgcc_s.so.1"):
        place = re.search(rf"^\s*{re.escape(link)} .*=> (\S+)", known, re.MULTILINE)
        if place:
            needed[link] = place[1]
    without_own_paths(package.stage, prefix)
    bytecode(package.stage, library)
    pending = {link: place for link, place in needed.items() if link not in own}
    below = Package("cpython-libraries", version, "0", ["__glibc >=2.17"], SUBDIR)
    while pending:
        link, place = pending.popitem()
        if os.path.exists(below.path("lib/" + link)):
            continue
        shutil.copy2(os.path.realpath(place), below.path("lib/" + link))
        relocate(below.path("lib/" + link), "$ORIGIN")
        pending.update(libraries_of(place))
    package.index["depends"] = [f"cpython-libraries {version}", "__glibc >=2.17"]
    below.pack(channel, modern=True)
    package.pack(channel, modern=True)


def pip(channel):
    """Makes the package `pip` from the wheel that CPython or Debian contains, or else from the installed pip."""
    prefix, name = sys.base_prefix, "python%d.%d" % sys.version_info[:2]
    wheels = glob.glob(f"{prefix}/lib/{name}/ensurepip/_bundled/pip-*.whl") + glob.glob("/usr/share/python-wheels/pip-*.whl")
    stage = tempfile.mkdtemp(prefix="pip-")
    if wheels:
        with zipfile.ZipFile(wheels[0]) as wheel:
            wheel.extractall(stage)
    else:
        import pip as installed

        folder = os.path.dirname(os.path.dirname(installed.__file__))
        for found in ["pip", *(os.path.basename(one) for one in glob.glob(folder + "/pip-*.dist-info"))]:
            shutil.copytree(f"{folder}/{found}", f"{stage}/{found}", ignore=shutil.ignore_patterns("__pycache__"))
    facts = glob.glob(stage + "/pip-*.dist-info")[0]
    version = os.path.basename(facts).split("-")[1].removesuffix(".dist")
    package = Package("pip", version, "pyh0_0", ["python >=3.8"], noarch="python")
    shutil.move(stage + "/pip", package.path("site-packages/pip"))
    shutil.move(facts, package.path("site-packages/" + os.path.basename(facts)))
    package.write(f"site-packages/{os.path.basename(facts)}/INSTALLER", "conda\n")
    commands = configparser.ConfigParser(delimiters=("=",))
    commands.read(package.path(f"site-packages/{os.path.basename(facts)}/entry_points.txt"))
    package.commands = [f"{name} = {target}" for name, target in commands["console_scripts"].items()]
    package.pack(channel, modern=True)


def demos(channel, other):
    """Makes the small packages."""
    package = Package("demo-activate", "1.0")
    package.write("etc/conda/activate.d/demo.sh", 'export DEMO_ACTIVATED=yes\nexport DEMO_SHARE="$CONDA_PREFIX/share/demo"\n')
    package.write("share/demo/where.txt", f"{PLACEHOLDER}/share/demo\n")
    package.write("share/demo/where.bin", b"\0binary\0" + f"{PLACEHOLDER}/share".encode() + b"\0end\0")
    package.pack(channel)

    def library(version, target):
        package = Package("demo-library", version, "py_0", ["python >=3.8"], noarch="python")
        package.write("site-packages/demo_library/__init__.py", f'VERSION = "{version}"\n\n\ndef main():\n    print(VERSION)\n')
        package.commands = ["demo-library = demo_library:main"]
        package.pack(target, modern=version == "1.1")

    for version in ("1.0", "1.1", "2.0"):
        library(version, channel)
    library("3.0", other)
    Package("demo-extra", "1.0", depends=["demo-library"]).pack(other)
    Package("demo-left", "1.0", depends=["demo-library <2"]).pack(channel)
    Package("demo-right", "1.0", depends=["demo-library >=2"]).pack(channel)
    Package("demo-native", "1.0", depends=["__glibc >=99"], subdir=SUBDIR).pack(channel)


def fingerprint():
    """Digests everything that determines the channel's content."""
    digest = hashlib.sha256()
    with open(__file__, "rb") as file:
        digest.update(file.read())
    digest.update(sys.version.encode())
    paths = [os.path.realpath(sys.executable), *glob.glob("/lib/*-linux-gnu/lib*.so.*"), *glob.glob(sys.base_prefix + "/lib/*.so*")]
    for path in sorted(paths):
        found = os.stat(path)
        digest.update(f"{path} {found.st_size} {int(found.st_mtime)}\n".encode())
    return digest.hexdigest()[:16]


def main(cache):
    os.makedirs(cache, exist_ok=True)
    alias = os.path.join(os.path.abspath(cache), fingerprint())
    if not os.path.isdir(alias):
        if not shutil.which("patchelf"):
            sys.exit("conda_channel.py: `patchelf` is missing; `apt-get install patchelf`")
        partial = tempfile.mkdtemp(dir=cache)
        os.chmod(partial, 0o755)
        channel, other = os.path.join(partial, "conda-forge"), os.path.join(partial, "other")
        with tempfile.TemporaryDirectory() as tempfile.tempdir:
            cpython(channel)
            pip(channel)
            demos(channel, other)
        for folder in (channel, other):
            for subdir in (SUBDIR, "noarch"):
                path = os.path.join(folder, subdir)
                os.makedirs(path, exist_ok=True)
                if not os.path.exists(path + "/repodata.json"):
                    empty = json.dumps(read_index(path), indent=1)
                    with open(path + "/repodata.json", "w") as file:
                        file.write(empty)
        try:
            os.rename(partial, alias)
        except OSError:  # another process was faster
            shutil.rmtree(partial)
    print("file://" + alias)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    chosen = newest_python()
    if os.path.realpath(sys.executable) != chosen:
        # Bytecode and pip's wheel depend on the interpreter, so the one that is packed must do the work.
        os.execv(chosen, [chosen, "-I", os.path.abspath(__file__), sys.argv[1]])
    main(sys.argv[1])
