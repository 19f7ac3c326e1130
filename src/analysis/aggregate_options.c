/* The options of an aggregate: copied from the caller's struct of any size, and checked. */
#include <prof/trace.h>
#include <string.h>

#include "../base/log.h"
#include "aggregation.h"

/* A smaller struct is of an older caller. A larger one is accepted if all bytes beyond are zero. */
static int options_copy(const prof_aggregate_options *given, prof_aggregate_options *options) {
  *options = (prof_aggregate_options){.size = sizeof *options};
  if (given) {
    if (given->size < sizeof given->size || given->size > 4096)
      return prof_i_fail(PROF_E_INVALID,
                         "options.size is %zu; set it to sizeof(prof_aggregate_options)",
                         given->size);
    memcpy(options, given, given->size < sizeof *options ? given->size : sizeof *options);
    for (size_t i = sizeof *options; i < given->size; i++)
      if (((const char *)given)[i])
        return prof_i_fail(
            PROF_E_INVALID,
            "options.size is %zu, and byte %zu, which this library does not know, is set",
            given->size, i);
  }
  return PROF_OK;
}

static int options_check(const prof_aggregate_options *options) {
  const uint32_t groups = PROF_GROUP_NAME | PROF_GROUP_CATEGORY | PROF_GROUP_DEVICE |
                          PROF_GROUP_THREAD | PROF_GROUP_SHAPE | PROF_GROUP_STACK |
                          PROF_GROUP_KERNEL | PROF_GROUP_ANNOTATION | PROF_GROUP_SCOPES |
                          PROF_GROUP_FLOPS | PROF_GROUP_PROCESS;
  if (options->group & ~groups)
    return prof_i_fail(PROF_E_INVALID, "options.group is 0x%x; the known bits are 0x%x",
                       options->group, groups);
  if (options->level > 2)
    return prof_i_fail(PROF_E_INVALID, "options.level is %u; 0 (both), 1 and 2 are known",
                       options->level);
  if (options->sort > PROF_SORT_SKIPPED)
    return prof_i_fail(PROF_E_INVALID, "options.sort is %u; the largest is %d", options->sort,
                       PROF_SORT_SKIPPED);
  const uint32_t left_out =
      PROF_LEAVE_OUT_FUNCTIONS | PROF_LEAVE_OUT_MODULES | PROF_LEAVE_OUT_MEMORY;
  if (options->leave_out & ~left_out)
    return prof_i_fail(PROF_E_INVALID, "options.leave_out is 0x%x; the known bits are 0x%x",
                       options->leave_out, left_out);
  const uint32_t rules = PROF_RULE_OPEN_CALLS | PROF_RULE_OUTER_FUNCTIONS | PROF_RULE_ONLY_CHILDREN;
  if (options->rules & ~rules)
    return prof_i_fail(PROF_E_INVALID, "options.rules is 0x%x; the known bits are 0x%x",
                       options->rules, rules);
  if (options->time_unit % 3 || options->time_unit > 9)
    return prof_i_fail(PROF_E_INVALID, "options.time_unit is %u, not 0, 3, 6 or 9",
                       options->time_unit);
  if (options->to_ns && options->to_ns <= options->from_ns)
    return prof_i_fail(PROF_E_INVALID, "options.to_ns is %llu, not after from_ns, which is %llu",
                       (unsigned long long)options->to_ns, (unsigned long long)options->from_ns);
  return PROF_OK;
}

int prof_i_aggregate_options_read(const prof_aggregate_options *given,
                                  prof_aggregate_options *options) {
  int status = options_copy(given, options);
  if (!status) status = options_check(options);
  if (status) return status;
  if ((options->group & ~(uint32_t)PROF_GROUP_KERNEL) == 0)
    options->group |= PROF_GROUP_NAME | PROF_GROUP_CATEGORY;
  if ((options->rules & PROF_RULE_ONLY_CHILDREN) && !(options->group & PROF_GROUP_NAME))
    return prof_i_fail(PROF_E_INVALID,
                       "options.rules is 0x%x, and options.group, 0x%x, is without names; "
                       "PROF_RULE_ONLY_CHILDREN needs PROF_GROUP_NAME",
                       options->rules, options->group);
  return PROF_OK;
}
