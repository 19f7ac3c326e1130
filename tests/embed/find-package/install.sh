# An installed prof is found by find_package; prof::prof is the shared library.
. "$(dirname "$0")/../harness.sh"

configure_and_build "$HERE" -DCMAKE_PREFIX_PATH="$PREFIX"
for app in app app-shared app-static; do run_app "build/$app"; done
links_shared build/app || fail "prof::prof is not the shared library"
links_shared build/app-shared || fail "prof::shared is not the shared library"
! links_shared build/app-static || fail "prof::static is not the static library"
