/* prof run [OPTION...] [--] WORKLOAD [WORD...]: a program, and tools around it. See tools/run. */
#define _GNU_SOURCE
#include "../run/internal.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../run/output.h"
#include "../run/sampler.h"
#include "commands.h"
#include "shared_options.h"

enum {
  OPTION_CONTEXT = 256,
  OPTION_CONFIG,
  OPTION_LIST,
  OPTION_DRY_RUN,
  OPTION_MEMORY,
  OPTION_DEVICES,
  OPTION_SAMPLE,
  OPTION_PYTHON,
  OPTION_SORT,
  OPTION_PACK,
  OPTION_FOR_PYTHON, /* passed on to Python */
  OPTION_INTERPRETER,
};

typedef struct run_words_parsed {
  run_request request;
  unsigned count; /* of runs */
  bool is_dry, is_list, is_help;
  const char *module; /* -m MODULE, which is the program */
} run_words_parsed;

/* Reads --tools-config first, at any place: the names of tools depend on it. */
static void read_configs(int argc, char **argv) {
  for (int c; (c = command_option_peek(&command_run, argc, argv)) != -1 && c != 'm';)
    if (c == OPTION_CONFIG) run_tools_read(optarg);
  optind = 0;
}

static bool parse_count(const char *text, unsigned *to) {
  char *end;
  const long value = strtol(text, &end, 10);
  *to = (unsigned)value;
  return *text >= '0' && *text <= '9' && !*end && value >= 1 && value <= 1000000;
}

static int refuse_word(const char *text, const char *word) {
  refuse_words("run", text, word);
  return RUN_FAILED;
}

static int parse_output(run_request *r, const char *pattern) {
  if (!*pattern) return refuse_word("--output: the path is empty", NULL);
  if (*pattern == '-') pattern = run_text("./%s", pattern); /* other commands take the path, too */
  const char *const why = run_trace_file_refusal(pattern);
  if (why) return refuse_word(why, NULL);
  r->has_folder = !run_trace_file_is(pattern);
  r->file = r->has_folder ? NULL : run_trace_file_of_rank(pattern);
  r->folder = r->has_folder ? run_output_of_rank(run_output_folder(pattern), pattern) : ".";
  return EXIT_OK;
}

/* "--NAME" or "--NAME=VALUE" */
static const char *as_word(const char *name) {
  return optarg ? run_text("--%s=%s", name, optarg) : run_text("--%s", name);
}

/* An option of the tool prof. name: the long one. */
static int parse_prof_option(run_request *r, int c, const char *name) {
  uint64_t interval_ns;
  if (!r->prof_option) r->prof_option = run_text("--%s", name);
  switch (c) {
    case 'l':
      if (strcmp(optarg, "1") != 0 && strcmp(optarg, "2") != 0)
        return refuse_word("--level is 1 or 2, not", optarg);
      r->level = (unsigned)(*optarg - '0');
      break;
    case OPTION_MEMORY:
      r->has_memory = true;
      break;
    case OPTION_PACK:
      r->is_packed = true;
      break;
    case OPTION_DEVICES:
      r->has_devices = true;
      break;
    case OPTION_SAMPLE:
      if (!run_sampling_reads(optarg, &interval_ns))
        return refuse_word("--sample is a number of seconds from 0.001 to 1e9, not", optarg);
      r->sample = optarg;
      break;
    case OPTION_PYTHON:
      if (!optarg) optarg = (char *)"own";
      if (strcmp(optarg, "own") != 0 && strcmp(optarg, "all") != 0)
        return refuse_word("--python=own or --python=all, not", optarg);
      run_words_add(&r->python_options, as_word(name));
      break;
    case OPTION_FOR_PYTHON:
      if (optarg && !*optarg) return refuse_word(run_text("--%s: the name is empty", name), NULL);
      run_words_add(&r->python_options, as_word(name));
      break;
    default:
      run_words_add(&r->table_options, as_word(name));
  }
  return EXIT_OK;
}

static int parse_option(run_words_parsed *w, int c) {
  run_request *const r = &w->request;
  switch (c) {
    case 't':
      run_stack_add(&r->stack, optarg);
      return EXIT_OK;
    case 's':
      run_stack_read_file(&r->stack, optarg);
      return EXIT_OK;
    case OPTION_CONTEXT:
      run_stack_read(&r->stack, optarg, "--additional-context");
      return EXIT_OK;
    case OPTION_CONFIG:
      return EXIT_OK;
    case OPTION_INTERPRETER:
      run_words_add(&r->interpreter, optarg);
      return EXIT_OK;
    case OPTION_LIST:
      w->is_list = true;
      return EXIT_OK;
    case OPTION_DRY_RUN:
      w->is_dry = true;
      return EXIT_OK;
    case 'o':
      return parse_output(r, optarg);
    case 'n':
      if (parse_count(optarg, &w->count)) return EXIT_OK;
      return refuse_word("--repeat is a number from 1 to 1000000, not", optarg);
    case 'q':
      r->is_quiet = true;
      return EXIT_OK;
    case 'h':
      w->is_help = true;
      return EXIT_OK;
    case '?':
      return RUN_FAILED;
    default:
      return parse_prof_option(r, c, command_option_found()->name);
  }
}

