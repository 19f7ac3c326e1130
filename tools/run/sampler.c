/* See sampler.h. The process reports its begin and its end through a pipe. If the pipe closes
   without a report, the process was killed. */
#define _GNU_SOURCE
#include "sampler.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <prof/device.h>
#include <prof/profiler.h>
#include <prof/sampler.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../prof/commands.h"
#include "child.h"
#include "output.h"
#include "process_tree.h"

/* ---- the devices that can be read, in a process with open libraries of vendors ---- */

enum { HEADING_BYTES_MAX = 1 << 16 };

static const char *sampling_modes_text(const run_sampling *sampling) {
  return strcmp(sampling->mode, "vram") == 0 ? "memory" : "power";
}

/* The back ends with meters, one after another. False: there are no more. */
static bool next_with_meters(uint32_t *number, prof_backend_state *state) {
  *state = (prof_backend_state){.size = sizeof *state};
  while (prof_backend_status((*number)++, state) == PROF_OK)
    if (state->abilities & PROF_CAN_METRICS) return true;
  return false;
}

/* "nvml: WHY (WHAT TO DO)" for each back end that fails in part or whole. */
static const char *backend_reasons(void) {
  prof_backend_state state;
  const char *text = "";
  for (uint32_t i = 0; next_with_meters(&i, &state);) {
    if (!state.reason[0]) continue;
    text = run_text("%s; %s: %s%s%s%s", text, state.name, state.reason, state.advice[0] ? " (" : "",
                    state.advice, state.advice[0] ? ")" : "");
  }
  return text;
}

/* The largest number of devices of one vendor. */
static uint32_t count_devices(void) {
  prof_backend_state state;
  uint32_t most = 0;
  for (uint32_t i = 0; next_with_meters(&i, &state);)
    if (state.device_count > most) most = state.device_count;
  return most;
}

static bool heading_has_device(const char *heading, unsigned long device) {
  const char *const title = run_text(" GPU%lu", device);
  const size_t bytes = strlen(title);
  for (const char *at = heading; (at = strstr(at, title)) != NULL; at++)
    if (strchr(",\n", at[bytes])) return true;
  return false;
}

static const char *no_device_reason(const run_sampling *sampling, unsigned long device,
                                    uint32_t count) {
  const char *const numbers = count == 1 ? "0" : run_text("0 to %u", count - 1);
  return run_text("DEVICE is '%s', and there is no device %lu: there %s %u (%s)", sampling->devices,
                  device, count == 1 ? "is" : "are", count, numbers);
}

/* Why nothing can be read: for each back end with meters the text of prof doctor. */
static const char *devices_refusal(const run_sampling *sampling) {
  const uint32_t count = count_devices();
  for (const char *at = sampling->devices; count > 0 && *at >= '0' && *at <= '9';) {
    char *end;
    const unsigned long device = strtoul(at, &end, 10);
    if (device >= count) return no_device_reason(sampling, device, count);
    at = end + (*end == ',');
  }
  return run_text("there is no device whose %s can be read%s; prof doctor says more",
                  sampling_modes_text(sampling), backend_reasons());
}

static const char *no_column_reason(const run_sampling *sampling, unsigned long device) {
  const uint32_t count = count_devices();
  if (device >= count) return no_device_reason(sampling, device, count);
  if (strcmp(sampling->mode, "power") != 0)
    return run_text("DEVICE is '%s', and device %lu does not tell its memory%s", sampling->devices,
                    device, backend_reasons());
  return run_text(
      "DEVICE is '%s', and device %lu tells no power; on a board with two dies the "
      "first tells the power of both, and \"all\" leaves the second out%s",
      sampling->devices, device, backend_reasons());
}

/* Checks by the heading of the sampler's file that each named device exists. Returns NULL or what
   is wrong. DUAL-GCD needs two devices. */
static const char *devices_check(const run_sampling *sampling, const char *csv_path) {
  size_t bytes;
  const char *const heading = run_file_read(csv_path, HEADING_BYTES_MAX, &bytes);
  if (!heading || !strstr(heading, " GPU")) return devices_refusal(sampling);
  for (const char *at = sampling->devices; *at >= '0' && *at <= '9';) {
    char *end;
    const unsigned long device = strtoul(at, &end, 10);
    if (!heading_has_device(heading, device)) return no_column_reason(sampling, device);
    at = end + (*end == ',');
  }
  if (sampling->is_dual && count_devices() < 2)
    return run_text("DUAL-GCD is 'true', which needs two devices, and there is %u",
                    count_devices());
  return NULL;
}

/* ---- its task and its reports ---- */

/* The process's report, once at its begin and once at its end. */
typedef struct news {
  bool is_failed;
  uint64_t samples, missed; /* at the end */
  char text[1024];          /* why it has failed */
} news;

/* The task of the process. */
typedef struct sampler_plan {
  const run_sampling *sampling;
  const char *path;    /* of the file, or NULL: it only tries */
  const char *capture; /* a path, or NULL */
} sampler_plan;

/* ---- in the process ---- */

static void send_news(int to, const news *n) { (void)!write(to, n, sizeof *n); }

