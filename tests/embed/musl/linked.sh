# musl: the sources in the program, dynamic and -static, and a shared library that the program links.
. "$(dirname "$0")/../harness.sh"
. "$HERE/musl.bash"

for kind in "" -static; do
  quietly "${MUSL[@]}" $kind "$SOURCE"/src/*/*.c "$EMBED/busy.c" -o busy -pthread
  run_app ./busy
done
quietly "${MUSL[@]}" -fPIC -shared "$SOURCE"/src/*/*.c -o libprof.so -pthread
quietly "${MUSL[@]}" "$EMBED/busy.c" -o busy -L. -lprof -Wl,-rpath,"$PWD" -pthread
readelf -l busy | grep ld-musl >/dev/null || fail "this is not musl's"
run_app ./busy
quietly "${MUSL[@]}" "$EMBED/no-code/app.c" -o quiet -L. -lprof -Wl,-rpath,"$PWD"
PROF_LEVEL=1 PROF_OUTPUT=quiet.json ./quiet || fail "quiet: status $?"
expect_scopes quiet.json work
