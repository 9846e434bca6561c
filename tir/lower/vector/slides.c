/* Slides: where windows of bytes slide over an image, as those of depthwise convolutions do, each lane adds a dot
 * product of neighbours in the window by one instruction, and a word of neighbours becomes the next window's by one
 * more element of the image.
 *
 *   C[0] = C[0] + i32(X[0]) * i32(W[0])                d0 = slide_lanes(0, X[0])         w = slide_lanes(0, W[0]), ...
 *   C[1] = C[1] + i32(X[1]) * i32(W[0])                d1 = slide_lanes(d0, X[1])
 *   C[0] = C[0] + i32(X[1]) * i32(W[1])    becomes     C[0] = dot_lanes(C[0], d1, w)
 *   C[1] = C[1] + i32(X[2]) * i32(W[1])                d2 = slide_lanes(d1, X[2])
 *                                                      C[1] = dot_lanes(C[1], d2, w)
 * All are vectors: C[i] in registers, X[i] and W[i] of a byte a lane. Of the statements that follow one another, those
 * are taken that add such a product to an accumulator. Filters that follow one another in the order of the statements
 * make a window, of four at most, where each accumulator has a place in a sequence of elements of the image, so that
 * filter j of the window multiplies the element j places behind. An element that an accumulator does not multiply, at
 * an edge of the image, is zero, if none of its sequence does. Windows of other rows share sequences.
 * Requires: loops are unrolled, vectors, buffers of one dimension. Keeps: sums, which wrap around, bit for bit. Words
 * are made where a target shifts two words as one, and that takes fewer operations than products by themselves. */
#include "tir/lower/lower.h"

#include <stdlib.h>
#include <string.h>

enum {
  WORD = TIR_SLIDE_WORD, /* a window's elements at most */
  MOST_STEPS = 512,      /* statements that are taken together */
  FAR = 1 << 20          /* a place that no element has */
};

/* A statement that adds a product. */
struct step {
  tir_stmt store;
  tir_expr image, filter; /* loads of bytes; TIR_NONE: zero, beside the image */
};

struct place {
  tir_expr image; /* TIR_NONE: nothing, which counts as zero */
  int at;
};

/* A sequence of elements of the image, and accumulators in it. */
struct sequence {
  struct place places[MOST_STEPS];
  int count, least, most;
};

/* A word: the last one's, and an element behind it. */
struct word {
  int before; /* -1: of zeros */
  tir_expr image;
  tir_var var;
};

/* A dot product that is to be: of the word and the window's filters, for the accumulator. */
struct sum {
  int word, accumulator, window;
};

struct run {
  struct lowering *low;
  struct tir *ir;
  struct step steps[MOST_STEPS];
  int count;
  tir_stmt accumulators[MOST_STEPS]; /* a statement that adds to it */
  tir_expr filters[MOST_STEPS];      /* in the order of statements */
  int accumulator_count, filter_count;
  tir_expr *images; /* by accumulator, then by filter; TIR_NONE: there is no such product */
  bool *taken;      /* those that stand in a window */
  struct word words[MOST_STEPS];
  struct sum sums[MOST_STEPS];
  int starts[MOST_STEPS], lengths[MOST_STEPS]; /* of windows: the first filter, and how many */
  int word_count, sum_count, window_count;
};

static bool is_byte(tir_type t) { return tir_type_is_int(t) && tir_type_bits(t) == 8; }

bool tir_is_slide(const struct tir *ir, const struct tir_expr_node *call) {
  if (call->kind != TIR_CALL || call->count != 2) return false;
  const tir_expr *args = tir_operands(ir, call->operands);
  tir_type element = tir_type_of(ir, args[1]);
  return is_byte(call->type) && tir_type_of(ir, args[0]) == call->type &&
         tir_type_with_lanes(call->type, tir_type_lanes(element)) == element &&
         tir_type_lanes(call->type) == WORD * tir_type_lanes(element);
}

/* ---- Steps ---- */

/* The whole vector of bytes that an expression widens, as it lies in a buffer; TIR_NONE: it does not. */
static tir_expr widened(const struct tir *ir, tir_expr e, tir_type to) {
  const struct tir_expr_node *n = tir_at(ir, e);
  if (n->kind != TIR_CAST || n->type != to) return TIR_NONE;
  tir_expr from = n->a;
  n = tir_at(ir, from);
  bool whole = n->kind == TIR_LOAD && !n->a && n->count == 1 && is_byte(n->type);
  if (!whole || tir_type_lanes(n->type) != tir_type_lanes(to)) return TIR_NONE;
  const struct tir_expr_node *index = tir_at(ir, tir_operands(ir, n->operands)[0]);
  return index->kind == TIR_RAMP && tir_is_const(ir, index->b, 1) ? from : TIR_NONE;
}

