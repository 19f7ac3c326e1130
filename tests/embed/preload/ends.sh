# However a program ends, its capture has all: what exit() writes, or what is left of one that never
# came there.
. "$(dirname "$0")/../harness.sh"
. "$HERE/pool.bash"

quietly "$CC" -O1 -fno-builtin "$HERE/ends.c" -o ends -pthread
for how in return thread _exit kill abort; do
  mkdir $how
  status=0
  (recorded $how/out.prof ./ends $how) 2>/dev/null || status=$?
  look $how/out*.prof 1000003 1000033 1000039
  case $how in
    return) wanted="0 0 1 0" ;;
    thread) wanted="0 0 1 1" ;;
    _exit) wanted="0 1 1 0" ;;
    kill) wanted="137 1 1 0" ;;
    abort) wanted="134 1 1 0" ;;
  esac
  same "$how: status, pieces" "$status $live_1000003 $live_1000033 $live_1000039" "$wanted"
  same "$how: wrong or missing" "$wrong" 0
done
