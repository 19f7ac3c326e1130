# -fno-plt, from gcc and clang: the library's calls, and the program's.
. "$(dirname "$0")/../harness.sh"
. "$HERE/ways.bash"

for cc in gcc clang; do
  if ! command -v $cc >/dev/null; then
    echo "skip: $cc is missing"
    continue
  fi
  compile $cc -O2 -fno-plt -fPIC -fvisibility=hidden
  runs_whole $cc
  runs_shared $cc -Wl,-z,now
done
