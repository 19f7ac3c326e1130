# Every script that compiles sources this file. If ccache is installed, no file is compiled twice
# in this checkout. Its cache is build/ccache, so that the user's own cache is not touched.
if command -v ccache >/dev/null && [ -z "${CMAKE_C_COMPILER_LAUNCHER:-}" ]; then
  export CMAKE_C_COMPILER_LAUNCHER=ccache CMAKE_CXX_COMPILER_LAUNCHER=ccache
  export CCACHE_DIR=${CCACHE_DIR:-$PWD/build/ccache}
fi
