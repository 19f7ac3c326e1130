#!/usr/bin/env bash
# usage: tools/again.sh COMMAND...
# Runs a command that downloads something: a registry may fail for a moment. If the command fails,
# runs it again after 5 s, and a last time after 30 s. The exit status is that of the last run.
# Never use it for a test: mend a test that fails now and then.
for seconds in 5 30; do
  "$@" && exit
  echo "again in $seconds s: $*" >&2
  sleep "$seconds"
done
exec "$@"
