/* What writing a trace out costs. Chrome JSON goes into nothing, and to disk, compared with a plain
   write of the same bytes. Compressed JSON is compared with zlib itself. Also: text in memory,
   RAF's log, and that memory does not grow with the trace.

   The capture: 100 call sites of an operator's kind, three levels deep, on one thread. It is opened
   once. The figure is the time of prof_trace_dump(), which reads it back, checks it and writes it.
   What needs only a processor is timed by the processor time of all threads: what one core gives,
   even if others share it. What waits for a disk is timed by the wall clock. What has a second
   thread is timed by both. */
#define _GNU_SOURCE
#include "frame.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <prof/trace.h>
#include <sys/stat.h>

#include "sink/sink.h"

#if __has_include(<zlib.h>)
#include <zlib.h>
#define HAS_ZLIB 1
#endif

enum { SITES = 100, BLOCK_BYTES = 256 << 10 };

static struct {
  const char *directory;
  char *block; /* a file's worth of nothing, written from here */
} own;

/* ---- the capture ---- */

/* A block of five scopes: a layer holds two operators, the first of which holds two kernels. */
static void record(uint64_t scope_count) {
  static prof_site sites[SITES];
  static char names[SITES][32];
  for (unsigned i = 0; i < SITES; i++) snprintf(names[i], sizeof names[i], "aten::operator_%u", i);
  const prof_options options = {
      .size = sizeof options, .level = 1, .policy = PROF_POLICY_KEEP, .cap_bytes = 1u << 30};
  FRAME_REQUIRE(prof_start_with(&options) == PROF_OK, "%s", prof_last_error());
  for (uint64_t i = 0; i + 5 <= scope_count; i += 5) {
    uint64_t starts[5];
    for (unsigned s = 0; s < 5; s++) {
      const unsigned site = (unsigned)(i * 7 + s * 31) % SITES;
      if (s == 3) prof_scope_end(starts[2]);
      if (s == 4) {
        prof_scope_end(starts[3]);
        prof_scope_end(starts[1]);
      }
      starts[s] = prof_scope_begin_at(&sites[site], names[site], "operator");
    }
    prof_scope_end(starts[4]);
    prof_scope_end(starts[0]);
  }
  FRAME_REQUIRE(prof_stop() == PROF_OK, "%s", prof_last_error());
}

static prof_trace *open_trace(uint64_t scope_count) {
  prof_trace *trace;
  prof_trace_info info = {.size = sizeof info};
  record(scope_count);
  FRAME_REQUIRE(prof_get(&trace) == PROF_OK, "%s", prof_last_error());
  prof_trace_info_get(trace, &info);
  FRAME_REQUIRE(info.scope_count == scope_count, "%llu of %llu scopes",
                (unsigned long long)info.scope_count, (unsigned long long)scope_count);
  prof_clear();
  return trace;
}

/* ---- one run of each ---- */

static double seconds(bool is_wall) {
  struct timespec now;
  clock_gettime(is_wall ? CLOCK_MONOTONIC : CLOCK_PROCESS_CPUTIME_ID, &now);
  return FRAME_DOUBLE(now.tv_sec) + FRAME_DOUBLE(now.tv_nsec) / 1e9;
}

/* Seconds to dump the trace; until it is on the disk: on the wall's clock. The file goes again. */
static double dump(const prof_trace *trace, const char *path, uint32_t format, bool is_to_disk,
                   uint64_t *bytes_out) {
  const prof_dump_options options = {.size = sizeof options, .format = format};
  const double begun = seconds(is_to_disk);
  FRAME_REQUIRE(prof_trace_dump(trace, path, &options) == PROF_OK, "%s", prof_last_error());
  struct stat status = {0};
  if (is_to_disk) {
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    FRAME_REQUIRE(fd >= 0 && fdatasync(fd) == 0, "%s: %s", path, strerror(errno));
    close(fd);
  }
  const double ended = seconds(is_to_disk);
  if (stat(path, &status) == 0 && S_ISREG(status.st_mode)) unlink(path);
  if (bytes_out) *bytes_out = (uint64_t)status.st_size;
  return ended - begun;
}