/* Whether it widens zeros: elements beside the image. */
static bool is_zero(const struct tir *ir, tir_expr e, tir_type to) {
  const struct tir_expr_node *n = tir_at(ir, e);
  if (n->kind != TIR_CAST || n->type != to || !is_byte(tir_type_with_lanes(tir_type_of(ir, n->a), 1))) return false;
  n = tir_at(ir, n->a);
  return n->kind == TIR_BROADCAST && tir_is_const(ir, n->a, 0);
}

static bool is_itself(const struct tir *ir, tir_expr e, const struct tir_stmt_node *store) {
  const struct tir_expr_node *n = tir_at(ir, e);
  return n->kind == TIR_LOAD && n->ref == store->store.buffer && n->count == 1 && !n->a &&
         ir->operands.at[n->operands] == ir->operands.at[store->store.indices];
}

static bool fills_register(const struct lowering *low, tir_type type) {
  int bits = tir_type_bits(type) * tir_type_lanes(type);
  return tir_type_is_int(type) && tir_type_bits(type) == 32 && bits >= 128 && bits <= lower_vector_bits(low) &&
         !(bits & (bits - 1));
}

/* Whether the statement adds to an accumulator in registers a product of bytes: filters of the second factor, or of the
 * first. */
static bool read_step(const struct lowering *low, tir_stmt s, bool swapped, struct step *step) {
  const struct tir *ir = low->ir;
  if (!tir_is(ir, s, TIR_STORE)) return false;
  struct tir_stmt_node n = *tir_stmt_at(ir, s);
  if (n.store.predicate || n.store.buffer < low->first_tile || tir_buffer_at(ir, n.store.buffer)->rank != 1)
    return false;
  const struct tir_expr_node *sum = tir_at(ir, n.store.value), *product;
  if (sum->kind != TIR_ADD || !fills_register(low, sum->type)) return false;
  bool first = is_itself(ir, sum->a, &n);
  if (!first && !is_itself(ir, sum->b, &n)) return false;
  product = tir_at(ir, first ? sum->b : sum->a);
  if (product->kind != TIR_MUL) return false;
  tir_expr image = swapped ? product->b : product->a;
  step->store = s;
  step->image = widened(ir, image, sum->type);
  step->filter = widened(ir, swapped ? product->a : product->b, sum->type);
  if (!step->filter || (!step->image && !is_zero(ir, image, sum->type))) return false;
  bool of_registers = step->image && tir_at(ir, step->image)->ref >= low->first_tile;
  return !of_registers && tir_at(ir, step->filter)->ref < low->first_tile;
}

/* The kind of their dot products, of operands in this order or, *swapped, in the other; TIR_DOTS: there is none. */
static enum tir_dot kind_of(const struct lowering *low, const struct step *s, bool *swapped) {
  tir_type x = tir_type_of(low->ir, s->image), w = tir_type_of(low->ir, s->filter);
  for (int i = 0; i < 2; i++) {
    enum tir_dot kind = i ? tir_dot_of(w, x) : tir_dot_of(x, w);
    *swapped = i;
    if (kind != TIR_DOTS && low->options->dots >> kind & 1) return kind;
  }
  return TIR_DOTS;
}

static tir_expr element_of(const struct tir *ir, tir_stmt store) {
  return ir->operands.at[tir_stmt_at(ir, store)->store.indices];
}

static int accumulator_of(struct run *r, tir_stmt store) {
  for (int i = r->accumulator_count; i-- > 0;) {
    bool same = tir_stmt_at(r->ir, r->accumulators[i])->store.buffer == tir_stmt_at(r->ir, store)->store.buffer;
    if (same && element_of(r->ir, r->accumulators[i]) == element_of(r->ir, store)) return i;
  }
  r->accumulators[r->accumulator_count] = store;
  return r->accumulator_count++;
}

static int filter_of(struct run *r, tir_expr filter) {
  for (int i = 0; i < r->filter_count; i++)
    if (r->filters[i] == filter) return i;
  r->filters[r->filter_count] = filter;
  return r->filter_count++;
}

