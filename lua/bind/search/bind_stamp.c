/* What a proposal depends on besides its function, target and seed: this program, and the Lua that spaces and estimates
 * are made by. */
#define _GNU_SOURCE
#include "bind_store.h"

#include <elf.h>
#include <fcntl.h>
#include <ftw.h>
#include <link.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <xxhash.h>

static uint64_t stamp; /* 0: nothing tells this program from others */
static size_t root_length;

/* ---- The program: what the linker wrote into it of what it was made of (a note, NT_GNU_BUILD_ID) ---- */

static uint64_t build_in(const char *notes, size_t bytes) {
  for (size_t at = 0; at + sizeof(ElfW(Nhdr)) <= bytes;) {
    const ElfW(Nhdr) *note = (const void *)(notes + at);
    size_t name = at + sizeof *note, text = name + ((note->n_namesz + 3u) & ~3u);
    at = text + ((note->n_descsz + 3u) & ~3u);
    if (at > bytes) return 0;
    if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4 && !memcmp(notes + name, "GNU", 4))
      return XXH3_64bits(notes + text, note->n_descsz);
  }
  return 0;
}

static int find_build(struct dl_phdr_info *info, size_t size, void *out) {
  uintptr_t own = (uintptr_t)&stamp;
  bool is_own = false;
  uint64_t found = 0;
  (void)size;
  for (int i = 0; i < info->dlpi_phnum; i++) {
    const ElfW(Phdr) *p = &info->dlpi_phdr[i];
    const char *at = (const char *)(info->dlpi_addr + p->p_vaddr);
    is_own = is_own || (p->p_type == PT_LOAD && own >= (uintptr_t)at && own - (uintptr_t)at < p->p_memsz);
    if (p->p_type == PT_NOTE && !found) found = build_in(at, p->p_memsz);
  }
  if (is_own) *(uint64_t *)out = found;
  return is_own;
}

/* ---- Files: in any order ---- */

static uint64_t hash_of_file(const char *path, size_t bytes) {
  int file = open(path, O_RDONLY | O_CLOEXEC);
  void *text = file < 0 || !bytes ? MAP_FAILED : mmap(NULL, bytes, PROT_READ, MAP_PRIVATE, file, 0);
  if (file >= 0) close(file);
  if (text == MAP_FAILED) return bytes;
  uint64_t hash = XXH3_64bits(text, bytes);
  munmap(text, bytes);
  return hash;
}

static int add_file(const char *path, const struct stat *status, int type, struct FTW *where) {
  (void)where;
  size_t length = strlen(path);
  if (type != FTW_F || length < 4 || strcmp(path + length - 4, ".lua")) return 0;
  uint64_t pair[] = {XXH3_64bits(path + root_length, length - root_length),
                     hash_of_file(path, (size_t)status->st_size)};
  stamp += XXH3_64bits(pair, sizeof pair);
  return 0;
}

static void make_stamp(void) {
  static const char *const folders[] = {"rules", "search", "lua/lib", "lua/net"};
  uint64_t build = 0;
  enum { MOST_OPEN = 16, MOST_PATH = 4200 };
  char path[MOST_PATH];
  dl_iterate_phdr(find_build, &build);
  script_path("", path, sizeof path);
  root_length = strlen(path);
  for (size_t i = 0; i < sizeof folders / sizeof *folders && build; i++) {
    script_path(folders[i], path, sizeof path);
    if (nftw(path, add_file, MOST_OPEN, FTW_PHYS)) build = 0;
  }
  stamp = build ? stamp ^ build : 0;
}

int bind_stamp(lua_State *L) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  char text[20];
  pthread_once(&once, make_stamp);
  if (!stamp) return 0;
  snprintf(text, sizeof text, "%016llx", (unsigned long long)stamp);
  lua_pushstring(L, text);
  return 1;
}
