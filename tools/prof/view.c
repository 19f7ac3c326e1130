/* prof view FILE opens a capture in the Perfetto UI of a browser. view_server.c hands the trace to
   a page on 127.0.0.1. That page hands it to the UI. The trace goes straight into the connection,
   so nothing is left on disk. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../src/base/text.h"
#include "../../src/export/merge.h"
#include "commands.h"
#include "inputs.h"

static const char default_ui[] = "https://ui.perfetto.dev";

typedef struct view_words {
  char **paths;
  int path_count;
  const char *ui;
  bool is_quiet; /* no browser is opened */
} view_words;

/* What is sent: a capture, several on one time line, or a file that viewers know, as it is. */
typedef struct view_source {
  merge_files list;
  prof_trace *trace; /* of a list of one */
  int file;          /* -1: none */
  bool is_packed;    /* gzip: the connection is a tunnel */
} view_source;

static bool is_viewer_file(const char *path) {
  static const char *const endings[] = {".json", ".json.gz", ".pftrace", ".pftrace.gz"};
  for (size_t i = 0; i < sizeof endings / sizeof *endings; i++)
    if (prof_i_path_ends_in(path, endings[i])) return true;
  return false;
}

/* ---- what is sent ---- */

/* The server knows already when nobody reads any more. */
static int fail_dump(int status, int to) {
  struct pollfd end = {.fd = to};
  if (poll(&end, 1, 0) > 0 && end.revents & POLLERR) return EXIT_FAILED;
  return say_status("view", status);
}

/* The other end may be gone: that is not worth a word, the server has one. */
static int copy_file(int from, int to) {
  static char data[1 << 18];
  if (lseek(from, 0, SEEK_SET) != 0) return EXIT_FAILED;
  for (;;) {
    const ssize_t got = read(from, data, sizeof data);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) say("prof view: cannot read the file: %s", strerror(errno));
    if (got <= 0) return got == 0 ? EXIT_OK : EXIT_FAILED;
    for (ssize_t at = 0; at < got;) {
      const ssize_t put = write(to, data + at, (size_t)(got - at));
      if (put < 0 && errno != EINTR) return EXIT_FAILED;
      if (put > 0) at += put;
    }
  }
}

static int write_trace(const void *context, int to) {
  const view_source *const source = context;
  if (source->file >= 0) return copy_file(source->file, to);
  char path[32];
  snprintf(path, sizeof path, "/dev/fd/%d", to);
  if (!source->trace) {
    const prof_i_merge_plan plan = {.format = PROF_FORMAT_PERFETTO, .is_gzip = source->is_packed};
    const int status = merge_files_write(&source->list, path, &plan, NULL, NULL);
    return status == PROF_OK ? EXIT_OK : fail_dump(status, to);
  }
  const prof_dump_options options = {
      .size = sizeof options, .format = PROF_FORMAT_PERFETTO, .gzip = source->is_packed};
  const int status = prof_trace_dump(source->trace, path, &options);
  return status == PROF_OK ? EXIT_OK : fail_dump(status, to);
}

static int open_file(const char *path, view_source *source) {
  struct stat info;
  source->file = open(path, O_RDONLY | O_CLOEXEC);
  if (source->file < 0 || fstat(source->file, &info) != 0) {
    say("prof view: cannot open '%s': %s", path, strerror(errno));
    return EXIT_FAILED;
  }
  if (S_ISREG(info.st_mode)) return EXIT_OK;
  say("prof view: '%s' is not a file", path);
  return EXIT_FAILED;
}

static int open_captures(const view_words *words, view_source *source) {
  int status = EXIT_OK;
  for (int i = 0; i < words->path_count && status == EXIT_OK; i++)
    status = merge_files_add(&source->list, words->paths[i]);
  if (status != EXIT_OK) return status;
  if (source->list.count == 1) {
    source->trace = open_capture(source->list.files[0].path);
    return source->trace ? EXIT_OK : EXIT_FAILED;
  }
  status = merge_files_place(&source->list, false,
                             "prof merge --unaligned makes a file that prof view takes");
  if (status == EXIT_OK) merge_files_say_places(&source->list, false);
  return status;
}

