/* A library that has nothing of what anybody looks for in it. */
#include <stddef.h>

const void *nothing(void);
const void *nothing(void) { return NULL; }
