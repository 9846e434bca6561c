/* Iterator maps against a table of what TVM's arithmetic analyzer says of them (data/iter_maps.txt): the verdict, what
 * each index runs through, the simplified indices and the inverse, whether the expressions come raw or simplified.
 *
 * A line: variables [: other variables]; indices; predicate; check trivial; no, or yes and a progression an index;
 * simplified indices; the inverse in o0, o1, …. */
#include "tir/arith/iter_map.h"
#include "unit/table.h"

enum { MOST = 16, FIELDS = 7 };

struct one_case {
  struct names names;
  tir_var vars[MOST];
  tir_expr indices[MOST];
  uint32_t others, var_count, count; /* the names of others come first */
  tir_expr predicate;
  enum tir_map_check check;
  bool trivial;
  const char *fields[FIELDS];
};

/* name min extent, …: the extent may be an expression of others. n and m are shapes. */
static void read_vars(struct one_case *c, const char *at, bool iterates) {
  char name[16];
  int64_t min;
  int used;
  while (sscanf(at, " %15s %ld%n", name, &min, &used) == 2 && *name != ':') {
    at += used;
    tir_expr extent = read_prefix(&c->names, &at);
    const struct tir_expr_node *e = tir_at(c->names.ir, extent);
    struct named *n;
    if (!strcmp(name, "n") || !strcmp(name, "m"))
      n = add_symbol(&c->names, name, min, e->imm);
    else if (e->kind == TIR_INT_IMM)
      n = add_name(&c->names, name, min, e->imm);
    else
      n = add_ranged(&c->names, name, extent);
    if (iterates) c->vars[c->var_count++] = n->var;
    at += strspn(at, " ,");
  }
}

static uint32_t read_list(struct one_case *c, const char *at, tir_expr *out) {
  uint32_t count = 0;
  for (;;) {
    out[count++] = read_prefix(&c->names, &at);
    at += strspn(at, " ");
    if (*at != '|') return count;
    at++;
  }
}

static void read_case(struct one_case *c, char *line, bool simplifies) {
  char check[16];
  int trivial;
  c->names = (struct names){.ir = tir_new(), .simplifies = simplifies};
  c->var_count = 0;
  split_fields(line, c->fields, FIELDS);
  const char *others = strchr(c->fields[0], ':');
  if (others) read_vars(c, others + 1, false);
  c->others = c->names.count;
  read_vars(c, c->fields[0], true);
  c->count = read_list(c, c->fields[1], c->indices);
  const char *at = c->fields[2];
  c->predicate = strcmp(at, " true") ? read_prefix(&c->names, &at) : TIR_NONE;
  assert_int_equal(sscanf(c->fields[3], " %15s %d", check, &trivial), 2);
  c->check = !strcmp(check, "surjective")  ? TIR_MAP_SURJECTIVE
             : !strcmp(check, "bijective") ? TIR_MAP_BIJECTIVE
                                           : TIR_MAP_ANY;
  c->trivial = trivial;
}

/* Equal wherever the predicate holds. */
static bool same_values(struct one_case *c, tir_expr a, tir_expr b) {
  bool wrong = false;
  first_values(&c->names);
  do {
    if (c->predicate && !value_of(&c->names, c->predicate, &wrong)) continue;
    if (value_of(&c->names, a, &wrong) != value_of(&c->names, b, &wrong)) return false;
  } while (next_values(&c->names));
  return true;
}

static bool same_progression(struct one_case *c, struct tir_progression p, const char *text) {
  const char *at = text;
  tir_expr base = read_prefix(&c->names, &at);
  if (!same_values(c, base, p.base)) return false;
  at++;
  if (*at == ',') return !p.scale;
  if (!p.scale) return false;
  tir_expr scale = read_prefix(&c->names, &at);
  at++;
  return same_values(c, scale, p.scale) && same_values(c, read_prefix(&c->names, &at), p.extent);
}

static bool is_empty(struct one_case *c) { /* a variable has no values at all */
  bool wrong = false;
  for (uint32_t i = c->others; i < c->names.count; i++)
    if (c->names.at[i].extent_expr && value_of(&c->names, c->names.at[i].extent_expr, &wrong) <= 0) return true;
  return false;
}