static int open_source(const view_words *words, view_source *source) {
  if (words->path_count == 1 && is_viewer_file(words->paths[0]))
    return open_file(words->paths[0], source);
  return open_captures(words, source);
}

/* The name that the UI shows: of what is sent, without folders. */
static char *make_file_name(const view_words *words, const view_source *source) {
  const char *const path = words->paths[0];
  size_t end = strlen(path);
  while (end > 1 && path[end - 1] == '/') end--;
  size_t begin = end;
  while (begin > 0 && path[begin - 1] != '/') begin--;
  char *name = NULL, more[32] = "";
  if (words->path_count > 1) snprintf(more, sizeof more, " and %d more", words->path_count - 1);
  const char *const ending = source->file >= 0   ? ""
                             : source->is_packed ? ".pftrace.gz"
                                                 : ".pftrace";
  return asprintf(&name, "%.*s%s%s", (int)(end - begin), path + begin, more, ending) < 0 ? NULL
                                                                                         : name;
}

/* ---- the browser ---- */

/* 128 bits that nobody can guess. */
static bool make_token(char to[VIEW_TOKEN_BYTES]) {
  unsigned char bits[(VIEW_TOKEN_BYTES - 1) / 2];
  const int fd = open("/dev/urandom", O_RDONLY | O_CLOEXEC);
  const bool is_read = fd >= 0 && read(fd, bits, sizeof bits) == (ssize_t)sizeof bits;
  if (fd >= 0) close(fd);
  for (size_t i = 0; is_read && i < sizeof bits; i++) snprintf(to + 2 * i, 3, "%02x", bits[i]);
  return is_read;
}

/* The browser belongs to no terminal, and its messages are not ours. */
static void open_browser(const char *address) {
  fflush(NULL);
  const pid_t pid = fork();
  if (pid != 0) return;
  const int null = open("/dev/null", O_RDWR);
  for (int fd = STDIN_FILENO; null >= 0 && fd <= STDERR_FILENO; fd++) dup2(null, fd);
  setsid();
  execlp("xdg-open", "xdg-open", address, (char *)NULL);
  _exit(127);
}

/* SSH_CONNECTION has the client's address and port, then this machine's. */
static void print_tunnel(const char *connection, unsigned port) {
  char host[64] = "", server_port[8] = "";
  const bool is_read =
      sscanf(connection, "%*63s %*7s %63[0-9a-fA-F:.] %7[0-9]", host, server_port) == 2;
  const bool is_usual = !is_read || strcmp(server_port, "22") == 0;
  const char *const user = getenv("USER");
  say("prof view: on your own machine, first:");
  say("  ssh -N%s%s -L %u:127.0.0.1:%u %s%s%s", is_usual ? "" : " -p ", is_usual ? "" : server_port,
      port, port, user ? user : "", user ? "@" : "", is_read ? host : "HOST");
}

static void present(const view_words *words, const char *token, uint16_t port) {
  char address[128];
  snprintf(address, sizeof address, "http://127.0.0.1:%u/%s/", port, token);
  const char *const connection = getenv("SSH_CONNECTION");
  const bool has_display = getenv("DISPLAY") || getenv("WAYLAND_DISPLAY");
  if (connection) print_tunnel(connection, port);
  say("prof view: open this address in a browser. The Perfetto UI comes from the network (%s); the "
      "trace stays in the browser. Ctrl-C ends.",
      words->ui);
  printf("%s\n", address);
  fflush(stdout);
  if (!connection && has_display && !words->is_quiet) open_browser(address);
}

/* ---- the page ---- */

/* Its script fetches the trace, opens the Perfetto UI in another tab, and hands the trace over by
   postMessage, as the Perfetto documentation describes ("deep linking"). The page refers to nothing
   outside. The UI alone comes from the network. */

