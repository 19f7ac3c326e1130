# Sourced by what compiles: where ccache is here, no file is compiled twice in this checkout. What it
# keeps lies in build/ccache, so that nothing of the user's own cache is used or changed.
if command -v ccache >/dev/null && [ -z "${CMAKE_C_COMPILER_LAUNCHER:-}" ]; then
  export CMAKE_C_COMPILER_LAUNCHER=ccache CMAKE_CXX_COMPILER_LAUNCHER=ccache
  export CCACHE_DIR=${CCACHE_DIR:-$PWD/build/ccache}
fi
