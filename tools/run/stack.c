/* See stack.h: contexts and tools.json. */
#define _GNU_SOURCE
#include "stack.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

/* Each tool with a cmd is a program that is executed with all words of those inside of it. */
enum { CONFIG_BYTES_MAX = 16 << 20, TOOLS_MAX = 256 };

/* ---- values of a configuration, with messages that name the place ---- */

static const run_json *expect_kind(const run_json *value, run_json_kind kind, const char *from,
                                   const char *where) {
  if (value->kind != kind)
    run_fail("%s: %s is %s, and must be %s", from, where, run_json_kind_name(value->kind),
             run_json_kind_name(kind));
  return value;
}

/* A member that may be absent. */
static const run_json *optional_member(const run_json *object, const char *key, run_json_kind kind,
                                       const char *from, const char *where) {
  const run_json *const value = run_json_get(object, key);
  return value ? expect_kind(value, kind, from, run_text("%s\"%s\"", where, key)) : NULL;
}

static const char *member_text(const run_json *object, const char *key, const char *from,
                               const char *where) {
  const run_json *const value = optional_member(object, key, RUN_JSON_TEXT, from, where);
  return value ? value->text : NULL;
}

/* ---- parts ---- */

/* Numbers and booleans are taken as written: {"ROCBLAS_LAYER": 6}. */
static const char *variable_text(const run_json *value, const char *from, const char *where) {
  switch (value->kind) {
    case RUN_JSON_TEXT:
    case RUN_JSON_NUMBER:
      return value->text;
    case RUN_JSON_BOOL:
      return value->is_true ? "true" : "false";
    case RUN_JSON_NULL:
    case RUN_JSON_LIST:
    case RUN_JSON_OBJECT:
      break;
  }
  run_fail("%s: %s is %s, and must be a text", from, where, run_json_kind_name(value->kind));
}

static void read_variables(run_words *to, const run_json *tool, const char *from,
                           const char *where) {
  const run_json *const all = optional_member(tool, "env_vars", RUN_JSON_OBJECT, from, where);
  for (size_t i = 0; all && i < all->count; i++) {
    const char *const name = all->keys[i];
    if (*name == '\0' || strchr(name, '=') || run_name_has_control(name))
      run_fail("%s: %s\"env_vars\" has the name '%s', which no variable can have", from, where,
               name);
    const char *const place = run_text("%s\"env_vars\".\"%s\"", where, name);
    run_variable_set(to, name, variable_text(&all->items[i], from, place));
  }
}

static void add_script(run_scripts *to, run_script script) {
  run_script *const items = run_grow(to->items, to->count + 1, sizeof *items);
  to->items = items;
  items[to->count++] = script;
}

static void read_scripts(run_scripts *to, const run_json *object, const char *key, const char *from,
                         const char *where) {
  const run_json *const all = optional_member(object, key, RUN_JSON_LIST, from, where);
  for (size_t i = 0; all && i < all->count; i++) {
    const char *const place = run_text("%s\"%s\"[%zu]", where, key, i);
    expect_kind(&all->items[i], RUN_JSON_OBJECT, from, place);
    const char *const inner = run_text("%s.", place);
    const char *const path = member_text(&all->items[i], "path", from, inner);
    const char *const arguments = member_text(&all->items[i], "args", from, inner);
    if (!path) run_fail("%s: %s lacks \"path\"", from, place);
    add_script(to, (run_script){path, arguments ? arguments : ""});
  }
}

/* ---- tools ---- */

static run_tool *add_tool(run_stack *stack, const run_tool *tool) {
  run_tool *const tools = run_grow(stack->tools, stack->count + 1, sizeof *tools);
  stack->tools = tools;
  run_tool *const added = &tools[stack->count++];
  *added = *tool;
  added->variables = added->traces = (run_words){0}; /* the known tool's own stay as they are */
  run_words_add_all(&added->variables, &tool->variables);
  run_words_add_all(&added->traces, &tool->traces);
  return added;
}

void run_stack_add(run_stack *stack, const char *name) {
  const run_tool *const tool = run_tool_find(name);
  if (!tool) run_tool_names_refuse(name);
  if (stack->count == TOOLS_MAX)
    run_fail("tool '%s' is number %d of the stack, which holds %d tools: leave some out", name,
             TOOLS_MAX + 1, TOOLS_MAX);
  for (size_t i = 0; i < stack->count; i++)
    if (strcmp(stack->tools[i].name, name) == 0) run_fail("tool '%s' is named twice", name);
  add_tool(stack, tool);
}

/* ---- contexts ---- */

static void read_tool(run_stack *stack, const run_json *value, const char *from, size_t index) {
  const char *const place = run_text("\"tools\"[%zu]", index);
  expect_kind(value, RUN_JSON_OBJECT, from, place);
  const char *const inner = run_text("%s.", place);
  const char *const name = member_text(value, "name", from, inner);
  if (!name) run_fail("%s: %s lacks \"name\"", from, place);
  run_stack_add(stack, name);
  run_tool *const tool = &stack->tools[stack->count - 1];
  const char *const cmd = member_text(value, "cmd", from, inner);
  if (cmd) {
    tool->cmd = cmd;
    tool->has_marks = false;
    tool->program = tool->install = NULL; /* the new text names its own program */
  }
  read_variables(&tool->variables, value, from, inner);
  run_madengine_adopt(tool);
  for (size_t i = 0; i < value->count; i++)
    if (strcmp(value->keys[i], "name") != 0 && strcmp(value->keys[i], "cmd") != 0 &&
        strcmp(value->keys[i], "env_vars") != 0)
      run_fail("%s: %s has \"%s\"; known are name, cmd and env_vars", from, place, value->keys[i]);
}

