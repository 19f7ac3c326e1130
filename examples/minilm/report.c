/* See report.h. SPDX-License-Identifier: MIT */
#include "report.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { SHAPE_ROWS = 12 };

static int refuse(failure *why, const char *what, int status) {
  return failure_set(why, "%s: %s (%s)", what, prof_status_text(status), prof_last_error());
}

static int print_table(const prof_trace *trace, const char *title, uint32_t group, uint32_t sort,
                       uint32_t rows_limit, failure *why) {
  const prof_aggregate_options options = {.size = sizeof options,
                                          .group = group,
                                          .sort = sort,
                                          .rows_limit = rows_limit,
                                          .category = "operator"};
  char *text = NULL;
  const int status = prof_trace_table(trace, &options, &text);
  if (status != PROF_OK) return refuse(why, "table", status);
  printf("\n%s\n\n%s", title, text);
  prof_free(text);
  return 0;
}

/* All scopes of one category, or of one name in it (NULL: any). */
static int sum_up(const prof_trace *trace, const char *category, const char *name,
                  prof_row *sum_out, failure *why) {
  const prof_aggregate_options options = {.size = sizeof options,
                                          .group = PROF_GROUP_NAME,
                                          .rows_limit = UINT32_MAX,
                                          .category = category};
  prof_rows *rows = NULL;
  *sum_out = (prof_row){.category = category};
  const int status = prof_trace_aggregate(trace, &options, &rows);
  if (status != PROF_OK) return refuse(why, "aggregate", status);
  for (uint64_t i = 0; i < rows->row_count; i++) {
    const prof_row *row = &rows->rows[i];
    if (name != NULL && strcmp(row->name, name) != 0) continue;
    sum_out->calls_count += row->calls_count;
    sum_out->self_ns += row->self_ns;
    sum_out->total_ns += row->total_ns;
  }
  prof_rows_destroy(rows);
  return 0;
}

static double percent(uint64_t part, uint64_t whole) {
  return whole == 0 ? 0 : 100.0 * (double)part / (double)whole;
}

/* Level 2 holds what level 1 cannot show: the time that belongs to no operator. The self time of
   the VM's scopes is dispatch, registers and releases; it also holds what recording the scopes
   inside them cost. */
static int print_vm(const prof_trace *trace, failure *why) {
  prof_row run, vm, memory, wait, device_wait;
  if (sum_up(trace, "vm", "run", &run, why) != 0 || sum_up(trace, "vm", NULL, &vm, why) != 0 ||
      sum_up(trace, "memory", NULL, &memory, why) != 0 ||
      sum_up(trace, "wait", NULL, &wait, why) != 0 ||
      sum_up(trace, "device wait", NULL, &device_wait, why) != 0)
    return -1;
  printf("\nWhat the VM adds around the operators (level 2)\n\n");
  printf("  %-34s %10.2f ms  %8" PRIu64 " runs\n", "inside the VM, both workers",
         (double)run.total_ns / 1e6, run.calls_count);
  printf("  %-34s %10.2f ms  %8" PRIu64 " scopes  %6.3f %%\n", "instructions, less operators",
         (double)vm.self_ns / 1e6, vm.calls_count, percent(vm.self_ns, run.total_ns));
  printf("  %-34s %10.2f ms  %8" PRIu64 " scopes  %6.3f %%\n", "memory requests",
         (double)memory.self_ns / 1e6, memory.calls_count, percent(memory.self_ns, run.total_ns));
  if (device_wait.calls_count > 0)
    printf("  %-34s %10.2f ms  %8" PRIu64 " waits   %6.3f %%\n", "waiting for the device",
           (double)device_wait.total_ns / 1e6, device_wait.calls_count,
           percent(device_wait.total_ns, run.total_ns));
  printf("  %-34s %10.2f ms  %8" PRIu64 " waits   (outside the VM)\n", "waiting, all threads",
         (double)wait.total_ns / 1e6, wait.calls_count);
  return 0;
}

static int print_loss(const prof_trace *trace, failure *why) {
  char *text = NULL;
  const int status = prof_trace_loss_text(trace, &text);
  if (status != PROF_OK) return refuse(why, "loss", status);
  printf("\nThe capture: %s\n", text);
  prof_free(text);
  return 0;
}

int report_print(const prof_trace *trace, bool is_on_device, failure *why) {
  const uint32_t sort = is_on_device ? PROF_SORT_SELF_DEVICE : PROF_SORT_SELF;
  if (print_table(trace, "Operators", PROF_GROUP_NAME, sort, UINT32_MAX, why) != 0) return -1;
  if (print_table(trace, "Operators by input shape, the most expensive",
                  PROF_GROUP_NAME | PROF_GROUP_SHAPE, sort, SHAPE_ROWS, why) != 0)
    return -1;
  if (print_vm(trace, why) != 0) return -1;
  return print_loss(trace, why);
}
