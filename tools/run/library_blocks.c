/* See library_blocks.h. The first line of a call begins with "I!", the others with "i!". */
#define _GNU_SOURCE
#include "library_blocks.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "hash.h"

/* Ranks of launchers. Those beyond share the last one's. */
enum { BLOCKS_MAX = 1024 };

typedef struct block_key {
  int64_t rank, stream;
} block_key;

typedef struct run_block_entry {
  block_key key;
  run_block block;
  UT_hash_handle hh;
} run_block_entry;

static const char *line_find(run_line line, const char *text) {
  return memmem(line.at, line.bytes, text, strlen(text));
}

static run_line line_after(run_line line, const char *at) {
  return (run_line){at, line.bytes - (size_t)(at - line.at)};
}

static void block_put(run_block *block, const char *bytes, size_t count) {
  const size_t room = sizeof block->text - 1 - block->bytes, taken = count < room ? count : room;
  memcpy(block->text + block->bytes, bytes, taken);
  block->bytes += taken;
  block->text[block->bytes] = '\0';
}

/* Most functions only set up descriptors. Only functions that compute count as calls. */
static bool function_computes(run_line name) {
  static const char *const words[] = {"Forward", "Backward", "Execute"};
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    if (line_find(name, words[i])) return !line_find(name, "Get") && !line_find(name, "Create");
  return false;
}

/* The function's name: the last word in front of the first bracket behind "function ". */
static run_line function_name(run_line line) {
  static const char word[] = "function ";
  const char *const at = line_find(line, word);
  if (!at) return (run_line){line.at, 0};
  const run_line rest = line_after(line, at + strlen(word));
  size_t end = 0, begin = 0;
  while (end < rest.bytes && rest.at[end] != '(') end++;
  for (size_t i = 0; i < end; i++)
    if (rest.at[i] == ' ') begin = i + 1;
  return (run_line){rest.at + begin, end - begin};
}

/* Whether " name=" is an argument of the block already. */
static bool block_has_argument(const run_block *block, run_line name) {
  for (const char *at = block->text; (at = strchr(at, ' ')) != NULL;) {
    at++;
    if (strncmp(at, name.at, name.bytes) == 0 && at[name.bytes] == '=') return true;
  }
  return false;
}

/* "Process=14102; Thread=129943171284992; ...": a call has one such line, the last one. */
static bool parse_process(run_block *block, run_line line) {
  static const char word[] = "Process=";
  const char *const at = line_find(line, word);
  if (!at) return false;
  char digits[20] = "";
  const run_line rest = line_after(line, at + strlen(word));
  for (size_t i = 0; i < rest.bytes && i < sizeof digits - 1; i++) {
    if (!isdigit((unsigned char)rest.at[i])) break;
    digits[i] = rest.at[i];
  }
  block->is_mixed |= block->has_ended;
  block->has_ended = true;
  if (*digits) block->pid = strtoll(digits, NULL, 10);
  return true;
}

/* Turns "name: type=T; val=V" into " name=V". Leaves out pointers. */
static void parse_argument(run_block *block, run_line line) {
  static const char value_word[] = "val=";
  while (line.bytes > 0 && isspace((unsigned char)*line.at)) line.at++, line.bytes--;
  const char *const colon = memchr(line.at, ':', line.bytes), *const found =
                                                                  line_find(line, value_word);
  if (!colon || !found || found < colon) return;
  const run_line name = {line.at, (size_t)(colon - line.at)};
  run_line value = line_after(line, found + strlen(value_word));
  const char *const end = memchr(value.at, ';', value.bytes);
  if (end) value.bytes = (size_t)(end - value.at);
  while (value.bytes > 0 && isspace((unsigned char)value.at[value.bytes - 1])) value.bytes--;
  /* descriptors of cuDNN repeat their members' names */
  const bool is_twice = block->library == RUN_LIBRARY_CUBLAS && block_has_argument(block, name);
  block->is_mixed |= block->has_ended || is_twice;
  if (line_find(value, "POINTER") || line_find(value, "0x") || value.bytes == 0) return;
  block_put(block, " ", 1);
  block_put(block, name.at, name.bytes);
  block_put(block, "=", 1);
  block_put(block, value.at, value.bytes);
}

static bool end_block(run_block *block, run_block *out) {
  if (!block->is_open) return false;
  block->is_open = false;
  if (block->is_mixed) block->bytes = block->name_bytes;
  block->text[block->bytes] = '\0';
  *out = *block;
  return block->bytes > 0;
}

static void begin_block(run_block *block, run_line line, bool is_blas, int64_t rank) {
  const run_line name = function_name(line);
  block->library = is_blas ? RUN_LIBRARY_CUBLAS : RUN_LIBRARY_CUDNN;
  block->bytes = 0;
  block->rank = rank;
  block->pid = -1;
  block->is_mixed = block->has_ended = false;
  block->is_open = name.bytes > 0 && (is_blas || function_computes(name));
  if (block->is_open) block_put(block, name.at, name.bytes);
  block->name_bytes = block->bytes;
}

static run_block *get_block(run_blocks *blocks, int stream, int64_t rank) {
  const block_key key = {rank, stream};
  run_block_entry *entry;
  HASH_FIND(hh, blocks->entries, &key, sizeof key, entry);
  if (!entry && HASH_COUNT(blocks->entries) >= BLOCKS_MAX) return &blocks->entries->block;
  if (!entry) {
    entry = run_make(1, sizeof *entry);
    entry->key = key;
    HASH_ADD(hh, blocks->entries, key, sizeof entry->key, entry);
  }
  return &entry->block;
}

run_block_part run_blocks_take(run_blocks *blocks, int stream, run_line line,
                               run_block *before_out) {
  before_out->bytes = 0;
  const char *const blas = line_find(line, "I! cuBLAS");
  const char *const begin = blas ? blas : line_find(line, "I! CuDNN");
  const char *const at = begin ? begin : line_find(line, "i!");
  if (!at) return RUN_BLOCK_NONE;
  const int64_t rank = run_origin_rank(line.at, (size_t)(at - line.at));
  run_block *const block = get_block(blocks, stream, rank);
  if (begin) {
    if (!end_block(block, before_out)) before_out->bytes = 0;
    begin_block(block, line_after(line, begin), blas != NULL, rank);
    return RUN_BLOCK_BEGIN;
  }
  if (!block->is_open) return RUN_BLOCK_NONE;
  const run_line rest = line_after(line, at + strlen("i!"));
  if (!parse_process(block, rest)) parse_argument(block, rest);
  return RUN_BLOCK_MORE;
}

int run_blocks_end(run_blocks *blocks, run_block *before_out) {
  for (run_block_entry *entry = blocks->entries; entry; entry = entry->hh.next)
    if (end_block(&entry->block, before_out)) return (int)entry->key.stream;
  return 0;
}

void run_blocks_destroy(run_blocks *blocks) {
  run_block_entry *each = blocks->entries;
  HASH_CLEAR(hh, blocks->entries);
  while (each) {
    run_block_entry *const next = each->hh.next;
    free(each);
    each = next;
  }
}
