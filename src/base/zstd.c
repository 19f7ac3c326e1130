/* zstd by its shared library; see library.h. The types are those of zstd's stable interface, which
   each release since 1.0 has. */
#include <prof/status.h>
#include <stdlib.h>

#include "error.h"
#include "library.h"

struct prof_i_zstd {
  void *compressor, *decompressor;
  void *(*create_compressor)(void);
  size_t (*free_compressor)(void *compressor);
  size_t (*compress)(void *compressor, void *to, size_t room, const void *from, size_t count,
                     int level);
  void *(*create_decompressor)(void);
  size_t (*free_decompressor)(void *decompressor);
  size_t (*decompress)(void *decompressor, void *to, size_t room, const void *from, size_t count);
  unsigned (*is_error)(size_t result);
};

/* Level 1 is the fastest. On columns of small numbers, other levels compress hardly better. */
enum { ZSTD_LEVEL = 1 };

static int find_functions(prof_i_zstd *zstd, const char *what) {
  static const char name[] = "libzstd.so.1";
  prof_i_library_error why = {0};
  void *const library = prof_i_library_try(name, &why);
  if (!library)
    return prof_i_fail(PROF_E_UNSUPPORTED,
                       "%s, and zstd cannot be opened: %s; install zstd (Debian: libzstd1, Fedora: "
                       "libzstd)",
                       what, why.text);
  const struct {
    const char *symbol;
    void **to;
  } functions[] = {{"ZSTD_createCCtx", (void **)&zstd->create_compressor},
                   {"ZSTD_freeCCtx", (void **)&zstd->free_compressor},
                   {"ZSTD_compressCCtx", (void **)&zstd->compress},
                   {"ZSTD_createDCtx", (void **)&zstd->create_decompressor},
                   {"ZSTD_freeDCtx", (void **)&zstd->free_decompressor},
                   {"ZSTD_decompressDCtx", (void **)&zstd->decompress},
                   {"ZSTD_isError", (void **)&zstd->is_error}};
  for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
    if (!(*functions[i].to = prof_i_library_find(library, functions[i].symbol)))
      return prof_i_fail(PROF_E_UNSUPPORTED, "%s, and %s has no %s; install a newer zstd", what,
                         name, functions[i].symbol);
  return PROF_OK;
}

int prof_i_zstd_create(const char *what, prof_i_zstd **zstd_out) {
  prof_i_zstd *const zstd = calloc(1, sizeof *zstd);
  int status = zstd ? find_functions(zstd, what) : PROF_E_NO_MEMORY;
  if (status == PROF_OK) {
    zstd->compressor = zstd->create_compressor();
    zstd->decompressor = zstd->create_decompressor();
    if (!zstd->compressor || !zstd->decompressor) status = PROF_E_NO_MEMORY;
  }
  if (status == PROF_E_NO_MEMORY) prof_i_fail(status, "%s, and there is no memory for zstd", what);
  if (status != PROF_OK) {
    prof_i_zstd_destroy(zstd);
    return status;
  }
  *zstd_out = zstd;
  return PROF_OK;
}

void prof_i_zstd_destroy(prof_i_zstd *zstd) {
  if (!zstd) return;
  if (zstd->compressor) zstd->free_compressor(zstd->compressor);
  if (zstd->decompressor) zstd->free_decompressor(zstd->decompressor);
  free(zstd);
}

size_t prof_i_zstd_compress(prof_i_zstd *zstd, void *to, size_t room, const void *from,
                            size_t count) {
  const size_t written = zstd->compress(zstd->compressor, to, room, from, count, ZSTD_LEVEL);
  return zstd->is_error(written) ? 0 : written;
}

bool prof_i_zstd_decompress(prof_i_zstd *zstd, void *to, size_t to_count, const void *from,
                            size_t count) {
  return zstd->decompress(zstd->decompressor, to, to_count, from, count) == to_count;
}
