/* Which processes of the workload were recorded, and why others were not. See run.h. */
#define _GNU_SOURCE
#include "run.h"

#include <stdlib.h>
#include <string.h>

#include "../prof/commands.h"
#include "output.h"

/* ---- processes of tools ---- */

/* What the tools start, by the first 15 bytes of its name, as the kernel has it. */
static const struct {
  const char *program, *helper;
  bool is_child; /* of the tool's own process: the workload may have such programs, too */
} tool_helpers[] = {
    {"heaptrack", "heaptrack_inter", false},
    {"heaptrack", "basename", true},
    {"heaptrack", "dirname", true},
    {"heaptrack", "gzip", true},
    {"heaptrack", "hostname", true},
    {"heaptrack", "mkdir", true},
    {"heaptrack", "mkfifo", true},
    {"heaptrack", "readlink", true},
    {"heaptrack", "rm", true},
    {"heaptrack", "sed", true},
    {"heaptrack", "uname", true},
    {"heaptrack", "zstd", true},
    {"ncu", "TreeLauncherSub", false},
    {"ncu", "TreeLauncherTar", false},
    {"ncu", "nv-system-info-", false},
    {"nsys", "CudaGpuInfoDump", false},
    {"nsys", "QdstrmImporter", false},
    {"nsys", "launcher", true},
    {"nsys", "nsys-launcher", false},
    {"nsys", "nsys-tee", false},
    {"nsys", "nvgpucs", false},
    {"perf", "perf-exec", false},
    {"rocprof", "rocprofv3", false},
    {"valgrind", "memcheck-amd64-", false},
    {"valgrind", "memcheck-arm64-", false},
    {"valgrind", "valgrind.bin", false},
};

static bool process_is_started_by(const char *program, const run_process *member) {
  for (size_t i = 0; i < sizeof tool_helpers / sizeof *tool_helpers; i++)
    if (strcmp(program, tool_helpers[i].program) == 0 &&
        strcmp(member->name, tool_helpers[i].helper) == 0 &&
        (!tool_helpers[i].is_child || strcmp(member->parent, program) == 0))
      return true;
  return false;
}

/* Whether the process belongs to the tools of the stack, not to its workload. workload: the name of
   its program, which is not a helper. */
static bool process_is_tool_helper(const run_stack *stack, const char *workload,
                                   const run_process *member) {
  if (member->is_of_stack) return true;
  for (size_t i = 0; i < stack->count; i++) {
    const char *const program = run_tool_program(&stack->tools[i]);
    if (*program && strncmp(program, member->name, RUN_COMM_BYTES - 1) == 0) return true;
    if (process_is_started_by(program, member) &&
        strncmp(workload, member->name, RUN_COMM_BYTES - 1) != 0)
      return true;
  }
  return false;
}

/* ---- reasons ---- */

enum { NAMES_MAX = 6 }; /* in a line */

static const struct {
  const char *text, *advice; /* advice: NULL: none */
} reason_texts[RUN_REASONS] = {
    [RUN_REASON_SUDO] = {"starts programs with a new environment",
                         "run prof behind it: sudo prof run ..."},
    [RUN_REASON_CONTAINER] = {"starts programs in a container",
                              "run prof in the container: docker run ... prof run ..."},
    [RUN_REASON_HOST] = {"starts programs on another host",
                         "run prof there: ssh HOST prof run ..."},
    [RUN_REASON_STATIC] = {"is a static program: prof cannot be loaded into it",
                           "link it with prof, or dynamically"},
    [RUN_REASON_SETUID] = {"is setuid: it ignores the variables of prof",
                           "run it as its owner: sudo prof run ..."},
    [RUN_REASON_VARIABLES] = {"was started without PROF_OUTPUT (env -i, sudo)",
                              "keep PROF_* and LD_PRELOAD in its environment"},
    [RUN_REASON_USER] = {"runs as another user, who cannot write into the folder of captures",
                         "run prof as that user: su USER -c 'prof run ...'"},
    [RUN_REASON_NAMESPACE] = {"does not see the folder of captures: it is in a container",
                              "run prof in the container, or mount the folder there"},
    [RUN_REASON_NESTED] = {"a prof run inside of this one has it", NULL},
    [RUN_REASON_LOST] = {"has loaded prof and left no capture",
                         "see its messages on stderr; prof recover lists captures elsewhere"},
    [RUN_REASON_NO_EVENTS] = {"uses prof, and recorded nothing, or has cleared it",
                              "add scopes, or --level 2, or --memory"},
    [RUN_REASON_NO_PROF] = {"does not use prof", NULL},
    [RUN_REASON_NO_FOLDER] = {"the folder of captures is not there any more",
                              "let the program not remove or rename it"},
};

