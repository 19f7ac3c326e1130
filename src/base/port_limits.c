/* What the machine has, and what control groups of either version allow of it. That is the least of
   the process's own group and of those around it, as far as they are visible. In a container only
   the outermost may be. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "port.h"

enum { PATH_ROOM = 1024 };

/* What is read here, outside of the caller's stack, which may be small. */
typedef struct cgroup_reader {
  char groups[8192]; /* /proc/self/cgroup; "": it cannot be read */
  char text[8192], group[PATH_ROOM], folder[2 * PATH_ROOM], path[2 * PATH_ROOM];
} cgroup_reader;

/* Of version 2 (all controllers in one tree, "") or of a controller of version 1: the process's
   position in its tree, "/a/b", in r->group. */
static bool find_cgroup(cgroup_reader *r, const char *controller) {
  memcpy(r->text, r->groups, sizeof r->text);
  char *state = NULL;
  for (char *line = strtok_r(r->text, "\n", &state); line; line = strtok_r(NULL, "\n", &state)) {
    char *const names = strchr(line, ':'), *const path = names ? strchr(names + 1, ':') : NULL;
    if (!path || strlen(path + 1) >= sizeof r->group) continue;
    *path = '\0';
    char *inner = NULL;
    bool is_it = !*controller && !names[1];
    for (char *name = strtok_r(names + 1, ",", &inner); name; name = strtok_r(NULL, ",", &inner))
      is_it |= *controller && strcmp(name, controller) == 0;
    if (is_it) {
      memcpy(r->group, path + 1, strlen(path + 1) + 1);
      return true;
    }
  }
  return false;
}

/* "max", and what is no number: none. */
static uint64_t parse_limit(const char *text) {
  return *text >= '0' && *text <= '9' ? strtoull(text, NULL, 10) : UINT64_MAX;
}

/* The file in r->folder, in r->text. */
static bool read_group_file(cgroup_reader *r, const char *file) {
  const int bytes = snprintf(r->path, sizeof r->path, "%s/%s", r->folder, file);
  return bytes < (int)sizeof r->path && prof_i_port_read_small(r->path, r->text, sizeof r->text);
}

static uint64_t read_group_limit(cgroup_reader *r, const char *file) {
  return read_group_file(r, file) ? parse_limit(r->text) : UINT64_MAX;
}

/* Past the one processes are ended, past the other they are slowed down until they stand still. */
static uint64_t memory_limit_v2(cgroup_reader *r) {
  const uint64_t most = read_group_limit(r, "memory.max"),
                 high = read_group_limit(r, "memory.high");
  return high < most ? high : most;
}
static uint64_t memory_limit_v1(cgroup_reader *r) {
  return read_group_limit(r, "memory.limit_in_bytes");
}

/* "200000 100000": so many us of each so many. */
static uint64_t cpu_limit_v2(cgroup_reader *r) {
  if (!read_group_file(r, "cpu.max") || parse_limit(r->text) == UINT64_MAX) return UINT64_MAX;
  const char *const gap = strchr(r->text, ' ');
  const uint64_t period = gap ? parse_limit(gap + 1) : UINT64_MAX;
  return period == 0 || period == UINT64_MAX ? UINT64_MAX : parse_limit(r->text) * 1000 / period;
}

static uint64_t cpu_limit_v1(cgroup_reader *r) {
  const uint64_t quota = read_group_limit(r, "cpu.cfs_quota_us");
  const uint64_t period = read_group_limit(r, "cpu.cfs_period_us");
  return quota == UINT64_MAX || period == 0 || period == UINT64_MAX ? UINT64_MAX
                                                                    : quota * 1000 / period;
}

/* The least over the group and all around it, up to the root of what is mounted here. */
static uint64_t min_over_groups(cgroup_reader *r, const char *mount, const char *controller,
                                uint64_t (*limit_of)(cgroup_reader *r)) {
  snprintf(r->folder, sizeof r->folder, "%s", mount);
  uint64_t limit = limit_of(r);
  if (!find_cgroup(r, controller)) return limit;
  for (char *end; (end = strrchr(r->group, '/')) != NULL; *end = '\0') {
    if (!end[1]) continue;
    snprintf(r->folder, sizeof r->folder, "%s%s", mount, r->group);
    const uint64_t group_limit = limit_of(r);
    if (group_limit < limit) limit = group_limit;
  }
  return limit;
}

