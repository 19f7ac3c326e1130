# Only the plug-in links prof: libprof comes with dlopen. It may stay when the plug-in goes; the
# capture must not suffer.
. "$(dirname "$0")/../harness.sh"

quietly "$CC" -O2 -fPIC -shared -I"$PREFIX/include" -o plugin.so "$HERE/plugin.c" -L"$LIBDIR" -lprof
quietly "$CC" -O2 -o host "$HERE/host.c" -ldl
export LD_LIBRARY_PATH=$LIBDIR
./host ./plugin.so 2 trace.json || fail "host: status $?"
expect_scopes trace.json "plugin work" "plugin work"
