# The linker gold, by hand and under CMake.
. "$(dirname "$0")/../harness.sh"
. "$HERE/ways.bash"

need ld.gold
compile "$CC" -O2 -fPIC -fvisibility=hidden
runs_whole "$CC" -fuse-ld=gold
runs_shared "$CC" -fuse-ld=gold
configure_and_build "$EMBED/subdirectory" -DPROF_SOURCE="$SOURCE" \
  -DCMAKE_SHARED_LINKER_FLAGS=-fuse-ld=gold -DCMAKE_EXE_LINKER_FLAGS=-fuse-ld=gold
run_app build/app
