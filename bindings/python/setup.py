"""Compiles libprof into the package, prof/lib/libprof.so.0, with $CC (cc), for `pip install ./bindings/python`; then no Python needs a compiler or an extension module of its own: one wheel for all of them."""

import os
import shutil
import subprocess
from glob import glob

from setuptools import setup
from setuptools.command.build_py import build_py

try:
    from setuptools.command.bdist_wheel import bdist_wheel
except ImportError:  # before setuptools 70.1
    from wheel.bdist_wheel import bdist_wheel

SONAME = "libprof.so.0"
ROOT = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
FOLDERS = ("face", "core", "trace", "export", "op", "memory", "python")


class build_with_library(build_py):
    def run(self):
        super().run()
        target = os.path.join(self.build_lib, "prof", "lib")
        os.makedirs(target, exist_ok=True)
        sources = [f for folder in FOLDERS for f in sorted(glob(os.path.join(ROOT, "src", folder, "*.c")))]
        if not sources:
            raise SystemExit(f"libprof: its C sources are not at {ROOT}/src: install from a checkout of prof, or a wheel")
        compiler = os.environ.get("CC", "cc")
        if not shutil.which(compiler.split()[0]):
            raise SystemExit(f"libprof: there is no C compiler {compiler!r}; install one, or set CC")
        options = ["-std=gnu11", "-O2", "-fPIC", "-fvisibility=hidden", "-shared", "-DNDEBUG", f"-Wl,-soname,{SONAME}", "-Wl,-z,nodelete", "-Wl,-Bsymbolic-functions"]
        for header, define in (("zlib.h", "ZLIB"), ("sqlite3.h", "SQLITE")):
            if subprocess.run([*compiler.split(), "-E", "-include", header, "-x", "c", os.devnull], capture_output=True).returncode == 0:
                options += [f"-DPROF_HAVE_{define}=1", f"-DPROF_OPEN_{define}=1"]
        command = [*compiler.split(), *options, "-I", os.path.join(ROOT, "include"), "-I", os.path.join(ROOT, "src"), *sources, "-o", os.path.join(target, SONAME), "-lpthread", "-lm", "-ldl"]
        if subprocess.run(command).returncode:
            raise SystemExit("libprof: the library did not compile (uthash.h is needed: Debian's uthash-dev)")


class wheel_for_all(bdist_wheel):
    def finalize_options(self):
        super().finalize_options()
        self.root_is_pure = False

    def get_tag(self):
        return "py3", "none", super().get_tag()[2]


setup(cmdclass={"build_py": build_with_library, "bdist_wheel": wheel_for_all})
