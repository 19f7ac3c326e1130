# -static-pie: no dynamic linker, but relocations that the program does itself.
. "$(dirname "$0")/../harness.sh"
. "$HERE/ways.bash"

compile "$CC" -O2 -fPIE -fvisibility=hidden
runs_whole "$CC" -static-pie
! readelf -l busy | grep INTERP >/dev/null || fail "this is not a static program"
readelf -h busy | grep 'Type:.*DYN' >/dev/null || fail "this is not position-independent"
