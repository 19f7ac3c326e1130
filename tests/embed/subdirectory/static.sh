# add_subdirectory with BUILD_SHARED_LIBS off: prof::prof is the static library.
. "$(dirname "$0")/../harness.sh"

configure_and_build "$HERE" -DPROF_SOURCE="$SOURCE" "${AS_DEV[@]}" -DBUILD_SHARED_LIBS=OFF
run_app build/app
! links_shared build/app || fail "prof::prof is the shared library"