static _Noreturn void refuse_text(const char *from, const char *text, const run_json_error *error,
                                  const char *form) {
  size_t line = 1, column = 1;
  for (size_t i = 0; i < error->at && text[i]; i++) {
    column = text[i] == '\n' ? 1 : column + 1;
    line += text[i] == '\n';
  }
  size_t bytes = strlen(error->reason);
  while (bytes > 0 && error->reason[bytes - 1] == '.') bytes--;
  run_fail("%s cannot be read as %s: line %zu, column %zu: %.*s", from, form, line, column,
           (int)bytes, error->reason);
}

/* JSON, or a Python literal. If it is neither, the error is the one that is farther behind. */
static const run_json *read_context(const char *text, const char *from) {
  run_json_error error = {0}, of_literal = {0};
  const run_json *value = run_json_parse(text, &error);
  if (!value) value = run_python_literal_parse(text, &of_literal);
  if (!value)
    refuse_text(from, text, of_literal.at >= error.at ? &of_literal : &error,
                "JSON or a Python literal");
  return value;
}

void run_stack_read(run_stack *stack, const char *text, const char *from) {
  if (run_is_blank(text))
    run_fail("%s is empty; it must have tools, as in {\"tools\": [{\"name\": \"perf\"}]}", from);
  const run_json *const value = read_context(text, from);
  expect_kind(value, RUN_JSON_OBJECT, from, "the context");
  for (size_t i = 0; i < value->count; i++) run_names_warn_of_key(value->keys[i], from);
  const run_json *const tools = optional_member(value, "tools", RUN_JSON_LIST, from, "");
  for (size_t i = 0; tools && i < tools->count; i++) read_tool(stack, &tools->items[i], from, i);
  read_scripts(&stack->before, value, "pre_scripts", from, "");
  read_scripts(&stack->after, value, "post_scripts", from, "");
  const char *const encapsulate = member_text(value, "encapsulate_script", from, "");
  if (encapsulate) stack->encapsulate = encapsulate;
}

static char *read_config_file(const char *path) {
  size_t bytes;
  char *const text = run_file_read(path, CONFIG_BYTES_MAX, &bytes);
  if (!text && errno == EFBIG) run_fail("'%s' has more than 16 MiB: it is no configuration", path);
  if (!text) run_fail("cannot read '%s': %s", path, strerror(errno));
  if (strlen(text) != bytes) run_fail("'%s' has a NUL byte: it is no configuration", path);
  return strncmp(text, "\xef\xbb\xbf", 3) == 0 ? text + 3 : text; /* some editors' first bytes */
}

void run_stack_read_file(run_stack *stack, const char *path) {
  run_stack_read(stack, read_config_file(path), run_text("'%s'", path));
}

/* ---- tools.json ---- */

void run_tools_read(const char *path) {
  run_json_error error;
  const char *const from = run_text("'%s'", path), *const text = read_config_file(path);
  const run_json *const value = run_json_parse(text, &error);
  if (!value) refuse_text(from, text, &error, "JSON");
  const run_json *const tools = optional_member(
      expect_kind(value, RUN_JSON_OBJECT, from, "the file"), "tools", RUN_JSON_OBJECT, from, "");
  if (!tools) run_fail("%s lacks \"tools\": {NAME: {\"cmd\": TEXT}}", from);
  for (size_t i = 0; i < tools->count; i++) {
    const run_json *const entry = &tools->items[i];
    if (!run_name_is_of_tool(tools->keys[i]))
      run_fail(
          "%s: a tool has the name '%s'; it names a folder, so it must not be empty, begin "
          "with a point, or have a / or a control character",
          from, tools->keys[i]);
    const char *const place = run_text("\"tools\".\"%s\"", tools->keys[i]);
    expect_kind(entry, RUN_JSON_OBJECT, from, place);
    const char *const inner = run_text("%s.", place);
    const char *const cmd = member_text(entry, "cmd", from, inner);
    for (size_t k = 0; k < entry->count; k++)
      run_names_warn_of_tool_key(entry->keys[k], run_text("%s: %s", from, place));
    run_tool tool = {.name = tools->keys[i], .cmd = cmd ? cmd : ""};
    read_variables(&tool.variables, entry, from, inner);
    read_scripts(&tool.before, entry, "pre_scripts", from, inner);
    read_scripts(&tool.after, entry, "post_scripts", from, inner);
    run_madengine_adopt(&tool);
    run_tools_add(&tool);
  }
}

bool run_stack_records(const run_stack *stack) {
  for (size_t i = 0; i < stack->count; i++)
    if (stack->tools[i].parts & RUN_PART_PROF) return true;
  return false;
}
