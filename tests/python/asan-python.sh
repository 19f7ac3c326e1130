#!/usr/bin/env bash
# asan-python.sh ARGUMENT...: python3 with AddressSanitizer's runtime preloaded, so that it can open
# a libprof.so that was built with it. Python's own objects use malloc(), so that the sanitizer sees
# them. What an interpreter leaves at its end is no leak of ours.
export LD_PRELOAD PYTHONMALLOC=malloc ASAN_OPTIONS=detect_leaks=0:${ASAN_OPTIONS:-}
LD_PRELOAD=$("${CC:-gcc}" -print-file-name=libasan.so)
exec python3 "$@"
