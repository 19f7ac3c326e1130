/* The second translation unit of test_macros_c: the same inline functions, compiled again. */
#include "../inline_scopes.h"

PROF_API void second_unit_run(void);

void second_unit_run(void) {
  inline_literal_scope();
  inline_named_scope("from the second unit");
  inline_block_scope();
}