/* Seconds for a plain write of so many bytes. */
static double plain_write(const char *path, uint64_t bytes, bool is_to_disk) {
  const double begun = seconds(is_to_disk);
  const int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  FRAME_REQUIRE(fd >= 0, "%s: %s", path, strerror(errno));
  for (uint64_t left = bytes; left > 0;) {
    const ssize_t written = write(fd, own.block, left < BLOCK_BYTES ? (size_t)left : BLOCK_BYTES);
    FRAME_REQUIRE(written > 0, "%s: %s", path, strerror(errno));
    left -= (uint64_t)written;
  }
  if (is_to_disk) FRAME_REQUIRE(fdatasync(fd) == 0, "%s: %s", path, strerror(errno));
  close(fd);
  const double ended = seconds(is_to_disk);
  unlink(path);
  return ended - begun;
}

/* ---- the measurements ---- */

static void measure_null(const prof_trace *trace, uint64_t scopes) {
  static double rates[FRAME_ROUNDS_MAX];
  const unsigned rounds = frame_rounds(15);
  for (unsigned r = 0; r < rounds; r++)
    rates[r] =
        FRAME_DOUBLE(scopes) / dump(trace, "/dev/null", PROF_FORMAT_CHROME, false, NULL) / 1e6;
  const frame_spread spread = frame_spread_of(rates, rounds);
  frame_promise("Chrome JSON into /dev/null, one core", spread.median >= 30, ">= 30 M/s",
                "%.1f M scopes/s (%.1f-%.1f), %.1f ns", spread.median, spread.low, spread.high,
                1e3 / spread.median);
}

/* Ours over a plain write of the same bytes, in alternation, each into a new file. */
static void measure_disk(const prof_trace *trace, uint64_t scopes, bool is_to_disk) {
  static double ratios[FRAME_ROUNDS_MAX], rates[FRAME_ROUNDS_MAX];
  const unsigned rounds = frame_rounds(9);
  char ours[600], plain[600];
  snprintf(ours, sizeof ours, "%s/ours.json", own.directory);
  snprintf(plain, sizeof plain, "%s/plain", own.directory);
  uint64_t bytes;
  dump(trace, ours, PROF_FORMAT_CHROME, is_to_disk, &bytes);
  plain_write(plain, bytes, is_to_disk);
  for (unsigned r = 0; r < rounds; r++) {
    sync();
    const double first = r % 2 == 0 ? dump(trace, ours, PROF_FORMAT_CHROME, is_to_disk, NULL)
                                    : plain_write(plain, bytes, is_to_disk);
    sync();
    const double second = r % 2 == 0 ? plain_write(plain, bytes, is_to_disk)
                                     : dump(trace, ours, PROF_FORMAT_CHROME, is_to_disk, NULL);
    ratios[r] = r % 2 == 0 ? second / first : first / second;
    rates[r] = FRAME_DOUBLE(bytes) / (r % 2 == 0 ? first : second) / 1e6;
  }
  const frame_spread ratio = frame_spread_of(ratios, rounds), rate = frame_spread_of(rates, rounds);
  const char *const format = "%.2fx a plain write (%.2f-%.2f), %.0f MB/s";
  if (is_to_disk)
    frame_promise("Chrome JSON to disk, write-out awaited", ratio.median >= 0.85, ">= 0.85x",
                  format, ratio.median, ratio.low, ratio.high, rate.median);
  else
    frame_figure("Chrome JSON into the page cache", format, ratio.median, ratio.low, ratio.high,
                 rate.median);
  frame_note("%.1f bytes a scope; %s", FRAME_DOUBLE(bytes) / FRAME_DOUBLE(scopes),
             frame_file_system(own.directory));
}

#ifdef HAS_ZLIB

/* zlib as the library finds it, at the level that prof uses. */
typedef struct zlib {
  int (*init)(z_streamp, int, int, int, int, int, const char *, int);
  int (*run)(z_streamp, int);
  int (*end)(z_streamp);
} zlib;

static bool find_zlib(zlib *functions) {
  void *const library = dlopen("libz.so.1", RTLD_NOW);
  if (!library) return false;
  *(void **)&functions->init = dlsym(library, "deflateInit2_");
  *(void **)&functions->run = dlsym(library, "deflate");
  *(void **)&functions->end = dlsym(library, "deflateEnd");
  return functions->init && functions->run && functions->end;
}

