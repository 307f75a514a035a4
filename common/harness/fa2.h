#ifndef FA2_H
#define FA2_H
/* The C interface of libfa2course: attention, forward only, by any stage of the course, on a GPU or
 * on the built-in simulator. C99.
 *
 *   fa2_problem problem;
 *   fa2_problem_init(&problem);
 *   problem.batch = 2;  problem.heads_q = problem.heads_kv = 16;
 *   problem.seqlen_q = problem.seqlen_k = 512;  problem.head_dim = 64;
 *   fa2_options options;
 *   fa2_options_init(&options);
 *   options.stage = "stage2_fa1";
 *   if (fa2_forward(&problem, &options, q, k, v, o, lse, NULL, 0, NULL, NULL) != FA2_OK)
 *     puts(fa2_last_error());
 *
 * Every function may be called from several threads at once. The library allocates no device
 * memory: q, k, v, o, lse and the workspace are the caller's. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "common/harness/counters.h"

#define FA2_ABI_VERSION 1
#define FA2_API __attribute__((visibility("default")))

#ifdef __cplusplus
extern "C" {
#endif

/* What a call returns. fa2_last_error() has the sentence that belongs to it. */
typedef enum fa2_status {
  FA2_OK = 0,
  FA2_INVALID_ARGUMENT = 1, /* an argument that no machine accepts */
  FA2_UNSUPPORTED = 2,      /* valid, but not built in, or too large for this GPU */
  FA2_CANNOT_RUN_HERE = 3,  /* no usable GPU, or a build without CUDA */
  FA2_KERNEL_FAILED = 4,    /* the kernel faulted, or the simulator caught a mistake in it */
  FA2_INTERNAL_ERROR = 5    /* out of memory on the host, or a defect of this library */
} fa2_status;

enum { FA2_FP16 = 0, FA2_BF16 = 1 };                                    /* fa2_problem.dtype */
enum { FA2_BACKEND_SIM = 0, FA2_BACKEND_CUDA = 1 };                     /* fa2_options.backend */
enum { FA2_TILES_SAME = 0, FA2_TILES_SAME_B = 1, FA2_TILES_TUNED = 2 }; /* .tile_mode */
enum { FA2_ORDER_FORWARD = 0, FA2_ORDER_REVERSE = 1, FA2_ORDER_RANDOM = 2 }; /* .order */

/* O = softmax(scale * Q K^T) V, and LSE = log(sum_j exp(scale * q_i k_j)).
 *   q, o: [batch, heads_q, seqlen_q, head_dim]     k, v: [batch, heads_kv, seqlen_k, head_dim]
 *   lse: [batch, heads_q, seqlen_q], fp32, contiguous
 * Query head h reads key/value head h / (heads_q / heads_kv). A causal row i sees the keys
 * j <= i + seqlen_k - seqlen_q: the mask is aligned at the bottom right. A row that sees no key has
 * O = 0 and LSE = -inf.
 * NaN and infinity: one in q or k reaches only the rows that see it. One in v may reach, in its
 * column, every row of a q tile that visits its k/v tile, because 0 * NaN is NaN. What lies between
 * strided rows or past the end of a tensor is never used.
 * Strides are {batch, head, row}, in elements; all three zero mean contiguous. head_dim is always
 * contiguous. They must be multiples of 8 and not negative; rows of o must not overlap. A zero
 * stride of q, k or v repeats one slice. */
typedef struct fa2_problem {
  uint32_t struct_size; /* both set by fa2_problem_init */
  uint32_t abi_version;
  int64_t batch;    /* 0 to 2^31 - 1 */
  int64_t heads_q;  /* 1 to 2^31 - 1, a multiple of heads_kv */
  int64_t heads_kv; /* at least 1 */
  int64_t seqlen_q; /* 0 to 2^30 */
  int64_t seqlen_k; /* 0 to 2^30 */
  int64_t head_dim; /* 64 or 128 */
  int64_t q_strides[3];
  int64_t k_strides[3];
  int64_t v_strides[3];
  int64_t o_strides[3];
  int32_t dtype;     /* FA2_FP16 or FA2_BF16, of q, k, v and o */
  int32_t causal;    /* 0 or 1 */
  float scale;       /* 0: 1 / sqrt(head_dim) */
  uint32_t reserved; /* 0 */
} fa2_problem;

