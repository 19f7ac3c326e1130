/* How an operator's workspace is measured by vendor records, and what its result says. A header
   only, because each test is one file. */
#ifndef TESTS_DEVICE_WORKSPACE_H
#define TESTS_DEVICE_WORKSPACE_H

#include <prof/op.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static const prof_op_options wanted_workspace = {.size = sizeof wanted_workspace,
                                                 .warmup = 4,
                                                 .exec = 1,
                                                 .repeat = 6,
                                                 .repeat_all = 1,
                                                 .time_limit_ns = UINT64_MAX,
                                                 .vendor_memory = 1,
                                                 .no_reuse = 1};

static prof_op_info info_of(const prof_op_result *result) {
  prof_op_info info = {.size = sizeof info};
  assert_int_equal(prof_op_info_get(result, &info), PROF_OK);
  return info;
}

static void is_unknown(const prof_op_info *info, int32_t status, const char *why) {
  assert_int_equal(info->workspace_source, PROF_OP_WORKSPACE_UNKNOWN);
  assert_int_equal(info->has_workspace, 0);
  assert_int_equal(info->workspace_bytes, 0);
  assert_int_equal(info->workspace_status, status);
  if (!strstr(prof_last_error(), why)) fail_msg("'%s' has no '%s'", prof_last_error(), why);
}

#endif
