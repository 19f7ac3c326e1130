# The linker lld, by hand and under CMake.
. "$(dirname "$0")/../harness.sh"
. "$HERE/ways.bash"

need ld.lld
compile "$CC" -O2 -fPIC -fvisibility=hidden
runs_whole "$CC" -fuse-ld=lld
runs_shared "$CC" -fuse-ld=lld
configure_and_build "$EMBED/subdirectory" -DPROF_SOURCE="$SOURCE" \
  -DCMAKE_SHARED_LINKER_FLAGS=-fuse-ld=lld -DCMAKE_EXE_LINKER_FLAGS=-fuse-ld=lld
run_app build/app
