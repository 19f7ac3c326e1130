# A plug-in with the static library inside it.
. "$(dirname "$0")/../harness.sh"

quietly "$CC" -O2 -fPIC -shared -I"$PREFIX/include" -o plugin.so "$HERE/plugin.c" \
  -Wl,--whole-archive "$LIBDIR/libprof.a" -Wl,--no-whole-archive -pthread \
  $(PKG_CONFIG_PATH=$LIBDIR/pkgconfig pkg-config --static --libs-only-l prof | sed 's/-lprof//')
! links_shared plugin.so || fail "the plug-in loads libprof"
quietly "$CC" -O2 -o host "$HERE/host.c" -ldl
./host ./plugin.so 1 trace.json || fail "host: status $?"
expect_scopes trace.json "plugin work"
