/* prof run [OPTION...] [--] WORKLOAD [WORD...]: a program, and tools around it. See tools/run. */
#define _GNU_SOURCE
#include "../run/run.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../run/check.h"
#include "../run/output.h"
#include "../run/repeat.h"
#include "commands.h"

static const char help[] =
    "usage: prof run [OPTION...] [--] PROGRAM [WORD...]\n"
    "\n"
    "Runs the program and ends with its exit status. Without --tool, prof records the program and\n"
    "its children, and prints a table at the end. SCRIPT.py or -m MODULE runs in Python.\n"
    "\n"
    "  -t, --tool NAME        a tool around the program; may be repeated: the first is the "
    "innermost\n"
    "  -s, --stack FILE       tools by a JSON file: {\"tools\": [{\"name\": N, \"cmd\": C,\n"
    "                         \"env_vars\": {...}}]}; also --tools, --additional-context-file\n"
    "      --additional-context TEXT   the same as text; JSON, or a Python literal\n"
    "      --tools-config FILE         adds or replaces tools: madengine's tools.json\n"
    "      --list             each tool, what it needs and whether it can work here\n"
    "      --dry-run          prints what would run\n"
    "  -o, --output DIR       where files go; %p pid, %r rank, %h host; a log and a summary, too\n"
    "  -l, --level N          that prof records at: 1 operators, 2 also the runtime (default 1)\n"
    "      --memory           prof records malloc() and free(), too\n"
    "  -n, --repeat N         runs it N times; with -o DIR each has a folder DIR/run-1, run-2, "
    "...\n"
    "  -q, --quiet            no table and no summary\n"
    "\n"
    "Exit status: the program's, or 128 + the signal that ended it; 125 if it was not started, "
    "126\n"
    "if it cannot be executed, 127 if it is not there.\n";

enum { OPTION_CONTEXT = 256, OPTION_CONFIG, OPTION_LIST, OPTION_DRY_RUN, OPTION_MEMORY };

static const struct option options[] = {{"tool", 1, 0, 't'},
                                        {"stack", 1, 0, 's'},
                                        {"tools", 1, 0, 's'},
                                        {"additional-context-file", 1, 0, 's'},
                                        {"additional-context", 1, 0, OPTION_CONTEXT},
                                        {"tools-config", 1, 0, OPTION_CONFIG},
                                        {"list", 0, 0, OPTION_LIST},
                                        {"dry-run", 0, 0, OPTION_DRY_RUN},
                                        {"output", 1, 0, 'o'},
                                        {"level", 1, 0, 'l'},
                                        {"memory", 0, 0, OPTION_MEMORY},
                                        {"repeat", 1, 0, 'n'},
                                        {"quiet", 0, 0, 'q'},
                                        {"help", 0, 0, 'h'},
                                        {0, 0, 0, 0}};

static void print_list(void) {
  size_t count;
  const run_tool *const tools = run_tools(&count);
  for (size_t i = 0; i < count; i++) {
    const char *const why = run_tool_why_not(&tools[i]);
    printf("%-24s %s\n", tools[i].name, tools[i].about ? tools[i].about : tools[i].cmd);
    if (why) printf("%-24s   cannot work here: %s\n", "", why);
  }
}

/* Reads --tools-config first, at any place: the names of tools depend on it. */
static void read_configs(int argc, char **argv) {
  for (int c; (c = getopt_long(argc, argv, "+t:s:o:l:n:mqh", options, NULL)) != -1;)
    if (c == OPTION_CONFIG) run_tools_read(optarg);
    else if (c == 'm') break;
  optind = 1;
}

static bool take_count(const char *text, unsigned *to) {
  char *end;
  const long value = strtol(text, &end, 10);
  *to = (unsigned)value;
  return *text && !*end && value >= 1 && value <= 1000000;
}

int command_run(int argc, char **argv) {
  run_request request = {.folder = ".", .level = 1};
  bool is_dry = false;
  unsigned count = 1;
  double seconds;
  read_configs(argc, argv);
  /* -m MODULE is the program, as in Python: it ends the options */
  int c;
  while ((c = getopt_long(argc, argv, "+t:s:o:l:n:mqh", options, NULL)) != -1 && c != 'm') {
    switch (c) {
      case 't': run_stack_add(&request.stack, optarg); break;
      case 's': run_stack_read_file(&request.stack, optarg); break;
      case OPTION_CONTEXT:
        run_stack_read(&request.stack, optarg, "--additional-context");
        break;
      case OPTION_CONFIG: break;
      case OPTION_LIST: print_list(); return EXIT_OK;
      case OPTION_DRY_RUN: is_dry = true; break;
      case 'o':
        request.folder = run_output_of_rank(run_output_name(optarg), optarg);
        request.has_folder = true;
        break;
      case 'l':
        if (strcmp(optarg, "1") != 0 && strcmp(optarg, "2") != 0)
          return bad_words("run", "--level is 1 or 2, not", optarg);
        request.level = (unsigned)(*optarg - '0');
        break;
      case 'n':
        if (!take_count(optarg, &count))
          return bad_words("run", "--repeat is 1 or more, not", optarg);
        break;
      case OPTION_MEMORY: request.has_memory = true; break;
      case 'q': request.is_quiet = true; break;
      case 'h': fputs(help, stdout); return EXIT_OK;
      default: return bad_option("run", argc, argv);
    }
  }
  const bool is_module = c == 'm';
  if (optind == argc)
    return bad_words("run", is_module ? "-m needs a module" : "needs a program to run", NULL);
  for (int i = optind - is_module; i < argc; i++) run_words_add(&request.workload, argv[i]);
  if (request.stack.count == 0) run_stack_add(&request.stack, "prof");
  if (is_dry) {
    run_print(&request);
    return EXIT_OK;
  }
  return count == 1 ? run_go(&request, &seconds) : run_repeat(&request, count);
}
