#!/usr/bin/env python3
"""Compiles and runs the snippets of README.md and docs/**/*.md, so what a reader copies works.

A comment line before a fenced block says what to do with it:

    <!-- snippet: NAME -->
        c, cpp: compiled without warnings and run. A block without main() is the body of one. With
        CL/cl.h it is linked with OpenCL. sh: run by bash -eu. python: run.
    <!-- snippet: NAME FILE -->
        Also kept as FILE, for the snippets after it. Other languages are only kept.
    <!-- snippet: from FILE -->
        An excerpt: FILE, a source with a test of its own, has exactly these lines.
    <!-- snippet: none: REASON -->
        Not run, and counted as a skip.

Every c, cpp and c++ block needs such a comment; sh blocks may go without. The snippets of one
document run in order in one folder, where the compiler, pkg-config, CMake and the shell find prof
as if it were installed in the system.
"""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys

COMMENT = re.compile(
    r"^<!-- snippet: (?P<name>[\w.-]+)(?:: (?P<reason>.+?)| (?P<file>[\w./-]+))? -->$"
)
FENCE = re.compile(r"^(?P<indent> *)```(?P<language>[\w+]*)$")
COMPILERS = {
    "c": ["cc", "-std=c11", "-Wall", "-Wextra", "-Werror"],
    "cpp": ["c++", "-std=c++17", "-Wall", "-Wextra", "-Werror"],
}
SECONDS = int(os.environ.get("PROF_TEST_HANG_SECONDS") or 300)  # as tests/python/hang_guard.py


class Failure(Exception):
    """A snippet that does not do what the documentation promises."""


def blocks(document):
    """Yields (line number, language, comment match or None, text) of each fenced block."""
    comment, fence, body = None, None, []
    for number, line in enumerate(document.read_text(encoding="utf-8").splitlines(), 1):
        if fence is None and (opened := FENCE.match(line)):
            fence, first, body = opened, number, []
        elif fence is None:
            if line.strip():
                comment = COMMENT.match(line.strip())
                if comment is None and line.strip().startswith("<!-- snippet"):
                    raise Failure(
                        f"{document}:{number}: not of the form <!-- snippet: NAME [FILE] -->: "
                        f"{line.strip()}"
                    )
        elif line.strip() == "```":
            language = {"c++": "cpp", "bash": "sh", "shell": "sh"}.get(
                fence["language"], fence["language"]
            )
            yield first, language, comment, "".join(text + "\n" for text in body)
            comment = fence = None
        else:
            body.append(line.removeprefix(fence["indent"]))


def run(command, folder, environment):
    """Runs the command; its output belongs to the message when it fails."""
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as late:
        raise Failure(f"no end after {SECONDS} s: {' '.join(command)}") from late
    if done.returncode != 0:
        output = done.stdout.decode(errors="replace")
        raise Failure(f"status {done.returncode}: {' '.join(command)}\n{output}")


def with_main(text):
    """A block that is not a program becomes the body of one; its #include lines go to the top."""
    if re.search(r"\bmain\s*\(", text):
        return text
    lines = text.splitlines(keepends=True)
    top = [line for line in lines if line.startswith("#include")]
    if not any("prof/profiler.h" in line for line in top):
        top.insert(0, "#include <prof/profiler.h>\n")
    body = [line for line in lines if not line.startswith("#include")]
    return "".join(top) + "int main(void) {\n" + "".join(body) + "return 0;\n}\n"


def run_snippet(language, name, file, text, folder, environment):
    if file:
        kept = folder / file
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_text(text, encoding="utf-8")
    if language in COMPILERS:
        source = folder / f"{name}.snippet.{language}"
        source.write_text(with_main(text), encoding="utf-8")
        program = folder / f"{name}.snippet"
        libraries = ["-lOpenCL"] if "#include <CL/cl.h>" in text else []
        run(
            [
                *COMPILERS[language],
                "-o",
                str(program),
                str(source),
                "-lprof",
                "-pthread",
                *libraries,
            ],
            folder,
            environment,
        )
        if libraries:  # its devices are the machine's, where the tests' other programs see none
            environment = {
                key: value for key, value in environment.items() if key != "OCL_ICD_VENDORS"
            }
        run([str(program)], folder, environment)
    elif language == "sh":
        run(["bash", "-euo", "pipefail", "-c", text], folder, environment)
    elif language == "python":
        run([sys.executable, file or "-c", *([] if file else [text])], folder, environment)
    elif not file:
        raise Failure(f"blocks of the language '{language}' cannot be run, only kept as a file")


