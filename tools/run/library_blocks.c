/* See library_blocks.h. The first line of a call begins with "I!", the others with "i!". */
#define _GNU_SOURCE
#include "library_blocks.h"

#include <ctype.h>
#include <string.h>

static const char *find(run_line line, const char *text) {
  return memmem(line.at, line.bytes, text, strlen(text));
}

static run_line behind(run_line line, const char *at) {
  return (run_line){at, line.bytes - (size_t)(at - line.at)};
}

static void put(run_block *block, const char *bytes, size_t count) {
  const size_t room = sizeof block->text - 1 - block->bytes, taken = count < room ? count : room;
  memcpy(block->text + block->bytes, bytes, taken);
  block->bytes += taken;
  block->text[block->bytes] = '\0';
}

/* Most functions only set up descriptors. Only functions that compute count as calls. */
static bool computes(run_line name) {
  static const char *const words[] = {"Forward", "Backward", "Execute"};
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    if (find(name, words[i])) return !find(name, "Get") && !find(name, "Create");
  return false;
}

/* The function's name: the last word in front of the first bracket behind "function ". */
static run_line function_name(run_line line) {
  static const char word[] = "function ";
  const char *const at = find(line, word);
  if (!at) return (run_line){line.at, 0};
  const run_line rest = behind(line, at + strlen(word));
  size_t end = 0, begin = 0;
  while (end < rest.bytes && rest.at[end] != '(') end++;
  for (size_t i = 0; i < end; i++)
    if (rest.at[i] == ' ') begin = i + 1;
  return (run_line){rest.at + begin, end - begin};
}

/* Turns "name: type=T; val=V" into " name=V". Leaves out pointers. */
static void take_argument(run_block *block, run_line line) {
  static const char value_word[] = "val=";
  while (line.bytes > 0 && isspace((unsigned char)*line.at)) line.at++, line.bytes--;
  const char *const colon = memchr(line.at, ':', line.bytes), *const found = find(line, value_word);
  if (!colon || !found || found < colon) return;
  run_line value = behind(line, found + strlen(value_word));
  const char *const end = memchr(value.at, ';', value.bytes);
  if (end) value.bytes = (size_t)(end - value.at);
  if (find(value, "POINTER") || find(value, "0x") || value.bytes == 0) return;
  put(block, " ", 1);
  put(block, line.at, (size_t)(colon - line.at));
  put(block, "=", 1);
  put(block, value.at, value.bytes);
}

bool run_block_end(run_block *block) {
  const bool was_open = block->is_open;
  block->is_open = false;
  return was_open && block->bytes > 0;
}

run_block_part run_block_take(run_block *block, run_line line, run_block *before_out) {
  before_out->bytes = 0;
  const char *const blas = find(line, "I! cuBLAS");
  const char *const dnn = blas ? NULL : find(line, "I! CuDNN");
  if (blas || dnn) {
    if (run_block_end(block)) *before_out = *block;
    const run_line name = function_name(behind(line, blas ? blas : dnn));
    block->library = blas ? RUN_LIBRARY_CUBLAS : RUN_LIBRARY_CUDNN;
    block->bytes = 0;
    block->is_open = name.bytes > 0 && (blas || computes(name));
    if (block->is_open) put(block, name.at, name.bytes);
    return RUN_BLOCK_BEGIN;
  }
  const char *const at = find(line, "i!");
  if (!at || !block->is_open) return RUN_BLOCK_NONE;
  take_argument(block, behind(line, at + strlen("i!")));
  return RUN_BLOCK_MORE;
}