/* UINT64_MAX: no limit. */
static uint64_t min_over_versions(cgroup_reader *r, uint64_t (*limit_of_2)(cgroup_reader *r),
                                  const char *mount1, const char *controller1,
                                  uint64_t (*limit_of_1)(cgroup_reader *r)) {
  const uint64_t limit2 = min_over_groups(r, "/sys/fs/cgroup", "", limit_of_2);
  const uint64_t limit1 = min_over_groups(r, mount1, controller1, limit_of_1);
  return limit2 < limit1 ? limit2 : limit1;
}

prof_i_limits prof_i_port_limits(void) {
  struct sysinfo about;
  const bool knows_all = sysinfo(&about) == 0;
  prof_i_limits limits = {knows_all ? (uint64_t)about.totalram * about.mem_unit : UINT64_MAX, 0};
  cgroup_reader *const r =
      mmap(NULL, sizeof *r, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (r == MAP_FAILED) return limits;
  prof_i_port_read_small("/proc/self/cgroup", r->groups, sizeof r->groups);
  const uint64_t memory =
      min_over_versions(r, memory_limit_v2, "/sys/fs/cgroup/memory", "memory", memory_limit_v1);
  const uint64_t cpu =
      min_over_versions(r, cpu_limit_v2, "/sys/fs/cgroup/cpu", "cpu", cpu_limit_v1);
  munmap(r, sizeof *r);
  if (memory < limits.memory_bytes) limits.memory_bytes = memory;
  if (cpu != UINT64_MAX) limits.cpu_milli = cpu;
  return limits;
}

static bool is_limit(const struct rlimit *limit) { return limit->rlim_cur != RLIM_INFINITY; }

bool prof_i_port_limits_private_memory(void) {
  static const char rule[] = "/proc/sys/vm/overcommit_memory";
  char text[16];
  struct rlimit limit;
  if (getrlimit(RLIMIT_AS, &limit) == 0 && is_limit(&limit)) return true;
  if (getrlimit(RLIMIT_DATA, &limit) == 0 && is_limit(&limit)) return true;
  return prof_i_port_read_small(rule, text, sizeof text) && text[0] == '2';
}

static uint64_t subtract_to_zero(uint64_t from, uint64_t bytes) {
  return from > bytes ? from - bytes : 0;
}

/* /proc/self/statm: the sixth number is private memory and the stack, in pages. */
static void read_mapped(uint64_t *all_out, uint64_t *private_out) {
  enum { NUMBERS = 6 };
  char text[160];
  uint64_t numbers[NUMBERS] = {0};
  prof_i_port_read_small("/proc/self/statm", text, sizeof text);
  const char *at = text;
  for (int i = 0; i < NUMBERS; i++, at += *at == ' ') {
    for (; *at >= '0' && *at <= '9'; at++) numbers[i] = numbers[i] * 10 + (uint64_t)(*at - '0');
    numbers[i] *= (uint64_t)sysconf(_SC_PAGESIZE);
  }
  *all_out = numbers[0];
  *private_out = numbers[NUMBERS - 1];
}

prof_i_space prof_i_port_space(void) {
  prof_i_space space = {UINT64_MAX, UINT64_MAX, "", ""};
  struct rlimit all, data;
  const bool has_all = getrlimit(RLIMIT_AS, &all) == 0 && is_limit(&all);
  const bool has_data = getrlimit(RLIMIT_DATA, &data) == 0 && is_limit(&data);
  if (!has_all && !has_data) return space;
  uint64_t mapped, mapped_private;
  read_mapped(&mapped, &mapped_private);
  if (has_all)
    space = (prof_i_space){subtract_to_zero(all.rlim_cur, mapped), all.rlim_cur, "RLIMIT_AS",
                           "ulimit -v"};
  if (has_data && subtract_to_zero(data.rlim_cur, mapped_private) < space.left_bytes)
    space = (prof_i_space){subtract_to_zero(data.rlim_cur, mapped_private), data.rlim_cur,
                           "RLIMIT_DATA", "ulimit -d"};
  return space;
}

void prof_i_port_processor_name(char *to, size_t room) {
  static const char label[] = "model name";
  char text[1024]; /* it stands at the file's begin */
  struct utsname machine;
  const char *const at =
      prof_i_port_read_small("/proc/cpuinfo", text, sizeof text) ? strstr(text, label) : NULL;
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
    const uint64_t size = strtoull(text, &unit, 10), bytes = *unit == 'K'   ? size << 10
                                                             : *unit == 'M' ? size << 20
                                                                            : size;
    if (bytes > largest) largest = bytes;
  }
  return largest;
}