static _Noreturn void send_failure(int to, const char *text) {
  news n = {.is_failed = true};
  snprintf(n.text, sizeof n.text, "%s", text);
  send_news(to, &n);
  _exit(1);
}

static uint32_t sampling_modes(const run_sampling *sampling) {
  if (strcmp(sampling->mode, "all") == 0) return PROF_SAMPLE_ALL;
  return strcmp(sampling->mode, "vram") == 0 ? PROF_SAMPLE_VRAM : PROF_SAMPLE_POWER;
}

/* Writes only the heading, which names the devices. */
static char *temporary_file(void) {
  const char *const folder = getenv("TMPDIR");
  char *const path = run_text("%s/prof-run-XXXXXX", folder && *folder ? folder : "/tmp");
  const int fd = mkostemp(path, O_CLOEXEC);
  if (fd >= 0) close(fd);
  return fd >= 0 ? path : NULL;
}

/* NULL, or why it does not sample. */
static const char *begin_sampling(const sampler_plan *p) {
  const char *const path = p->path ? p->path : temporary_file();
  if (!path) return run_text("cannot make a temporary file: %s", strerror(errno));
  const prof_sampler_options options = {
      .size = sizeof options,
      .interval_ns = p->sampling->interval_ns,
      .devices = p->sampling->devices,
      .csv_path = path,
      .mode = sampling_modes(p->sampling),
      .csv_is_live = 1,
  };
  const int status = prof_sampler_start(&options);
  const char *failed = status == PROF_OK ? NULL : run_text("%s", prof_last_error());
  if (p->path) return failed;
  const bool is_all = options.mode == PROF_SAMPLE_ALL;
  if (status == PROF_E_NOT_FOUND && !is_all) failed = devices_refusal(p->sampling);
  if (status == PROF_OK && !is_all) failed = devices_check(p->sampling, path);
  unlink(path);
  return failed;
}

/* Ignores the terminal's signals, has no input, and gets SIGTERM when the parent ends. */
static void leave_parent(pid_t parent, sigset_t *ending) {
  setsid();
  prctl(PR_SET_NAME, RUN_SAMPLER_COMM);
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, NULL);
  sigemptyset(ending);
  sigaddset(ending, SIGTERM);
  sigaddset(ending, SIGINT);
  sigaddset(ending, SIGHUP);
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) _exit(0);
  const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  if (null < 0) return;
  dup2(null, STDIN_FILENO);
  dup2(null, STDOUT_FILENO);
}

/* A hanging call of a vendor ends with the process. The rows so far are in the file. */
static void end_sampling(const sampler_plan *p, int to) {
  news n = {0};
  prof_sampler_state state = {.size = sizeof state};
  const int status = prof_sampler_stop();
  if (status != PROF_OK) {
    n.is_failed = true;
    snprintf(n.text, sizeof n.text, "%s", prof_last_error());
  }
  if (p->capture) {
    prof_stop();
    if (prof_dump(NULL) != PROF_OK && !n.is_failed) {
      n.is_failed = true;
      snprintf(n.text, sizeof n.text, "%s", prof_last_error());
    }
  }
  prof_sampler_get(&state);
  n.samples = state.sample_count;
  n.missed = state.missed_count;
  send_news(to, &n);
}

static _Noreturn void run_as_sampler(const sampler_plan *p, int to, pid_t parent) {
  sigset_t ending;
  leave_parent(parent, &ending);
  const prof_options recording = {.size = sizeof recording, .level = 1, .path = p->capture};
  if (p->capture && prof_start_with(&recording) != PROF_OK) send_failure(to, prof_last_error());
  const char *const failed = begin_sampling(p);
  if (failed) send_failure(to, failed);
  send_news(to, &(news){0});
  if (!p->path) _exit(0);
  while (sigwaitinfo(&ending, NULL) < 0 && errno == EINTR) continue;
  end_sampling(p, to);
  _exit(0);
}

/* ---- beside it ---- */

/* False: the process has ended without a report. */
static bool read_news(int from, news *n) {
  ssize_t bytes;
  while ((bytes = read(from, n, sizeof *n)) < 0 && errno == EINTR) continue;
  n->text[sizeof n->text - 1] = '\0';
  return bytes == (ssize_t)sizeof *n;
}

static pid_t start_sampler_process(const sampler_plan *p, int *news_out) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) run_fail("cannot make a pipe: %s", strerror(errno));
  fflush(NULL);
  const pid_t parent = getpid(), pid = fork();
  if (pid < 0) run_fail("cannot make a process: %s", strerror(errno));
  if (pid == 0) {
    close(ends[0]);
    run_as_sampler(p, ends[1], parent);
  }
  close(ends[1]);
  *news_out = ends[0];
  return pid;
}

/* Why it does not sample. NULL: it does. */
static const char *read_first_news(int from) {
  news n = {0};
  if (!read_news(from, &n))
    return "the process that samples has crashed, in a vendor's library perhaps";
  return n.is_failed ? run_text("%s", n.text) : NULL;
}

static void wait_for_sampler(pid_t pid) {
  while (waitpid(pid, NULL, 0) < 0 && errno == EINTR) continue;
}

