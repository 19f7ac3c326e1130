# cc -static app.c $(pkg-config --static --cflags --libs prof) makes a program that loads no library
# at all.
. "$(dirname "$0")/../harness.sh"

export PKG_CONFIG_PATH=$LIBDIR/pkgconfig
quietly $CC -static -o app "$EMBED/app.c" $(pkg-config --static --cflags --libs prof)
! readelf -d app | grep NEEDED >/dev/null || fail "the program loads libraries: $(readelf -d app)"
run_app ./app
