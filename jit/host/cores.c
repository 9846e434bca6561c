/* How many cores may be used: those that the process may run on, and what its control groups lend of their time. */
#define _GNU_SOURCE
#include "jit/jit.h"

#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- Affinity ---- */

/* Of any number of processors: the mask grows until the system takes it. 0: it does not say. */
static int count_allowed(void) {
  enum { MOST = 1 << 16 };
  for (int processors = 1024; processors <= MOST; processors *= 2) {
    size_t bytes = CPU_ALLOC_SIZE(processors);
    cpu_set_t *set = CPU_ALLOC(processors);
    if (!set) abort();
    bool said = !sched_getaffinity(0, bytes, set), larger = !said && errno == EINVAL;
    int count = said ? CPU_COUNT_S(bytes, set) : 0;
    CPU_FREE(set);
    if (!larger) return count;
  }
  return 0;
}

/* ---- Control groups. Source: Linux, Documentation/admin-guide/cgroup-v2.rst, scheduler/sched-bwc.rst ---- */

/* Where one kind of groups is seen: the folder `point` shows the groups from `root` on. */
struct hierarchy {
  bool second; /* the version */
  char root[PATH_MAX], point[PATH_MAX];
};

static FILE *open_at(const char *system, const char *folder, const char *name) {
  char whole[3 * PATH_MAX];
  int length = snprintf(whole, sizeof whole, "%s%s/%s", system, folder, name);
  return length < (int)sizeof whole ? fopen(whole, "re") : NULL;
}

/* Spaces and such stand in a mount table as octal numbers. */
static void unescape(char *text) {
  char *to = text;
  for (const char *at = text; *at; to++) {
    unsigned code;
    bool escaped = *at == '\\' && sscanf(at + 1, "%3o", &code) == 1;
    *to = escaped ? (char)code : *at;
    at += escaped ? 4 : 1;
  }
  *to = 0;
}

static bool has_word(const char *list, const char *word) {
  size_t length = strlen(word);
  for (const char *at = list; (at = strstr(at, word)) != NULL; at += length) {
    bool begins = at == list || at[-1] == ',', ends = !at[length] || strchr(",\n", at[length]);
    if (begins && ends) return true;
  }
  return false;
}

/* What groups limit: the controller's name, and the limit of one group, by its files in a folder; 0: none. */
struct resource {
  const char *controller;
  double (*limit)(const char *system, bool second, const char *folder);
};

/* The first mount of the groups that limit it, of that version. */
static bool find_hierarchy(const char *system, bool second, const char *controller, struct hierarchy *out) {
  FILE *file = open_at(system, "/proc/self", "mountinfo");
  char *line = NULL;
  size_t size = 0;
  bool found = false;
  out->second = second;
  while (file && !found && getline(&line, &size, file) > 0) {
    char type[64], options[1024] = "";
    const char *rest = strstr(line, " - ");
    found = rest && sscanf(rest, " - %63s %*s %1023s", type, options) >= 1 &&
            !strcmp(type, second ? "cgroup2" : "cgroup") && (second || has_word(options, controller)) &&
            sscanf(line, "%*s %*s %*s %4095s %4095s", out->root, out->point) == 2;
  }
  free(line);
  if (file) fclose(file);
  if (!found) return false;
  unescape(out->root);
  unescape(out->point);
  return true;
}

/* The group of this process, as /proc/self/cgroup has it: `0::/a/b`, or `4:cpu,cpuacct:/a/b`. */
static bool find_group(const char *system, bool second, const char *controller, char out[PATH_MAX]) {
  FILE *file = open_at(system, "/proc/self", "cgroup");
  char *line = NULL;
  size_t size = 0;
  bool found = false;
  while (file && !found && getline(&line, &size, file) > 0) {
    line[strcspn(line, "\n")] = 0;
    char *controllers = strchr(line, ':'), *path = controllers ? strchr(controllers + 1, ':') : NULL;
    if (!path) continue;
    *controllers++ = *path++ = 0;
    found = second ? !strcmp(line, "0") && !*controllers : has_word(controllers, controller);
    if (found) snprintf(out, PATH_MAX, "%s", path);
  }
  free(line);
  if (file) fclose(file);
  return found;
}

