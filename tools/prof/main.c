/* prof: reads captures, finished, being written, or left by a process that died. See commands.h. */
#include <stdio.h>
#include <string.h>

#include "commands.h"

static const struct {
  const char *name;
  int (*run)(int argc, char **argv);
  const char *words;
  const char *text;
} commands[] = {
    {"info", command_info, "FILE", "what the capture holds, what it lost, what was open"},
    {"table", command_table, "FILE [--by GROUPS] [--sort BY] [--rows N] [--level N] [--category C]", "totals by name, category, device, thread, shape"},
    {"dump", command_dump, "FILE -o OUT [--format chrome|raf|capture]", "for chrome://tracing and Perfetto; OUT.gz is compressed"},
};

static void print_help(FILE *to) {
  fputs("usage: prof COMMAND FILE ...\n\n", to);
  for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
    fprintf(to, "  prof %-6s %s\n         %s\n", commands[i].name, commands[i].words, commands[i].text);
  fputs("  prof help | --version\n\n"
        "FILE is a capture (*.prof): one that a start with a path, or PROF_LEVEL and PROF_OUTPUT, put beside its output.\n"
        "GROUPS: name,category,device,thread,shape. BY: total, self, calls, mean, max, name.\n",
        to);
}

int bad_words(const char *name, const char *text, const char *word) {
  fprintf(stderr, "prof %s: %s%s%s; see prof help\n", name, text, word ? " " : "", word ? word : "");
  return EXIT_USAGE;
}

prof_trace *open_capture(const char *path) {
  prof_trace *trace = NULL;
  const int status = prof_trace_open(path, &trace);
  if (status == PROF_OK) return trace;
  fprintf(stderr, "prof: cannot read '%s': %s", path, prof_status_text(status));
  if (prof_last_error()[0]) fprintf(stderr, " (%s)", prof_last_error());
  fputs(status == PROF_E_NOT_CAPTURE ? "; give the .prof file, not the trace made from it\n" : "\n", stderr);
  return NULL;
}

int main(int argc, char **argv) {
  if (argc < 2) {
    print_help(stderr);
    return EXIT_USAGE;
  }
  if (strcmp(argv[1], "help") == 0 || strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
    print_help(stdout);
    return EXIT_OK;
  }
  if (strcmp(argv[1], "--version") == 0) {
    printf("prof %s\n", prof_version());
    return EXIT_OK;
  }
  for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
    if (strcmp(argv[1], commands[i].name) == 0) return commands[i].run(argc - 1, argv + 1);
  return bad_words(argv[1], "no such command", NULL);
}