const char *run_reason_text(run_reason reason) { return reason_texts[reason].text; }

static void add_process(run_children *to, const char *name, run_reason otherwise,
                        const run_capture *capture) {
  const bool is_recorded = capture && !capture->is_empty;
  const run_reason reason = capture && capture->is_empty ? RUN_REASON_NO_EVENTS : otherwise;
  for (size_t i = 0; i < to->count; i++) {
    run_child_group *const group = &to->groups[i];
    if (strcmp(group->name, name) != 0 || group->is_recorded != is_recorded) continue;
    if (!is_recorded && group->reason != reason) continue;
    group->count++;
    return;
  }
  to->groups = run_grow(to->groups, to->count + 1, sizeof *to->groups);
  to->groups[to->count++] = (run_child_group){run_text("%s", name), 1, is_recorded, reason};
}

/* By reason, the recorded ones last; of one reason the most frequent first. */
static int group_compare_reason(const void *a, const void *b) {
  const run_child_group *const x = a, *const y = b;
  if (x->is_recorded != y->is_recorded) return x->is_recorded - y->is_recorded;
  if (!x->is_recorded && x->reason != y->reason) return x->reason < y->reason ? -1 : 1;
  if (x->count != y->count) return x->count > y->count ? -1 : 1;
  return strcmp(x->name, y->name);
}

/* False: it is of a program that the process has executed before its last one. */
static bool capture_is_of_last_program(const run_capture *capture, const run_process *m) {
  if (capture->was_clean || capture->is_live || capture->error) return true;
  if (m->reason == RUN_REASON_VARIABLES) return false;
  if (m->reason == RUN_REASON_LOST) return true; /* prof is in its last program, too */
  return strncmp(capture->process, m->name, RUN_COMM_BYTES - 1) == 0;
}

/* Marks the captures of all its programs. Returns that of the last one, or NULL. */
static const run_capture *last_capture(const run_captures *captures, bool *is_seen,
                                       const run_process *m, const run_capture *found) {
  if (!found) return NULL;
  is_seen[found - captures->items] = true;
  if (m->inner_pid != m->pid || capture_is_of_last_program(found, m)) return found;
  const run_capture *last = NULL;
  for (size_t i = 0; i < captures->count; i++) {
    const run_capture *const capture = &captures->items[i];
    if (capture->is_own || capture->pid != found->pid) continue;
    is_seen[i] = true;
    if (!last && capture_is_of_last_program(capture, m)) last = capture;
  }
  return last;
}

/* What is known of it may be older than its last program. An ended capture is of that one. Programs
   in Python have the names of their scripts. */
static const char *process_name(const run_process_tree *process_tree, const run_process *m,
                                const run_capture *capture, const char *workload) {
  const bool has_name = capture && capture->was_clean && *capture->process;
  const char *const name = has_name ? capture->process : m->name;
  const bool is_python = m->words && run_python_is_interpreter(name);
  const char *const title = is_python ? run_process_title(process_tree, m, workload) : NULL;
  return title ? title : name;
}

/* Each PID namespace has a process 1, so a capture is taken once. */
static const run_capture *process_capture(const run_captures *captures, const bool *is_seen,
                                          const run_process *m) {
  const uint32_t pid = (uint32_t)m->inner_pid;
  const run_capture *const found = run_captures_of(captures, pid);
  if (!found || m->inner_pid == m->pid || !is_seen[found - captures->items]) return found;
  for (size_t i = 0; i < captures->count; i++)
    if (captures->items[i].pid == pid && !is_seen[i]) return &captures->items[i];
  return NULL;
}

static bool process_is_in_prof_run(const run_process_tree *process_tree, const run_process *m) {
  enum { DEEPEST = 64 };
  for (int i = 0; i < DEEPEST && m; i++) {
    if (m->is_prof_run) return true;
    m = run_process_tree_find(process_tree, m->parent_pid);
  }
  return false;
}

