/* The prof command: NAME.c is `prof NAME`, thin over src/analysis, src/report and src/export. Exit
   status: 0 done, 1 it could not be done (said on stderr), 2 the words are wrong, 3 done and the
   answer is no. */
#ifndef PROF_TOOLS_COMMANDS_H
#define PROF_TOOLS_COMMANDS_H

#include <prof/trace.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "command_line.h"

/* Each is command_NAME, of NAME.c. In the order of help. */
#define PROF_COMMANDS(X) \
  X(run)                 \
  X(info)                \
  X(table)               \
  X(events)              \
  X(tree)                \
  X(top)                 \
  X(memory)              \
  X(diff)                \
  X(flame)               \
  X(view)                \
  X(merge)               \
  X(report)              \
  X(dump)                \
  X(import)              \
  X(level)               \
  X(doctor)              \
  X(recover)             \
  X(completion)          \
  X(help)

#define PROF_COMMAND_DECLARE(name) extern const prof_command command_##name;
PROF_COMMANDS(PROF_COMMAND_DECLARE)
#undef PROF_COMMAND_DECLARE

/* Checks options of `prof table` that another command takes: argv[0] is not looked at. Prints what
   is wrong. */
int check_table_options(const char *command, int argc, char **argv);

/* ---- inputs.c ---- */

/* Opens what the word names (inputs.h), or says on stderr why not and what to do. NULL then. */
prof_trace *open_capture(const char *word);
/* The same for a command that will write `output`, or NULL. Refuses an output that is the capture
   itself. Announces the file to the progress line. */
prof_trace *open_capture_for(const char *word, const char *output);

/* The same of a capture alone. */
prof_trace *open_capture_file(const char *path);
/* The same, and says what is damaged. */
prof_trace *open_capture_alone(const char *path);

/* ---- import.c ---- */

/* Makes a capture of a trace or a database, and says what it has left out. False, said on stderr:
   nothing was written. Sets *is_cut_out if the trace is cut off or damaged. */
bool import_to_read(const char *from, const char *to, bool *is_cut_out);

/* ---- main.c ---- */

/* Where a page of a mapped file is gone (SIGBUS) the command ends with this line, which stays the
   caller's; before, with one about captures. */
void set_lost_page_message(const char *text);

/* "prof NAME: TEXT", and how to get help. Returns EXIT_USAGE. */
int refuse_words(const char *name, const char *text, const char *word);

/* "prof: no such command", and the one that is meant. Returns EXIT_USAGE. */
int refuse_command(const char *word);

/* ---- library_folder.c ---- */

/* The folder of libprof.so and the libraries beside it, without a slash at its end, or NULL. */
const char *library_folder(void);

/* ---- print.c ---- */

/* Prints text from an untrusted source. Controls, marks that turn the direction of writing and
   broken UTF-8 are spelt out byte by byte. So none of them reaches the terminal as a command. */
void print_text(FILE *to, const char *text, size_t bytes);

/* Between two calls: the beginning of a character. Begins as zeros. */
typedef struct data_printer {
  char tail[4];
  size_t tail_bytes;
} data_printer;

/* Prints CSV or JSON, in pieces that end in a line's end at last. A terminal gets it as by
   print_text(), but with line ends. Anything else gets the bytes. */
void print_data(data_printer *p, const char *text, size_t bytes);

/* Bytes of the well-formed UTF-8 character at the front, or 0. */
size_t utf8_character(const unsigned char *at, size_t left, unsigned *code_out);

/* Of a noun behind a number: "1 scope", "2 scopes". */
static inline const char *plural_ending(uint64_t count) { return count == 1 ? "" : "s"; }

/* What open scopes last until. */
const char *flush_words(const prof_trace *trace);

/* Whether a terminal shows UTF-8, by LC_ALL, LC_CTYPE and LANG. */
bool locale_is_utf8(void);

/* Columns of the terminal at the descriptor, or 0. */
unsigned terminal_columns(int fd);

/* The same of its lines. */
unsigned terminal_lines(int fd);

/* Prints lines on stdout. One with more columns is broken between words, and goes on behind so many
   blanks. */
void print_folded(const char *text, unsigned columns, unsigned indent);

/* One line on stderr, by print_text(). */
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* "prof NAME: STATUS: the library's last error", on stderr. Returns EXIT_FAILED. */
int say_status(const char *name, int status);

/* ---- outputs.c ---- */

/* If *output is a symbolic link, replaces it by the path of the link's target. The path is valid
   until the next call. EXIT_FAILED, with a message: the link cannot be followed. */
int output_follow_link(const char *command, const char **output);

