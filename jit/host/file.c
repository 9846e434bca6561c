#include "file.h"

#include "jit/jit.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

bool jit_write_file(const char *path, const void *bytes, size_t size, ms_error *err) {
  assert(path && (bytes || !size));
  char temporary[4200];
  if (snprintf(temporary, sizeof temporary, "%s.%ld.part", path, (long)getpid()) >= (int)sizeof temporary)
    return ms_fail(err, MS_IO, "%s: the path is too long", path);
  int kept = jit_temporary(temporary);
  FILE *file = fopen(temporary, "wb");
  bool ok = file && fwrite(bytes, 1, size, file) == size;
  if (file && fclose(file) != 0) ok = false;
  ok = ok && rename(temporary, path) == 0;
  int reason = errno;
  if (!ok) unlink(temporary);
  jit_temporary_end(kept);
  return ok || ms_fail(err, MS_IO, "%s: %s", path, strerror(reason));
}
