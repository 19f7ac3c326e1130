/* Threads with names, arguments of every kind, counters, instants, steps and a flow between
   threads; then the table of what took how long, in the process itself.

       threads_and_args [trace.json] */
#include <prof/profiler.h>
#include <prof/trace.h>
#include <pthread.h>
#include <stdio.h>

enum { WORKERS = 2, STEPS = 3, BATCHES = 4, ROWS = 512, COLUMNS = 768 };

static float weights[ROWS * COLUMNS];
static uint64_t waiting; /* batches that no worker has taken yet; atomic */
static uint64_t step;    /* written while no worker runs */

static uint64_t flow_id(uint64_t of_step, uint64_t batch) { return of_step * BATCHES + batch + 1; }

static float multiply(const float *input, int64_t rows, int64_t columns) {
  /* The shapes of an operator's inputs, as torch.profiler shows them. */
  const int64_t dims[] = {rows, columns};
  float sum = 0;
  WITH_BASE_PROFILER(
      PROF_HOST, "multiply", "operator",
      PROF_SHAPES(PROF_TENSOR(dims, 2, PROF_F32), PROF_TENSOR(&columns, 1, PROF_F32)), {
        for (int64_t i = 0; i < rows * columns; i++) sum += input[i] * (float)(i % columns);
      });
  return sum;
}

static void run_batch(unsigned worker, uint64_t batch) {
  /* A format is applied when the trace is written, not here. */
  WITH_BASE_PROFILER_LEVEL(
      2, PROF_HOST, "batch", "vm",
      PROF_FMT("batch %u of %d on worker %u", (unsigned)batch, BATCHES, worker), {
        /* the arrow from main's "hand over" ends in this scope */
        prof_flow_end(flow_id(step, batch), "handed over");
        const float sum = multiply(weights, ROWS, COLUMNS);
        if (sum < 0) PROF_INSTANT("negative", "warning", PROF_ARGS("batch", batch, "sum", sum));
      });
}

static void *work(void *number) {
  const unsigned worker = *(const unsigned *)number;
  char name[32];
  snprintf(name, sizeof name, "worker %u", worker);
  prof_thread_set_name(name);
  for (uint64_t left; (left = __atomic_load_n(&waiting, __ATOMIC_RELAXED)) > 0;) {
    if (!__atomic_compare_exchange_n(&waiting, &left, left - 1, 0, __ATOMIC_ACQ_REL,
                                     __ATOMIC_RELAXED))
      continue;
    PROF_COUNTER("waiting", (double)(left - 1));
    run_batch(worker, left - 1);
  }
  return NULL;
}

int main(int argc, char **argv) {
  const char *const path = argc > 1 ? argv[1] : "threads_and_args.json";
  for (int i = 0; i < ROWS * COLUMNS; i++) weights[i] = (float)(i % 7);

  /* With a path the capture is a file beside it: if this process is killed, `prof dump` still makes
     a trace of it. */
  const prof_options options = {.size = sizeof options, .level = 2, .path = path};
  if (prof_start_with(&options) != PROF_OK) {
    fprintf(stderr, "threads_and_args: %s\n", prof_last_error());
    return 1;
  }
  prof_process_set_name("threads_and_args");

  for (step = 0; step < STEPS; step++) {
    const _Bool is_last = step + 1 == STEPS;
    for (uint64_t batch = 0; batch < BATCHES; batch++)
      WITH_BASE_PROFILER_LEVEL(2, PROF_HOST, "hand over", "vm",
                               PROF_ARGS("step", step, "batch", batch, "is_last", is_last),
                               { prof_flow_begin(flow_id(step, batch), "handed over"); });
    __atomic_store_n(&waiting, BATCHES, __ATOMIC_RELEASE);
    pthread_t threads[WORKERS];
    unsigned numbers[WORKERS];
    for (unsigned i = 0; i < WORKERS; i++) {
      numbers[i] = i;
      pthread_create(&threads[i], NULL, work, &numbers[i]);
    }
    for (unsigned i = 0; i < WORKERS; i++) pthread_join(threads[i], NULL);
    prof_step();
  }
  prof_stop();

  prof_trace *trace = NULL;
  char *table = NULL;
  const prof_aggregate_options by_shape = {.size = sizeof by_shape,
                                           .group = PROF_GROUP_NAME | PROF_GROUP_SHAPE};
  if (prof_get(&trace) == PROF_OK && prof_trace_table(trace, &by_shape, &table) == PROF_OK)
    fputs(table, stdout);
  prof_free(table);
  prof_trace_destroy(trace);

  const int status = prof_dump(NULL); /* to options.path */
  if (status != PROF_OK)
    fprintf(stderr, "threads_and_args: %s: %s\n", prof_status_text(status), prof_last_error());
  else
    printf("the trace is %s\n", path);
  return status != PROF_OK;
}
