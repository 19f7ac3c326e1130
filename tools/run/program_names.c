/* See internal.h. A launcher's options are read as far as the name needs it: an option with a
   value of its own takes the next word. */
#define _GNU_SOURCE
#include "internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* values: options whose value is the next word; twice: the next two. operands: words in front of
   the program. is_script: -c has shell text. has_variables: NAME=VALUE may come in front of it. */
typedef struct launcher {
  const char *name;
  const char *values;
  int operands;
  bool is_script, has_variables;
} launcher;

#define MPI_VALUES                                                                 \
  "-n -np -c --n --np -N -H -host --host -hostfile --hostfile -machinefile -f -x " \
  "--map-by --bind-to --rank-by -wdir --wdir -ppn -genvlist -prefix --prefix"

static const launcher launchers[] = {
    {"timeout", "-k -s --kill-after --signal", 1, false, false},
    {"env", "-u -C --unset --chdir", 0, false, true},
    {"nice", "-n --adjustment", 0, false, false},
    {"ionice", "-c -n -p --class --classdata", 0, false, false},
    {"chrt", "-T -P -D", 1, false, false},
    {"taskset", "", 1, false, false},
    {"numactl",
     "-i -N -C -m -p -P -l --interleave --cpunodebind --physcpubind --membind "
     "--preferred",
     0, false, false},
    {"nohup", "", 0, false, false},
    {"setsid", "", 0, false, false},
    {"chroot", "", 1, false, false},
    {"unshare", "-R -w -S -G --root --wd --setuid --setgid --monotonic --boottime --propagation", 0,
     false, false},
    {"bwrap",
     "--args --userns --userns2 --pidns --uid --gid --hostname --chdir --unsetenv --lock-file "
     "--sync-fd --remount-ro --exec-label --file-label --proc --dev --tmpfs --mqueue --dir "
     "--seccomp --add-seccomp-fd --block-fd --userns-block-fd --info-fd --json-status-fd "
     "--cap-add --cap-drop --perms --size --setenv --setenv --bind --bind --bind-try --bind-try "
     "--dev-bind --dev-bind --dev-bind-try --dev-bind-try --ro-bind --ro-bind --ro-bind-try "
     "--ro-bind-try --bind-fd --bind-fd --ro-bind-fd --ro-bind-fd --file --file --bind-data "
     "--bind-data --ro-bind-data --ro-bind-data --symlink --symlink --chmod --chmod",
     0, false, false},
    {"stdbuf", "-i -o -e --input --output --error", 0, false, false},
    {"time", "-f -o --format --output", 0, false, false},
    {"sudo", "-u -g -h -p -C -D -R -T -r -t -U --user --group", 0, false, true},
    {"mpirun", MPI_VALUES, 0, false, false},
    {"mpiexec", MPI_VALUES, 0, false, false},
    {"srun", "-n -N -c -p -t -A -J -w -G --ntasks --nodes --cpus-per-task --partition --time", 0,
     false, false},
    {"torchrun",
     "--nproc-per-node --nproc_per_node --nnodes --node-rank --node_rank "
     "--master-addr --master_addr --master-port --master_port --rdzv-endpoint "
     "--rdzv_endpoint --rdzv-backend --rdzv_backend --rdzv-id --rdzv_id "
     "--max-restarts --max_restarts --log-dir --log_dir -r -t --role --redirects "
     "--tee --start-method --start_method --monitor-interval --monitor_interval",
     0, false, false},
    {"sh", "-o", 0, true, false},
    {"bash", "-o -O --rcfile --init-file", 0, true, false},
    {"dash", "-o", 0, true, false},
    {"zsh", "-o", 0, true, false},
};

/* With a slash at its end the whole path. */
static const char *base_name(const char *path) {
  const char *const name = run_base_name(path);
  return *name ? name : path;
}

