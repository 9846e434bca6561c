/* The passes in order, and what stands between them: dumps and checks. */
#include "lower.h"

#include <stdlib.h>
#include <string.h>

enum { CPU = 1 << TIR_CPU, GPU = 1 << TIR_GPU, BOTH = CPU | GPU };
static const struct {
  const char *name;
  unsigned devices; /* bits of enum tir_device: whose list it is in */
  const char *what;
  bool (*run)(struct lowering *low);
  unsigned gives; /* what holds from then on, bits of enum lower_contract */
} passes[] = {
    {"empty", BOTH, "loops of no iterations vanish, with what is in them", lower_empty},
    {"offer", BOTH, "instructions stand only where the target has them", lower_offer},
    {"note_results", CPU, "what blocks write around the caches is noted on the function", lower_note_results},
    {"threads", CPU, "threads that reduce together become iterations", lower_threads},
    {"reduce", GPU, "threads that reduce together reduce their own first, and join that", lower_reduce},
    {"place", BOTH, "allocations move into the smallest scope that holds their accesses", lower_place, LOWER_PLACED},
    {"order", BOTH, "parallel loops whose iterations write the same elements run in order", lower_order},
    {"delay", CPU, "the last nest of an iteration runs beside the next one's, where it asks for it", lower_delay},
    {"stages", BOTH, "statements of software pipelines are named", lower_stages},
    {"blocks", BOTH, "blocks become conditions and substituted bindings", lower_blocks, LOWER_NO_BLOCKS},
    {"lanes", GPU, "accumulators of 16 x 8 x 8 are touched by the lanes that hold them", lower_lanes},
    {"rows", GPU, "rows of fragments are touched by the lanes that hold them", lower_rows},
    {"clusters", GPU, "what is bound to a cluster's blocks is bound to blocks that are launched as one",
     lower_clusters},
    {"kernels", GPU, "nests of threads become kernels, in which each axis is bound once", lower_kernels, LOWER_KERNELS},
    {"compact", BOTH, "buffers shrink to what their scope touches", lower_compact},
    {"ends", GPU, "loops end where a condition around what they do is false from then on", lower_ends},
    {"pad", CPU, "rows of large buffers do not meet in few sets of a cache", lower_pad},
    {"pipeline", BOTH, "software pipelines run statements of several iterations side by side", lower_pipeline,
     LOWER_NO_PIPELINES},
    {"tensor_stores", GPU, "one thread begins TMA bulk tensor stores, where a loop requests it", lower_tensor_stores},
    {"vthreads", GPU, "a thread does the work of its virtual threads statement by statement", lower_vthreads,
     LOWER_NO_VTHREADS},
    {"warps", GPU, "threads join what they have by shuffles, or in shared memory", lower_warps},
    {"loops", BOTH, "unit loops and constant conditions vanish", lower_loops},
    {"jam", CPU, "loops that run side by side become one, where their loop asks for it", lower_jam},
    {"swizzle", GPU, "rows of shared memory are swizzled where their scope requests it", lower_swizzle},
    {"shared_memory", GPU, "allocations of shared memory are views of one piece", lower_shared_memory,
     LOWER_ONE_SHARED},
    {"groups", GPU, "warp-group MMAs begin behind a fence, and are waited for", lower_groups},
    {"overlap", GPU, "the second MMAs of an iteration go on beside the next, where a loop requests it", lower_overlap},
    {"barriers", GPU, "threads synchronize between what one writes and another touches", lower_barriers},
    {"proxies", GPU, "warp-group MMAs see what threads wrote", lower_proxies},
    {"alternate", GPU, "two warp groups take turns, where a loop requests it", lower_alternate},
    {"zeros", CPU, "what adds a product with a zero of a padding has a condition", lower_zeros},
    {"unswitch", CPU, "where conditions hold in whole iterations of a loop, these run without them, by one test",
     lower_unswitch},
    {"partition", BOTH, "loops are cut where a condition in them becomes certain", lower_partition},
    {"remainders", CPU, "copies whose loops stand in quotients and remainders go element by element", lower_remainders},
    {"transpose", CPU, "copies that write across what they read go square by square, or piece by piece",
     lower_transpose},
    {"dot_loops", CPU, "products of short neighbours, added up in a vectorized loop, become one sum", lower_dot_loops},
    {"offsets", CPU, "bytes of equal signs that are multiplied get an offset, taken away once for all rows",
     lower_offsets},
    {"lane_stores", GPU, "lanes that share rows store what they hold of them together", lower_lane_stores},
    {"halves", CPU, "what a loop takes together of a local buffer's elements goes by halves, where its order is free",
     lower_halves},
    {"strips", BOTH, "vectorized loops fill one register", lower_strips},
    {"gpu_vectorize", GPU, "vectorized loops are kept where they are one access of the machine's", lower_gpu_vectorize},
    {"promote", CPU, "tiles of a reduction are kept in registers", lower_promote},
    {"tails", CPU, "vectorized loops that are wider than a register end in one that is not full", lower_tails},
    {"unroll", BOTH, "unrolled loops become their iterations", lower_unroll, LOWER_NO_UNROLLED},
    {"vectorize", BOTH, "vectorized loops become vector expressions", lower_vectorize, LOWER_NO_VECTORIZED},
    {"flatten", BOTH, "buffers have one dimension", lower_flatten, LOWER_FLAT},
    {"forward", CPU, "what lies in a parameter as in its copy is read there by instructions", lower_forward},
    {"divisions", GPU, "quotients and remainders are of what all threads have, where these differ by less",
     lower_divisions},
    {"indices", GPU, "indices take 32 bits where they fit", lower_indices},
    {"dots", GPU, "four products of bytes, added up, become a dot product", lower_dots},
    {"lane_dots", CPU, "sums of products of short neighbours, on vectors, become dot products of the machine's",
     lower_lane_dots},
    {"slides", CPU, "sums over windows of bytes, on vectors, become dot products of words that slide", lower_slides},
    {"widen", CPU, "copies of short types that are read again hold them as they are computed with", lower_widen},
    {"copies", GPU, "copies are asynchronous where the machine has such", lower_copies},
    {"instruction", CPU, "instructions stand only where memory lies as they need it", lower_instruction},
    {"tiles", CPU, "tiles that a loop of products adds to are held in registers", lower_tiles},
    {"producer", GPU, "a producer warp group copies, where a software pipeline requests it", lower_producer,
     LOWER_NO_PRODUCERS},
    {"rounding", BOTH, "what is divided, rounded and cut to an integer is divided by products", lower_rounding},
    {"legalize", BOTH, "floor division and floats of 16 bits become what machines have", lower_legalize, LOWER_LEGAL},
    {"cse", BOTH, "what an expression uses again is bound, and computed once", lower_cse},
    {"workspace", CPU, "large allocations are views of one buffer, in which each thread has a piece", lower_workspace},
    {"nontemporal", CPU, "whole vectors of results that do so are stored around the caches, where they are aligned",
     lower_nontemporal},
    {"outline", BOTH, "parallel loops, kernels and equal nests state what the functions that they become take",
     lower_outline},
};
enum { PASS_COUNT = sizeof passes / sizeof *passes };
static_assert((int)PASS_COUNT <= (int)TIR_MOST_PASSES, "who counts passes has room for all of them: TIR_MOST_PASSES");

