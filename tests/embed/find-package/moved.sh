# An installation works in the folder that it is moved to, for CMake, pkg-config and the prof
# command.
. "$(dirname "$0")/../harness.sh"

cp -a "$PREFIX" moved
libdir=moved/${LIBDIR#"$PREFIX"/}
! grep -rl --include='*.cmake' --include='*.pc' -F "$PREFIX" moved ||
  fail "these files name the first prefix"

configure_and_build "$HERE" -DCMAKE_PREFIX_PATH="$WORK/moved"
run_app build/app
readelf -d build/app | grep "$WORK/moved" >/dev/null ||
  fail "the program was not linked against the moved library"

export PKG_CONFIG_PATH=$WORK/$libdir/pkgconfig
quietly $CC -o app "$EMBED/app.c" $(pkg-config --cflags --libs prof)
run_app env LD_LIBRARY_PATH="$WORK/$libdir" ./app

if [ -x moved/bin/prof ]; then
  ldd moved/bin/prof | grep "$WORK/moved" >/dev/null ||
    fail "the prof command loads another libprof: $(ldd moved/bin/prof)"
fi
