/* One gzip member through zlib; see sink.h. The shared library, built with PROF_OPEN_ZLIB, opens
   zlib while it compresses: to load it would cost every program more than to load prof does. The
   static one links it, since dlopen() and -static do not agree. */
#include "sink.h"

#include <prof/status.h>

#include "../base/error.h"

#ifdef PROF_HAVE_ZLIB

#include <stdint.h>
#include <stdlib.h>

#define ZLIB_CONST
#include <zlib.h>

#ifdef PROF_OPEN_ZLIB
#include <dlfcn.h>
#endif

enum {
  GZIP_WINDOW_BITS = 15 + 16, /* the largest window, and gzip's frame */
  GZIP_MEMORY_LEVEL = 8,      /* zlib's own default */
  OUT_BYTES = 128 << 10,
  IN_BYTES_MAX = 1 << 30 /* zlib counts in 32 bits */
};

typedef struct zlib_functions {
  void *handle; /* NULL: linked */
  __typeof__(&deflateInit2_) init;
  __typeof__(&deflate) run;
  __typeof__(&deflateEnd) end;
} zlib_functions;

struct prof_i_gzip {
  zlib_functions zlib;
  z_stream stream;
  unsigned char out[OUT_BYTES];
};

#ifdef PROF_OPEN_ZLIB

static int open_zlib(zlib_functions *functions_out) {
  static const char name[] = "libz.so.1";
  zlib_functions found = {.handle = dlopen(name, RTLD_NOW | RTLD_LOCAL)};
  if (found.handle == NULL)
    return prof_i_fail(PROF_E_UNSUPPORTED, "zlib, which writes .gz, cannot be opened: %s",
                       dlerror());
  *(void **)&found.init = dlsym(found.handle, "deflateInit2_");
  *(void **)&found.run = dlsym(found.handle, "deflate");
  *(void **)&found.end = dlsym(found.handle, "deflateEnd");
  if (found.init == NULL || found.run == NULL || found.end == NULL) {
    dlclose(found.handle);
    return prof_i_fail(PROF_E_UNSUPPORTED, "%s has no deflate, so it cannot write .gz", name);
  }
  *functions_out = found;
  return PROF_OK;
}

static void close_zlib(const zlib_functions *functions) { dlclose(functions->handle); }

#else

static int open_zlib(zlib_functions *functions_out) {
  *functions_out = (zlib_functions){NULL, deflateInit2_, deflate, deflateEnd};
  return PROF_OK;
}

static void close_zlib(const zlib_functions *functions) { (void)functions; }

#endif

static int start_stream(prof_i_gzip *gzip, int level) {
  /* prof_i_fail() returns no PROF_OK, so open_zlib() has set it. */
  /* NOLINTNEXTLINE(clang-analyzer-core.CallAndMessage) */
  const int result =
      gzip->zlib.init(&gzip->stream, level, Z_DEFLATED, GZIP_WINDOW_BITS, GZIP_MEMORY_LEVEL,
                      Z_DEFAULT_STRATEGY, ZLIB_VERSION, (int)sizeof gzip->stream);
  if (result == Z_VERSION_ERROR)
    return prof_i_fail(PROF_E_UNSUPPORTED, "zlib is not of the version %s that prof was built for",
                       ZLIB_VERSION);
  if (result != Z_OK)
    return prof_i_fail(PROF_E_NO_MEMORY, "no memory for compression (zlib at level %d: %d)", level,
                       result);
  gzip->stream.next_out = gzip->out;
  gzip->stream.avail_out = OUT_BYTES;
  return PROF_OK;
}

int prof_i_gzip_create(int level, prof_i_gzip **gzip_out) {
  prof_i_gzip *const gzip = calloc(1, sizeof *gzip);
  if (gzip == NULL)
    return prof_i_fail(PROF_E_NO_MEMORY, "no memory for compression (%zu bytes)", sizeof *gzip);
  int status = open_zlib(&gzip->zlib);
  if (status == PROF_OK) {
    status = start_stream(gzip, level);
    if (status != PROF_OK) close_zlib(&gzip->zlib);
  }
  if (status != PROF_OK) {
    free(gzip);
    return status;
  }
  *gzip_out = gzip;
  return PROF_OK;
}

void prof_i_gzip_destroy(prof_i_gzip *gzip) {
  if (gzip == NULL) return;
  gzip->zlib.end(&gzip->stream);
  close_zlib(&gzip->zlib);
  free(gzip);
}

