/* What was found of maps of late: the checks of one instruction after another ask of the same, and the long way to an
 * answer takes longer than most edits. An answer depends on expressions and on domains of variables alone, which never
 * change: it holds until they go. */
#include "known.h"

#include "tir/node/arena.h"

#include <string.h>

enum { MOST_FACTS = 4, MOST_WORDS = 96 };

struct facts {
  struct fact {
    enum tir_map_fact is;
    uint32_t count, var_count;
    uint32_t words[MOST_WORDS]; /* predicate, indices, variables */
    uint32_t exprs, vars;       /* all are below these */
  } at[MOST_FACTS];
  uint32_t next;
};

static void forget(void *memory, const struct tir_mark *left) {
  struct facts *facts = memory;
  for (int i = 0; i < MOST_FACTS; i++) {
    struct fact *f = &facts->at[i];
    if (f->exprs > left->exprs || f->vars > left->vars) f->is = TIR_FACT_NONE;
  }
}

static struct facts *facts_of(const struct tir *ir) {
  static const struct tir_scratch_kind kind = {sizeof(struct facts), NULL, forget};
  return tir_scratch_of(ir, TIR_SCRATCH_FACTS, &kind);
}

static bool is_fact(const struct fact *f, enum tir_map_fact is, const struct tir_map *map) {
  return f->is == is && f->count == map->count && f->var_count == map->var_count && f->words[0] == map->predicate &&
         !memcmp(f->words + 1, map->indices, map->count * sizeof *map->indices) &&
         !memcmp(f->words + 1 + map->count, map->vars, map->var_count * sizeof *map->vars);
}

bool tir_is_known_map(const struct tir *ir, enum tir_map_fact fact, const struct tir_map *map) {
  assert(fact != TIR_FACT_NONE);
  const struct facts *facts = facts_of(ir);
  for (int i = 0; i < MOST_FACTS; i++)
    if (is_fact(&facts->at[i], fact, map)) return true;
  return false;
}

static uint32_t end_of(const uint32_t *words, uint32_t count) {
  uint32_t end = 0;
  for (uint32_t i = 0; i < count; i++)
    if (words[i] >= end) end = words[i] + 1;
  return end;
}

void tir_keep_map(struct tir *ir, enum tir_map_fact fact, const struct tir_map *map) {
  assert(fact != TIR_FACT_NONE);
  if (1ull + map->count + map->var_count > MOST_WORDS || tir_is_known_map(ir, fact, map)) return;
  struct facts *facts = facts_of(ir);
  struct fact *f = &facts->at[facts->next++ % MOST_FACTS];
  f->is = fact;
  f->count = map->count;
  f->var_count = map->var_count;
  f->words[0] = map->predicate;
  if (map->count) memcpy(f->words + 1, map->indices, map->count * sizeof *map->indices);
  if (map->var_count) memcpy(f->words + 1 + map->count, map->vars, map->var_count * sizeof *map->vars);
  f->exprs = end_of(f->words, 1 + map->count);
  f->vars = end_of(f->words + 1 + map->count, map->var_count);
}
