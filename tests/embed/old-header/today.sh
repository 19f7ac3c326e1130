# Objects made with version 1's headers, linked with today's library, shared and static, beside an
# object made with today's headers.
. "$(dirname "$0")/../harness.sh"
. "$HERE/objects.bash"

quietly "$CC" -O2 -I"$PREFIX/include" -c -o program.o "$HERE/program.c"
quietly "$CXX" -o program program.o old.o old-cxx.o -L"$LIBDIR" -lprof -Wl,-rpath,"$LIBDIR"
records ./program
quietly "$CXX" -o program-static program.o old.o old-cxx.o "$LIBDIR/libprof.a" -pthread \
  $(PKG_CONFIG_PATH=$LIBDIR/pkgconfig pkg-config --static --libs-only-l prof | sed 's/-lprof//')
records ./program-static
