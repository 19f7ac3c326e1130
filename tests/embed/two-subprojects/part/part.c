/* One part of the program: a scope of its own. PART is its name. */
#include <prof/profiler.h>

#define TEXT_OF(word) #word
#define TEXT(word) TEXT_OF(word)
#define FUNCTION_OF(part) part##_works
#define FUNCTION(part) FUNCTION_OF(part)

void FUNCTION(PART)(void);

void FUNCTION(PART)(void) { WITH_BASE_PROFILER(PROF_HOST, TEXT(PART), "part", PROF_NO_ARGS, {}); }
