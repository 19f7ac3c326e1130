/* prof: reads captures, finished, being written, or left by a process that died. See commands.h. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../../src/base/worker.h"
#include "../run/internal.h"
#include "commands.h"
#include "inputs.h"

/* libprof.so looks for it: what PROF_LEVEL and PROF_MEMORY ask for is not for this process. */
extern const char prof_i_is_command;
__attribute__((visibility("default"))) const char prof_i_is_command = 1;

static const char *lost_pages =
    "prof: a page of the capture is gone: the file became shorter while it was read, or its disk "
    "failed\n";

void set_lost_page_message(const char *text) { lost_pages = text; }

int refuse_words(const char *name, const char *text, const char *word) {
  say("prof %s: %s%s%s; see prof %s --help", name, text, word ? " " : "", word ? word : "", name);
  return EXIT_USAGE;
}

int refuse_command(const char *word) {
  const char *const nearest = command_nearest(word);
  if (nearest)
    say("prof: no such command: %s; did you mean prof %s? see prof help", word, nearest);
  else
    say("prof: %s: %s; see prof help", word[0] == '-' ? "not an option" : "no such command", word);
  return EXIT_USAGE;
}

/* Do the words ask for help? Behind "--" they are files. */
static bool has_help_word(int argc, char **argv) {
  for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
    if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) return true;
  return false;
}

static int run_command_line(int argc, char **argv) {
  if (argc < 2) {
    command_overview_print(stderr);
    return EXIT_USAGE;
  }
  if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
    return command_help.execute(argc - 1, argv + 1);
  if (strcmp(argv[1], "--version") == 0) {
    printf("prof %s\n", prof_version());
    return EXIT_OK;
  }
  if (strcmp(argv[1], "run-dual") == 0) return run_dual(argc - 1, argv + 1);
  if (strcmp(argv[1], "run-with") == 0) return run_with(argc - 1, argv + 1);
  if (strcmp(argv[1], "run-rocprof") == 0) return run_rocprof(argc - 1, argv + 1);
  if (strcmp(argv[1], "run-peaks") == 0) return run_peaks(argc - 1, argv + 1);
  if (strcmp(argv[1], "run-status") == 0) return run_status(argc - 1, argv + 1);
  if (strcmp(argv[1], "run-status-of") == 0) return run_status_of(argc - 1, argv + 1);
  const prof_command *const command = command_find(argv[1]);
  if (!command) return refuse_command(argv[1]);
  /* run takes its words itself: --help may be the program's. */
  if (!command->stops_at_word && has_help_word(argc - 1, argv + 1)) {
    command_help_print(stdout, command);
    return EXIT_OK;
  }
  const int status = command->execute(argc - 1, argv + 1);
  return status == EXIT_OK && command_is_strict() && input_was_damaged() ? EXIT_FAILED : status;
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
  prof_i_worker_allow_threads();
  opterr = 0; /* getopt would print the words as they are */
  const int status = run_command_line(argc, argv);
  if (fflush(stdout) == 0 && !ferror(stdout)) return status;
  perror("prof: cannot write the output");
  return EXIT_FAILED;
}