/* Expands %% in a path of a file of several captures. The path is valid until the next call.
   EXIT_USAGE, with a message: it has %p, %h or %r, which have no single value there. */
int output_expand_for_several(const char *command, const char **output);

/* From now on, a signal that ends the command, for example SIGINT, removes unfinished files.
   output_follow_link() calls this function. */
void output_clean_up_if_killed(void);

/* Sets the temporary capture of an import on the fly. A signal removes it. NULL: none. */
void output_set_passing(const char *path);

/* Whether both exist and are the same file. The input may be a part of a merged capture. */
bool output_is_input(const char *output, const char *input);

/* Formats that dump_columns() writes, not the library. No prof_format has these numbers.
   src/export/exporter.h has the endings of the others. */
enum { FORMAT_PARQUET = 1u << 16, FORMAT_ARROW };

/* Reads the name of a format as a prof_format. with_columns: also accepts the formats above.
   EXIT_USAGE, with a message: there is no such name. */
int choose_format(const char *command, const char *word, bool with_columns, uint32_t *to);

/* The name of FORMAT_PARQUET or FORMAT_ARROW. NULL: it is neither. */
const char *format_of_columns(uint32_t format);

/* Whether the path has the ending of one of them. If so, *to is its number. */
bool format_of_columns_by_path(const char *path, uint32_t *to);

/* All endings of the library's formats: ".json, .json.gz, ...". */
const char *format_endings_text(void);

/* ---- dump_lacks.c ---- */

struct prof_i_export_lacks;
struct prof_i_export_facts;

/* Says what of a capture is not in a written file, because the format cannot hold it. has_filter: a
   filter has also left out events, so no counts are known. */
void dump_say_lacks(const char *output, uint32_t format, const struct prof_i_export_lacks *lacks,
                    const struct prof_i_export_facts *facts, bool has_filter);

/* ---- dump_columns.c ---- */

/* prof dump to Parquet and Arrow: executes Python, because pyarrow writes these files. */

typedef struct columns_request {
  const char *input;  /* a capture */
  const char *to;     /* the file to write */
  const char *shown;  /* its name in messages */
  const char *format; /* "parquet", "arrow" */
  uint64_t from_ns, to_ns;
  const struct filter_options *filter;
  const struct merge_files *merged; /* placed; NULL: the input is one capture */
} columns_request;

/* Writes the file. Returns an exit status. EXIT_FAILED: the reason was said. EXIT_NO: no event
   passed the filter. */
int dump_columns(const columns_request *request);

/* ---- progress.c ---- */

/* A progress line on the terminal for work of more than two seconds: percent done, and the
   estimated time left. Nothing is written to a pipe, a file or a dumb terminal, or if CI is set. */

/* passes: about how often the command reads a capture from begin to end. Call it before the first
   progress_expect(). */
void progress_begin(const char *command, unsigned passes);
bool progress_has_begun(void);
/* Whether the line is shown, or will be, because a file was announced. */
bool progress_has_line(void);

/* Announces that this file will be read. If it is a trace, it will be imported first. */
void progress_expect(const char *path);

/* Bytes counted so far. */
uint64_t progress_bytes(void);

/* A trace that was announced has become this capture. bytes_before: progress_bytes() at the begin
   of the import. */
void progress_imported(const char *trace, const char *capture, uint64_t bytes_before);

/* Removes the line. Call it before a result is printed; it is also called at exit. */
void progress_end(void);

/* Removes the line. For a signal handler that ends the process. */
void progress_killed(void);

/* Enclose messages to the terminal in these calls: the line is removed and drawn again. */
void progress_pause(void);
void progress_resume(void);

/* ---- view_server.c ---- */

/* The server of `prof view`: one page and one trace on 127.0.0.1, over HTTP. It answers requests of
   this machine's browser alone, and ends after one whole download. */

enum { VIEW_TOKEN_BYTES = 33 };

typedef struct view_site {
  char token[VIEW_TOKEN_BYTES]; /* hexadecimal; the first part of each path */
  char nonce[VIEW_TOKEN_BYTES]; /* of the page's own script and style */
  const char *page;
  size_t page_bytes;
  /* Writes the trace to the descriptor; returns an exit status, after it has said what is wrong.
     It runs in a process of its own. */
  int (*write_trace)(const void *context, int to);
  const void *context;
} view_site;

/* A socket that listens on a free port of 127.0.0.1, or -1: errno says why. */
int view_listen(uint16_t *port_out);

/* Returns after one download, with an exit status. bytes_out: the size of the trace. */
int view_serve(int listener, const view_site *site, uint64_t *bytes_out);

#endif
