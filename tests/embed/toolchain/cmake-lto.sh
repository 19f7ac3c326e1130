# add_subdirectory in a project that has CMAKE_INTERPROCEDURAL_OPTIMIZATION on: both libraries.
. "$(dirname "$0")/../harness.sh"

for shared in ON OFF; do
  configure_and_build "$EMBED/subdirectory" -DPROF_SOURCE="$SOURCE" -DBUILD_SHARED_LIBS=$shared \
    -DCMAKE_INTERPROCEDURAL_OPTIMIZATION=ON -DCMAKE_POLICY_DEFAULT_CMP0069=NEW
  run_app build/app
done
