/* See sides.h. */
#define _GNU_SOURCE
#include "sides.h"

#include <getopt.h>
#include <string.h>

#include "commands.h"
#include "progress.h"

enum { CAPTURES_MAX = 100 };

int sides_add(command_sides *sides, uint32_t side, const char *word) {
  side_captures *const to = &sides->sides[side];
  const int status = input_paths_add(sides->command, to, word, true);
  if (status != EXIT_OK || to->count <= CAPTURES_MAX) return status;
  say("prof %s: a side has more than %d captures, with '%s'", sides->command, CAPTURES_MAX,
      to->paths[CAPTURES_MAX]);
  return EXIT_FAILED;
}

int sides_take(command_sides *sides, int *argc, char **argv) {
  int kept = 1;
  for (int i = 1; i < *argc;) {
    const int side = strcmp(argv[i], "--base") == 0 ? 0 : strcmp(argv[i], "--new") == 0 ? 1 : -1;
    if (side < 0) {
      argv[kept++] = argv[i++];
      continue;
    }
    const char *const option = argv[i++];
    const int first = i;
    for (; i < *argc && argv[i][0] != '-'; i++) {
      const int status = sides_add(sides, (uint32_t)side, argv[i]);
      if (status != EXIT_OK) return status;
    }
    if (i == first) return refuse_words(sides->command, "names no capture:", option);
    sides->is_named = 1;
  }
  argv[kept] = NULL;
  *argc = kept;
  return EXIT_OK;
}

int sides_finish(command_sides *sides, int argc, char **argv, bool is_pair) {
  const int count = argc - optind;
  const bool is_right = sides->is_named ? count == 0 : is_pair ? count == 2 : count > 0;
  if (!is_right)
    return refuse_words(sides->command,
                        is_pair ? "takes A and B, or --base A... --new B..."
                                : "takes captures, or --base A... --new B...",
                        NULL);
  for (int i = 0; i < count; i++) {
    const uint32_t side = is_pair && i == 0 ? 0 : 1;
    const int status = sides_add(sides, side, argv[optind + i]);
    if (status != EXIT_OK) return status;
  }
  for (uint32_t side = 0; side < 2; side++)
    for (size_t i = 0; i < sides->sides[side].count; i++)
      progress_expect(sides->sides[side].paths[i]);
  const bool has_both = sides->sides[0].count && sides->sides[1].count;
  return has_both || (!sides->is_named && !is_pair)
             ? EXIT_OK
             : refuse_words(sides->command, "needs both --base and --new", NULL);
}

int sides_check_output(const command_sides *sides, const char **output) {
  for (uint32_t side = 0; side < 2; side++)
    for (size_t i = 0; i < sides->sides[side].count; i++)
      if (output_is_input(*output, sides->sides[side].paths[i]))
        return refuse_words(sides->command, "would write over the capture itself:", *output);
  return output_follow_link(sides->command, output);
}

void sides_free(command_sides *sides) {
  for (uint32_t side = 0; side < 2; side++) input_paths_free(&sides->sides[side]);
}
