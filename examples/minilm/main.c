/* minilm-demo: embeds the paragraphs of some texts with all-MiniLM-L6-v2 on two threads, by the
   processor or on two queues of a device, and answers three questions from them. It shows what prof
   recorded meanwhile: where the time went, what the VM costs, where the memory went, and what
   recording itself cost. This file is the order of events. The runtime that is profiled:

     model (config, safetensors, tokenizer + unicode) -> program (compiler) -> vm -> engine -> ops,
     or opencl/, or gpu/ with cuda/ or hip/; pool, placement, batch, workers

   prof's macros are in ops.c, opencl/ and gpu/ (level 1), vm.c, pool.c and workers.c (level 2).
   pool.c reports memory, and vm.c queries it. What is only for the demo: corpus, answers, report,
   memory_table, overhead, progress. SPDX-License-Identifier: MIT */
#include <prof/memory.h>
#include <prof/trace.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "answers.h"
#include "memory_table.h"
#include "ops.h"
#include "overhead.h"
#include "placement.h"
#include "progress.h"
#include "report.h"

enum { WORKERS = 2, POOL_BLOCK_BYTES = 8 << 20, QUICK_TEXTS = 100 };

#define DEFAULT_TEXTS "/usr/share/common-licenses"
#define MIB 1048576.0
#define BUDGET_S 25.0
#define QUICK_BUDGET_S 4.0

typedef struct options {
  char model_folder[MODEL_PATH_BYTES];
  const char *out;
  const char *device;
  int64_t texts_limit; /* 0: none */
  bool is_quick;
  char **files;
  int file_count;
} options;

typedef struct demo {
  options options;
  model *model;
  corpus *corpus;
  engine *engine;
  pool *pool;
  placement *placement;
  workers *workers;
  batches *batches;
  answer answers[ANSWERS_COUNT];
  double embed_s;
  bool is_own_capture; /* nobody else records this program */
} demo;

static const char usage[] =
    "usage: minilm-demo [--device host|opencl|cuda|hip] [--model DIR] [--out trace.json] "
    "[--texts-limit N] [--quick] [FILES...]\n"
    "  --device NAME    who computes: host (OpenBLAS), or the first device of opencl, cuda "
    "(NVIDIA's) or hip (AMD's); default: host\n"
    "  --model DIR      config.json, vocab.txt, model.safetensors; default: what fetch-model.sh "
    "fetched\n"
    "  --out PATH       the trace; default: minilm-trace.json\n"
    "  --texts-limit N  embed only N paragraphs, evenly spread\n"
    "  --quick          100 paragraphs and a shorter experiment: seconds on the host\n"
    "  FILES            texts; default: the licenses in " DEFAULT_TEXTS
    "\n"
    "Exit status: 0; 1: it failed; 2: the command line is wrong; 3: there is no such device "
    "here.\n";

/* ---- options ---- */

static int read_count(const char *text, int64_t *count_out, failure *why) {
  char *end = NULL;
  const long long value = strtoll(text, &end, 10);
  if (end == text || *end != '\0' || value < 1)
    return failure_set(why, "--texts-limit %s: not a number from 1 on", text);
  *count_out = value;
  return 0;
}

/* One option with a value. */
static int read_pair(options *o, const char *name, const char *value, failure *why) {
  if (value == NULL) return failure_set(why, "%s needs a value", name);
  if (strcmp(name, "--out") == 0) {
    o->out = value;
    return 0;
  }
  if (strcmp(name, "--device") == 0) {
    o->device = value;
    return 0;
  }
  if (strcmp(name, "--texts-limit") == 0) return read_count(value, &o->texts_limit, why);
  if (strcmp(name, "--model") != 0) return failure_set(why, "there is no option %s", name);
  const int length = snprintf(o->model_folder, sizeof o->model_folder, "%s", value);
  return length < MODEL_PATH_BYTES ? 0 : failure_set(why, "--model: the path is too long");
}