/* Of MPI also with an ending: mpirun.openmpi, mpiexec.hydra. */
static bool program_has_name(const char *program, const char *name) {
  const size_t bytes = strlen(name);
  if (strncmp(program, name, bytes) != 0) return false;
  return program[bytes] == '\0' || (program[bytes] == '.' && strncmp(name, "mpi", 3) == 0);
}

static const launcher *find_launcher(const char *word) {
  for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++)
    if (program_has_name(base_name(word), launchers[i].name)) return &launchers[i];
  return NULL;
}

/* How often the list has the word. */
static size_t known_prefix_count(const char *list, const char *word) {
  const size_t bytes = strlen(word);
  size_t count = 0;
  for (const char *at = strstr(list, word); at; at = strstr(at + 1, word))
    count += (at == list || at[-1] == ' ') && (at[bytes] == ' ' || at[bytes] == '\0');
  return count;
}

static bool word_is_variable(const char *word) {
  const char *const equals = strchr(word, '=');
  return equals && equals != word && !memchr(word, '/', (size_t)(equals - word));
}

/* The first word of shell text that is a program's, or NULL. */
static const char *program_of_text(const char *text) {
  static const char *const keywords = "exec command if while until for { ( ! time do then set";
  run_words words = {0};
  run_words_split(&words, text);
  for (size_t i = 0; i < words.count; i++) {
    char *word = words.items[i];
    word += strspn(word, "\"'({");
    word[strcspn(word, ";&|<>()\"'`$")] = '\0';
    if (*word && !word_is_variable(word) && known_prefix_count(keywords, word) == 0) return word;
    if (!*word) break;
  }
  return NULL;
}

/* The index of the program behind the launcher at `at`, or count. *text_out: shell text instead. */
static size_t program_after_launcher(const run_words *words, size_t at, const char **text_out) {
  const launcher *const l = find_launcher(words->items[at++]);
  int operands = l->operands;
  for (; at < words->count; at++) {
    const char *const word = words->items[at];
    if (strcmp(word, "--") == 0) continue;
    if (l->is_script && word[0] == '-' && word[1] != '-' && strchr(word, 'c')) {
      *text_out = at + 1 < words->count ? words->items[at + 1] : NULL;
      return words->count;
    }
    if (word[0] == '-' && word[1])
      at += known_prefix_count(l->values, word);
    else if (l->has_variables && word_is_variable(word))
      continue;
    else if (operands > 0)
      operands--;
    else
      return at;
  }
  return words->count;
}

char *run_program_name(const char *name) {
  enum { BYTES_MAX = 128, MORE_BYTES_MAX = 3 }; /* a character has at most 3 more bytes */
  size_t bytes = strlen(name);
  if (bytes > BYTES_MAX)
    for (bytes = BYTES_MAX; bytes > BYTES_MAX - MORE_BYTES_MAX; bytes--)
      if (((unsigned char)name[bytes] & 0xc0) != 0x80) break;
  return run_copy(name, bytes);
}

bool run_is_launcher(const char *word) { return find_launcher(word) != NULL; }

char *run_workload_name(const run_words *workload) {
  const bool is_module = strcmp(workload->items[0], "-m") == 0 && workload->count > 1;
  const char *name = workload->items[is_module], *text = NULL;
  for (size_t at = 0; at < workload->count && find_launcher(workload->items[at]);) {
    at = program_after_launcher(workload, at, &text);
    if (at < workload->count) name = workload->items[at];
  }
  if (text) text = program_of_text(text);
  if (text) name = text;
  char *const clean = run_text("%s", base_name(name));
  for (char *c = clean; *c; c++)
    if (*c == '%' || *c == '/' || (unsigned char)*c < 0x20) *c = '_';
  return clean;
}

bool run_python_is_interpreter(const char *word) {
  const char *name = run_base_name(word);
  if (strncmp(name, "python", 6) == 0)
    name += 6;
  else if (strncmp(name, "pypy", 4) == 0)
    name += 4;
  else
    return false;
  return name[strspn(name, "0123456789.")] == '\0';
}
