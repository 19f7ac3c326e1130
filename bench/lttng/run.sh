#!/usr/bin/env bash
# usage: bench/lttng/run.sh RIVAL
#
# Runs the program RIVAL (built from rival.c) with the tracepoints off. Then runs it under a session
# that overwrites (snapshot), and under one that writes to disk.
# The session daemon belongs to this script and ends with it. For root, LTTng has one daemon a
# machine: a running one is used and left alone. Without LTTng it prints one line, and succeeds.
set -uo pipefail
rival=${1:-}
if [ ! -x "$rival" ]; then
  echo "skip: LTTng-UST is not there, so bench/lttng is not built" \
    "(Debian: liblttng-ust-dev, lttng-tools)"
  exit 0
fi
for tool in lttng lttng-sessiond; do
  command -v $tool >/dev/null || { echo "skip: $tool is missing (Debian: lttng-tools)"; exit 0; }
done

home=$(mktemp -d)
export LTTNG_HOME=$home
session=prof-bench-$$
daemon=
end() {
  lttng destroy "$session" >/dev/null 2>&1
  if [ -n "$daemon" ]; then
    kill "$daemon" 2>/dev/null
    for _ in $(seq 50); do kill -0 "$daemon" 2>/dev/null || break; sleep 0.1; done
  fi
  rm -rf "$home"
}
trap end EXIT

"$rival" || exit 1

if ! lttng --no-sessiond list >/dev/null 2>&1; then
  lttng-sessiond --daemonize --no-kernel --pidfile="$home/pid" >"$home/log" 2>&1 || true
  daemon=$(cat "$home/pid" 2>/dev/null)
  if ! lttng --no-sessiond list >/dev/null 2>&1; then
    echo "skip: lttng-sessiond does not start: $(head -n 1 "$home/log")"
    exit 0
  fi
fi

# one MODE CREATE-OPTION...
one() {
  local mode=$1
  shift
  if lttng create "$session" "$@" >"$home/log" 2>&1 &&
     lttng enable-channel --userspace --subbuf-size=4M --num-subbuf=8 bench >>"$home/log" 2>&1 &&
     lttng enable-event --userspace --channel=bench 'prof_bench:*' >>"$home/log" 2>&1 &&
     lttng start >>"$home/log" 2>&1; then
    LTTNG_UST_REGISTER_TIMEOUT=5000 "$rival" "$mode"
  else
    echo "skip: no LTTng session ($mode): $(tail -n 1 "$home/log")"
  fi
  lttng destroy "$session" >/dev/null 2>&1
}
one snapshot --snapshot --output="$home/snapshot"
one "to disk" --output="$home/trace"
