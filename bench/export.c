/* What writing a trace out costs. Chrome JSON goes into nothing, and to disk, compared with a plain
   write of the same bytes. Compressed JSON is compared with zlib itself. Also: text in memory,
   RAF's log, and that memory does not grow with the trace.

   The capture: 100 call sites of an operator's kind, three levels deep, on one thread. It is opened
   once. The figure is the time of prof_trace_dump(), which reads it back, checks it and writes it.
   What needs only a processor is timed by the processor time of all threads: what one core gives,
   even if others share it. What waits for a disk is timed by the wall clock. What has a second
   thread is timed by the processor time of the slower thread: what two free cores give. The threads
   hardly wait for each other. They are prof's as in the command, so this program has the library's
   objects in itself. */
#define _GNU_SOURCE
#include "frame.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <prof/trace.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/worker.h"
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

/* ---- two threads ---- */

/* Processor times of the calling thread and of all threads, and the wall's clock, in seconds. */
typedef struct times {
  double caller, all, wall;
} times;

static times times_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return (times){FRAME_DOUBLE(now.tv_sec) + FRAME_DOUBLE(now.tv_nsec) / 1e9, seconds(false),
                 seconds(true)};
}

/* M scopes/s. */
typedef struct two_rates {
  double slower[FRAME_ROUNDS_MAX], caller[FRAME_ROUNDS_MAX], all[FRAME_ROUNDS_MAX],
      wall[FRAME_ROUNDS_MAX];
} two_rates;

static void add_round(two_rates *rates, unsigned round, uint64_t scopes, times begun) {
  const times now = times_now();
  const double caller = now.caller - begun.caller, all = now.all - begun.all, other = all - caller;
  const double millions = FRAME_DOUBLE(scopes) / 1e6;
  rates->slower[round] = millions / (caller > other ? caller : other);
  rates->caller[round] = millions / caller;
  rates->all[round] = millions / all;
  rates->wall[round] = millions / (now.wall - begun.wall);
}

static bool has_two_threads;

static void print_rates(const char *what, const two_rates *rates, unsigned rounds) {
  char line[80];
  const frame_spread slower = frame_spread_of(rates->slower, rounds);
  snprintf(line, sizeof line, "%s, %s", what, has_two_threads ? "two threads" : "one thread");
  if (!has_two_threads) {
    frame_figure(line, "%.1f M scopes/s (%.1f-%.1f)", slower.median, slower.low, slower.high);
    return;
  }
  frame_promise(line, slower.median >= 50, ">= 50 M/s", "%.1f M scopes/s (%.1f-%.1f)",
                slower.median, slower.low, slower.high);
  frame_note("the caller's thread %.1f, both %.1f; by the wall's clock %.1f",
             frame_spread_of(rates->caller, rounds).median,
             frame_spread_of(rates->all, rounds).median,
             frame_spread_of(rates->wall, rounds).median);
}

static void measure_threads(const prof_trace *trace, uint64_t scopes, uint32_t format,
                            const char *what) {
  static two_rates rates;
  const unsigned rounds = frame_rounds(9);
  for (unsigned r = 0; r < rounds; r++) {
    const times begun = times_now();
    dump(trace, "/dev/null", format, false, NULL);
    add_round(&rates, r, scopes, begun);
  }
  print_rates(what, &rates, rounds);
}

/* Up to 64 MiB are unpacked into memory. */
typedef struct packed_file {
  const char *what;
  uint64_t scopes;
  char path[600];
} packed_file;

enum { PACKED_FILES = 2 };
static packed_file packed_files[PACKED_FILES] = {{.what = "open packed, into memory"},
                                                 {.what = "open packed, into a file"}};

/* A child records, because a process's captures have the memory of its earlier ones. So it comes
   first. */
static void make_packed_file(packed_file *file) {
  const prof_dump_options options = {.size = sizeof options, .format = PROF_FORMAT_PACKED};
  int status;
  snprintf(file->path, sizeof file->path, "%s/packed-%llu.prof", own.directory,
           (unsigned long long)file->scopes);
  const pid_t child = fork();
  FRAME_REQUIRE(child >= 0, "fork: %s", strerror(errno));
  if (child == 0) {
    const prof_trace *const trace = open_trace(file->scopes);
    FRAME_REQUIRE(prof_trace_dump(trace, file->path, &options) == PROF_OK, "%s", prof_last_error());
    _exit(0);
  }
  FRAME_REQUIRE(waitpid(child, &status, 0) == child && status == 0, "%s", file->path);
}

static bool has_zstd(void) { return dlopen("libzstd.so.1", RTLD_NOW) != NULL; }

static void make_packed_files(void) {
  packed_files[0].scopes = frame_is_quick() ? 1000000 : 4000000;
  packed_files[1].scopes = frame_is_quick() ? 5000000 : 8000000;
  for (int i = 0; i < PACKED_FILES && has_zstd(); i++) make_packed_file(&packed_files[i]);
}

/* Opens a packed capture: unpacks it, and checks all records. */
static void measure_opening(const packed_file *file) {
  static two_rates rates;
  const unsigned rounds = frame_rounds(9);
  for (unsigned r = 0; r < rounds; r++) {
    prof_trace *unpacked;
    const times begun = times_now();
    FRAME_REQUIRE(prof_trace_open(file->path, &unpacked) == PROF_OK, "%s", prof_last_error());
    add_round(&rates, r, file->scopes, begun);
    prof_trace_destroy(unpacked);
  }
  print_rates(file->what, &rates, rounds);
}

static void measure_all_threads(const prof_trace *trace, uint64_t scopes) {
  measure_threads(trace, scopes, PROF_FORMAT_PERFETTO, "Perfetto's protobuf");
  if (!has_zstd()) {
    frame_note("packed captures: left out, libzstd.so.1 is not here");
    return;
  }
  measure_threads(trace, scopes, PROF_FORMAT_PACKED, "pack");
  for (int i = 0; i < PACKED_FILES; i++) measure_opening(&packed_files[i]);
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
  make_packed_files();

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
  const long kib = extra_kib(trace);
  frame_promise("extra memory of a dump, 8 times the scopes", kib - small_kib <= 1024, "+ 1 MiB",
                "%ld KiB, before %ld KiB", kib, small_kib);
  measure_all_threads(trace, scopes);
  prof_i_worker_allow_threads(); /* nothing takes it back, so last */
  has_two_threads = true;
  measure_all_threads(trace, scopes);

  prof_trace_destroy(trace);
  prof_trace_destroy(small);
  frame_remove_directory(own.directory);
  free(own.block);
  return 0;
}
