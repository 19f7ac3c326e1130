/* One operator, and several in turn: see op.h. */
#include <stdlib.h>
#include <string.h>

#include "../base/log.h"
#include "../base/reentry.h"
#include "internal.h"
#include "measure.h"

int prof_op_profile(const prof_op *op, const prof_op_options *options,
                    prof_op_result **result_out) {
  PROF_I_REFUSE_INTERRUPTED(PROF_E_BUSY);
  prof_i_measurement m;
  if (!result_out) return prof_i_fail(PROF_E_INVALID, "prof_op_profile: result_out is NULL");
  *result_out = NULL;
  int status = prof_i_measure_init(&m, op, options);
  if (status) return status;
  int32_t asked = PROF_OK, kept = PROF_OK;
  if (!m.options.no_reuse) *result_out = prof_i_cache_find(&m.identity, m.op.key, &asked);
  if (*result_out) return PROF_OK;
  status = prof_i_measure_interleaved(&m, 1, result_out);
  if (status) return status;
  prof_i_cache_store(*result_out, &kept);
  (*result_out)->info.file_status = asked ? asked : kept;
  return PROF_OK;
}

int prof_op_profile_in_turn(const prof_op *ops, size_t count, const prof_op_options *options,
                            prof_op_result **results_out) {
  PROF_I_REFUSE_INTERRUPTED(PROF_E_BUSY);
  enum { COUNT_MAX = 1024 };
  if (!ops || !results_out)
    return prof_i_fail(PROF_E_INVALID, "prof_op_profile_in_turn: %s is NULL",
                       ops ? "results_out" : "ops");
  if (count == 0 || count > COUNT_MAX)
    return prof_i_fail(PROF_E_INVALID, "count is %zu; 1 to %d operators", count, COUNT_MAX);
  memset(results_out, 0, count * sizeof *results_out);
  prof_i_measurement *const all = calloc(count, sizeof *all);
  if (!all) return prof_i_fail(PROF_E_NO_MEMORY, "no memory for %zu operators", count);
  int status = prof_i_measure_init_all(all, ops, count, options);
  if (!status) status = prof_i_measure_interleaved(all, count, results_out);
  free(all);
  return status;
}

int prof_op_latency(const prof_op *op, int warmup, int exec, int repeat, double *us_out,
                    uint64_t *workspace_bytes_out) {
  prof_op_result *result = NULL;
  if (!us_out) return prof_i_fail(PROF_E_INVALID, "prof_op_latency: us_out is NULL");
  if (warmup < 0 || exec < 1 || repeat < 1)
    return prof_i_fail(
        PROF_E_INVALID,
        "warmup %d, exec %d, repeat %d: none is negative, and one run and one sample are the least",
        warmup, exec, repeat);
  const prof_op_options options = {.size = sizeof options,
                                   .warmup = warmup,
                                   .no_warmup = warmup == 0,
                                   .exec = exec,
                                   .repeat = repeat,
                                   .repeat_all = 1,
                                   .time_limit_ns = UINT64_MAX};
  const int status = prof_op_profile(op, &options, &result);
  if (status) return status;
  /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): PROF_OK comes with a result */
  /* equal, without a time limit */
  const size_t count = result->count < (size_t)repeat ? result->count : (size_t)repeat;
  memcpy(us_out, result->samples, count * sizeof *us_out);
  if (workspace_bytes_out) *workspace_bytes_out = result->info.workspace_bytes;
  prof_op_result_destroy(result);
  return PROF_OK;
}