static tir_expr *image_at(struct run *r, int accumulator, int filter) {
  assert(accumulator < r->accumulator_count && filter < r->filter_count);
  return &r->images[accumulator * r->count + filter];
}

/* Fills the table of products; false: an accumulator has two by one filter. */
static bool tabulate(struct run *r) {
  for (int i = 0; i < r->count; i++) {
    int a = accumulator_of(r, r->steps[i].store), f = filter_of(r, r->steps[i].filter);
    tir_expr *at = image_at(r, a, f);
    if (*at) return false; /* what adds zero counts for nothing */
    *at = r->steps[i].image;
  }
  return true;
}

/* ---- Windows ---- */

/* The place of an element; FAR: it has none. */
static int place_of(const struct sequence *s, tir_expr image) {
  for (int i = 0; i < s->count; i++)
    if (s->places[i].image == image) return s->places[i].at;
  return FAR;
}

static tir_expr image_in(const struct sequence *s, int at) {
  for (int i = 0; i < s->count; i++)
    if (s->places[i].at == at) return s->places[i].image;
  return TIR_NONE;
}

/* The place of an accumulator's first element, by one that the sequence has; FAR: it has none of them. */
static int joins(struct run *r, const struct sequence *s, int accumulator, int start, int length) {
  for (int j = 0; j < length; j++) {
    tir_expr image = *image_at(r, accumulator, start + j);
    int at = image ? place_of(s, image) : FAR;
    if (at != FAR) return at - j;
  }
  return FAR;
}

/* Adds an accumulator's elements from a place on; false: others are there, or they have other places. */
static bool add_elements(struct run *r, struct sequence *s, int accumulator, int start, int length, int at) {
  for (int j = 0; j < length; j++) {
    tir_expr image = *image_at(r, accumulator, start + j);
    if (!image) continue;
    int known = place_of(s, image);
    tir_expr there = image_in(s, at + j);
    if (known != FAR ? known != at + j : there != TIR_NONE) return false;
    if (known != FAR) continue;
    if (s->count == MOST_STEPS) return false;
    s->places[s->count++] = (struct place){image, at + j};
  }
  return true;
}

/* The sequence that an accumulator and those with elements in common make: places[a] is where each begins. False: they
 * make none. */
static bool read_sequence(struct run *r, struct sequence *s, int first, int start, int length, int *places) {
  s->count = 0;
  if (!add_elements(r, s, first, start, length, 0)) return false;
  places[first] = 0;
  for (bool more = true; more;) {
    more = false;
    for (int a = first + 1; a < r->accumulator_count; a++) {
      int at = places[a] == FAR ? joins(r, s, a, start, length) : FAR;
      if (at == FAR) continue;
      if (!add_elements(r, s, a, start, length, at)) return false;
      places[a] = at, more = true;
    }
  }
  s->least = s->most = s->places[0].at;
  for (int i = 1; i < s->count; i++)
    if (s->places[i].at < s->least) s->least = s->places[i].at;
  return true;
}

static bool has_any(struct run *r, int accumulator, int start, int length) {
  for (int j = 0; j < length; j++)
    if (*image_at(r, accumulator, start + j)) return true;
  return false;
}

static int word_behind(struct run *r, int before, tir_expr image) {
  for (int i = 0; i < r->word_count; i++)
    if (r->words[i].before == before && r->words[i].image == image) return i;
  if (r->word_count == MOST_STEPS) return -1;
  r->words[r->word_count] = (struct word){before, image, TIR_NONE};
  return r->word_count++;
}

/* Adds the words of a sequence, and the dot products of those accumulators in it that are new; gives how many products
 * these stand for; -1: there is no room, or one multiplies nothing where the sequence has an element. */
static int add_sums(struct run *r, struct sequence *s, int start, int length, const int *places, bool *done) {
  int products = 0;
  for (int a = 0; a < r->accumulator_count; a++) {
    if (places[a] == FAR || done[a]) continue;
    for (int j = 0; j < length; j++) {
      products += *image_at(r, a, start + j) != TIR_NONE;
      if (image_in(s, places[a] + j) != *image_at(r, a, start + j)) return -1;
    }
    if (places[a] + length - 1 > s->most) s->most = places[a] + length - 1;
  }
  for (int at = s->least, word = -1; at <= s->most; at++) {
    word = word_behind(r, word, image_in(s, at));
    if (word < 0) return -1;
    for (int a = 0; a < r->accumulator_count; a++) {
      if (places[a] == FAR || done[a] || places[a] + length - 1 != at) continue;
      if (r->sum_count == MOST_STEPS) return -1;
      r->sums[r->sum_count++] = (struct sum){word, a, r->window_count};
      done[a] = true;
    }
  }
  return products;
}

