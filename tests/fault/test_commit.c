/* One thread records, another reads its chunk as it grows: what the commit word says is there is
   there. On x86-64 no reordering would show; under ThreadSanitizer a commit that is not a release
   is reported at once: the build with the fault RELAXED must fail here. */
#include <prof/profiler.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "core/buffer/thread.h"

enum { SCOPES = 200000 };

static prof_i_head *chunk; /* handed over with release */
static int done;

static void *record(void *unused) {
  for (int i = 0; i < SCOPES; i++) {
    WITH_BASE_PROFILER(PROF_HOST, "commit", "fault", PROF_NO_ARGS, {});
    if (i == 100) __atomic_store_n(&chunk, prof_i_this_thread->chunk, __ATOMIC_RELEASE);
  }
  __atomic_store_n(&done, 1, __ATOMIC_RELEASE);
  return unused;
}

/* Records of the chunk whose first word says that they are there. Their second word is read
   plainly: only the commit makes that right. */
static uint64_t count_committed(const prof_i_head *from) {
  const uint64_t claimed = __atomic_load_n(&from->cursor, __ATOMIC_ACQUIRE),
                 end = claimed < from->bytes ? claimed : from->bytes;
  uint64_t count = 0;
  for (uint64_t at = PROF_I_HEAD_BYTES, slots; at < end; at += slots * 16) {
    const uint64_t *const word = (const uint64_t *)((const char *)from + at);
    slots = 1;
    if ((__atomic_load_n(&word[0], __ATOMIC_ACQUIRE) & PROF_I_GENERATION_MASK) != from->generation)
      continue;
    if (word[1] & 15)
      slots = word[2] & 0xffff;
    else
      assert_true(word[1] >> 4 & PROF_I_SITE_COUNT_MAX);
    count++;
  }
  return count;
}

static void a_committed_record_is_whole(void **state) {
  (void)state;
  pthread_t thread;
  uint64_t walks = 0, seen = 0;
  assert_int_equal(prof_start(1), PROF_OK);
  assert_int_equal(pthread_create(&thread, NULL, record, NULL), 0);
  while (!__atomic_load_n(&chunk, __ATOMIC_ACQUIRE)) {
  }
  do {
    const uint64_t count = count_committed(__atomic_load_n(&chunk, __ATOMIC_ACQUIRE));
    assert_true(count >= seen);
    seen = count;
    walks++;
  } while (!__atomic_load_n(&done, __ATOMIC_ACQUIRE));
  pthread_join(thread, NULL);
  printf("%llu walks, %llu records in the chunk\n", (unsigned long long)walks,
         (unsigned long long)seen);
  assert_int_equal(prof_stop(), PROF_OK);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(a_committed_record_is_whole)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