static int read_options(int count, char **arguments, options *o, failure *why) {
  *o = (options){.out = "minilm-trace.json", .device = "host"};
  int i = 1;
  for (; i < count && strncmp(arguments[i], "--", 2) == 0; i++) {
    if (strcmp(arguments[i], "--") == 0) {
      i++;
      break;
    }
    if (strcmp(arguments[i], "--quick") == 0) {
      o->is_quick = true;
      continue;
    }
    const char *value = i + 1 < count ? arguments[i + 1] : NULL;
    if (read_pair(o, arguments[i], value, why) != 0) return -1;
    i++;
  }
  o->files = arguments + i;
  o->file_count = count - i;
  if (o->is_quick && o->texts_limit == 0) o->texts_limit = QUICK_TEXTS;
  return o->model_folder[0] != '\0' ? 0 : model_default_folder(o->model_folder, why);
}

/* ---- the steps ---- */

static int open_model(demo *d, failure *why) {
  failure inner;
  if (model_open(d->options.model_folder, &d->model, &inner) == 0) return 0;
  return failure_set(
      why, "no model: %.300s\n  examples/minilm/fetch-model.sh fetches it and prints its folder",
      inner.text);
}

static int read_texts(demo *d, failure *why) {
  d->corpus = corpus_create();
  if (d->corpus == NULL) return failure_set(why, "no memory for the texts");
  if (d->options.file_count == 0 && corpus_add_folder(d->corpus, DEFAULT_TEXTS, why) != 0)
    return -1;
  for (int i = 0; i < d->options.file_count; i++)
    if (corpus_add_file(d->corpus, d->options.files[i], why) != 0) return -1;
  corpus_limit(d->corpus, d->options.texts_limit);
  if (d->corpus->count == 0) return failure_set(why, "the texts hold no paragraph");
  return 0;
}

static int open_pool(demo *d, failure *why) {
  d->pool = pool_create(POOL_BLOCK_BYTES, d->engine->memory);
  return d->pool != NULL ? 0 : failure_set(why, "no memory for the pool");
}

/* A device gets the weights first. */
static int start_workers(demo *d, failure *why) {
  if (placement_create(d->model->program, d->engine, d->pool, &d->placement, why) != 0) return -1;
  return workers_create(placement_program(d->placement), d->engine, d->pool, WORKERS, &d->workers,
                        why);
}

static int embed(demo *d, failure *why) {
  const corpus *c = d->corpus;
  if (batches_create(d->model->tokenizer, d->model->config.hidden, c->texts, c->count, &d->batches,
                     why) != 0)
    return -1;
  progress p = progress_begin("paragraphs", c->count);
  int64_t submitted = 0;
  for (int64_t i = 0; i < d->batches->count; i++) {
    workers_submit(d->workers, &d->batches->items[i]);
    submitted += d->batches->items[i].count;
    progress_show(&p, submitted);
  }
  const int status = workers_wait(d->workers, why);
  d->embed_s = progress_end(&p);
  return status;
}

static int refuse(failure *why, const char *what, int status) {
  return failure_set(why, "%s: %s (%s)", what, prof_status_text(status), prof_last_error());
}

/* Two steps, as a server has requests: first the paragraphs, then the questions. In between the
   pool gives back what it does not need: when nothing is on its way on the device. */
static int work_under_prof(demo *d, failure *why) {
  prof_process_set_name("minilm-demo");
  prof_thread_set_name("main");
  int status = prof_memory_set_query(d->engine->memory->device, pool_query, d->pool);
  if (status != PROF_OK) return refuse(why, "prof_memory_set_query", status);
  status = prof_start(2);
  if (status != PROF_OK) return refuse(why, "prof_start", status);
  if (start_workers(d, why) != 0 || embed(d, why) != 0) return -1;
  prof_step();
  pool_trim(d->pool);
  if (answers_find(d->model, d->workers, d->batches, d->answers, why) != 0) return -1;
  prof_step();
  prof_stop();
  status = prof_dump(d->options.out);
  return status == PROF_OK ? 0 : refuse(why, d->options.out, status);
}

