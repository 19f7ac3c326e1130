# -static: no dynamic linker at all.
. "$(dirname "$0")/../harness.sh"
. "$HERE/ways.bash"

compile "$CC" -O2 -fvisibility=hidden
runs_whole "$CC" -static -no-pie
! readelf -l busy | grep INTERP >/dev/null || fail "this is not a static program"
! grep -i 'warning' log || fail "the linker warns"
