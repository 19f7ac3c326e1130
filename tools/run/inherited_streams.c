/* See inherited_streams.h. */
#define _GNU_SOURCE
#include "inherited_streams.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

enum { STREAMS = 3 };

void run_inherited_take(run_inherited *streams) {
  for (int fd = 0; fd < STREAMS; fd++) streams->flags[fd] = fcntl(fd, F_GETFL);
}

void run_inherited_restore(const run_inherited *streams) {
  const int *const flags = streams->flags;
  for (int fd = 0; fd < STREAMS; fd++)
    if (flags[fd] >= 0 && fcntl(fd, F_GETFL) != flags[fd]) fcntl(fd, F_SETFL, flags[fd]);
}

void run_inherited_release_input(run_inherited *streams) {
  struct stat file;
  if (fstat(STDIN_FILENO, &file) != 0) return;
  if (!S_ISFIFO(file.st_mode) && !S_ISSOCK(file.st_mode)) return;
  const int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (null < 0) return;
  dup2(null, STDIN_FILENO);
  close(null);
  if (streams) streams->flags[STDIN_FILENO] = -1;
}
