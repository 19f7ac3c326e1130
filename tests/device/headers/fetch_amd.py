"""usage: fetch_amd.py [FOLDER]

Puts into FOLDER (.cache/amd of the source tree) AMD's own headers of HIP 7 and rocprofiler-sdk, as
triton's wheel on PyPI carries them: 2 MiB out of 286, asked for by ranges. Nothing in them is run;
what they are is checked. Prints FOLDER.
"""

import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys

PACKAGE = "triton==3.9.0"
INSIDE = "triton/backends/amd/include/"
SHA256 = "f73b0c3a2356df601880808a5bc2a1d1a959cfe76bc607c1f818dcefc38b218e"


def url_of(package: str) -> str:
    """Where the index that pip is set to has the wheel."""
    asked = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--dry-run",
        "--no-deps",
        "--ignore-installed",
        "--quiet",
        "--disable-pip-version-check",
        "--report",
        "-",
        "--only-binary=:all:",
    ]
    platform = [
        "--python-version",
        "3.11",
        "--target",
        "unused",
        *(
            word
            for name in ("2_28", "2_27", "2014", "1")
            for word in ("--platform", f"manylinux{'_' * ('_' in name)}{name}_x86_64")
        ),
    ]
    done = subprocess.run([*asked, *platform, package], check=True, capture_output=True, text=True)
    return json.loads(done.stdout)["install"][0]["download_info"]["url"]


def fingerprint(folder: str) -> str:
    """Of all files in it: their names, and what is in them."""
    digest = hashlib.sha256()
    for place, folders, files in os.walk(folder):
        folders.sort()
        for name in sorted(files):
            path = os.path.join(place, name)
            digest.update(os.path.relpath(path, folder).encode() + b"\0")
            with open(path, "rb") as f:
                digest.update(f.read())
    return digest.hexdigest()


def fetch(folder: str) -> None:
    from remotezip import RemoteZip

    fresh = f"{folder}.new.{os.getpid()}"
    try:
        with RemoteZip(url_of(PACKAGE)) as wheel:
            for name in wheel.namelist():
                if name.startswith(INSIDE) and not name.endswith("/"):
                    wheel.extract(name, fresh)
        found = fingerprint(os.path.join(fresh, INSIDE))
        if found != SHA256:
            raise SystemExit(f"{PACKAGE}: its headers are not those that were looked at: {found}")
        os.rename(os.path.join(fresh, INSIDE), folder)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def main() -> None:
    root = os.path.dirname(
        os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    )
    folder = sys.argv[1] if len(sys.argv) > 1 else os.path.join(root, ".cache", "amd")
    os.makedirs(os.path.dirname(folder), exist_ok=True)
    with open(folder + ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # several tests may ask at once
        if not os.path.isdir(folder):
            fetch(folder)
    print(folder)


if __name__ == "__main__":
    main()
