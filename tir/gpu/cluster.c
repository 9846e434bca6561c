/* Thread block clusters: neighbours along x, which run side by side, wait for one another, and reach one another's
 * shared memory. Source: PTX ISA, "Cluster of Cooperative Thread Arrays". */
#include "tir/tir.h"

int64_t tir_cluster_of(const struct tir *ir, tir_stmt loop) {
  tir_expr value = tir_is(ir, loop, TIR_LOOP) ? tir_annotation(ir, tir_stmt_at(ir, loop)->annotations, TIR_CLUSTER) : 0;
  return !value ? 1 : tir_is_int(ir, value) ? tir_at(ir, value)->imm : 0;
}

int64_t tir_kernel_cluster(const struct tir *ir, tir_stmt kernel) {
  int64_t blocks = 1;
  for (tir_stmt s = kernel; tir_is_bound(ir, s); s = tir_stmt_at(ir, s)->first[TIR_BODY])
    if (tir_loop_axis(ir, s) == TIR_BLOCK_X) blocks = tir_cluster_of(ir, s);
  return blocks;
}

bool tir_check_cluster(const struct tir *ir, tir_stmt loop, enum ms_code code, ms_error *err) {
  int64_t blocks = tir_cluster_of(ir, loop), extent = tir_loop_extent(ir, loop);
  if (blocks == 1) return true;
  if (tir_loop_axis(ir, loop) != TIR_BLOCK_X)
    return tir_refuse(ir, err, code, loop, "%s is of loops that are bound to blockIdx.x", TIR_CLUSTER);
  if (blocks < 1 || blocks > TIR_CLUSTER_MOST || (blocks & (blocks - 1)))
    return tir_refuse(ir, err, code, loop, "%s must be 1, 2, 4 or %d", TIR_CLUSTER, TIR_CLUSTER_MOST);
  if (extent < 0) return tir_refuse(ir, err, code, loop, "clusters are of a number of blocks that is no constant");
  if (extent % blocks)
    return tir_refuse(ir, err, code, loop, "clusters of %lld blocks do not divide its %lld iterations",
                      (long long)blocks, (long long)extent);
  return true;
}