static run_reason process_reason(const run_process_tree *process_tree, const run_process *m,
                                 const run_captures *captures) {
  if (m->reason != RUN_REASON_NO_PROF && m->reason != RUN_REASON_LOST) return m->reason;
  if (m->reason == RUN_REASON_LOST && process_is_in_prof_run(process_tree, m))
    return RUN_REASON_NESTED;
  return captures->has_no_folder ? RUN_REASON_NO_FOLDER : m->reason;
}

run_children run_children_find(const run_process_tree *process_tree, const run_captures *captures,
                               const run_stack *stack, const char *workload, bool has_reasons) {
  run_children to = {.has_reasons = has_reasons,
                     .is_unknown = !process_tree,
                     .empty_count = captures->empty_count,
                     .has_captures = run_captures_have_events(captures)};
  bool *const is_seen = run_make(captures->count, sizeof *is_seen);
  for (size_t i = 0; process_tree && i < run_process_tree_count(process_tree); i++) {
    const run_process *const m = run_process_tree_at(process_tree, i);
    const run_capture *const found = process_capture(captures, is_seen, m);
    const run_capture *const capture = last_capture(captures, is_seen, m, found);
    to.libraries |= m->libraries;
    if (!capture && process_is_tool_helper(stack, workload, m)) continue;
    add_process(&to, process_name(process_tree, m, capture, workload),
                process_reason(process_tree, m, captures), capture);
  }
  for (size_t i = 0; i < captures->count; i++) {
    const run_capture *const capture = &captures->items[i];
    if (!is_seen[i] && !capture->is_own && run_captures_of(captures, capture->pid) == capture)
      add_process(&to, capture->process, RUN_REASON_NO_EVENTS, capture);
  }
  free(is_seen);
  to.has_prof_run = process_tree && run_process_tree_has_prof_run(process_tree);
  to.is_cut = process_tree && run_process_tree_is_full(process_tree);
  if (to.count > 1) qsort(to.groups, to.count, sizeof *to.groups, group_compare_reason);
  return to;
}

/* "cc1 (132 processes), as (7 processes), make and 4 other names". Returns the index behind. */
static size_t group_names(const run_children *children, size_t at, char **names_out) {
  const run_reason reason = children->groups[at].reason;
  char *names = run_text("%s", "");
  size_t named = 0, more = 0;
  for (; at < children->count; at++) {
    const run_child_group *const group = &children->groups[at];
    if (group->is_recorded || group->reason != reason) break;
    if (named == NAMES_MAX) {
      more++;
      continue;
    }
    names = group->count == 1 ? run_text("%s%s%s", names, named ? ", " : "", group->name)
                              : run_text("%s%s%s (%zu processes)", names, named ? ", " : "",
                                         group->name, group->count);
    named++;
  }
  *names_out = more ? run_text("%s and %zu other names", names, more) : names;
  return at;
}

/* Then "nothing was recorded" has said all. */
static bool is_already_explained(const run_children *children) {
  const run_child_group *const first = children->groups;
  return children->count == 1 && first->count == 1 && !children->has_captures &&
         (first->reason == RUN_REASON_NO_PROF || first->reason == RUN_REASON_NO_EVENTS);
}

void run_children_print(const run_children *children) {
  bool is_any = false;
  if (is_already_explained(children)) return;
  for (size_t at = 0; at < children->count && !children->groups[at].is_recorded;) {
    const run_reason reason = children->groups[at].reason;
    char *names;
    at = group_names(children, at, &names);
    say("  %sno capture of %s: %s%s%s", run_output_whose(), names, reason_texts[reason].text,
        reason_texts[reason].advice ? "; " : "",
        reason_texts[reason].advice ? reason_texts[reason].advice : "");
    is_any = true;
  }
  if (is_any)
    say("  %sprocesses are seen by looking at /proc every few ms: short ones may be missing here%s",
        run_output_whose(), children->is_cut ? ", and there were too many to keep" : "");
}

const char *run_children_empty_reason(const run_children *children) {
  if (children->empty_count > 0)
    return "nothing was recorded: the program uses prof, and had no event, or dropped all by "
           "prof_clear(); try --level 2, --memory";
  if (children->has_prof_run)
    return "nothing was recorded here: a prof run inside of this one has what it records";
  if (children->is_unknown)
    return "nothing was recorded; this kernel does not list the children of a process";
  for (size_t i = 0; i < children->count; i++)
    if (children->groups[i].reason != RUN_REASON_NO_PROF) return "nothing was recorded";
  return "nothing was recorded: no process seen uses prof; try --memory or --tool perf";
}