/* Seconds to compress the text from memory into memory that is thrown away. */
static double compress_text(const zlib *functions, char *text, size_t bytes, int level) {
  static unsigned char out[128 << 10];
  z_stream stream = {0};
  const double begun = seconds(false);
  FRAME_REQUIRE(functions->init(&stream, level, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY,
                                ZLIB_VERSION, (int)sizeof stream) == Z_OK,
                "zlib");
  stream.next_in = (unsigned char *)text;
  stream.avail_in = (uInt)bytes;
  int result = Z_OK;
  while (result == Z_OK) {
    stream.next_out = out;
    stream.avail_out = sizeof out;
    result = functions->run(&stream, Z_FINISH);
  }
  functions->end(&stream);
  FRAME_REQUIRE(result == Z_STREAM_END, "zlib: %d", result);
  return seconds(false) - begun;
}

static char *read_file(const char *path, size_t *bytes_out) {
  struct stat status;
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  FRAME_REQUIRE(fd >= 0 && fstat(fd, &status) == 0, "%s", path);
  char *const text = malloc((size_t)status.st_size);
  for (size_t at = 0; text && at < (size_t)status.st_size;) {
    const ssize_t got = read(fd, text + at, (size_t)status.st_size - at);
    FRAME_REQUIRE(got > 0, "%s", path);
    at += (size_t)got;
  }
  close(fd);
  *bytes_out = (size_t)status.st_size;
  return text;
}

static void measure_gzip(const prof_trace *trace) {
  static double ratios[FRAME_ROUNDS_MAX];
  const unsigned rounds = frame_rounds(7);
  zlib functions;
  if (!find_zlib(&functions)) {
    frame_note("gzip: left out, libz.so.1 is not here");
    return;
  }
  char path[600];
  size_t bytes;
  uint64_t packed;
  snprintf(path, sizeof path, "%s/trace.json", own.directory);
  FRAME_REQUIRE(prof_trace_dump(trace, path, NULL) == PROF_OK, "%s", prof_last_error());
  char *const text = read_file(path, &bytes);
  unlink(path);
  FRAME_REQUIRE(text, "memory");
  snprintf(path, sizeof path, "%s/trace.json.gz", own.directory);
  double ours = dump(trace, path, PROF_FORMAT_CHROME, false, &packed);
  compress_text(&functions, text, bytes, PROF_I_GZIP_LEVEL);
  for (unsigned r = 0; r < rounds; r++) {
    ours = dump(trace, path, PROF_FORMAT_CHROME, false, NULL);
    ratios[r] = compress_text(&functions, text, bytes, PROF_I_GZIP_LEVEL) / ours;
  }
  const frame_spread ratio = frame_spread_of(ratios, rounds);
  frame_promise("Chrome JSON as .gz, against zlib from memory", ratio.median >= 0.9, ">= 0.90x",
                "%.2fx (%.2f-%.2f), %.0f MB/s of text", ratio.median, ratio.low, ratio.high,
                FRAME_DOUBLE(bytes) / ours / 1e6);
  frame_note("zlib's level %d: 1/%.1f of %zu bytes", PROF_I_GZIP_LEVEL,
             FRAME_DOUBLE(bytes) / FRAME_DOUBLE(packed), bytes);
  free(text);
}

#endif

/* By the wall clock, and by the processor time of all threads. */
typedef struct two_rates {
  double wall[FRAME_ROUNDS_MAX], processor[FRAME_ROUNDS_MAX];
} two_rates;

static void promise_rates(const char *what, const two_rates *rates, unsigned rounds) {
  const frame_spread wall = frame_spread_of(rates->wall, rounds);
  const frame_spread processor = frame_spread_of(rates->processor, rounds);
  frame_promise(what, wall.median >= 50, ">= 50 M/s",
                "%.1f M scopes/s (%.1f-%.1f), %.1f by processor time", wall.median, wall.low,
                wall.high, processor.median);
}

static void measure_two_threads(const prof_trace *trace, uint64_t scopes, uint32_t format,
                                const char *what) {
  static two_rates rates;
  const unsigned rounds = frame_rounds(9);
  for (unsigned r = 0; r < rounds; r++) {
    const double begun = seconds(true);
    const double processor = dump(trace, "/dev/null", format, false, NULL);
    rates.wall[r] = FRAME_DOUBLE(scopes) / (seconds(true) - begun) / 1e6;
    rates.processor[r] = FRAME_DOUBLE(scopes) / processor / 1e6;
  }
  promise_rates(what, &rates, rounds);
}

