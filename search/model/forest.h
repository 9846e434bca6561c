/* Forests of regression trees: read from a text, walked, written. Internal to search. */
#ifndef MSCHED_SEARCH_FOREST_H
#define MSCHED_SEARCH_FOREST_H

#include "tir/tir.h"

#include <jansson.h>

struct forest_node {
  uint32_t feature, left, right; /* left 0: a leaf; no child is a root */
  float value;                   /* a leaf's; else what is less goes left */
};
struct forest {
  struct forest_node *nodes;
  uint32_t *roots; /* one a tree */
  uint32_t node_count, tree_count;
};

void forest_clear(struct forest *forest);
/* Adds the trees of another, which keeps them. */
void forest_append(struct forest *forest, const struct forest *from);
/* The leaves that a row of features reaches, added in the order of the trees. */
float forest_score(const struct forest *forest, const float *row);
/* Adds trees in the form that xgboost writes: a list of objects with the lists `left_children`, `right_children` (-1 in
 * a leaf), `split_indices` and `split_conditions`, an item a node. A stranger's: checked to be trees over `width`
 * features. False: err, and the forest is as it was. */
bool forest_read(struct forest *forest, json_t *trees, uint32_t width, ms_error *err);
/* The same form; the caller's. */
json_t *forest_write(const struct forest *forest);

#endif
