/* Regions against a table of what TVM says of them (data/regions.txt), and against what they really cover, counted.
 *
 * A line: relaxed variables : other variables; min , extent | …; predicate; exact: no, or lo , hi | …; upper bound; by
 * interval arithmetic alone. */
#include "tir/analysis/analysis.h"
#include "unit/table.h"

enum { MOST = 16, FIELDS = 6 };

struct one_case {
  struct names names; /* the others first */
  tir_var relaxed[MOST];
  uint32_t relaxed_count, others, rank;
  tir_expr ranges[2 * MOST], predicate;
  const char *fields[FIELDS];
};

static const char *read_vars(struct one_case *c, const char *at, bool relaxed) {
  char name[16];
  int64_t min, extent;
  int used;
  while (sscanf(at, " %15s %ld %ld%n", name, &min, &extent, &used) == 3 && *name != ':') {
    struct named *n = add_name(&c->names, name, min, extent);
    if (relaxed) c->relaxed[c->relaxed_count++] = n->var;
    at += used + strspn(at + used, " ,");
  }
  return at;
}

static void read_case(struct one_case *c, char *line, bool simplifies) {
  split_fields(line, c->fields, FIELDS);
  c->names = (struct names){.ir = tir_new(), .simplifies = simplifies};
  c->relaxed_count = c->rank = 0;
  read_vars(c, strchr(c->fields[0], ':') + 1, false);
  c->others = c->names.count;
  read_vars(c, c->fields[0], true);
  for (const char *at = c->fields[1];; at++) {
    c->ranges[2 * c->rank] = read_prefix(&c->names, &at);
    at += strspn(at, " ,");
    c->ranges[2 * c->rank++ + 1] = read_prefix(&c->names, &at);
    at += strspn(at, " ");
    if (*at != '|') break;
  }
  const char *at = c->fields[2];
  c->predicate = strcmp(at, " true") ? read_prefix(&c->names, &at) : TIR_NONE;
}

/* Equal for all values of the variables that are not relaxed. */
static bool same_ends(struct one_case *c, const char *at, const struct tir_interval *got) {
  for (uint32_t i = 0; i < c->rank; i++) {
    at += strspn(at, " |");
    if (!strncmp(at, "empty", 5)) return true; /* not distinguished */
    bool open = !strncmp(at, "none", 4), wrong = false;
    if (open) return !got[i].min;
    tir_expr min = read_prefix(&c->names, &at);
    at += strspn(at, " ,");
    tir_expr max = read_prefix(&c->names, &at);
    if (got[i].empty || !got[i].min || !got[i].max) return false;
    first_values(&c->names);
    do {
      if (value_of(&c->names, min, &wrong) != value_of(&c->names, got[i].min, &wrong)) return false;
      if (value_of(&c->names, max, &wrong) != value_of(&c->names, got[i].max, &wrong)) return false;
    } while (next_values_among(&c->names, 0, c->others));
  }
  return true;
}

struct box {
  uint32_t rank;
  int64_t low[MOST], extent[MOST];
  bool *seen; /* NULL: too wide to look everywhere */
  int64_t total, found;
};

/* Marks what the region covers of the box for the present values. False: it leaves the box. */
static bool mark_covered(struct one_case *c, struct box *box) {
  int64_t first[MOST], width[MOST] = {0}, at[MOST] = {0};
  bool inside = true, wrong = false;
  for (uint32_t i = 0; i < box->rank; i++) {
    first[i] = value_of(&c->names, c->ranges[2 * i], &wrong) - box->low[i];
    width[i] = value_of(&c->names, c->ranges[2 * i + 1], &wrong);
    inside &= first[i] >= 0 && first[i] + width[i] <= box->extent[i];
  }
  for (bool next = inside && box->seen; next;) {
    int64_t place = 0;
    for (uint32_t i = 0; i < box->rank; i++) place = place * box->extent[i] + first[i] + at[i];
    box->found += !box->seen[place];
    box->seen[place] = true;
    uint32_t d = 0;
    while (d < box->rank && ++at[d] == width[d]) at[d++] = 0;
    next = d < box->rank;
  }
  return inside;
}

/* Whether all that is covered lies inside, and with `exact` whether the box has no holes, for the present values of the
 * other variables. Of a wide box only the corners are checked. */
static bool holds_now(struct one_case *c, const struct tir_interval *ends, bool exact) {
  struct names *n = &c->names;
  struct box box = {.rank = c->rank, .total = 1};
  bool wrong = false, inside = true, any = false;
  for (uint32_t i = 0; i < c->rank; i++) {
    if (ends[i].empty || !ends[i].min || !ends[i].max) return true;
    box.low[i] = value_of(n, ends[i].min, &wrong);
    box.extent[i] = value_of(n, ends[i].max, &wrong) - box.low[i] + 1;
    if (box.extent[i] <= 0) return true;
    box.total *= box.extent[i];
  }
  if (box.total < 100000) box.seen = calloc((size_t)box.total, sizeof *box.seen);
  for (uint32_t i = c->others; i < n->count; i++) n->at[i].value = n->at[i].min;
  do {
    if (c->predicate && !value_of(n, c->predicate, &wrong)) continue;
    any = true;
    inside = mark_covered(c, &box);
  } while (inside && next_values_among(n, c->others, n->count));
  bool full = !exact || !box.seen || box.found == box.total || !any;
  free(box.seen);
  return inside && full;
}

static bool holds(struct one_case *c, const struct tir_interval *box, bool exact) {
  first_values(&c->names);
  do
    if (!holds_now(c, box, exact)) return false;
  while (next_values_among(&c->names, 0, c->others));
  return true;
}

static const char *check_case(struct one_case *c) {
  struct tir *ir = c->names.ir;
  struct tir_interval exact[MOST], upper[MOST], relaxed[MOST];
  bool is_exact = tir_region_exact(ir, c->ranges, c->rank, c->relaxed, c->relaxed_count, c->predicate, exact);
  tir_region_upper_bound(ir, c->ranges, c->rank, c->relaxed, c->relaxed_count, c->predicate, upper);
  tir_relax_region(ir, c->ranges, c->rank, c->relaxed, c->relaxed_count, relaxed);
  if (is_exact && !holds(c, exact, true)) return "not what it covers exactly";
  if (!holds(c, upper, false)) return "no upper bound";
  tir_expr predicate = c->predicate;
  c->predicate = TIR_NONE;
  if (!holds(c, relaxed, false)) return "no upper bound by intervals";
  c->predicate = predicate;
  if (c->names.simplifies) return NULL; /* simplified, more is known */
  if (is_exact != (strcmp(c->fields[3], " no") != 0)) return is_exact ? "exact" : "not exact";
  if (is_exact && !same_ends(c, c->fields[3], exact)) return "another exact region";
  if (!same_ends(c, c->fields[4], upper)) return "another upper bound";
  if (!same_ends(c, c->fields[5], relaxed)) return "another relaxed region";
  return NULL;
}

static const char *run_case(char *line, bool simplifies) {
  struct one_case c;
  read_case(&c, line, simplifies);
  const char *why = check_case(&c);
  tir_free(c.names.ir);
  return why;
}

int main(void) { return run_table(TEST_ROOT "/unit/data/regions.txt"); }