/* How to run it. The fields after tile_mode concern the simulator only. */
typedef struct fa2_options {
  uint32_t struct_size; /* both set by fa2_options_init */
  uint32_t abi_version;
  const char* stage;   /* a name ("stage2_fa1") or its number ("2") */
  const char* variant; /* NULL or "": the first of the stage */
  int32_t backend;
  int32_t tile_mode;
  const char* gpu;    /* the GPU whose limits count, by key ("h200"); NULL or "": the default */
  int32_t os_threads; /* 0: all cores; the results do not depend on it */
  int32_t order;      /* in which order simulated threads run; correct kernels do not notice */
  uint64_t seed;      /* of FA2_ORDER_RANDOM */
} fa2_options;

/* The tile that a call uses. */
typedef struct fa2_tile {
  int32_t row;          /* of the stage's tile table */
  int32_t Br, Bc;       /* rows of Q, rows of K and V */
  int32_t warps, depth; /* warps per block, K/V tiles in flight */
  int32_t shared_bytes; /* of shared memory per block */
} fa2_tile;

static inline void fa2_problem_init(fa2_problem* problem) {
  memset(problem, 0, sizeof *problem);
  problem->struct_size = (uint32_t)sizeof *problem;
  problem->abi_version = FA2_ABI_VERSION;
}

static inline void fa2_options_init(fa2_options* options) {
  memset(options, 0, sizeof *options);
  options->struct_size = (uint32_t)sizeof *options;
  options->abi_version = FA2_ABI_VERSION;
}

/* The version of the library, to be compared with FA2_ABI_VERSION of this header. */
FA2_API uint32_t fa2_abi_version(void);

/* The sentence of this thread's last call that did not return FA2_OK; "" before. Valid until the
 * thread's next failure. */
FA2_API const char* fa2_last_error(void);

/* Runs one stage. q, k, v, o and workspace are aligned to 16 bytes, lse to 4; host memory on the
 * simulator, device memory of the current GPU on CUDA. Pointers to tensors without elements may be
 * NULL. `workspace` must have fa2_workspace_bytes() bytes (NULL where that is 0).
 * On CUDA the call returns once the work is in `stream` (a cudaStream_t; NULL: the default stream),
 * so a faulting kernel shows in a later call; nothing is counted. On the simulator it returns when
 * the work is done. `counters` may be NULL; otherwise it is overwritten, with zeros on CUDA.
 * Without output (batch or seqlen_q 0) nothing is launched. */
FA2_API fa2_status fa2_forward(const fa2_problem* problem, const fa2_options* options,
                               const void* q, const void* k, const void* v, void* o, float* lse,
                               void* workspace, size_t workspace_bytes, void* stream,
                               fa2_counters* counters);

/* The bytes of global memory that the stage needs besides its tensors. */
FA2_API fa2_status fa2_workspace_bytes(const fa2_problem* problem, const fa2_options* options,
                                       size_t* bytes);

/* The tile that fa2_forward would use. */
FA2_API fa2_status fa2_tile_info(const fa2_problem* problem, const fa2_options* options,
                                 fa2_tile* tile);

/* FA2_OK if the backend can run here, else FA2_CANNOT_RUN_HERE or FA2_UNSUPPORTED. */
FA2_API fa2_status fa2_backend_status(int32_t backend);

/* Measures, in about 50 ms, what mma.sync alone (m16n8k16, fp16, fp32 accumulate, operands in
 * registers) reaches on the current GPU, in TFLOP/s: the ceiling of every stage. */
FA2_API fa2_status fa2_mma_tflops(double* tflops);

/* The stages of a backend, in the order of the course. Names are valid for ever; NULL (or 0) for an
 * index out of range or a backend that is not built in. */
FA2_API int32_t fa2_stage_count(int32_t backend);
FA2_API const char* fa2_stage_name(int32_t backend, int32_t stage);
FA2_API int32_t fa2_stage_number(int32_t backend, int32_t stage);
FA2_API int32_t fa2_variant_count(int32_t backend, int32_t stage);
FA2_API const char* fa2_variant_name(int32_t backend, int32_t stage, int32_t variant);

/* The GPUs that the simulator knows, by key; NULL out of range. */
FA2_API int32_t fa2_gpu_model_count(void);
FA2_API const char* fa2_gpu_model_key(int32_t model);

/* The fields of fa2_counters, all uint64_t, in order: what each is called and what it counts. */
FA2_API int32_t fa2_counter_count(void);
FA2_API const char* fa2_counter_name(int32_t counter);
FA2_API const char* fa2_counter_meaning(int32_t counter);

#ifdef __cplusplus
}
#endif
#endif
