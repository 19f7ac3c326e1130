/* The reader when memory is out: the n-th allocation fails, for every n. Each call then says
   PROF_E_NO_MEMORY, leaves its output alone, and gives back all that it had. The allocator of this
   program is its own, on top of glibc's. */
#include "trace_checks.h"

#include "memory_capture.h"
#include "small_capture.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define HAS_OTHER_ALLOCATOR 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(__GLIBC__)
#define HAS_OTHER_ALLOCATOR 1
#endif

#ifdef HAS_OTHER_ALLOCATOR

static void every_allocation_may_fail(void **state) {
  (void)state;
  print_message(
      "skip: the sanitizer's allocator, or another C library's, cannot be made to fail here\n");
  skip();
}

#else

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *old, size_t bytes);
void *__libc_memalign(size_t alignment, size_t bytes);
void __libc_free(void *memory);

static struct {
  bool is_on;
  long until_failure; /* negative: none fails */
  long calls, held;
} own;

static bool fails(void) {
  if (!own.is_on) return false;
  own.calls++;
  return own.until_failure >= 0 && own.until_failure-- == 0;
}

static void *hold(void *memory) {
  if (own.is_on && memory) own.held++;
  return memory;
}

void *malloc(size_t bytes) { return fails() ? NULL : hold(__libc_malloc(bytes)); }
void *calloc(size_t count, size_t bytes) {
  return fails() ? NULL : hold(__libc_calloc(count, bytes));
}
void *aligned_alloc(size_t alignment, size_t bytes) {
  return fails() ? NULL : hold(__libc_memalign(alignment, bytes));
}
void *realloc(void *old, size_t bytes) {
  if (fails()) return NULL;
  void *const memory = __libc_realloc(old, bytes);
  return old ? memory : hold(memory);
}
void free(void *memory) {
  if (own.is_on && memory) own.held--;
  __libc_free(memory);
}

static int read_in_order(const prof_trace *trace) {
  static prof_event event;
  prof_cursor *cursor = NULL;
  int status = prof_cursor_create(trace, &cursor);
  if (status != PROF_OK) return status;
  while ((status = prof_cursor_next(cursor, &event)) == 1) {
  }
  prof_cursor_destroy(cursor);
  return status;
}

/* The first failure, or PROF_OK; everything is tried either way. */
static int use_all(const capture *c) {
  prof_trace *trace = NULL;
  char *text = NULL;
  const prof_aggregate_options options = {.size = sizeof options, .group = 31};
  const int opened = prof_trace_open_bytes(c->bytes, c->count, &trace);
  if (opened != PROF_OK) return trace ? 1 : opened;
  const int table = prof_trace_table(trace, &options, &text);
  if (table != PROF_OK && text) return 1;
  free(text);
  text = NULL;
  const int order = read_in_order(trace);
  const int loss = prof_trace_loss_text(trace, &text);
  if (loss != PROF_OK && text) return 1;
  free(text);
  prof_trace_destroy(trace);
  return table ? table : order ? order : loss;
}

/* The same of what it says of memory. */
static int use_memory(const capture *c) {
  prof_trace *trace = NULL;
  prof_memory *memory = NULL;
  char *text = NULL, *picture = NULL, *samples = NULL;
  const int opened = prof_trace_open_bytes(c->bytes, c->count, &trace);
  if (opened != PROF_OK) return opened;
  const int read = prof_memory_read(trace, &memory);
  const int told = read ? read : prof_memory_text(memory, NULL, &text);
  const int drawn = read ? read : prof_memory_svg(memory, 0, &picture);
  const int asked = prof_memory_trace_text(trace, (prof_device){PROF_DEVICE_CUDA, 0}, &samples);
  const bool is_consistent =
      !read == !!memory && !told == !!text && !drawn == !!picture && !asked == !!samples;
  free(text);
  free(picture);
  free(samples);
  prof_memory_destroy(memory);
  prof_trace_destroy(trace);
  return !is_consistent ? 1 : told ? told : drawn ? drawn : asked;
}

static void fail_each(const capture *c, int (*use)(const capture *)) {
  own.calls = 0;
  own.until_failure = -1;
  own.is_on = true;
  const int clean = use(c);
  own.is_on = false;
  assert_int_equal(clean, PROF_OK);
  assert_int_equal(own.held, 0);
  const long calls = own.calls;
  long failures = 0;
  for (long n = 0; n < calls; n++) {
    own.until_failure = n;
    own.is_on = true;
    const int status = use(c);
    own.is_on = false;
    if (status != PROF_OK && status != PROF_E_NO_MEMORY)
      fail_msg("allocation %ld of %ld failed, and the status is %d", n, calls, status);
    if (own.held != 0)
      fail_msg("allocation %ld of %ld failed, and %ld were not given back", n, calls, own.held);
    failures += status != PROF_OK;
  }
  assert_in_range(failures, calls * 9 / 10, calls);
}

static void every_allocation_may_fail(void **state) {
  (void)state;
  capture c;
  small_capture(&c);
  prof_i_head *const chunk = capture_chunk(&c, PROF_I_UNIT_BYTES, 1);
  /* lists grow */
  for (uint32_t i = 0; i < 700; i++)
    capture_plain(chunk, CAPTURE_START + 6000 + i * 10, 5, 1 + i % 3);
  fail_each(&c, use_all);
  capture_end(&c);
  memory_capture(&c, "tensors");
  fail_each(&c, use_memory);
  capture_end(&c);
}

#endif

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(every_allocation_may_fail)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