/* What a window of so many filters saves, in operations; at most 0: nothing. It is added to the others; where it saves
 * nothing, what is there of it must be taken away again. */
static int add_window(struct run *r, struct sequence *s, int start, int length) {
  int words = r->word_count, sums = r->sum_count, products = 0;
  int *places = malloc((size_t)r->accumulator_count * sizeof *places);
  bool *done = calloc((size_t)r->accumulator_count, sizeof *done);
  if (!places || !done) abort();
  for (int a = 0; a < r->accumulator_count && products >= 0; a++) {
    if (done[a] || !has_any(r, a, start, length)) continue;
    for (int i = 0; i < r->accumulator_count; i++) places[i] = FAR;
    int own = read_sequence(r, s, a, start, length, places) ? add_sums(r, s, start, length, places, done) : -1;
    products = own < 0 ? -1 : products + own;
  }
  free(places), free(done);
  r->starts[r->window_count] = start, r->lengths[r->window_count] = length;
  return products < 0 ? 0 : products - (r->word_count - words) - (r->sum_count - sums);
}

/* The window from a filter on that saves most; gives its length, 0: there is none. */
static int best_window(struct run *r, struct sequence *s, int start) {
  int words = r->word_count, sums = r->sum_count, best = 0, most = 0;
  for (int length = 2; length <= WORD && start + length <= r->filter_count; length++) {
    int saved = add_window(r, s, start, length);
    r->word_count = words, r->sum_count = sums;
    if (saved > most) best = length, most = saved;
  }
  if (best) add_window(r, s, start, best);
  return best;
}

static void find_windows(struct run *r) {
  struct sequence *s = malloc(sizeof *s);
  if (!s) abort();
  for (int f = 0; f < r->filter_count;) {
    int length = best_window(r, s, f);
    for (int a = 0; a < r->accumulator_count; a++)
      for (int j = 0; j < length; j++) r->taken[a * r->count + f + j] = *image_at(r, a, f + j) != TIR_NONE;
    r->window_count += length > 0;
    f += length ? length : 1;
  }
  free(s);
}

/* ---- Making them ---- */

static tir_expr slide(struct tir *ir, tir_expr word, tir_expr element) {
  tir_type type = tir_type_with_lanes(tir_type_of(ir, element), WORD * tir_type_lanes(tir_type_of(ir, element)));
  if (!word) word = lower_constant(ir, type, 0);
  tir_expr operands[] = {word, element};
  tir_expr made = tir_call(ir, type, tir_symbol_of(ir, TIR_SLIDE_LANES), operands, 2);
  assert(tir_is_slide(ir, tir_at(ir, made)));
  return made;
}

static tir_expr bound(struct run *r, tir_stmt before, const char *name, tir_expr value, tir_var *var) {
  *var = tir_new_let(r->ir, tir_name_of(r->ir, name), value);
  tir_stmt s = tir_new_stmt(r->ir, TIR_BIND);
  tir_as(r->ir, s, TIR_BIND)->bind.var = *var;
  tir_as(r->ir, s, TIR_BIND)->bind.value = value;
  tir_insert_before(r->ir, before, s);
  return tir_var_expr(r->ir, *var);
}

/* The filters of a window as words, the last bytes of which are these. */
static tir_expr word_of_filters(struct run *r, int window) {
  tir_expr word = TIR_NONE;
  for (int j = 0; j < r->lengths[window]; j++) word = slide(r->ir, word, r->filters[r->starts[window] + j]);
  return word;
}

static void put_sum(struct run *r, tir_stmt before, const struct sum *sum, tir_expr filters, bool swapped) {
  struct tir *ir = r->ir;
  struct tir_stmt_node n = *tir_stmt_at(ir, r->accumulators[sum->accumulator]);
  tir_expr index = ir->operands.at[n.store.indices], word = tir_var_expr(ir, r->words[sum->word].var);
  tir_expr operands[] = {tir_load(ir, n.store.buffer, &index, 1, TIR_NONE), swapped ? filters : word,
                         swapped ? word : filters};
  tir_expr dot = tir_call(ir, tir_type_of(ir, operands[0]), tir_symbol_of(ir, TIR_DOT_LANES), operands, 3);
  assert(tir_dot_lanes_width(ir, tir_at(ir, dot)) == WORD);
  tir_insert_before(ir, before, tir_new_store(ir, n.store.buffer, &index, dot));
}