static const char head_text[] =
    "<!doctype html>\n"
    "<html lang=\"en\">\n"
    "<meta charset=\"utf-8\">\n"
    "<title>prof view</title>\n"
    "<style nonce=\"%s\">\n"
    ":root { color-scheme: light dark }\n"
    "body { font: 16px/1.5 system-ui, sans-serif; margin: 4em auto; max-width: 40em;\n"
    "       padding: 0 1em }\n"
    "h1 { font-size: 1.3em; overflow-wrap: anywhere }\n"
    "button { font: inherit; padding: .5em 1em }\n"
    "</style>\n"
    "<h1 id=\"title\"></h1>\n"
    "<p id=\"state\">Loading the trace.</p>\n"
    "<p><button id=\"open\">Open in the Perfetto UI</button></p>\n"
    "<p>The UI comes from <span id=\"origin\"></span>. It reads the trace in this browser: the\n"
    "trace is sent to no other machine.</p>\n"
    "<noscript><p>This page needs JavaScript.</p></noscript>\n"
    "<script nonce=\"%s\">\n"
    "\"use strict\";\n";

/* The UI answers PING with PONG when it can take messages. A tab may open before the trace has
   come, and after: the browser may want a click first. */
static const char script_text[] =
    "const byId = (id) => document.getElementById(id);\n"
    "const origin = new URL(ui).origin;\n"
    "let tab = null, isReady = false, buffer = null, isDone = false;\n"
    "function showState(text) { byId(\"state\").textContent = text; }\n"
    "function handOver() {\n"
    "  if (isDone || !isReady || !buffer) return;\n"
    "  isDone = true;\n"
    "  tab.postMessage({perfetto: {buffer, title: fileName, fileName}}, origin, [buffer]);\n"
    "  byId(\"open\").hidden = true;\n"
    "  showState(\"The trace is in the other tab. You may close this one.\");\n"
    "}\n"
    "function openTab() {\n"
    "  isReady = false;\n"
    "  tab = window.open(ui);\n"
    "  if (buffer) showState(tab ? \"Waiting for the UI.\" : \"Ready. Press the button.\");\n"
    "}\n"
    "addEventListener(\"message\", (event) => {\n"
    "  if (event.source !== tab || event.origin !== origin || event.data !== \"PONG\") return;\n"
    "  isReady = true;\n"
    "  handOver();\n"
    "});\n"
    "setInterval(() => {\n"
    "  if (tab && !tab.closed && !isReady && !isDone) tab.postMessage(\"PING\", origin);\n"
    "}, 50);\n"
    "byId(\"title\").textContent = fileName;\n"
    "byId(\"origin\").textContent = origin;\n"
    "byId(\"open\").onclick = openTab;\n"
    "fetch(\"trace\").then((answer) => {\n"
    "  if (!answer.ok) throw new Error(\"status \" + answer.status);\n"
    "  return answer.arrayBuffer();\n"
    "}).then((bytes) => {\n"
    "  buffer = bytes;\n"
    "  if (tab) handOver(); else openTab();\n"
    "}).catch((error) => {\n"
    "  byId(\"open\").hidden = true;\n"
    "  showState(\"The trace did not come: \" + error.message + \". Run prof view again.\");\n"
    "});\n"
    "</script>\n";

/* Text from outside as a string of JavaScript inside HTML: ASCII letters, digits and a few marks
   stay, all else is a number. */
static void print_script_string(FILE *to, const char *text) {
  const size_t bytes = strlen(text);
  fputc('"', to);
  for (size_t at = 0; at < bytes;) {
    unsigned code;
    const size_t found = utf8_character((const unsigned char *)text + at, bytes - at, &code);
    if (!found)
      fputs("\\ufffd", to);
    else if (code > 0xffff)
      fprintf(to, "\\u%04x\\u%04x", 0xd800 + ((code - 0x10000) >> 10),
              0xdc00 + ((code - 0x10000) & 0x3ff));
    else if ((code >= '0' && code <= '9') || (code >= 'A' && code <= 'Z') ||
             (code >= 'a' && code <= 'z') || (code && code < 0x80 && strchr(" ._-:/", (int)code)))
      fputc((int)code, to);
    else
      fprintf(to, "\\u%04x", code);
    at += found ? found : 1;
  }
  fputc('"', to);
}

/* The page that hands the trace to the Perfetto UI at `ui`. NULL: no memory. */
static char *make_page(const char *ui, const char *file_name, const char *nonce,
                       size_t *bytes_out) {
  char *page = NULL;
  FILE *const to = open_memstream(&page, bytes_out);
  if (!to) return NULL;
  fprintf(to, head_text, nonce, nonce);
  fputs("const ui = ", to);
  print_script_string(to, ui);
  fputs(", fileName = ", to);
  print_script_string(to, file_name);
  fputs(";\n", to);
  fputs(script_text, to);
  return fclose(to) == 0 ? page : NULL;
}

