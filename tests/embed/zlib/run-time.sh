# The shared library opens zlib when a .gz is written, and not before. Where there is none, that
# alone is refused, with the reason.
. "$(dirname "$0")/../harness.sh"

nm -D "$LIBDIR/libprof.so" | grep -w dlopen >/dev/null || skip "this build of prof has no zlib"
quietly $CC -I"$PREFIX/include" -o app "$EMBED/app.c" -L"$LIBDIR" -lprof -Wl,-rpath,"$LIBDIR"

./app trace.json.gz || fail "app trace.json.gz: status $?"
gzip -dc trace.json.gz >packed.json
expect_scopes packed.json work

env PROF_LEVEL=1 PROF_OUTPUT=at-exit.json.gz ./app plain.json || fail "app plain.json: status $?"
gzip -dc at-exit.json.gz >packed.json
expect_scopes packed.json work

# refused_with LIBRARY-FOLDER TEXT: the trace is not written as .gz, the text says why; as plain
# JSON it is.
refused_with() {
  rm -f trace.json.gz
  env LD_LIBRARY_PATH="$1" PROF_LEVEL=1 PROF_OUTPUT=trace.json.gz ./app plain.json 2>said ||
    fail "the program itself failed: $(cat said)"
  grep -F "$2" said >/dev/null || fail "expected '$2': $(cat said)"
  [ ! -e trace.json.gz ] || fail "trace.json.gz was written without zlib"
  run_app env LD_LIBRARY_PATH="$1" ./app
}

mkdir damaged other
echo "no library" >damaged/libz.so.1
echo "int nothing;" >other.c
quietly $CC -shared -fPIC -o other/libz.so.1 other.c
refused_with "$PWD/damaged" "zlib, which writes .gz, cannot be opened: $PWD/damaged/libz.so.1"
refused_with "$PWD/other" "libz.so.1 has no deflate"
