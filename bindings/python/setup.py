"""Compiles libprof into the package: prof/lib/libprof.so.0, and beside it libprof_itt.so,
libprof_torch.so, libprof_memory.so and the command, prof.

It compiles with $CC (cc) and $CFLAGS. No Python then needs a compiler or an extension module of its
own: one wheel is for all of them. Nothing is written into the checkout, except by an editable
install, which needs the library there."""

import atexit
import os
import shlex
import shutil
import subprocess
import tempfile
from glob import glob

from setuptools import Distribution, setup  # isort: skip  # it brings its own distutils
from distutils.command.build_scripts import build_scripts

from setuptools.command.build_py import build_py

try:
    from setuptools.command.bdist_wheel import bdist_wheel
except ImportError:  # before setuptools 70.1
    from wheel.bdist_wheel import bdist_wheel

SONAME = "libprof.so.0"
# the library's name, its folder in inject, and what CMakeLists.txt has for it
BESIDE = (
    ("itt", "annotation", ()),
    ("torch", "torch", ()),
    ("memory", "malloc", ("-fno-builtin", "-Wl,-z,now")),
)
COMMAND = "prof"
HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.abspath(os.path.join(HERE, "..", ".."))
FOLDERS = ("*", "core/*")  # of src
# What stands behind another is taken where the first is not known: zig's linker has no
# -Bsymbolic-functions. That binds the level, too, which only a program that is itself linked
# against this copy could see.
ALWAYS = ("-std=gnu11", "-O2", "-DNDEBUG", "-fPIC", "-fvisibility=hidden", "-s")
SHARED = ("-shared", "-Wl,-z,nodelete")
OPTIONS = (
    (f"-Wl,-soname,{SONAME}", "-DPROF_OPEN_LIBRARIES=1"),
    ("-Wl,-Bsymbolic-functions", "-Wl,-Bsymbolic"),
    ("-Wl,--gc-sections",),
)
LIBRARIES = ("-lpthread", "-lm", "-ldl")
# opened at run time, where they are
OPTIONAL = (("zlib.h", "ZLIB"), ("sqlite3.h", "SQLITE"), ("yajl/yajl_parse.h", "YAJL"))


class Compiler:
    def __init__(self):
        self.command = [
            *shlex.split(os.environ.get("CC", "cc")),
            *shlex.split(os.environ.get("CFLAGS", "")),
        ]
        if not shutil.which(self.command[0]):
            raise SystemExit(
                f"libprof: there is no C compiler {self.command[0]!r}; install one, or set CC"
            )

    def takes(self, *options):
        with tempfile.TemporaryDirectory() as folder:
            source = os.path.join(folder, "empty.c")
            with open(source, "w") as f:
                f.write("int prof_nothing;\n")
            return (
                subprocess.run(
                    [
                        *self.command,
                        *options,
                        "-fPIC",
                        "-shared",
                        source,
                        "-o",
                        os.path.join(folder, "empty.so"),
                    ],
                    capture_output=True,
                ).returncode
                == 0
            )

    def compile(self, sources, library):
        options = [
            *SHARED,
            *OPTIONS[0],
            next(filter(self.takes, OPTIONS[1]), "-fPIC"),
            *self.optional(),
        ]
        if not self.made(options, sources, library):
            raise SystemExit(
                "libprof: the library did not compile"
                + (
                    ": uthash.h is missing (Debian: apt-get install uthash-dev)"
                    if self.takes() and not self.takes("-include", "uthash.h")
                    else ""
                )
            )

    def optional(self):
        return [
            option
            for header, name in OPTIONAL
            if self.takes("-include", header)
            for option in (f"-DPROF_HAVE_{name}=1", f"-DPROF_OPEN_{name}=1")
        ]

    def compile_beside(self, sources, target, needed, *options):
        """One that finds the other where it stands itself."""
        if not self.made(["-Wl,-rpath,$ORIGIN", *options], [*sources, needed], target):
            raise SystemExit(f"libprof: {target} did not compile")

    def made(self, options, sources, library):
        return (
            subprocess.run(
                [
                    *self.command,
                    *ALWAYS,
                    *options,
                    "-I",
                    os.path.join(ROOT, "include"),
                    "-I",
                    os.path.join(ROOT, "src"),
                    *sources,
                    "-o",
                    library,
                    *LIBRARIES,
                ]
            ).returncode
            == 0
        )


class BuildWithLibrary(build_py):
    def run(self):
        super().run()
        target = os.path.join(HERE if self.editable_mode else self.build_lib, "prof", "lib")
        sources = [
            f for folder in FOLDERS for f in sorted(glob(os.path.join(ROOT, "src", folder, "*.c")))
        ]
        if not sources:
            raise SystemExit(
                f"libprof: its C sources are not at {ROOT}/src: install from a checkout of prof, "
                f"or a wheel"
            )
        own_sources = [f for f in sources if os.path.basename(os.path.dirname(f)) != "python"]
        os.makedirs(target, exist_ok=True)
        compiler, library = Compiler(), os.path.join(target, SONAME)
        compiler.compile(sources, library)
        for name, folder, options in BESIDE:
            file = f"libprof_{name}.so"
            compiler.compile_beside(
                glob(os.path.join(ROOT, "inject", folder, "*.c")),
                os.path.join(target, file),
                library,
                *SHARED,
                f"-Wl,-soname,{file}",
                *options,
            )
        commands = [
            file
            for folder in ("prof", "import", "run")
            for file in glob(os.path.join(ROOT, "tools", folder, "*.c"))
        ]
        # its call sites say where they stand, which is no matter of this machine
        no_paths = filter(compiler.takes, [f"-fmacro-prefix-map={ROOT}/="])
        # with the library's objects: libprof.so, if it is preloaded, looks for this name
        exports = filter(compiler.takes, ["-Wl,--export-dynamic-symbol=prof_i_is_command"])
        if not compiler.made(
            [*OPTIONS[0][1:], *compiler.optional(), *no_paths, *exports],
            [*commands, *own_sources],
            os.path.join(target, COMMAND),
        ):
            raise SystemExit(f"libprof: {COMMAND} did not compile")


class CommandAsScript(build_scripts):
    """setuptools reads scripts as text, which the command is not."""

    def run(self):
        build = self.get_finalized_command("build_py")
        made = os.path.join(
            HERE if build.editable_mode else build.build_lib, "prof", "lib", COMMAND
        )
        if not os.path.exists(made):
            self.run_command("build_py")
        os.makedirs(self.build_dir, exist_ok=True)
        shutil.copy2(made, os.path.join(self.build_dir, COMMAND))

    def get_source_files(self):
        return []


class WithLibrary(Distribution):
    def has_ext_modules(self):  # its files belong where those of one machine do
        return True


class WheelForAll(bdist_wheel):
    def get_tag(self):
        return "py3", "none", super().get_tag()[2]


scratch = tempfile.mkdtemp(prefix="libprof-")
atexit.register(shutil.rmtree, scratch, ignore_errors=True)
setup(
    distclass=WithLibrary,
    cmdclass={
        "build_py": BuildWithLibrary,
        "build_scripts": CommandAsScript,
        "bdist_wheel": WheelForAll,
    },
    scripts=[COMMAND],
    options={
        "build": {"build_base": os.path.join(scratch, "build")},
        "egg_info": {"egg_base": scratch},
    },
)
