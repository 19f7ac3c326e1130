# add_subdirectory in a C project: prof::prof is the shared library, built because it is linked,
# nothing else is added.
. "$(dirname "$0")/../harness.sh"

configure_and_build "$HERE" -DPROF_SOURCE="$SOURCE" "${AS_DEV[@]}"
run_app build/app
links_shared build/app || fail "prof::prof is not the shared library"
[ -z "$(find build -name 'libprof.a')" ] ||
  fail "the static library was built though nothing links it"
quietly cmake --install build --prefix installed
[ -z "$(find installed -type f 2>/dev/null)" ] ||
  fail "prof installs into its parent's prefix: $(find installed -type f)"
