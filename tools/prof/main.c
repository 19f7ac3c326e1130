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
    {"table", command_table, "FILE [--by GROUPS] [--sort BY] [--rows N] [--level N] [--category C]",
     "totals by name, category, device, thread, shape"},
    {"dump", command_dump, "FILE -o OUT [--format chrome|raf|capture]",
     "for chrome://tracing and Perfetto; OUT.gz is compressed"},
    {"level", command_level, "PID|FILE N", "switches a process that records into a file: 0 off, 1 operators, 2 also the runtime"},
    {"recover", command_recover, "[DIR...] [--all] [-o OUTDIR] [--format F] [--keep N]",
     "what processes that died left in DIR, and what each was inside of; converts into OUTDIR;\n"
     "         removes all but the newest N, never one whose process runs, or may"},
};

static void print_help(FILE *to) {
  fputs("usage: prof COMMAND FILE ...\n\n", to);
  for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
    fprintf(to, "  prof %-7s %s\n         %s\n", commands[i].name, commands[i].words, commands[i].text);
  fputs(
      "  prof help | --version\n\n"
      "FILE is a capture (*.prof): one that a start with a path, or PROF_LEVEL and PROF_OUTPUT, put beside its output.\n"
      "GROUPS: name,category,device,thread,shape. BY: total, self, calls, mean, max, name. N rows, 100 if not said, or all.\n"
      "Exit status: 0 done, 1 it could not be done, 2 the words are wrong.\n",
      to);
}

int bad_words(const char *name, const char *text, const char *word) {
  fprintf(stderr, "prof %s: %s%s%s; see prof help\n", name, text, word ? " " : "", word ? word : "");
  return EXIT_USAGE;
}

/* Bytes of the character at the front that may be printed as it is, or 0. */
static size_t printable(const unsigned char *at, size_t left) {
  if (at[0] < 0x80) return at[0] >= 0x20 && at[0] != 0x7f;
  const size_t bytes = at[0] >= 0xc2 && at[0] <= 0xdf   ? 2
                       : at[0] >= 0xe1 && at[0] <= 0xef ? 3
                       : at[0] >= 0xf1 && at[0] <= 0xf3 ? 4
                                                        : 0;
  if (bytes == 0 || bytes > left) return 0;
  for (size_t i = 1; i < bytes; i++)
    if (at[i] < 0x80 || at[i] > 0xbf) return 0;
  const int is_c1 = at[0] == 0xc2 && at[1] < 0xa0, is_surrogate = at[0] == 0xed && at[1] > 0x9f;
  const int is_mark =
      at[0] == 0xe2 && ((at[1] == 0x80 && at[2] >= 0x8b && at[2] <= 0xae && !(at[2] >= 0x90 && at[2] <= 0xa7)) ||
                        (at[1] == 0x81 && at[2] >= 0xa6 && at[2] <= 0xa9));
  return is_c1 || is_surrogate || is_mark ? 0 : bytes;
}

void print_text(const char *text, size_t bytes) {
  for (size_t at = 0; at < bytes && text[at];) {
    const size_t taken = printable((const unsigned char *)text + at, bytes - at);
    if (taken) fwrite(text + at, 1, taken, stdout);
    else printf("\\x%02x", (unsigned char)text[at]);
    at += taken ? taken : 1;
  }
}

static const char *advice(int status) {
  switch (status) {
    case PROF_E_NOT_CAPTURE: return "; give the .prof file, not the trace made from it";
    case PROF_E_VERSION: return "; use the prof that comes with the program that wrote it";
    case PROF_E_PERMISSION: return "; captures belong to the user whose process wrote them";
    default: return "";
  }
}

prof_trace *open_capture(const char *path) {
  prof_trace *trace = NULL;
  const int status = prof_trace_open(path, &trace);
  if (status == PROF_OK) return trace;
  fprintf(stderr, "prof: cannot read '%s': %s", path, prof_status_text(status));
  if (prof_last_error()[0]) fprintf(stderr, " (%s)", prof_last_error());
  fprintf(stderr, "%s\n", advice(status));
  return NULL;
}

static int run(int argc, char **argv) {
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
  for (int i = 2; i < argc; i++) {
    if (strcmp(argv[i], "--help") != 0) continue;
    print_help(stdout);
    return EXIT_OK;
  }
  for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
    if (strcmp(argv[1], commands[i].name) == 0) return commands[i].run(argc - 1, argv + 1);
  fprintf(stderr, "prof: no such command: %s; see prof help\n", argv[1]);
  return EXIT_USAGE;
}

/* What could not be printed was not done. */
int main(int argc, char **argv) {
  const int status = run(argc, argv);
  if (fflush(stdout) == 0 && !ferror(stdout)) return status;
  perror("prof: cannot write the output");
  return EXIT_FAILED;
}
