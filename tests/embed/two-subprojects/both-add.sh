# Two subprojects that each add their own copy of prof's sources: the first one's serves both.
. "$(dirname "$0")/../harness.sh"
. "$HERE/parts.bash"

two_parts add add
