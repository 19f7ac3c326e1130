"""usage: fetch_toolkit.py [FOLDER [VERSION...]]

Puts into FOLDER/VERSION (.cache/cuda-toolkit of the source tree) what NVIDIA's own wheels on PyPI
have of these releases, or of all: NVRTC with its header, cuBLAS's headers, and what these include.
110 MiB out of 2 GB, asked for by ranges. NVRTC is run by tests/minilm/nvrtc.sh, which needs no GPU;
what it is is checked. Prints FOLDER.
"""

import fcntl
import hashlib
import os
import shutil
import sys
from typing import Dict, List, NamedTuple

from fetch_amd import url_of


class Part(NamedTuple):
    """Of a release: the files of a wheel that begin so, or are called so. The digests of libraries,
    which are run."""

    version: str
    package: str
    wanted: List[str]
    sha256: Dict[str, str]


PARTS = [
    Part(
        "11.8",
        "nvidia-cuda-nvrtc-cu11==11.8.89",
        [
            "nvidia/cuda_nvrtc/include/nvrtc.h",
            "nvidia/cuda_nvrtc/lib/libnvrtc.so.11.2",
            "nvidia/cuda_nvrtc/lib/libnvrtc-builtins.so.11.8",
        ],
        {
            "libnvrtc-builtins.so.11.8": (
                "2dc4bf687034e89e117ef82fb300291e4833319a2d47722005d40eeafbafdaaf"
            ),
            "libnvrtc.so.11.2": "6960d05ae43a3e335e2d26f325db48bf7843c22ba4f40540ba7d0090597030c5",
        },
    ),
    Part("11.8", "nvidia-cublas-cu11==11.11.3.6", ["nvidia/cublas/include/cublas"], {}),
    Part("11.8", "nvidia-cuda-runtime-cu11==11.8.89", ["nvidia/cuda_runtime/include/"], {}),
    Part(
        "12.9",
        "nvidia-cuda-nvrtc-cu12==12.9.86",
        [
            "nvidia/cuda_nvrtc/include/nvrtc.h",
            "nvidia/cuda_nvrtc/lib/libnvrtc.so.12",
            "nvidia/cuda_nvrtc/lib/libnvrtc-builtins.so.12.9",
        ],
        {
            "libnvrtc-builtins.so.12.9": (
                "6507cf33450cfb22970c2c1e7aa8e7c0a33e39d864720277b05f61a92791e2e8"
            ),
            "libnvrtc.so.12": "7c67c6b51ea0e0279634cebd676ff7efda1674806444520c84430ad5c35fe625",
        },
    ),
    Part("12.9", "nvidia-cublas-cu12==12.9.1.4", ["nvidia/cublas/include/cublas"], {}),
    Part("12.9", "nvidia-cuda-runtime-cu12==12.9.79", ["nvidia/cuda_runtime/include/"], {}),
    Part(
        "13.0",
        "nvidia-cuda-nvrtc==13.0.88",
        [
            "nvidia/cu13/include/nvrtc.h",
            "nvidia/cu13/lib/libnvrtc.so.13",
            "nvidia/cu13/lib/libnvrtc-builtins.so.13.0",
        ],
        {
            "libnvrtc-builtins.so.13.0": (
                "91dcd944d01da9c0f08fff5d779db136a47f6d62bdb63bae900d2f481e92c3a2"
            ),
            "libnvrtc.so.13": "a49e67e8e74590f1e98de55c39c6287efd3f59e3c3797464d7bbe0fe01349b11",
        },
    ),
    Part("13.0", "nvidia-cublas==13.0.2.14", ["nvidia/cu13/include/cublas"], {}),
    Part("13.0", "nvidia-cuda-runtime==13.0.88", ["nvidia/cu13/include/"], {}),
]


def fetch(part: Part, folder: str) -> None:
    """All files into one folder: none of them has another's name."""
    from remotezip import RemoteZip

    with RemoteZip(url_of(part.package)) as wheel:
        for name in wheel.namelist():
            if name.endswith("/") or not name.startswith(tuple(part.wanted)):
                continue
            within = (
                name.split("/include/", 1)[1] if "/include/" in name else os.path.basename(name)
            )
            path = os.path.join(folder, within)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            data = wheel.read(name)
            if ".so" in within:
                found = hashlib.sha256(data).hexdigest()
                if part.sha256.get(within) != found:
                    raise SystemExit(f"{part.package}: {within} is not what was looked at: {found}")
            with open(path, "wb") as f:
                f.write(data)


def main() -> None:
    root = os.path.dirname(
        os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    )
    folder = sys.argv[1] if len(sys.argv) > 1 else os.path.join(root, ".cache", "cuda-toolkit")
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # several tests may ask at once
        for version in sys.argv[2:] or sorted({part.version for part in PARTS}):
            place = os.path.join(folder, version)
            fresh = f"{place}.new.{os.getpid()}"
            try:
                for part in PARTS:
                    if part.version == version and not os.path.isdir(place):
                        fetch(part, fresh)
                if not os.path.isdir(place):
                    os.rename(fresh, place)
            finally:
                shutil.rmtree(fresh, ignore_errors=True)
    print(folder)


if __name__ == "__main__":
    main()
