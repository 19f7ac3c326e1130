# -fvisibility=hidden over all: what users call is still shown, and nothing else is.
. "$(dirname "$0")/../harness.sh"
. "$HERE/ways.bash"

compile "$CC" -O2 -fPIC -fvisibility=hidden
runs_shared "$CC" -fvisibility=hidden
nm -D --defined-only libprof.so | awk '$2 != "A" { print $3 }' | sort >shown
nm -D --defined-only "$LIBDIR/libprof.so" | awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' |
  sort >installed
diff installed shown >difference ||
  fail "not the names that the installed library shows: $(cat difference)"
