/* The processes of a workload, as seen in /proc from time to time while it runs. This costs the
   workload nothing, and misses processes that end within a few ms. */
#ifndef PROF_TOOLS_RUN_FAMILY_H
#define PROF_TOOLS_RUN_FAMILY_H

#include <sys/types.h>

#include "text.h"

/* Why a process cannot be recorded, or has not been. The order is that of the report. */
typedef enum run_reason {
  RUN_REASON_SUDO,      /* it starts programs with a new environment: sudo, su, doas */
  RUN_REASON_CONTAINER, /* it starts programs in a container, by a service */
  RUN_REASON_HOST,      /* it starts programs on another host: ssh, srun */
  RUN_REASON_STATIC,    /* a static program: nothing can be loaded into it */
  RUN_REASON_SETUID,    /* the loader ignores LD_PRELOAD, and prof its variables */
  RUN_REASON_VARIABLES, /* it was started without prof's variables: env -i */
  RUN_REASON_USER,      /* it runs as another user, who cannot write into the folder */
  RUN_REASON_NAMESPACE, /* it does not see the folder: in a container */
  RUN_REASON_NESTED,    /* another prof run, inside of this one, has its capture */
  RUN_REASON_LOST,      /* it had loaded prof, and left no capture */
  RUN_REASON_NO_EVENTS, /* its capture was empty */
  RUN_REASON_NO_PROF,   /* it does not use prof */
  RUN_REASON_NO_FOLDER, /* it may use prof: the folder of captures is gone */
  RUN_REASONS,
} run_reason;

enum { RUN_COMM_BYTES = 16 };

/* As two processes of prof itself are named, which are left out. */
#define RUN_KEEPER_COMM "prof run keeper"
#define RUN_SAMPLER_COMM "prof-run-sample"

/* One process, with the program that it executed last. */
typedef struct run_process {
  pid_t pid;
  pid_t parent_pid;            /* when it was seen first */
  pid_t inner_pid;             /* in its own PID namespace: that of its capture */
  uint64_t start;              /* in ticks since boot: with the pid it names the process */
  char comm[RUN_COMM_BYTES];   /* as the kernel has it */
  char name[RUN_COMM_BYTES];   /* the same, but of valgrind's processes that of their program */
  char parent[RUN_COMM_BYTES]; /* the parent's comm when this name was seen, or "" */
  run_reason reason;           /* that holds if it leaves no capture */
  unsigned libraries; /* RUN_LIBRARY_x of library.h that it had loaded when seen, as bits */
  unsigned seen_count;
  uint64_t seen_ns; /* when it was last seen alive, by CLOCK_MONOTONIC */
  bool is_in_valgrind;
  bool is_empty;     /* no variables were seen: they are read once more */
  bool has_no_words; /* of a shell: it is executing its program just now, or ending */
  bool is_of_stack;  /* a shell or a process of prof itself that starts the workload */
  bool is_prof_run;  /* of another run */
  bool is_as_parent; /* the program is that of its parent: before exec(), or a worker */
  uint64_t program;  /* identifies the executed file */
  char *words;       /* of a Python interpreter: its first words, each with its NUL; or NULL */
  size_t words_bytes;
} run_process;

typedef struct run_process_tree run_process_tree;

/* Begins to watch the processes that we start. variable: "PROF_OUTPUT", which those that are to
   record have, or NULL. folder: into which they write, or NULL. Returns NULL if it cannot watch. */
run_process_tree *run_process_tree_start(const char *variable, const char *folder);
/* Looks once more, and ends. A second call does nothing. */
void run_process_tree_stop(run_process_tree *process_tree);
void run_process_tree_destroy(run_process_tree *process_tree);

/* Of those seen. A process that was seen once with the program of its parent is left out. */
size_t run_process_tree_count(const run_process_tree *process_tree);
const run_process *run_process_tree_at(const run_process_tree *process_tree, size_t index);
/* The last process with this pid, or NULL. One that may not have executed its program yet is left
   out. */
const run_process *run_process_tree_find(const run_process_tree *process_tree, pid_t pid);
/* Any process that was seen. */
bool run_process_tree_has(const run_process_tree *process_tree, pid_t pid);
/* prof run was started once more, inside of this one. */
bool run_process_tree_has_prof_run(const run_process_tree *process_tree);
/* True: there was no room for more. */
bool run_process_tree_is_full(const run_process_tree *process_tree);

/* What is known of a process's program. Used by the watching thread. */
void run_process_inspect(run_process *member, const char *variable, const char *folder);
/* sudo sends a signal on to its program, which must not get it from its group, too. */
bool run_process_passes_signals(pid_t pid);
/* Whether it executes another program in valgrind, where its comm and its executed file stay
   valgrind's. Takes the name of that one. */
bool run_process_is_renamed(run_process *member);
/* Reads the list of its loaded files. */
void run_process_read_maps(run_process *member);
/* Reads the words of a Python interpreter. They are freed with free(). */
void run_process_read_words(run_process *member);

#endif
