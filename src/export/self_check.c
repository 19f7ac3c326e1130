/* The self-check of an export; see self_check.h. */
#include "self_check.h"

#include <stdio.h>

/* Texts, not pointers: the loader would have to relocate those. */
static const struct {
  char word[24], text[80];
  bool is_fault;
} kinds[] = {
#define KIND(name, word, is_fault, text) {word, text, is_fault},
    PROF_I_FINDING_LIST(KIND)
#undef KIND
};

const char *prof_i_finding_word(int finding) { return kinds[finding].word; }

uint64_t prof_i_findings_faults(const prof_i_findings *findings) {
  uint64_t count = 0;
  for (int i = 0; i < PROF_I_FINDING_COUNT; i++)
    if (kinds[i].is_fault) count += findings->counts[i];
  return count;
}

void prof_i_findings_text(const prof_i_findings *findings, char *to, size_t room) {
  size_t used = 0;
  *to = 0;
  for (int i = 0; i < PROF_I_FINDING_COUNT && used < room; i++)
    if (kinds[i].is_fault && findings->counts[i] > 0)
      used += (size_t)snprintf(to + used, room - used, "%s%llu x %s", used > 0 ? ", " : "",
                               (unsigned long long)findings->counts[i], kinds[i].text);
}

void prof_i_self_check_init(prof_i_self_check *check, uint64_t last_ns) {
  memset(check, 0, sizeof *check);
  check->last_ns = last_ns;
  check->used = PROF_I_SELF_CHECK_DEPTH;
  prof_i_self_check_next_thread(check);
}

void prof_i_self_check_next_thread(prof_i_self_check *check) {
  for (unsigned i = 0; i < check->used; i++) {
    /* its parent never came */
    check->findings.counts[PROF_I_FINDING_OVERLAPPING] += check->depths[i].pending_end_ns != 0;
    check->depths[i] = (prof_i_self_check_depth){UINT64_MAX, UINT64_MAX, 0, 0};
  }
  check->used = 0;
  memset(check->lane_begin_ns, 0xff, sizeof check->lane_begin_ns);
}
