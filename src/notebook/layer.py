# The env layer of an attempt: a fresh venv that shows the base env's packages, so that `pip install` works though the
# base is read-only. Read from standard input; `__main__.request` is set by the line above. Standard library only.
import hashlib
import importlib.metadata
import json
import os
import re
import subprocess
import sys
import sysconfig
import tempfile
import venv

LAYER = request["layer"]
MOST = 1 << 20
# Plain names and versions of packages. pip could take other texts for options or for files of the attempt.
NAME = r"[A-Za-z0-9]([\w.-]*[A-Za-z0-9])?"
VERSION = r"[A-Za-z0-9][A-Za-z0-9.!+_-]*"


def site():
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    return os.path.join(LAYER, "lib", version, "site-packages")


def make():
    base = sysconfig.get_paths()["purelib"]
    venv.EnvBuilder(symlinks=True, with_pip=False).create(LAYER)
    with open(os.path.join(site(), "base.pth"), "w") as file:
        file.write(base + "\n")
    for name in ("pip", "pip3"):
        path = os.path.join(LAYER, "bin", name)
        with open(path, "w") as file:
            file.write(f'#!/bin/sh\nexec "{LAYER}/bin/python" -m pip "$@"\n')
        os.chmod(path, 0o755)


def installed():
    return importlib.metadata.distributions(path=[site()])


def capture():
    """What was installed in the layer, and the text of files of it that were changed afterwards."""
    packages, patches, left, room = {}, {}, [], 4 * MOST
    for dist in installed():
        name = dist.metadata["Name"]
        packages[name] = dist.version
        for file in dist.files or []:
            path = os.path.normpath(os.path.join(site(), str(file)))
            if file.hash is None or not path.startswith(site() + os.sep):
                continue
            try:
                with open(path, "rb") as handle:
                    content = handle.read()
            except OSError:
                left.append(str(file))
                continue
            digest = hashlib.new(file.hash.mode, content).digest()
            if __import__("base64").urlsafe_b64encode(digest).rstrip(b"=").decode() == file.hash.value:
                continue
            try:
                text = content.decode("utf-8")
            except UnicodeDecodeError:
                text = None
            if text is None or len(content) > min(MOST, room) or not str(file).endswith(".py"):
                left.append(str(file))
                continue
            room -= len(content)
            patches[os.path.relpath(path, site())] = text
    return {"packages": packages, "patches": patches, "left": left[:50]}


def is_plain(name, version):
    return bool(re.fullmatch(NAME, str(name), re.A) and re.fullmatch(VERSION, str(version)))


def install(packages, **options):
    """Installs packages, and returns whether pip succeeded. pip takes a version that ends like an archive's name for a file
    of the current folder, and `-m` imports from there, so pip runs in an empty folder."""
    pip = [os.path.join(LAYER, "bin", "python"), "-m", "pip", "install", "-q", "--no-deps", "--no-input", "--"]
    with tempfile.TemporaryDirectory() as empty:
        return subprocess.run(pip + packages, cwd=empty, stdout=subprocess.DEVNULL, **options).returncode == 0


def restore():
    """Installs the same packages from the wheelhouse, and puts the changed texts in their place."""
    make()
    packages = request["packages"].items()
    wanted = sorted(f"{name}=={version}" for name, version in packages if is_plain(name, version))
    left = sorted(f"{name}=={version}" for name, version in packages if not is_plain(name, version))
    if wanted and not install(wanted):
        # One that is not in the wheelhouse must not keep the others out.
        left += [one for one in wanted if not install([one], stderr=subprocess.DEVNULL)]
    owned = {os.path.normpath(str(file)) for dist in installed() for file in dist.files or []}
    for name, text in request["patches"].items():
        if name in owned and name.endswith(".py"):
            with open(os.path.join(site(), name), "w", encoding="utf-8", newline="") as file:
                file.write(text)
        else:
            left.append(name)
    return {"left": left}


print(json.dumps({"make": make, "capture": capture, "restore": restore}[request["what"]]() or {}))
