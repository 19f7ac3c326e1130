/* Which sanitizer this program is built with. */
#ifndef PROF_TEST_API_SANITIZERS_H
#define PROF_TEST_API_SANITIZERS_H

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WITH_ASAN 1
#endif
#if __has_feature(thread_sanitizer)
#define WITH_TSAN 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define WITH_ASAN 1
#endif
#if defined(__SANITIZE_THREAD__)
#define WITH_TSAN 1
#endif
#ifndef WITH_ASAN
#define WITH_ASAN 0
#endif
#ifndef WITH_TSAN
#define WITH_TSAN 0
#endif

/* Races that are the design, each with what makes it safe. ThreadSanitizer asks for them by this
   name. */
#if WITH_TSAN
#if defined(__cplusplus)
extern "C"
#endif
    __attribute__((visibility("default"))) const char *
    __tsan_default_suppressions(void);
const char *__tsan_default_suppressions(void) {
  /* The reader of a live capture copies what threads write on, and keeps only what it finds
     unchanged or committed after. */
  return "race:copy_words\n"
         "race:load_head\n"
         /* Records are counted while others are written: a record counts by its first word,
            which is stored last. */
         "race:prof_i_chunk_count_events\n"
         "race:prof_i_arena_next\n"
         /* Mapping other memory over the arena is what the addresses are kept for: see
         core/buffer/arena.h. */
         "race:anonymous\n"
         "race:prof_i_arena_install\n"
         "race:prof_i_arena_level\n";
}
#endif

#endif
