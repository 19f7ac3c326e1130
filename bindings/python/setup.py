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
from concurrent.futures import ThreadPoolExecutor
from glob import glob

from setuptools import Distribution, setup  # isort: skip  # it brings its own distutils
from distutils.command.build_scripts import build_scripts

from setuptools.command.build_py import build_py

try:
    from setuptools.command.bdist_wheel import bdist_wheel
except ImportError:  # before setuptools 70.1
    from wheel.bdist_wheel import bdist_wheel

SONAME = "libprof.so.0"
# The library's name, its folder in inject, and the options of the compiler and the linker that
# CMakeLists.txt has for it.
BESIDE = (
    ("itt", "annotation", (), ()),
    ("torch", "torch", (), ()),
    ("memory", "malloc", ("-fno-builtin",), ("-Wl,-z,now",)),
)
COMMAND = "prof"
HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.abspath(os.path.join(HERE, "..", ".."))
FOLDERS = ("*", "core/*")  # of src
ALWAYS = ("-std=gnu11", "-O2", "-DNDEBUG", "-fPIC", "-fvisibility=hidden")
DEFINES = ("-DPROF_OPEN_LIBRARIES=1",)
LINKED = ("-fPIC", "-s")
SHARED = ("-shared", "-Wl,-z,nodelete")
# The first option that the linker knows is used: zig's linker has no -Bsymbolic-functions.
# -Bsymbolic also binds the level to this copy. Only a program that is linked against this copy
# could see a difference.
BINDINGS = ("-Wl,-Bsymbolic-functions", "-Wl,-Bsymbolic")
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

    def optional(self):
        return [
            option
            for header, name in OPTIONAL
            if self.takes("-include", header)
            for option in (f"-DPROF_HAVE_{name}=1", f"-DPROF_OPEN_{name}=1")
        ]

    def objects(self, sources, folder, *options):
        """Compiles the sources, as many at once as there are processors. Returns the paths of the
        objects in the order of the sources."""
        os.makedirs(folder)
        targets = [os.path.join(folder, f"{n}.o") for n in range(len(sources))]
        with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
            made = pool.map(lambda *pair: self.compiles(*pair, *options), sources, targets)
            missing = [source for source, is_made in zip(sources, made) if not is_made]
        if not missing:
            return targets
        why = ""
        if self.takes() and not self.takes("-include", "uthash.h"):
            why = ": uthash.h is missing (Debian: apt-get install uthash-dev)"
        raise SystemExit(f"libprof: {os.path.relpath(missing[0], ROOT)} did not compile{why}")

    def compiles(self, source, target, *options):
        include = [x for folder in ("include", "src") for x in ("-I", os.path.join(ROOT, folder))]
        command = [*self.command, *ALWAYS, *options, *include, "-c", source, "-o", target]
        return subprocess.run(command).returncode == 0

    def link(self, objects, target, *options):
        command = [*self.command, *LINKED, *options, *objects, "-o", target, *LIBRARIES]
        if subprocess.run(command).returncode != 0:
            raise SystemExit(f"libprof: {os.path.basename(target)} did not link")


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
        os.makedirs(target, exist_ok=True)
        with tempfile.TemporaryDirectory() as folder:
            build(Compiler(), sources, target, folder)


def build(compiler, sources, target, folder):
    """Builds the libraries and the command. `folder` is for the objects."""
    # Call sites hold the paths of their sources. They must not have folders of this machine.
    options = [
        *DEFINES,
        *compiler.optional(),
        *filter(compiler.takes, [f"-fmacro-prefix-map={ROOT}/="]),
    ]
    objects = compiler.objects(sources, os.path.join(folder, "lib"), *options)
    library = os.path.join(target, SONAME)
    binding = next(filter(compiler.takes, BINDINGS), "-fPIC")
    compiler.link(objects, library, *SHARED, f"-Wl,-soname,{SONAME}", binding)
    for name, inside, compile_options, link_options in BESIDE:
        file = f"libprof_{name}.so"
        found = sorted(glob(os.path.join(ROOT, "inject", inside, "*.c")))
        beside = compiler.objects(found, os.path.join(folder, name), *compile_options)
        options_beside = (*SHARED, "-Wl,-rpath,$ORIGIN", f"-Wl,-soname,{file}", *link_options)
        compiler.link([*beside, library], os.path.join(target, file), *options_beside)
    found = [
        file
        for inside in ("prof", "import", "run")
        for file in sorted(glob(os.path.join(ROOT, "tools", inside, "*.c")))
    ]
    commands = compiler.objects(found, os.path.join(folder, "command"), *options)
    own = [
        made
        for source, made in zip(sources, objects)
        if os.path.basename(os.path.dirname(source)) != "python"
    ]
    # The command contains the library's objects. A preloaded libprof.so looks for this symbol.
    exports = filter(compiler.takes, ["-Wl,--export-dynamic-symbol=prof_i_is_command"])
    compiler.link([*commands, *own], os.path.join(target, COMMAND), *exports)


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
