#!/usr/bin/env bash
# usage: tools/again.sh COMMAND...
# For what brings something from a registry, which may answer an error for a moment: runs the command; where it fails, once more in 5 s, and a last time in 30 s. Its exit status is the last one's. Never for a test: what fails now and then there is to be mended.
for seconds in 5 30; do
  "$@" && exit
  echo "again in $seconds s: $*" >&2
  sleep "$seconds"
done
exec "$@"