static void print_work(const demo *d) {
  pool_statistics s;
  pool_statistics_get(d->pool, &s);
  const batches *b = d->batches;
  printf(
      "%lld paragraphs of %d files (%lld tokens, %lld texts cut at %d) embedded in %.1f s on %d "
      "threads by %s: %.0f a second\n",
      (long long)b->text_count, d->corpus->file_count, (long long)b->token_count,
      (long long)b->cut_count, TOKENIZER_LENGTH_MAX, d->embed_s, WORKERS, d->engine->description,
      (double)b->text_count / d->embed_s);
  printf(
      "tensor pool: %llu requests, %llu blocks reserved from the system; peak %.2f MiB used, %.2f "
      "MiB reserved\n",
      (unsigned long long)s.request_count, (unsigned long long)s.reserve_count,
      (double)s.used_peak_bytes / MIB, (double)s.reserved_peak_bytes / MIB);
}

static int print_report(const demo *d, failure *why) {
  prof_trace *trace = NULL;
  const int status = prof_get(&trace);
  if (status != PROF_OK) return refuse(why, "prof_get", status);
  pool_statistics s;
  pool_statistics_get(d->pool, &s);
  int result = report_print(trace, d->engine != engine_host(), why);
  if (result == 0) result = memory_table_print(trace, &s, why);
  prof_trace_destroy(trace);
  return result;
}

/* By the CPU time of the threads that compute, so of the host alone. */
static int print_overhead(const demo *d, failure *why) {
  overhead o;
  fflush(stdout);
  const double budget_s = d->options.is_quick ? QUICK_BUDGET_S : BUDGET_S;
  if (overhead_measure(d->model, d->pool, d->batches, budget_s, &o, why) != 0) return -1;
  overhead_print(&o);
  return 0;
}

/* The measurement clears the capture, so it must be our own. */
static int measure_overhead(const demo *d, failure *why) {
  if (d->engine != engine_host()) return 0;
  if (d->is_own_capture) return print_overhead(d, why);
  puts("\nprof's cost is not measured: somebody else records this program, and keeps the capture");
  return 0;
}

static int run(demo *d, failure *why) {
  d->is_own_capture = prof_level() == 0;
  if (open_model(d, why) != 0 || read_texts(d, why) != 0 || open_pool(d, why) != 0) return -1;
  if (work_under_prof(d, why) != 0) return -1;
  print_work(d);
  answers_print(d->corpus, d->answers);
  if (print_report(d, why) != 0) return -1;
  if (measure_overhead(d, why) != 0) return -1;
  printf("\nThe trace is in %s: open it in https://ui.perfetto.dev or in chrome://tracing\n",
         d->options.out);
  return 0;
}

static void clean_up(demo *d) {
  workers_destroy(d->workers);
  batches_destroy(d->batches);
  placement_destroy(d->placement);
  prof_memory_set_query(d->engine->memory->device, NULL, NULL);
  pool_destroy(d->pool);
  d->engine->destroy(d->engine);
  corpus_destroy(d->corpus);
  model_close(d->model);
}

int main(int count, char **arguments) {
  demo d = {.model = NULL};
  failure why;
  if (count == 2 && strcmp(arguments[1], "--help") == 0) {
    fputs(usage, stdout);
    return 0;
  }
  if (read_options(count, arguments, &d.options, &why) != 0) {
    fprintf(stderr, "minilm-demo: %s\n%s", why.text, usage);
    return 2;
  }
  if (engine_open(d.options.device, &d.engine, &why) != 0) {
    fprintf(stderr, "minilm-demo: --device %s: %s\n", d.options.device, why.text);
    return 3;
  }
  ops_init();
  const int status = run(&d, &why);
  if (status != 0) fprintf(stderr, "minilm-demo: %s\n", why.text);
  clean_up(&d);
  return status == 0 ? 0 : 1;
}