const char *run_sampler_refusal(const run_tool *tool) {
  const run_sampling otherwise = run_sampling_read(tool);
  const sampler_plan p = {.sampling = tool->sampling ? tool->sampling : &otherwise};
  int from;
  const pid_t pid = start_sampler_process(&p, &from);
  const char *const failed = read_first_news(from);
  close(from);
  wait_for_sampler(pid);
  return failed;
}

/* ---- all of a stack ---- */

/* A new file of this name. */
static char *make_file(const char *folder, const char *name) {
  const char *const slash = strrchr(name, '/'), *const base = slash ? slash + 1 : name;
  const char *dot = strrchr(base, '.');
  if (!dot || dot == base) dot = base + strlen(base);
  const char *in = folder;
  if (slash) in = run_copy(name, (size_t)(slash - name));
  if (slash && *name != '/') in = run_output_in(folder, in);
  run_output_make_folder(*in ? in : "/");
  return run_output_new_file(in, run_copy(base, (size_t)(dot - base)), dot);
}

/* The file's path with the ending .prof. */
static const char *capture_path(const char *path) {
  const char *const dot = strrchr(path, '.');
  return run_text("%.*s.prof", (int)(dot && !strchr(dot, '/') ? dot - path : (int)strlen(path)),
                  path);
}

void run_samplers_prepare(run_samplers *samplers, const run_stack *stack, const char *folder,
                          bool has_captures) {
  *samplers = (run_samplers){.items = run_make(stack->count, sizeof *samplers->items)};
  for (size_t i = 0; i < stack->count; i++) {
    const run_sampling *const sampling = stack->tools[i].sampling;
    if (!sampling) continue;
    run_sampler *const sampler = &samplers->items[samplers->made++];
    *sampler = (run_sampler){.name = stack->tools[i].name,
                             .path = make_file(folder, sampling->file),
                             .sampling = sampling};
    if (has_captures || stack->tools[i].parts & RUN_PART_PROF)
      sampler->capture = capture_path(sampler->path);
  }
}

static bool start_sampler(run_sampler *sampler) {
  const sampler_plan p = {sampler->sampling, sampler->path,
                          sampler->capture ? run_output_escaped(sampler->capture) : NULL};
  sampler->pid = start_sampler_process(&p, &sampler->news);
  const bool is_awaited = run_signals_wait(sampler->news); /* a driver may hang */
  if (!is_awaited) kill(sampler->pid, SIGKILL);
  const char *const failed = is_awaited ? read_first_news(sampler->news) : "it was interrupted";
  if (!failed) return true;
  say("prof run: %s cannot sample: %s", sampler->name, failed);
  close(sampler->news);
  wait_for_sampler(sampler->pid);
  return false;
}

bool run_samplers_start(run_samplers *samplers) {
  for (; samplers->count < samplers->made; samplers->count++)
    if (!start_sampler(&samplers->items[samplers->count])) {
      run_samplers_stop(samplers, true);
      while (samplers->made > 0) unlink(samplers->items[--samplers->made].path);
      return false;
    }
  return true;
}

/* It ends within a fraction of a second. If it was stopped or hangs in a driver, it is killed, and
   not waited for. */
static bool await_end(const run_sampler *sampler) {
  enum { PATIENCE_MS = 10000 };
  struct pollfd ready = {.fd = sampler->news, .events = POLLIN};
  int count;
  while ((count = poll(&ready, 1, PATIENCE_MS)) < 0 && errno == EINTR) continue;
  if (count == 0) kill(sampler->pid, SIGKILL);
  return count != 0;
}

static void stop_sampler(run_sampler *sampler, bool is_quiet) {
  news n = {0};
  const bool has_ended = waitpid(sampler->pid, NULL, WNOHANG) != 0;
  if (!has_ended) kill(sampler->pid, SIGTERM);
  const bool is_answered = await_end(sampler);
  const bool is_heard = is_answered && read_news(sampler->news, &n);
  close(sampler->news);
  if (!has_ended && is_answered) wait_for_sampler(sampler->pid);
  if (!is_answered)
    say("prof run: the process of %s does not end, and was killed; '%s' has the samples until then",
        sampler->name, sampler->path);
  else if (!is_heard)
    say("prof run: the process of %s was killed; '%s' has the samples until then", sampler->name,
        sampler->path);
  else if (n.is_failed)
    say("prof run: %s has failed: %s", sampler->name, n.text);
  else if (has_ended)
    say("prof run: the process of %s was ended before the program did; '%s' has the samples until "
        "then",
        sampler->name, sampler->path);
  else if (n.missed > 0 && !is_quiet)
    say("prof run: %s: %llu sample%s, and %llu missed: the devices or the processors were busy",
        sampler->name, (unsigned long long)n.samples, n.samples == 1 ? "" : "s",
        (unsigned long long)n.missed);
}

void run_samplers_stop(run_samplers *samplers, bool is_quiet) {
  for (size_t i = 0; i < samplers->count; i++) stop_sampler(&samplers->items[i], is_quiet);
  samplers->count = 0;
}
