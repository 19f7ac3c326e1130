/* prof: reads captures, finished, being written, or left by a process that died. See commands.h. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../run/compose.h"
#include "../run/dual.h"
#include "../run/internal.h"
#include "../run/rocprof.h"
#include "commands.h"

/* Texts of help: each line has at most 80 columns. The lines of a command begin here: */
#define INDENT "\n         "

/* libprof.so looks for it: what PROF_LEVEL and PROF_MEMORY ask for is not for this process. */
extern const char prof_i_is_command;
__attribute__((visibility("default"))) const char prof_i_is_command = 1;

static const struct {
  const char *name;
  int (*run_command_line)(int argc, char **argv);
  const char *words;
  const char *text;
} commands[] = {
    {"run", command_run, "[OPTION...] [--] PROGRAM [WORD...]",
     "runs a program, records it, or puts tools around it;" INDENT
     "prof run --help says each option"},
    {"info", command_info, "FILE", "what the capture holds, what it lost, what was open"},
    {"table", command_table, "[OPTION...] FILE...",
     "totals by name, category, device, thread, shape, stack; of several" INDENT
     "captures together; prof table --help says each option"},
    {"memory", command_memory, "FILE [--pool N] [--rows N] [--width N] [--svg OUT.svg] [--raf]",
     "where memory went: a plot over time, both peaks, who held what, what" INDENT
     "was wrong; OUT.svg is the plot alone;" INDENT
     "--raf the samples of PROFILE_MEMORY() as RAF prints them"},
    {"dump", command_dump, "FILE -o OUT [--format chrome|raf|capture|perfetto|csv|folded]",
     "for chrome://tracing and Perfetto; OUT.gz is compressed"},
    {"import", command_import, "TRACE.json|TRACE.rpd|RESULTS.db [-o OUT.prof]",
     "a trace that torch.profiler exported, or another tool for" INDENT
     "chrome://tracing, becomes a capture; .json.gz, too;" INDENT
     "so does a database of AMD's rpd or rocprofv3"},
    {"level", command_level, "PID|FILE [N]",
     "shows or switches the level of a process that records into a file:" INDENT
     "0 no scopes, 1 operators, 2 also the runtime;" INDENT
     "memory is recorded at each of them, at 0 too"},
    {"doctor", command_doctor, "",
     "which back ends of devices there are, which of them can work here," INDENT
     "and what to do for the others"},
    {"recover", command_recover, "[DIR...] [--all] [-o OUTDIR] [--format F] [--keep N]",
     "what processes that died left in DIR, and what each was inside of;" INDENT
     "converts into OUTDIR; removes all that it lists but the newest N" INDENT
     "(--all: stopped ones, too), never one whose process runs, or may"},
};

static const char *lost_pages =
    "prof: a page of the capture is gone: the file became shorter while it was read, or its disk "
    "failed\n";

void set_lost_page_message(const char *text) { lost_pages = text; }

static void print_help(FILE *to) {
  fputs("usage: prof COMMAND FILE ...\n\n", to);
  for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
    fprintf(to, "  prof %-7s%s%s" INDENT "%s\n", commands[i].name, *commands[i].words ? " " : "",
            commands[i].words, commands[i].text);
  fputs(
      "  prof help | --version\n\n"
      "FILE is a capture (*.prof): one that a start with a path, or PROF_LEVEL and\n"
      "PROF_OUTPUT, put beside its output.\n"
      "N rows, 100 if not said (memory: 10), or all. The plot is ASCII where LC_ALL,\n"
      "LC_CTYPE and LANG say no UTF-8.\n"
      "Exit status: 0 done, 1 it could not be done, 2 the words are wrong. run has\n"
      "others: prof run --help.\n",
      to);
}

int refuse_words(const char *name, const char *text, const char *word) {
  const bool has_help = strcmp(name, "run") == 0 || strcmp(name, "table") == 0;
  say("prof %s: %s%s%s; see prof %s%s", name, text, word ? " " : "", word ? word : "",
      has_help ? name : "help", has_help ? " --help" : "");
  return EXIT_USAGE;
}

