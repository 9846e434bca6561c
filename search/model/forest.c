#include "forest.h"

#include <math.h>
#include <stdlib.h>

void forest_clear(struct forest *f) {
  free(f->nodes);
  free(f->roots);
  *f = (struct forest){0};
}

float forest_score(const struct forest *f, const float *row) {
  float sum = 0;
  for (uint32_t t = 0; t < f->tree_count; t++) {
    assert(f->roots[t] < f->node_count);
    const struct forest_node *n = &f->nodes[f->roots[t]];
    while (n->left) n = &f->nodes[row[n->feature] < n->value ? n->left : n->right];
    sum += n->value;
  }
  return sum;
}

void forest_append(struct forest *f, const struct forest *from) {
  assert(f != from);
  f->nodes = realloc(f->nodes, ((size_t)f->node_count + from->node_count + 1) * sizeof *f->nodes);
  f->roots = realloc(f->roots, ((size_t)f->tree_count + from->tree_count + 1) * sizeof *f->roots);
  if (!f->nodes || !f->roots) abort();
  for (uint32_t i = 0; i < from->node_count; i++) {
    struct forest_node n = from->nodes[i];
    if (n.left) n.left += f->node_count, n.right += f->node_count;
    f->nodes[f->node_count + i] = n;
  }
  for (uint32_t i = 0; i < from->tree_count; i++) f->roots[f->tree_count + i] = from->roots[i] + f->node_count;
  f->node_count += from->node_count, f->tree_count += from->tree_count;
}

/* ---- Reading ---- */

struct columns { /* a tree's lists */
  json_t *left, *right, *features, *values;
};

/* Children come after their parent and belong to one alone: so it is a tree, and a walk ends. */
static bool read_node(const struct columns *c, uint32_t i, uint32_t width, bool *taken, uint32_t count,
                      struct forest_node *out) {
  json_t *value = json_array_get(c->values, i), *left = json_array_get(c->left, i);
  if (!json_is_number(value) || !json_is_integer(left)) return false;
  *out = (struct forest_node){.value = (float)json_number_value(value)};
  if (!isfinite(out->value)) return false;
  if (json_integer_value(left) == -1) return true;
  json_t *right = json_array_get(c->right, i), *feature = json_array_get(c->features, i);
  if (!json_is_integer(right) || !json_is_integer(feature)) return false;
  json_int_t l = json_integer_value(left), r = json_integer_value(right), f = json_integer_value(feature);
  if (l <= i || l >= count || r <= i || r >= count || l == r || f < 0 || f >= width || taken[l] || taken[r])
    return false;
  taken[l] = taken[r] = true;
  out->left = (uint32_t)l, out->right = (uint32_t)r, out->feature = (uint32_t)f;
  return true;
}

static bool read_tree(struct forest *f, json_t *tree, uint32_t width) {
  struct columns c = {json_object_get(tree, "left_children"), json_object_get(tree, "right_children"),
                      json_object_get(tree, "split_indices"), json_object_get(tree, "split_conditions")};
  size_t count = json_array_size(c.left);
  if (!count || count > UINT32_MAX / 2 - f->node_count || json_array_size(c.right) != count ||
      json_array_size(c.features) != count || json_array_size(c.values) != count)
    return false;
  uint32_t first = f->node_count;
  f->nodes = realloc(f->nodes, (first + count) * sizeof *f->nodes);
  bool *taken = calloc(count, sizeof *taken), ok = true;
  if (!f->nodes || !taken) abort();
  for (uint32_t i = 0; ok && i < count; i++) {
    struct forest_node *n = &f->nodes[first + i];
    ok = read_node(&c, i, width, taken, (uint32_t)count, n);
    if (n->left) n->left += first, n->right += first;
  }
  free(taken);
  f->roots[f->tree_count++] = first;
  f->node_count += (uint32_t)count;
  return ok;
}

bool forest_read(struct forest *f, json_t *trees, uint32_t width, ms_error *err) {
  size_t count = json_array_size(trees);
  uint32_t trees_before = f->tree_count, nodes_before = f->node_count;
  if (!json_is_array(trees) || count > UINT32_MAX / 2 - f->tree_count)
    return ms_fail(err, MS_MODEL, "a cost model's trees are no list");
  f->roots = realloc(f->roots, (f->tree_count + count + 1) * sizeof *f->roots);
  if (!f->roots) abort();
  for (size_t i = 0; i < count; i++) {
    if (read_tree(f, json_array_get(trees, i), width)) continue;
    f->tree_count = trees_before, f->node_count = nodes_before;
    return ms_fail(err, MS_MODEL, "item %zu of a cost model's trees is no tree over %u features", i + 1, width);
  }
  assert(f->tree_count == trees_before + count && f->node_count >= nodes_before + count);
  return true;
}

/* ---- Writing ---- */

static json_t *write_tree(const struct forest_node *nodes, uint32_t first, uint32_t end) {
  assert(first < end);
  json_t *left = json_array(), *right = json_array(), *features = json_array(), *values = json_array();
  for (uint32_t i = first; i < end; i++) {
    const struct forest_node *n = &nodes[i];
    json_array_append_new(left, json_integer(n->left ? (json_int_t)n->left - first : -1));
    json_array_append_new(right, json_integer(n->left ? (json_int_t)n->right - first : -1));
    json_array_append_new(features, json_integer(n->feature));
    json_array_append_new(values, json_real((double)n->value));
  }
  return json_pack("{s:o, s:o, s:o, s:o}", "left_children", left, "right_children", right, "split_indices", features,
                   "split_conditions", values);
}

json_t *forest_write(const struct forest *f) {
  json_t *trees = json_array();
  for (uint32_t t = 0; t < f->tree_count; t++) {
    uint32_t end = t + 1 < f->tree_count ? f->roots[t + 1] : f->node_count;
    json_array_append_new(trees, write_tree(f->nodes, f->roots[t], end));
  }
  return trees;
}
