// The second translation unit of test_macros_cxx: the same inline functions and templates, compiled
// again.
#include "../inline_scopes.h"

extern "C" PROF_API void second_unit_run();

void second_unit_run() {
  inline_literal_scope();
  inline_named_scope("from the second unit");
  inline_block_scope();
  template_scope(7);
}
