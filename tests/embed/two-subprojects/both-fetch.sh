# Two subprojects that each fetch prof (FetchContent) under a name of their own.
. "$(dirname "$0")/../harness.sh"
. "$HERE/parts.bash"

two_parts fetch fetch
