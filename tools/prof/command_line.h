/* The command line of prof. One table describes each command: a file NAME.c defines
   `const prof_command command_NAME`, and commands.h lists it. getopt_long()'s arrays, --help, man
   pages and completion are made from this table. */
#ifndef PROF_TOOLS_COMMAND_LINE_H
#define PROF_TOOLS_COMMAND_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum {
  EXIT_OK = 0,
  EXIT_FAILED = 1, /* it could not be done */
  EXIT_USAGE = 2,  /* wrong words */
  EXIT_NO = 3      /* done, and the answer is no: nothing matched, a limit was passed */
};

typedef struct command_choice {
  const char *word;
  uint32_t value;
} command_choice; /* an array ends with an empty one */

/* An array of options ends with an empty one. */
typedef struct command_option {
  const char *name;     /* the long name, without dashes */
  char letter;          /* the short name, or 0 */
  const char *argument; /* its name in help, or NULL: the option takes none */
  const char *help;
  int id;                            /* what command_option_next() returns; 0: the letter */
  const char *group;                 /* heading of this option and the next ones in help */
  const struct command_option *more; /* options of another array at this place; no name then */
  bool is_optional;                  /* the argument may be missing: --name or --name=ARGUMENT */
  bool is_hidden;                    /* another name of an option; not in help */
  const command_choice *choices;     /* words for completion, or NULL */
  bool is_list;                      /* of them a comma list */
} command_option;

/* An array of examples ends with an empty one. */
typedef struct command_example {
  const char *line, *text;
} command_example;

typedef struct prof_command {
  const char *name;
  const char *summary;  /* one line, without a full stop */
  const char *words;    /* what stands behind the name in its usage */
  const char *about;    /* paragraphs before the options; '\n' ends a line */
  const char *notes;    /* paragraphs behind the options, or NULL */
  const char *statuses; /* exit statuses, or NULL: those of most commands */
  const command_option *options;
  const command_example *examples;
  /* Any option in argv[1] and later is the command's own. Returns the exit status. */
  int (*execute)(int argc, char **argv);
  bool reads_captures; /* takes --strict */
  bool stops_at_word;  /* the first word that is no option, and all behind it, is not prof's */
} prof_command;

/* ---- command_line.c ---- */

/* In the order of help. count_out gets their number. */
const prof_command *const *command_list(size_t *count_out);

/* NULL: there is none. */
const prof_command *command_find(const char *name);

/* The name of the command that is most like the word, or NULL. */
const char *command_nearest(const char *word);

/* All options of a command, with those of `more` and --help; returns their number. */
enum { COMMAND_OPTIONS_MAX = 96 };
size_t command_options_list(const prof_command *command,
                            const command_option *to[COMMAND_OPTIONS_MAX]);

/* The next option as getopt_long() finds it: its id, -1 at the end, or '?' after it has said what
   is wrong. optarg and optind are getopt's. */
int command_option_next(const prof_command *command, int argc, char **argv);

/* Was --strict given? */
bool command_is_strict(void);

/* The same, and says nothing of wrong words. */
int command_option_peek(const prof_command *command, int argc, char **argv);

/* The option that was found last. */
const command_option *command_option_found(void);

/* Is `word` near enough to `other` to be a mistyped form of it? Smaller is nearer; SIZE_MAX: no. */
size_t command_word_distance(const char *word, const char *other);

/* ---- help.c ---- */

/* At most 80 columns. */
void command_help_print(FILE *to, const prof_command *command);

/* What FILE is in all usages. */
#define COMMAND_FILE_WORDS                                                                        \
  "FILE is a capture (*.prof). prof run -o FILE.prof writes one, and so does a program that was " \
  "started with PROF_LEVEL=1 and PROF_OUTPUT=FILE.prof. It may also be a trace or a database "    \
  "that prof import reads, a folder of captures, or the number of a process that records into "   \
  "a file."

/* All commands, a line each. */
void command_overview_print(FILE *to);

/* ---- command_values.c: the arguments of options ---- */

/* Each returns EXIT_OK, or EXIT_USAGE after it has said what is wrong. command: the name for
   messages; option: "--rows". */

int command_read_choice(const char *command, const char *option, const char *text,
                        const command_choice *choices, uint32_t *to);

/* A comma list. Adds the bits of each word. */
int command_read_choices(const char *command, const char *option, const char *text,
                         const command_choice *choices, uint32_t *to);

int command_read_number(const char *command, const char *option, const char *text, uint64_t least,
                        uint64_t most, uint64_t *to);

/* The width of a text. Begins as zeros. */
typedef struct command_width {
  uint32_t columns; /* 0: any */
  bool is_given;
} command_width;

/* --width: 0, or a number from `least` to `most`. */
int command_read_width(const char *command, const char *text, uint64_t least, uint64_t most,
                       command_width *to);

/* The columns that were given, or those of the terminal at the standard output; 0: any. */
uint32_t command_width_columns(const command_width *width);

/* A number from 1, or all: UINT64_MAX. */
int command_read_limit(const char *command, const char *option, const char *text, uint64_t *to);

/* --rows: the same, or -1. All: UINT32_MAX. */
int command_read_rows(const char *command, const char *text, uint32_t *to);

/* 4096, 64k, 256M, 1.5G, 2GiB: powers of 1024. */
int command_read_size(const char *command, const char *option, const char *text, uint64_t *bytes);

/* 100ns, 10us, 2.5ms, 1.5s, 2min, 1h; a plain number is seconds. */
int command_read_time(const char *command, const char *option, const char *text, uint64_t *ns);

#endif