/* The library's text names the file, and says what is wrong and what to do. */
prof_trace *open_capture(const char *path) {
  prof_trace *trace = NULL;
  const int status = prof_trace_open(path, &trace);
  if (status == PROF_OK) return trace;
  const char *const error = prof_last_error(), *const text = prof_status_text(status);
  const bool is_said = strcasestr(error, text) != NULL;
  say("prof: %s%s%s%s%s", error, is_said ? "" : " (", is_said ? "" : text, is_said ? "" : ")",
      status == PROF_E_PERMISSION ? "; captures belong to the user whose process wrote them" : "");
  return NULL;
}

int refuse_option(const char *name, int argc, char **argv) {
  if (optopt > ' ' && optopt < 0x7f &&
      !(optind > 0 && optind <= argc && strncmp(argv[optind - 1], "--", 2) == 0))
    return refuse_words(
        name, "not an option, or nothing behind it:", (const char[]){'-', (char)optopt, '\0'});
  return refuse_words(name, "not an option, or nothing behind it:",
                      optind > 0 && optind <= argc ? argv[optind - 1] : NULL);
}

static int run_command_line(int argc, char **argv) {
  if (argc < 2) {
    print_help(stderr);
    return EXIT_USAGE;
  }
  if (strcmp(argv[1], "help") == 0 || strcmp(argv[1], "--help") == 0 ||
      strcmp(argv[1], "-h") == 0) {
    print_help(stdout);
    return EXIT_OK;
  }
  if (strcmp(argv[1], "--version") == 0) {
    printf("prof %s\n", prof_version());
    return EXIT_OK;
  }
  const bool is_table = strcmp(argv[1], "table") == 0;
  /* run takes its words itself: --help may be the program's. */
  if (strcmp(argv[1], "run") == 0) return command_run(argc - 1, argv + 1);
  if (strcmp(argv[1], "run-dual") == 0) return run_dual(argc - 1, argv + 1);
  if (strcmp(argv[1], "run-with") == 0) return run_tool_compose(argc - 1, argv + 1);
  if (strcmp(argv[1], "run-rocprof") == 0) return run_rocprof(argc - 1, argv + 1);
  if (strcmp(argv[1], "run-peaks") == 0) return run_peaks(argc - 1, argv + 1);
  if (strcmp(argv[1], "run-status") == 0) return run_status(argc - 1, argv + 1);
  if (strcmp(argv[1], "run-status-of") == 0) return run_status_of(argc - 1, argv + 1);
  for (int i = 2; i < argc; i++) {
    if (strcmp(argv[i], "--help") != 0 && !(is_table && strcmp(argv[i], "-h") == 0)) continue;
    if (is_table)
      print_table_help(stdout);
    else
      print_help(stdout);
    return EXIT_OK;
  }
  for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
    if (strcmp(argv[1], commands[i].name) == 0)
      return commands[i].run_command_line(argc - 1, argv + 1);
  say("prof: no such command: %s; see prof help", argv[1]);
  return EXIT_USAGE;
}

/* A capture that is large, or that is being written, is mapped. If another process makes the file
   shorter meanwhile, its last pages are gone, and the kernel sends SIGBUS. It also does so if the
   loader meets a library that is cut off. The library takes no handlers; the command may. */
static void on_lost_page(int number) {
  (void)number;
  (void)!write(STDERR_FILENO, lost_pages, strlen(lost_pages));
  _exit(EXIT_FAILED);
}

/* No file of ours may get the number of a stream that is closed: the stream's text would go into
   it. Such a stream still refuses reads and writes, and is closed in programs that we start. */
static void occupy_closed_streams(void) {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
    if (fcntl(fd, F_GETFD) < 0)
      (void)!open("/dev/null", (fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) | O_CLOEXEC);
}

/* What could not be printed was not done. */
int main(int argc, char **argv) {
  occupy_closed_streams();
  const struct sigaction action = {.sa_handler = on_lost_page};
  sigaction(SIGBUS, &action, NULL);
  opterr = 0; /* getopt would print the words as they are */
  const int status = run_command_line(argc, argv);
  if (fflush(stdout) == 0 && !ferror(stdout)) return status;
  perror("prof: cannot write the output");
  return EXIT_FAILED;
}