/* Takes away what windows have, and products by zero. An accumulator is known by its first statement, which may be one
 * of these: all are found before any goes. */
static void remove_taken(struct run *r) {
  for (int i = 0; i < r->count; i++) {
    struct step *step = &r->steps[i];
    int a = accumulator_of(r, step->store), f = filter_of(r, step->filter);
    if (!r->taken[a * r->count + f] && step->image) step->store = TIR_NONE;
  }
  for (int i = 0; i < r->count; i++)
    if (r->steps[i].store) tir_kill(r->ir, r->steps[i].store);
}

/* Words in the order in which they were met, behind each the dot products that read it; then what is left. */
static void rewrite(struct run *r, tir_type type, bool swapped) {
  struct tir *ir = r->ir;
  tir_stmt before = r->steps[0].store;
  tir_expr *filters = calloc((size_t)r->window_count, sizeof *filters);
  if (!filters) abort();
  tir_var var;
  for (int w = 0; w < r->window_count; w++) filters[w] = bound(r, before, "filters", word_of_filters(r, w), &var);
  tir_expr zero = lower_constant(ir, type, 0);
  for (int i = 0; i < r->word_count; i++) {
    struct word *w = &r->words[i];
    tir_expr last = w->before < 0 ? TIR_NONE : tir_var_expr(ir, r->words[w->before].var);
    bound(r, before, "window", slide(ir, last, w->image ? w->image : zero), &w->var);
    for (int s = 0; s < r->sum_count; s++)
      if (r->sums[s].word == i) put_sum(r, before, &r->sums[s], filters[r->sums[s].window], swapped);
  }
  free(filters);
  remove_taken(r);
}

/* The statements from one on that follow one another and add products of the same types; gives one of them that is no
 * product by zero, NULL: there is none. */
static const struct step *gather(struct run *r, tir_stmt s, bool swapped) {
  const struct step *one = NULL;
  r->count = r->accumulator_count = r->filter_count = r->word_count = r->sum_count = r->window_count = 0;
  for (; s && r->count < MOST_STEPS; s = tir_stmt_at(r->ir, s)->next) {
    struct step *step = &r->steps[r->count];
    if (!read_step(r->low, s, swapped, step)) break;
    if (!one && step->image) one = step;
    bool alike = tir_type_of(r->ir, step->filter) == tir_type_of(r->ir, r->steps[0].filter);
    if (step->image) alike &= tir_type_of(r->ir, step->image) == tir_type_of(r->ir, one->image);
    if (!alike) break;
    r->count++;
  }
  return one;
}

/* Whether windows were found among statements from one on. */
static bool slides(struct run *r, tir_stmt first, bool filters_first) {
  bool swapped, found = false;
  const struct step *one = gather(r, first, filters_first);
  if (!one || kind_of(r->low, one, &swapped) == TIR_DOTS) return false;
  size_t size = (size_t)r->count * (size_t)r->count;
  r->images = calloc(size, sizeof *r->images), r->taken = calloc(size, sizeof *r->taken);
  if (!r->images || !r->taken) abort();
  if (tabulate(r)) find_windows(r);
  found = r->window_count > 0;
  if (found) rewrite(r, tir_type_of(r->ir, one->image), swapped);
  free(r->images), free(r->taken);
  return found;
}

bool lower_slides(struct lowering *low) {
  if (!low->options || !low->options->shifts_two_words || !(low->options->dots & TIR_DOTS_OF_BYTES)) return true;
  struct run *r = malloc(sizeof *r);
  if (!r) abort();
  *r = (struct run){.low = low, .ir = low->ir};
  for (tir_stmt s = low->body, next; s; s = next) {
    next = tir_next(low->ir, s, low->body);
    struct step step;
    if (!read_step(low, s, false, &step)) continue;
    tir_stmt last = s;
    for (tir_stmt t = s; t && read_step(low, t, false, &step); t = tir_stmt_at(low->ir, t)->next) last = t;
    next = tir_after(low->ir, last, low->body);
    if (!slides(r, s, false)) slides(r, s, true);
  }
  free(r);
  return true;
}