/* Captures that are not kept are not packed, either. */
static int check_pack(const run_request *r) {
  if (!r->is_packed) return EXIT_OK;
  if (!r->has_folder && !r->file && !r->sample)
    return refuse_word("--pack is for captures that are kept: give -o DIR or -o FILE.prof", NULL);
  if (r->file && !run_trace_file_is_capture(r->file))
    return refuse_word("--pack is for captures: give -o FILE.prof, not", r->file);
  const char *const why = run_pack_refusal();
  return why ? refuse_word(why, NULL) : EXIT_OK;
}

static int check_words(const run_words_parsed *w) {
  const run_request *const r = &w->request;
  bool has_prof = false;
  for (size_t i = 0; i < r->stack.count; i++)
    has_prof |= (r->stack.tools[i].parts & RUN_PART_PROF) != 0;
  if (!has_prof && r->prof_option)
    return refuse_word("the stack has no tool prof (--tool prof), so there is no use for",
                       r->prof_option);
  if (!has_prof && r->file)
    return refuse_word(
        "the stack has no tool prof (--tool prof), which alone writes a file; -o DIR is "
        "for all tools, not",
        r->file);
  if (w->count > 1 && r->file)
    return refuse_word("--repeat needs a folder, -o DIR: each run would write over the file",
                       r->file);
  if (check_pack(r) != EXIT_OK) return RUN_FAILED;
  run_words table = {0};
  run_words_add(&table, "table");
  run_words_add_all(&table, &r->table_options);
  const int status = check_table_options("run", (int)table.count, table.items);
  return status == EXIT_OK ? EXIT_OK : RUN_FAILED;
}

static int execute_run(int argc, char **argv) {
  run_words_parsed w = {.request = {.folder = ".", .level = 1}, .count = 1};
  run_request *const r = &w.request;
  double seconds;
  read_configs(argc, argv);
  /* -m MODULE is the program, as in Python: it ends the options */
  for (int c; (c = command_option_next(&command_run, argc, argv)) != -1;) {
    if (c == 'm') {
      w.module = optarg;
      break;
    }
    const int status = parse_option(&w, c);
    if (status != EXIT_OK) return status;
    if (w.is_help) {
      command_help_print(stdout, &command_run);
      return EXIT_OK;
    }
  }
  if (w.module) run_words_add(&r->workload, "-m");
  if (w.module) run_words_add(&r->workload, w.module);
  for (int i = optind; i < argc; i++) run_words_add(&r->workload, argv[i]);
  if (w.is_list && r->workload.count > 0)
    return refuse_word("--list runs no program, so there is no use for", r->workload.items[0]);
  if (w.is_list) {
    run_tool_names_list();
    return EXIT_OK;
  }
  if (r->workload.count == 0) return refuse_word("needs a program to run", NULL);
  if (r->stack.count == 0) run_stack_add(&r->stack, "prof");
  const int status = check_words(&w);
  if (status != EXIT_OK) return status;
  if (w.is_dry && w.count > 1 && r->has_folder) /* the first run's */
    r->folder = run_output_next_folder(r->folder, "run-1");
  if (w.is_dry) return run_stack_print(r);
  return w.count == 1 ? run_stack_execute(r, &seconds) : run_repeat(r, w.count);
}

