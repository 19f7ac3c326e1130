# Every script that compiles sources this file. If ccache is installed, no file is compiled twice
# in this checkout. Its cache is build/ccache, so that the user's own cache is not touched.
# CCACHE_DEPEND: the compiler's own list of headers is used, so that a file that is not in the cache
# is not preprocessed first. CCACHE_NOHASHDIR: dev and release share objects; debugging data then
# names the build folder that was first.
if command -v ccache >/dev/null && [ -z "${CMAKE_C_COMPILER_LAUNCHER:-}" ]; then
  export CMAKE_C_COMPILER_LAUNCHER=ccache CMAKE_CXX_COMPILER_LAUNCHER=ccache
  export CCACHE_DIR=${CCACHE_DIR:-$PWD/build/ccache} CCACHE_DEPEND=1 CCACHE_NOHASHDIR=1
fi