static int write_out_buffer(prof_i_gzip *gzip, prof_i_target *target) {
  const int status = prof_i_target_write(target, gzip->out, OUT_BYTES - gzip->stream.avail_out);
  gzip->stream.next_out = gzip->out;
  gzip->stream.avail_out = OUT_BYTES;
  return status;
}

/* Until zlib has taken its input, and, with Z_FINISH, given all of its output. */
static int deflate_all(prof_i_gzip *gzip, prof_i_target *target, int flush) {
  for (;;) {
    const int result = gzip->zlib.run(&gzip->stream, flush);
    if (result == Z_STREAM_ERROR) return prof_i_fail(PROF_E_IO, "zlib refuses its own stream");
    if (gzip->stream.avail_out > 0) return PROF_OK;
    const int status = write_out_buffer(gzip, target);
    if (status != PROF_OK) return status;
  }
}

int prof_i_gzip_write(prof_i_gzip *gzip, prof_i_target *target, const void *bytes, size_t count,
                      bool is_last) {
  const unsigned char *from = bytes;
  while (count > 0) {
    const size_t part = count < IN_BYTES_MAX ? count : IN_BYTES_MAX;
    gzip->stream.next_in = from;
    gzip->stream.avail_in = (uInt)part;
    const int status = deflate_all(gzip, target, Z_NO_FLUSH);
    if (status != PROF_OK) return status;
    from += part;
    count -= part;
  }
  if (!is_last) return PROF_OK;
  gzip->stream.avail_in = 0;
  const int status = deflate_all(gzip, target, Z_FINISH);
  return status == PROF_OK ? write_out_buffer(gzip, target) : status;
}

/* A target in memory would be simpler, but a target is a file. */
static int deflate_text(prof_i_gzip *gzip, unsigned char **to, size_t *bytes) {
  size_t room = 0;
  for (;;) {
    if (room - *bytes < OUT_BYTES) {
      room = room * 2 + 2 * OUT_BYTES;
      unsigned char *const more = realloc(*to, room);
      if (more == NULL) return prof_i_fail(PROF_E_NO_MEMORY, "no memory for %zu bytes", room);
      *to = more;
    }
    gzip->stream.next_out = *to + *bytes;
    gzip->stream.avail_out = OUT_BYTES;
    const int result = gzip->zlib.run(&gzip->stream, Z_FINISH);
    *bytes += OUT_BYTES - gzip->stream.avail_out;
    if (result == Z_STREAM_END) return PROF_OK;
    if (result == Z_STREAM_ERROR) return prof_i_fail(PROF_E_IO, "zlib refuses its own stream");
  }
}

int prof_i_gzip_text(int level, const void *bytes, size_t count, unsigned char **gzip_out,
                     size_t *gzip_bytes_out) {
  prof_i_gzip *gzip;
  unsigned char *to = NULL;
  size_t written = 0;
  if (count > IN_BYTES_MAX)
    return prof_i_fail(PROF_E_TOO_LARGE, "%zu bytes are too many to compress at once", count);
  int status = prof_i_gzip_create(level, &gzip);
  if (status != PROF_OK) return status;
  gzip->stream.next_in = bytes;
  gzip->stream.avail_in = (uInt)count;
  status = deflate_text(gzip, &to, &written);
  prof_i_gzip_destroy(gzip);
  if (status != PROF_OK) {
    free(to);
    return status;
  }
  *gzip_out = to;
  *gzip_bytes_out = written;
  return PROF_OK;
}

#else /* PROF_HAVE_ZLIB */

int prof_i_gzip_create(int level, prof_i_gzip **gzip_out) {
  (void)level;
  (void)gzip_out;
  return prof_i_fail(
      PROF_E_UNSUPPORTED,
      "this build of prof has no zlib, so it cannot write .gz; write plain JSON instead");
}

void prof_i_gzip_destroy(prof_i_gzip *gzip) { (void)gzip; }

int prof_i_gzip_write(prof_i_gzip *gzip, prof_i_target *target, const void *bytes, size_t count,
                      bool is_last) {
  (void)gzip;
  (void)target;
  (void)bytes;
  (void)count;
  (void)is_last;
  return PROF_E_UNSUPPORTED;
}

int prof_i_gzip_text(int level, const void *bytes, size_t count, unsigned char **gzip_out,
                     size_t *gzip_bytes_out) {
  (void)bytes;
  (void)count;
  (void)gzip_out;
  (void)gzip_bytes_out;
  return prof_i_gzip_create(level, NULL);
}

#endif
