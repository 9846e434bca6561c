/* What a block of threads has on CUDA's devices, whatever their architecture; what differs between architectures:
 * capabilities.def, and jit/cuda/cuda.def. Part of the public header tir.h; included from there only. Source: CUDA C++
 * Programming Guide, "Technical Specifications per Compute Capability"; PTX ISA. */

/* ---- Threads and blocks ---- */
enum {
  TIR_WARP = 32,   /* threads with consecutive numbers that run as one; threadIdx.x counts fastest */
  TIR_GROUP = 128, /* threads of a warp group, which begins at a multiple of as many */
  TIR_BLOCK_THREADS = 1024,
  TIR_BLOCK_THREADS_Z = 64, /* along z; along x and y as many as in all */
  TIR_GRID_SIDE = 65535,    /* blocks along y or z; along x INT32_MAX */
  TIR_CLUSTER_MOST = 8      /* blocks of a cluster that every device with clusters launches */
};

/* ---- Registers ---- */
enum {
  TIR_BLOCK_REGISTERS = 65536, /* of 32 bits */
  TIR_REGISTERS_UNIT = 8,      /* a thread's are a multiple of it */
  TIR_WARP_REGISTERS_UNIT = 256,
  TIR_NAMED_REGISTERS = 255, /* that an instruction of a thread can name */
  TIR_LEAST_REGISTERS = 24,  /* which set_registers leaves a thread, and gives it at most */
  TIR_MOST_REGISTERS = 256
};

/* ---- Memory ---- */
enum {
  TIR_STATIC_SHARED_BYTES = 48 << 10, /* shared memory of a block that does not ask for more */
  TIR_SHARED_ALIGNMENT = 32,          /* of buffers in shared memory: tensor cores load from multiples of it */
  TIR_VECTOR_BYTES = 16,              /* widest load or store of a thread */
  TIR_BASE_ALIGNMENT = 16, /* of every buffer of a kernel in memory: vectors lie at multiples of their size */
  TIR_BANKS = 32,          /* of shared memory, consecutive words each in the next */
  TIR_BANK_BYTES = 4,
  TIR_BANK_ROW = TIR_BANKS * TIR_BANK_BYTES, /* bytes after which words come to the first bank again */
  TIR_PIECE = 16,                            /* bytes that swizzled rows exchange as they are */
  TIR_PANEL_ROWS = 8,                        /* rows after which a canonical layout exchanges as from the first */
  TIR_PANEL_ALIGNMENT = TIR_PANEL_ROWS * TIR_BANK_ROW
};

/* ---- Barriers and bulk tensor copies ---- */
enum {
  TIR_NAMED_BARRIERS = 16,
  TIR_MBARRIER_BYTES = 8,
  TIR_BOX_MOST_RANK = 5, /* of a tensor, and of what a copy brings of it */
  TIR_BOX_MOST_SIDE = 256,
  TIR_PIXELS_MOST_RANK = TIR_BOX_MOST_RANK - 2, /* of a tensor of pixels without its first and last dimension */
  TIR_PIXELS_MOST = 1024,                       /* that a copy in im2col mode brings */
  TIR_PIXELS_MOST_STEP = 8,
  TIR_BOX_ALIGNMENT = 16
};

/* ---- Shapes of tensor cores' products: rows x columns x products that are summed ---- */
enum {
  TIR_WMMA_SIDE = 16, /* wmma: 16 x 16 x 16 */
  TIR_MMA_SIDE = 16,  /* mma.sync: 16 x 16, of two halves of 16 x 8; as deep as fills TIR_MMA_BYTES (tir_mma_depth) */
  TIR_MMA_BYTES = 32,
  TIR_MMA8_ROWS = 16, /* mma.sync as TVM has it: 16 x 8 x 8 */
  TIR_MMA8_COLUMNS = 8,
  TIR_MMA8_DEPTH = 8,
  TIR_WGMMA_ROWS = 64, /* wgmma: 64 x n, n a multiple of TIR_WGMMA_UNIT, as deep as mma.sync */
  TIR_WGMMA_MOST_DEPTH = 32,
  TIR_WGMMA_UNIT = 8,
  TIR_WGMMA_MOST_COLUMNS = 256
};
