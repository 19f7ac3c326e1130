/* The page of `prof view`. Its script fetches the trace, opens the Perfetto UI in another tab, and
   hands the trace over by postMessage, as the Perfetto documentation describes ("deep linking").
   The page refers to nothing outside. The UI alone comes from the network. */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>

#include "commands.h"
#include "view_server.h"

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

char *view_page_make(const char *ui, const char *file_name, const char *nonce, size_t *bytes_out) {
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
