/* Leases of devices. The lock is flock's: it ends with the process, however that ends. In /tmp, where others may put
 * what they like, nothing is followed, written or truncated, and what is no plain file is no lock. */
#define _GNU_SOURCE
#include "lease.h"
#include "jit/measure/measure.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static void (*say_waiting)(const char *text);
void jit_say_waiting(void (*say)(const char *text)) { say_waiting = say; }

static bool is_own_folder(const char *path) {
  struct stat at;
  return path && *path == '/' && !stat(path, &at) && S_ISDIR(at.st_mode) && at.st_uid == geteuid() &&
         !access(path, W_OK | X_OK);
}

/* As NVIDIA's tools write it, or "PCI-" and where the device is. */
static void name_of(const struct jit_device *device, char out[80]) {
  const struct driver *d = device->driver;
  CUuuid uuid;
  int number = 0, length;
  d->get(&number, device->ordinal);
  if (!d->uuid || d->uuid(&uuid, number)) {
    length = snprintf(out, 80, "PCI-");
    if (d->place(out + length, 40, number)) snprintf(out + length, 40, "%d", device->ordinal);
    for (char *c = out; *c; c++)
      if (*c == '/' || *c == ':') *c = '-';
    return;
  }
  length = snprintf(out, 80, "GPU-");
  for (int i = 0; i < 16; i++)
    length += snprintf(out + length, 80 - (size_t)length, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "",
                       uuid.bytes[i]);
}

void lease_path(const struct jit_device *device, char *out, size_t size) {
  const char *own = getenv("XDG_RUNTIME_DIR");
  char name[80];
  name_of(device, name);
  snprintf(out, size, "%s/msched-%s.lock", is_own_folder(own) ? own : "/tmp", name);
}

/* Another user's file serves as well: reading is enough to lock it. -1: there is none. */
static int open_file(const char *path) {
  enum { FLAGS = O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY | O_NONBLOCK };
  struct stat at;
  int file = open(path, FLAGS);
  if (file < 0 && errno == ENOENT) {
    file = open(path, FLAGS | O_CREAT | O_EXCL, 0644);
    if (file < 0 && errno == EEXIST) file = open(path, FLAGS);
  }
  if (file < 0 || (!fstat(file, &at) && S_ISREG(at.st_mode))) return file;
  close(file);
  return -1;
}

static const double PATIENCE = 1; /* seconds before it is said */

/* Asked again and again, and not waited for in the kernel, so that it can be said. */
static void wait_for(int file, const char *path) {
  double start = measure_now();
  bool said = false;
  struct timespec pause = {.tv_nsec = 200 * 1000};
  while (flock(file, LOCK_EX | LOCK_NB) && (errno == EWOULDBLOCK || errno == EINTR)) {
    if (!said && say_waiting && measure_now() - start > PATIENCE) {
      char text[400];
      said = true;
      snprintf(text, sizeof text, "waits for the device, on which another msched times candidates (%.300s)", path);
      say_waiting(text);
    }
    nanosleep(&pause, NULL);
    if (pause.tv_nsec < 2 * 1000 * 1000) pause.tv_nsec *= 2;
  }
}

void lease_take(struct jit_device *device) {
  struct lease *l = &device->lease;
  char path[300];
  if (l->depth++) return;
  lease_path(device, path, sizeof path);
  if (!l->opened) l->opened = true, l->file = open_file(path);
  if (l->file >= 0) wait_for(l->file, path);
}

void lease_give(struct jit_device *device) {
  struct lease *l = &device->lease;
  assert(l->depth > 0);
  if (!--l->depth && l->file >= 0) flock(l->file, LOCK_UN);
}
