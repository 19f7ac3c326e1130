# A build that was not installed is found by find_package with prof_DIR.
. "$(dirname "$0")/../harness.sh"

configure_and_build "$HERE" -Dprof_DIR="$BUILD"
for app in app app-shared app-static; do run_app "build/$app"; done
links_shared build/app || fail "prof::prof is not the shared library"
