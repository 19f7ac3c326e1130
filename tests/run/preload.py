"""Libraries that are loaded into ``prof run`` alone, so that one of its calls fails."""

import os
import subprocess

HEAD = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* prof itself, and neither its children's programs nor the compiler's checks */
static int is_prof(void) { return strcmp(program_invocation_short_name, "prof") == 0; }
"""


def environment(folder, source, **more):
    """The variables with which each program of that folder loads the library."""
    path = os.path.join(folder, "preload.so")
    compiler = os.environ.get("CC", "cc")
    words = [compiler, "-w", "-shared", "-fPIC", "-x", "c", "-", "-o", path, "-ldl"]
    subprocess.run(words, input=(HEAD + source).encode(), check=True)
    sanitizer = os.environ.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0"
    return {
        **os.environ,
        "LC_ALL": "C.UTF-8",
        "LD_PRELOAD": path,
        "ASAN_OPTIONS": sanitizer.lstrip(":"),
        **more,
    }
