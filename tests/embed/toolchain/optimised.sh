# Optimised for size, and as far as it goes: gcc and clang. (Not at all: command-line/whole.sh.)
. "$(dirname "$0")/../harness.sh"
. "$HERE/ways.bash"

for way in "gcc -Os" "clang -O3 -march=native -fomit-frame-pointer"; do
  if ! command -v "${way%% *}" >/dev/null; then
    echo "skip: ${way%% *} is missing"
    continue
  fi
  compile $way
  runs_whole $way
done