const char *tir_lower_pass(enum tir_device device, uint32_t i, const char **what) {
  for (uint32_t p = 0; p < PASS_COUNT; p++) {
    if (!(passes[p].devices >> device & 1) || i-- > 0) continue;
    *what = passes[p].what;
    return passes[p].name;
  }
  return NULL;
}

static void dump(const struct lowering *low, const char *name) {
  const struct tir_lower_options *o = low->options;
  if (!o || !o->dump_after || !o->dump) return;
  bool all = !strcmp(o->dump_after, "all");
  if (!all && strcmp(o->dump_after, name) != 0) return;
  if (all) fprintf(o->dump, "# after %s\n", name);
  char *text = tir_print(low->ir, low->func, 0);
  if (text) fputs(text, o->dump);
  free(text);
}

/* In a checked build, and wherever the verifier is asked for, passes are held to their contracts: of what verifies. */
static bool holds_passes(const struct tir *ir, const struct tir_lower_options *options) {
  ms_error none = {0};
#ifndef MSCHED_CHECK
  if (!options || !options->verify) return false;
#else
  (void)options;
#endif
  return tir_verify(ir, &none);
}

static bool run_passes(struct lowering *low) {
  struct tir *ir = low->ir;
  const struct tir_lower_options *options = low->options;
  enum tir_device device = options ? options->device : TIR_CPU;
  bool held = holds_passes(ir, options);
  unsigned gives = 0;
  for (int i = 0; i < PASS_COUNT; i++) {
    if (!(passes[i].devices >> device & 1)) continue;
    if (!passes[i].run(low)) return false;
    gives |= passes[i].gives;
    if (held) lower_check_contract(low, gives);
    if (options && options->passed) options->passed(options->data, passes[i].name);
    dump(low, passes[i].name);
    if (options && options->verify && !tir_verify(ir, low->err)) return false;
  }
  return true;
}

bool tir_lower(struct tir *ir, tir_func f, const struct tir_lower_options *options, ms_error *err) {
  assert(tir_is_func(ir, f));
  struct lowering low = {
      .ir = ir, .func = f, .body = ir->funcs.at[f].body, .options = options, .err = err, .first_tile = UINT32_MAX};
  bool ok = run_passes(&low);
  free(low.apart);
  return ok;
}
