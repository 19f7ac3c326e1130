# Host and plug-in both link prof: one capture holds the scopes of both, also of a plug-in that is
# gone and came back.
. "$(dirname "$0")/../harness.sh"

quietly "$CC" -O2 -fPIC -shared -fvisibility=hidden -I"$PREFIX/include" -o plugin.so \
  "$HERE/plugin.c" -L"$LIBDIR" -lprof
quietly "$CC" -O2 -DHOST_LINKS_PROF -I"$PREFIX/include" -o host "$HERE/host.c" -L"$LIBDIR" -lprof \
  -ldl
export LD_LIBRARY_PATH=$LIBDIR
./host ./plugin.so 2 trace.json || fail "host: status $?"
expect_scopes trace.json "host work" "plugin work" "plugin work"
