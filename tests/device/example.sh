#!/usr/bin/env bash
# The example's program (examples/backend) records its device with its plug-in, loaded by the
# program or named in PROF_BACKENDS, and says why it does not without it.
set -uo pipefail
folder=${PROF_TEST_BUILD_DIR:-build/dev}/examples
demo=$folder/backend-demo plugin=$(realpath "$folder")/libengine_prof.so
[ -x "$demo" ] || { echo "skip: $demo was not built"; exit 77; }
has='ext_dev:0 copy engine \(emulated: no device\): 8 scopes, times within'
has_not="ext_dev:0: the host's side of its scopes alone: no back end serves devices of that type"

# expect TEXT COMMAND...
expect() {
  local wanted=$1 said
  shift
  said=$("$@" 2>&1) && grep -qE "$wanted" <<<"$said" && return
  printf 'not said by %s: %s\n%s\n' "$*" "$wanted" "$said"
  exit 1
}

expect "$has" "$demo" "$plugin"
expect "$has" env PROF_BACKENDS="$plugin" "$demo"
expect "$has_not" "$demo"