/* For the present values of the others. */
static bool fills_box_now(struct one_case *c, const struct tir_progression *out) {
  struct names *n = &c->names;
  bool wrong = false;
  int64_t total = 1, origin[MOST], scale[MOST], extent[MOST];
  for (uint32_t i = 0; i < c->count; i++) {
    origin[i] = value_of(n, out[i].base, &wrong);
    scale[i] = out[i].scale ? value_of(n, out[i].scale, &wrong) : 1;
    extent[i] = out[i].scale ? value_of(n, out[i].extent, &wrong) : 1;
    total *= extent[i];
  }
  if (total <= 0) return true; /* a predicate that never holds */
  bool *seen = calloc((size_t)total, sizeof *seen), inside = true;
  int64_t found = 0;
  do {
    if (c->predicate && !value_of(n, c->predicate, &wrong)) continue;
    int64_t place = 0;
    for (uint32_t i = 0; i < c->count; i++) {
      int64_t offset = value_of(n, c->indices[i], &wrong) - origin[i];
      inside &= offset % scale[i] == 0 && offset / scale[i] >= 0 && offset / scale[i] < extent[i];
      place = place * extent[i] + offset / scale[i];
    }
    if (!inside) break;
    found += !seen[place];
    seen[place] = true;
  } while (next_values_among(n, c->others, n->count));
  for (uint32_t i = c->others; i < n->count; i++) n->at[i].value = n->at[i].min; /* after a break */
  free(seen);
  return inside && (found == total || found == 0);
}

/* The values of the indices fill the box of their progressions. */
static bool fills_box(struct one_case *c, const struct tir_progression *out) {
  first_values(&c->names);
  do
    if (!is_empty(c) && !fills_box_now(c, out)) return false;
  while (next_values_among(&c->names, 0, c->others));
  return true;
}

static const char *check_verdict(struct one_case *c) {
  struct tir_progression out[MOST];
  bool yes = tir_detect_iter_map(c->names.ir, c->indices, c->count, c->vars, c->var_count, c->predicate, c->check,
                                 c->trivial, out);
  const char *at = c->fields[4];
  struct tir_progression box[MOST];
  if (iter_covers_box(c->names.ir, c->indices, c->count, c->vars, c->var_count, c->predicate, box) &&
      !fills_box(c, box))
    return "does not fill its box";
  if (c->names.simplifies) return NULL; /* simplified, more is recognized than the table's words allow */
  if (yes != !strncmp(at, " yes", 4)) return yes ? "recognized" : "not recognized";
  if (!yes) return NULL;
  at += 5;
  for (uint32_t i = 0; i < c->count; i++) {
    if (!same_progression(c, out[i], at)) return "another progression";
    at += strcspn(at, "|") + 1;
  }
  return NULL;
}

static const char *check_simplified(struct one_case *c) {
  tir_expr out[MOST], wanted[MOST];
  tir_simplify_iter_map(c->names.ir, c->indices, c->count, c->vars, c->var_count, c->predicate, c->check, c->trivial,
                        out);
  for (uint32_t i = 0; i < c->count; i++)
    if (!same_values(c, c->indices[i], out[i])) return "wrong when simplified";
  if (!strcmp(c->fields[5], " -") || c->names.simplifies) return NULL;
  read_list(c, c->fields[5], wanted);
  c->predicate = TIR_NONE;
  for (uint32_t i = 0; i < c->count; i++) {
    if (same_values(c, wanted[i], out[i])) continue;
    print_prefix(&c->names, out[i], stderr);
    fputc('\n', stderr);
    return "simplified to another value outside the predicate";
  }
  return NULL;
}

/* The inverse gives back the variables. */
static const char *check_inverse(struct one_case *c) {
  tir_expr outputs[MOST], values[MOST];
  if (!strcmp(c->fields[6], " -") || !strcmp(c->fields[6], " ")) return NULL;
  struct tir *ir = c->names.ir;
  uint32_t own = c->names.count;
  for (uint32_t i = 0; i < c->count; i++) {
    char name[16];
    snprintf(name, sizeof name, "o%u", i);
    outputs[i] = tir_var_expr(ir, tir_new_var(ir, TIR_VAR_PLAIN, tir_name_of(ir, name), TIR_T_I32, TIR_NONE, TIR_NONE));
    c->names.at[own + i] = (struct named){.var = tir_at(ir, outputs[i])->ref};
  }
  if (!tir_inverse_affine_map(ir, c->indices, c->count, c->vars, c->var_count, c->predicate, outputs, 1, values))
    return c->names.simplifies ? NULL : "not inverted";
  bool wrong = false;
  first_values(&c->names);
  do {
    if (c->predicate && !value_of(&c->names, c->predicate, &wrong)) continue;
    for (uint32_t i = 0; i < c->count; i++) c->names.at[own + i].value = value_of(&c->names, c->indices[i], &wrong);
    c->names.count = own + c->count;
    for (uint32_t i = 0; i < c->var_count; i++) {
      if (!values[i]) continue;
      if (value_of(&c->names, values[i], &wrong) != c->names.at[c->others + i].value) return "wrongly inverted";
    }
    c->names.count = own;
  } while (next_values(&c->names));
  return NULL;
}

static const char *run_case(char *line, bool simplifies) {
  struct one_case c;
  read_case(&c, line, simplifies);
  const char *why = check_verdict(&c);
  if (!why) why = check_inverse(&c);
  if (!why) why = check_simplified(&c);
  tir_free(c.names.ir);
  return why;
}

int main(void) { return run_table(TEST_ROOT "/unit/data/iter_maps.txt"); }
