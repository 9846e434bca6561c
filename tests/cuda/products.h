/* What tensor units multiply, on a CPU: fragments of a warp (mma.sync), and matrices of a warp group (wgmma). Kernels
 * call it through the shim's functions of PTX; here it is compiled once, and not with each kernel. */
#ifndef TEST_PRODUCTS_H
#define TEST_PRODUCTS_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum products_element {
  PRODUCTS_f16,
  PRODUCTS_bf16,
  PRODUCTS_tf32,
  PRODUCTS_s8,
  PRODUCTS_u8,
  PRODUCTS_e4m3,
  PRODUCTS_e5m2
};
enum products_sum { PRODUCTS_FLOAT, PRODUCTS_INT, PRODUCTS_HALVES /* two in one register */ };

/* Four matrices of 8 x 8 elements of 16 bits, whose rows lanes name: ldmatrix. */
void products_load_matrices(uint32_t *d, uint32_t at, bool transposed);
/* d += a * b of 16 rows, 8 columns; a of so many columns: with half of what fills its registers it has half of them. */
void products_mma(enum products_element element, int depth, enum products_sum sum, void *d, const uint32_t *a,
                  const uint32_t *b);

/* d += a * b of 64 rows, n columns, by descriptors of matrices in shared memory. */
struct product {
  void *d; /* registers of 32 bits */
  uint64_t a, b;
  int n;
  bool by_rows, a_by_columns;
  enum products_sum sum;
  enum products_element element, by;
};
/* a: the registers that hold a, in the place of its descriptor; or NULL. The product is done when its thread waits for
 * its group, and no sooner; until then its sums have no value, and who overwrites a matrix before then spoils it. */
void products_begin(const struct product *product, const uint32_t *a);
void products_fence(void);
void products_commit(void);
void products_wait(int left);
void products_forget(void); /* those of a kernel before */

#ifdef __cplusplus
}
#endif
#endif
