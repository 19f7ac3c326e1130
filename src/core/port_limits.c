/* What the machine has, and what the control group allows of it, of either version: the least of the process's own group and of those around it, as far as they can be seen from
   here. Inside a container only the outermost of them may be. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>

#include "port.h"

enum { PATH_ROOM = 1024 };

/* Of version 2 (all controllers in one tree, "") or of a controller of version 1: where the process stands in its tree, "/a/b". */
static bool find_group(const char *controller, char *to, size_t room) {
  char text[8192];
  if (!prof_i_port_read_small("/proc/self/cgroup", text, sizeof text)) return false;
  char *state = NULL;
  for (char *line = strtok_r(text, "\n", &state); line; line = strtok_r(NULL, "\n", &state)) {
    char *const names = strchr(line, ':'), *const path = names ? strchr(names + 1, ':') : NULL;
    if (!path || strlen(path + 1) >= room) continue;
    *path = '\0';
    char *inner = NULL;
    bool is_it = !*controller && !names[1];
    for (char *name = strtok_r(names + 1, ",", &inner); name; name = strtok_r(NULL, ",", &inner)) is_it |= *controller && strcmp(name, controller) == 0;
    if (is_it) {
      memcpy(to, path + 1, strlen(path + 1) + 1);
      return true;
    }
  }
  return false;
}

/* "max", and what is no number: none. */
static uint64_t number_of(const char *text) { return *text >= '0' && *text <= '9' ? strtoull(text, NULL, 10) : UINT64_MAX; }

static uint64_t number_in(const char *folder, const char *file) {
  char path[2 * PATH_ROOM], text[64];
  snprintf(path, sizeof path, "%s/%s", folder, file);
  return prof_i_port_read_small(path, text, sizeof text) ? number_of(text) : UINT64_MAX;
}

/* Past the one processes are ended, past the other they are slowed down until they stand still. */
static uint64_t memory_of_2(const char *folder) {
  const uint64_t most = number_in(folder, "memory.max"), high = number_in(folder, "memory.high");
  return high < most ? high : most;
}
static uint64_t memory_of_1(const char *folder) { return number_in(folder, "memory.limit_in_bytes"); }

/* "200000 100000": so many us of each so many. */
static uint64_t cpu_of_2(const char *folder) {
  char path[2 * PATH_ROOM], text[64];
  snprintf(path, sizeof path, "%s/cpu.max", folder);
  if (!prof_i_port_read_small(path, text, sizeof text) || number_of(text) == UINT64_MAX) return UINT64_MAX;
  const char *const gap = strchr(text, ' ');
  const uint64_t period = gap ? number_of(gap + 1) : UINT64_MAX;
  return period == 0 || period == UINT64_MAX ? UINT64_MAX : number_of(text) * 1000 / period;
}

static uint64_t cpu_of_1(const char *folder) {
  const uint64_t quota = number_in(folder, "cpu.cfs_quota_us"), period = number_in(folder, "cpu.cfs_period_us");
  return quota == UINT64_MAX || period == 0 || period == UINT64_MAX ? UINT64_MAX : quota * 1000 / period;
}

/* The least over the group and all around it, up to the root of what is mounted here. */
static uint64_t least(const char *mount, const char *controller, uint64_t (*limit_of)(const char *folder)) {
  char group[PATH_ROOM] = "", folder[2 * PATH_ROOM];
  uint64_t limit = limit_of(mount);
  if (!find_group(controller, group, sizeof group)) return limit;
  for (char *end; (end = strrchr(group, '/')) != NULL; *end = '\0') {
    if (!end[1]) continue;
    snprintf(folder, sizeof folder, "%s%s", mount, group);
    const uint64_t own = limit_of(folder);
    if (own < limit) limit = own;
  }
  return limit;
}

uint64_t prof_i_port_memory_limit(void) {
  struct sysinfo about;
  const uint64_t all = sysinfo(&about) == 0 ? (uint64_t)about.totalram * about.mem_unit : UINT64_MAX;
  const uint64_t group2 = least("/sys/fs/cgroup", "", memory_of_2), group1 = least("/sys/fs/cgroup/memory", "memory", memory_of_1);
  const uint64_t group = group2 < group1 ? group2 : group1;
  return group < all ? group : all;
}

uint64_t prof_i_port_cpu_limit(void) {
  const uint64_t group2 = least("/sys/fs/cgroup", "", cpu_of_2), group1 = least("/sys/fs/cgroup/cpu", "cpu", cpu_of_1);
  const uint64_t group = group2 < group1 ? group2 : group1;
  return group == UINT64_MAX ? 0 : group;
}

void prof_i_port_processor_name(char *to, size_t room) {
  static const char label[] = "model name";
  char text[4096];
  struct utsname machine;
  const char *const at = prof_i_port_read_small("/proc/cpuinfo", text, sizeof text) ? strstr(text, label) : NULL;
  const char *name = at ? strchr(at, ':') : NULL;
  if (name) {
    name += 1 + strspn(name + 1, " \t");
    snprintf(to, room, "%.*s", (int)strcspn(name, "\n"), name);
    return;
  }
  snprintf(to, room, "%s", uname(&machine) == 0 ? machine.machine : "");
}

uint64_t prof_i_port_cache_bytes(void) {
  uint64_t largest = 0;
  for (int i = 0; i < 10; i++) {
    char path[96], text[32];
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/size", i);
    if (!prof_i_port_read_small(path, text, sizeof text)) break;
    char *unit = text;
    const uint64_t size = strtoull(text, &unit, 10), bytes = *unit == 'K' ? size << 10 : *unit == 'M' ? size << 20 : size;
    if (bytes > largest) largest = bytes;
  }
  return largest;
}