/* ---- the command ---- */

static int check_ui(const char *ui) {
  const size_t scheme = strncmp(ui, "https://", 8) == 0  ? 8
                        : strncmp(ui, "http://", 7) == 0 ? 7
                                                         : 0;
  bool is_plain = scheme && ui[scheme] && ui[scheme] != '/';
  for (const char *at = ui; *at; at++) is_plain &= *at > ' ' && *at < 0x7f;
  if (is_plain) return EXIT_OK;
  return refuse_words("view", "--ui takes an address such as https://ui.perfetto.dev, not", ui);
}

static int read_words(int argc, char **argv, view_words *words) {
  for (int c; (c = command_option_next(&command_view, argc, argv)) != -1;) {
    if (c == 'u')
      words->ui = optarg;
    else if (c == 'n')
      words->is_quiet = true;
    else
      return EXIT_USAGE;
  }
  words->paths = argv + optind;
  words->path_count = argc - optind;
  if (words->path_count == 0) return refuse_words("view", "takes captures, or a folder", NULL);
  return check_ui(words->ui);
}

static int serve(const view_words *words, const view_source *source, const char *file_name) {
  view_site site = {.write_trace = write_trace, .context = source};
  uint16_t port = 0;
  uint64_t bytes = 0;
  if (!make_token(site.token) || !make_token(site.nonce)) {
    say("prof view: cannot read /dev/urandom: %s", strerror(errno));
    return EXIT_FAILED;
  }
  char *const page = make_page(words->ui, file_name, site.nonce, &site.page_bytes);
  site.page = page;
  const int listener = page ? view_listen(&port) : -1;
  int status = EXIT_FAILED;
  if (!page) {
    say("prof view: no memory for the page");
  } else if (listener < 0) {
    say("prof view: cannot listen on 127.0.0.1: %s", strerror(errno));
  } else {
    present(words, site.token, port);
    status = view_serve(listener, &site, &bytes);
    close(listener);
  }
  if (status == EXIT_OK)
    say("prof view: the browser has the trace, %llu bytes", (unsigned long long)bytes);
  free(page);
  return status;
}

static int execute_view(int argc, char **argv) {
  view_words words = {.ui = default_ui};
  view_source source = {.list.command = "view", .file = -1};
  int status = read_words(argc, argv, &words);
  if (status != EXIT_OK) return status;
  status = open_source(&words, &source);
  source.is_packed = getenv("SSH_CONNECTION") != NULL;
  char *const file_name = status == EXIT_OK ? make_file_name(&words, &source) : NULL;
  if (status == EXIT_OK) status = file_name ? serve(&words, &source, file_name) : EXIT_FAILED;
  free(file_name);
  prof_trace_destroy(source.trace);
  merge_files_free(&source.list);
  if (source.file >= 0) close(source.file);
  return status;
}

static const command_option options[] = {
    {.name = "ui",
     .argument = "URL",
     .help = "the Perfetto UI: one of your own, in place of https://ui.perfetto.dev",
     .id = 'u'},
    {.name = "no-open", .help = "only print the address; open no browser", .id = 'n'},
    {0}};

static const command_example examples[] = {
    {"prof view trace.prof", "the time line in a browser"},
    {"prof view trace-0.prof trace-1.prof", "two ranks"},
    {"prof view --ui http://perfetto.lan trace.prof", "with a UI of your own"},
    {0}};

const prof_command command_view = {
    .name = "view",
    .summary = "opens a capture in the Perfetto UI, in a browser",
    .words = "[OPTION...] FILE... | FOLDER",
    .about =
        "Serves one page on 127.0.0.1, which hands the trace to the Perfetto UI. Ends when "
        "the browser has the trace.\n\n"
        "FILE is a capture. Several, or those of a folder, are put on one time line, as by "
        "prof merge. A .json or .pftrace file, also with .gz, is sent as it is.\n\n"
        "The UI comes from the network. The trace is sent to no other machine.",
    .options = options,
    .examples = examples,
    .execute = execute_view};
