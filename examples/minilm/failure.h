/* Why something was refused: one line of text that the failing function fills and its callers pass
   up unread. Every function of this example that can be refused by its input takes one as its last
   parameter and returns 0 or -1. SPDX-License-Identifier: MIT */
#ifndef MINILM_FAILURE_H
#define MINILM_FAILURE_H

typedef struct failure {
  char text[512];
} failure;

/* Writes the text (cut at its bound) and returns -1, so that a refusal is one line: return
   failure_set(...). */
int failure_set(failure *why, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