/* Opens a packed capture, which unpacks it into a temporary file, and checks all records. */
static void measure_unpacking(const prof_trace *trace, uint64_t scopes) {
  static two_rates rates;
  const unsigned rounds = frame_rounds(9);
  const prof_dump_options options = {.size = sizeof options, .format = PROF_FORMAT_PACKED};
  char path[600];
  struct stat status;
  snprintf(path, sizeof path, "%s/packed.prof", own.directory);
  FRAME_REQUIRE(prof_trace_dump(trace, path, &options) == PROF_OK, "%s", prof_last_error());
  FRAME_REQUIRE(stat(path, &status) == 0, "%s", path);
  for (unsigned r = 0; r < rounds; r++) {
    prof_trace *unpacked;
    const double begun = seconds(true), processor_begun = seconds(false);
    FRAME_REQUIRE(prof_trace_open(path, &unpacked) == PROF_OK, "%s", prof_last_error());
    rates.wall[r] = FRAME_DOUBLE(scopes) / (seconds(true) - begun) / 1e6;
    rates.processor[r] = FRAME_DOUBLE(scopes) / (seconds(false) - processor_begun) / 1e6;
    prof_trace_destroy(unpacked);
  }
  unlink(path);
  promise_rates("open a packed capture", &rates, rounds);
  frame_note("%.2f bytes a scope", FRAME_DOUBLE(status.st_size) / FRAME_DOUBLE(scopes));
}

static void measure_others(const prof_trace *trace, uint64_t scopes) {
  const double raf = dump(trace, "/dev/null", PROF_FORMAT_RAF, false, NULL);
  frame_figure("RAF's log into /dev/null", "%.1f M scopes/s", FRAME_DOUBLE(scopes) / raf / 1e6);
}

/* The most that the process ever held, in KiB, counted anew from each call on. */
static long peak_kib(void) {
  FILE *const status = fopen("/proc/self/status", "r");
  char line[256];
  long kib = -1;
  while (status && fgets(line, sizeof line, status)) sscanf(line, "VmHWM: %ld kB", &kib);
  if (status) fclose(status);
  FILE *const reset = fopen("/proc/self/clear_refs", "w");
  if (reset) {
    fputs("5", reset);
    fclose(reset);
  }
  return kib;
}

/* The trace is in memory, and touched, before. */
static long extra_kib(const prof_trace *trace) {
  dump(trace, "/dev/null", PROF_FORMAT_CHROME, false, NULL);
  peak_kib();
  const long before = peak_kib();
  dump(trace, "/dev/null", PROF_FORMAT_CHROME, false, NULL);
  return peak_kib() - before;
}

int main(void) {
  const uint64_t scopes = frame_is_quick() ? 2000000 : 8000000;
  frame_begin("export");
  own.directory = frame_directory();
  own.block = malloc(BLOCK_BYTES);
  FRAME_REQUIRE(own.block, "memory");
  memset(own.block, 'x', BLOCK_BYTES);

  prof_trace *const small = open_trace(scopes / 8);
  const long small_kib = extra_kib(small);
  prof_trace *const trace = open_trace(scopes);
  measure_null(trace, scopes);
  measure_disk(small, scopes / 8, true);
  measure_disk(small, scopes / 8, false);
#ifdef HAS_ZLIB
  measure_gzip(small);
#else
  frame_note("gzip: left out, this was built without zlib.h");
#endif
  measure_others(small, scopes / 8);
  measure_two_threads(trace, scopes, PROF_FORMAT_PERFETTO, "Perfetto's protobuf into /dev/null");
  if (dlopen("libzstd.so.1", RTLD_NOW)) {
    measure_two_threads(trace, scopes, PROF_FORMAT_PACKED, "a packed capture into /dev/null");
    measure_unpacking(trace, scopes);
  } else {
    frame_note("packed captures: left out, libzstd.so.1 is not here");
  }
  const long kib = extra_kib(trace);
  frame_promise("extra memory of a dump, 8 times the scopes", kib - small_kib <= 1024, "+ 1 MiB",
                "%ld KiB, before %ld KiB", kib, small_kib);

  prof_trace_destroy(trace);
  prof_trace_destroy(small);
  frame_remove_directory(own.directory);
  free(own.block);
  return 0;
}