static const command_option options_of_run[] = {
    {"tool", 't', "NAME",
     .help = "a tool around the program; may be repeated: the first is the innermost"},
    {"stack", 's', "FILE",
     .help = "tools by a JSON file: {\"tools\": [{\"name\": N, \"cmd\": C, \"env_vars\": {...}}]}; "
             "also "
             "--tools, --additional-context-file"},
    {"tools", 0, "FILE", .help = "", .id = 's', .is_hidden = true},
    {"additional-context-file", 0, "FILE", .help = "", .id = 's', .is_hidden = true},
    {"interpreter", 0, "WORD", .help = "", .id = OPTION_INTERPRETER, .is_hidden = true},
    {"additional-context", 0, "TEXT", .help = "the same as text; JSON, or a Python literal",
     .id = OPTION_CONTEXT},
    {"tools-config", 0, "FILE", .help = "adds or replaces tools: madengine's tools.json",
     .id = OPTION_CONFIG},
    {"list", 0, NULL, .help = "each tool, what it needs and whether it can work here",
     .id = OPTION_LIST},
    {"dry-run", 0, NULL, .help = "prints what would run, and what prevents it",
     .id = OPTION_DRY_RUN},
    {"output", 'o', "PATH",
     .help = "a folder for files, a log and a summary; or a file: what the tool prof has "
             "recorded, in the format of its ending, as prof dump has them. Other processes, and "
             "ranks, have the pid or the rank in front of the ending: FILE.PID.json, "
             "FILE-RANK.json. In both %p is the pid, %r the rank, %h the host"},
    {"repeat", 'n', "N",
     .help =
         "runs it N times, and prints one table of all; with -o DIR each has a folder DIR/run-1, "
         "run-2, ..."},
    {"quiet", 'q', NULL, .help = "no table and no summary"},
    {"module", 'm', "MODULE", .help = "as python -m MODULE; ends the options"},
    {"help", 'h', NULL, .help = "this text"},
    {"level", 'l', "N", .help = "1 operators, 2 also the runtime (default 1)",
     .group = "Of the tool prof"},
    {"memory", 0, NULL, .help = "malloc() and free(), too; with --torch what its allocators report",
     .id = OPTION_MEMORY},
    {"profile-memory", 0, NULL, .help = "", .id = OPTION_MEMORY, .is_hidden = true},
    {"devices", 0, NULL, .help = "kernels and copies of OpenCL, CUDA and HIP, tasks of ITT, too",
     .id = OPTION_DEVICES},
    {"sample", 0, "SECONDS",
     .help = "power, memory and other meters of devices and the host, as counters",
     .id = OPTION_SAMPLE},
    {"pack", 0, NULL,
     .help = "packs the captures that -o keeps, after the program's end: see prof dump --help",
     .id = OPTION_PACK},
    {"rows", 'r', "N", .help = "of the table: see prof table --help, as for the next four"},
    {"by", 'b', "GROUPS", .help = "what is one row", .choices = group_choices, .is_list = true},
    {"sort", 0, "BY", .help = "the order of rows", .id = OPTION_SORT, .choices = sort_choices},
    {"category", 'c', "C", .help = "only scopes of this category"},
    {"stack-frames", 'f', "N", .help = "by stack: the innermost so many frames"},
    {"python", 0, "all", .help = "each function; all: of the standard library, too",
     .id = OPTION_PYTHON, .group = "Of the tool prof, for programs in Python", .is_optional = true},
    {"python-include", 0, "MODULE", .help = "only functions of this module; may be repeated",
     .id = OPTION_FOR_PYTHON},
    {"python-exclude", 0, "MODULE", .help = "no functions of this module; may be repeated",
     .id = OPTION_FOR_PYTHON},
    {"python-no-imports", 0, NULL, .help = "no imports, and no code of modules that they run",
     .id = OPTION_FOR_PYTHON},
    {"python-c", 0, NULL, .help = "functions of C that they call, too", .id = OPTION_FOR_PYTHON},
    {"torch", 0, NULL, .help = "PyTorch's operators; the next five have more, and imply --torch",
     .id = OPTION_FOR_PYTHON},
    {"record-shapes", 0, NULL, .help = "with the shapes of inputs", .id = OPTION_FOR_PYTHON},
    {"with-flops", 0, NULL, .help = "a second table: floating point operations",
     .id = OPTION_FOR_PYTHON},
    {"with-modules", 0, NULL, .help = "a scope around each call of an nn.Module",
     .id = OPTION_FOR_PYTHON},
    {"with-stack", 0, NULL, .help = "with the functions of Python around them",
     .id = OPTION_FOR_PYTHON},
    {"replace-torch-profiler", 0, NULL, .help = "the script's own torch.profiler is prof's",
     .id = OPTION_FOR_PYTHON},
    {"trace", 0, "MODULE", .help = "this module's functions as operators", .id = OPTION_FOR_PYTHON},
    {0}};

static const command_example examples[] = {
    {"prof run -o trace.prof sleep 0.1", "records a program into one file"},
    {"prof run --list", "the tools that can be put around a program"},
    {0}};

const prof_command command_run = {
    .name = "run",
    .summary = "runs a program, records it, or puts tools around it",
    .words = "[OPTION...] [--] PROGRAM [WORD...]",
    .about =
        "Runs the program and ends with its exit status. Without --tool, prof records the "
        "program and its children, and prints a table at the end. SCRIPT.py, -m MODULE and "
        "python3 SCRIPT.py are recorded by prof's Python package.",
    .statuses =
        "Exit status: the program's, or 128 + the signal that ended it. 125: prof run "
        "was given wrong words or could not start the program. 126: it cannot be "
        "executed. 127: it does not exist.",
    .options = options_of_run,
    .examples = examples,
    .execute = execute_run,
    .stops_at_word = true};
