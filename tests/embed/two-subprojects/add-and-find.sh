# One subproject adds prof, the other finds an installed one: in either order, or found by the
# program above both.
. "$(dirname "$0")/../harness.sh"
. "$HERE/parts.bash"

two_parts add find
two_parts find add
two_parts fetch add -DFIND_ABOVE=ON
