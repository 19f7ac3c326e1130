# musl: the library inside the program (dynamic and -static), and as a shared library.
. "$(dirname "$0")/../harness.sh"
. "$HERE/musl.bash"

compile "${MUSL[@]}" -fPIC
for kind in "" -static; do runs_whole musl-gcc $kind; done
runs_shared musl-gcc
readelf -l busy | grep ld-musl >/dev/null || fail "this is not musl's"
quietly "${MUSL[@]}" "$EMBED/no-code/app.c" -o quiet -L. -lprof -Wl,-rpath,"$PWD"
PROF_LEVEL=1 PROF_OUTPUT=quiet.json ./quiet || fail "quiet: status $?"
expect_scopes quiet.json work