static bool read_number(const char *system, const char *folder, const char *name, double *out) {
  FILE *file = open_at(system, folder, name);
  bool read = file && fscanf(file, "%lf", out) == 1;
  if (file) fclose(file);
  return read;
}

/* Processors that one group may use at once, by its time a period; 0: it sets no limit. */
static double quota_of(const char *system, bool second, const char *folder) {
  double time = 0, period = 0;
  if (second) {
    FILE *file = open_at(system, folder, "cpu.max");
    int read = file ? fscanf(file, "%lf %lf", &time, &period) : 0; /* "max" is no number */
    if (file) fclose(file);
    if (read == 1) period = 1e5;
  } else if (!read_number(system, folder, "cpu.cfs_quota_us", &time) ||
             !read_number(system, folder, "cpu.cfs_period_us", &period)) {
    return 0;
  }
  return time > 0 && period > 0 ? time / period : 0;
}

/* Bytes of memory that one group may have; 0: it sets no limit. */
static double memory_of(const char *system, bool second, const char *folder) {
  double bytes = 0; /* "max" is no number */
  return read_number(system, folder, second ? "memory.max" : "memory.limit_in_bytes", &bytes) && bytes > 0 ? bytes : 0;
}

static double least(double quota, double other) { return other > 0 && (quota <= 0 || other < quota) ? other : quota; }

/* The smallest of the group's and of all that it is in, as far up as they are seen. */
static double limit_within(const char *system, bool second, const struct resource *of) {
  struct hierarchy h;
  char group[PATH_MAX], folder[2 * PATH_MAX];
  double limit = 0;
  if (!find_hierarchy(system, second, of->controller, &h) || !find_group(system, second, of->controller, group))
    return 0;
  size_t shown = strcmp(h.root, "/") ? strlen(h.root) : 0;
  bool inside = !strncmp(group, h.root, shown) && (!group[shown] || group[shown] == '/');
  const char *path = inside ? group + shown : "";
  snprintf(folder, sizeof folder, "%s%s", h.point, path);
  size_t top = strlen(h.point);
  for (;;) {
    limit = least(limit, of->limit(system, second, folder));
    char *end = strlen(folder) > top ? strrchr(folder + top, '/') : NULL;
    if (!end) return limit;
    *end = 0;
  }
}

static double limit_of(const char *system, const struct resource *of) {
  return least(limit_within(system, true, of), limit_within(system, false, of));
}

double cores_quota(const char *system) {
  static const struct resource processors = {"cpu", quota_of};
  return limit_of(system, &processors);
}

double cores_memory(const char *system) {
  static const struct resource memory = {"memory", memory_of};
  return limit_of(system, &memory);
}

size_t jit_usable_memory(void) {
  long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
  double most = pages > 0 && page > 0 ? (double)pages * (double)page : 0, lent = least(most, cores_memory(""));
  return lent < (double)SIZE_MAX ? (size_t)lent : SIZE_MAX;
}

/* A fraction of a core is left: who is throttled in the middle of a run is timed wrong. */
int cores_usable(int allowed, double quota) {
  int most = quota > 0 && quota < allowed ? (int)quota : allowed;
  return most < 1 ? 1 : most;
}

void jit_count_cores(struct jit_cores *out) {
  assert(out);
  long online = sysconf(_SC_NPROCESSORS_ONLN);
  *out = (struct jit_cores){.online = online > 0 ? (int)online : 1, .quota = cores_quota("")};
  int allowed = count_allowed();
  out->allowed = allowed > 0 ? allowed : out->online;
  if (out->online < out->allowed) out->online = out->allowed;
  out->usable = cores_usable(out->allowed, out->quota);
}
