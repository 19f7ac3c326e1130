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

# The command has the library in it. A program that it starts gets the one beside the command.
if [ -x moved/bin/prof ]; then
  moved/bin/prof run --memory -o captures -- sh -c 'cat /proc/self/maps' >maps
  grep -F "$WORK/$libdir/libprof" maps >/dev/null ||
    fail "prof run preloads no library of the moved installation: $(grep prof maps)"
  ! grep -F "$PREFIX/" maps || fail "prof run loads a library of the first installation"
fi