def check_excerpt(text, path):
    """Fails unless the file has the text, as whole lines."""
    if not path.is_file():
        raise Failure(f"an excerpt of {path}, which is missing")
    if not text.strip() or f"\n{text}" not in "\n" + path.read_text(encoding="utf-8"):
        raise Failure(f"{path} has no such lines")


def run_document(document, name, folder, environment, source):
    """Returns (passed, failed, skipped) of one document; its messages call it by `name`."""
    passed = failed = skipped = 0
    folder.mkdir(parents=True)
    for number, language, comment, text in blocks(document):
        where = f"{name}:{number}"
        try:
            if comment is None:
                if language in COMPILERS:
                    raise Failure("no <!-- snippet: NAME --> before this block, so nothing runs it")
                continue
            if comment["reason"]:
                print(f"skip: {where}: {comment['reason']}")
                skipped += 1
                continue
            if comment["name"] == "from" and comment["file"]:
                check_excerpt(text, source / comment["file"])
                print(f"ok: {where} is in {comment['file']}")
                passed += 1
                continue
            run_snippet(language, comment["name"], comment["file"], text, folder, environment)
            print(f"ok: {where} {comment['name']} ({language})")
            passed += 1
        except Failure as failure:
            print(f"failed: {where}: {failure}")
            failed += 1
    return passed, failed, skipped


def reader_environment(prefix, libdir, source):
    """The environment of a reader after the installation of prof and its Python package."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PROF_")}
    for variable, value in (
        ("PATH", prefix / "bin"),
        ("CPATH", prefix / "include"),
        ("LIBRARY_PATH", libdir),
        ("LD_LIBRARY_PATH", libdir),
        ("PKG_CONFIG_PATH", libdir / "pkgconfig"),
        ("CMAKE_PREFIX_PATH", prefix),
        ("PYTHONPATH", source / "bindings" / "python"),
    ):
        environment[variable] = os.pathsep.join(
            filter(None, [str(value), environment.get(variable, "")])
        )
    # pkg-config leaves out what it takes for a system folder; the reader's answer has it in full.
    environment.update(
        PKG_CONFIG_ALLOW_SYSTEM_CFLAGS="1",
        PKG_CONFIG_ALLOW_SYSTEM_LIBS="1",
        PYTHONDONTWRITEBYTECODE="1",
    )
    return environment


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("source", type=pathlib.Path)
    parser.add_argument(
        "--prefix", type=pathlib.Path, required=True, help="where prof is installed"
    )
    parser.add_argument("--libdir", default="lib", help="the folder of the libraries in it")
    parser.add_argument(
        "--work", type=pathlib.Path, required=True, help="an own folder, emptied first"
    )
    options = parser.parse_args()

    readme = options.source / "README.md"
    if not readme.exists():
        print("skip: README.md is missing")
        return 77
    shutil.rmtree(options.work, ignore_errors=True)
    environment = reader_environment(
        options.prefix, options.prefix / options.libdir, options.source
    )
    totals = [0, 0, 0]
    for document in [readme, *sorted((options.source / "docs").rglob("*.md"))]:
        name = document.relative_to(options.source)
        try:
            counts = run_document(
                document, name, options.work / name.with_suffix(""), environment, options.source
            )
        except Failure as failure:
            print(f"failed: {failure}")
            counts = (0, 1, 0)
        totals = [total + count for total, count in zip(totals, counts)]
    print(f"{totals[0]} passed, {totals[1]} failed, {totals[2]} skipped")
    return 1 if totals[1] else 0


if __name__ == "__main__":
    sys.exit(main())
