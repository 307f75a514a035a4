/* A caller in plain C99: one query, two keys, against numbers worked out by hand. */
#include <stdio.h>

#include "common/harness/fa2.h"

/* K_1 - K_0 = (2, 0, ...) and q = (1, 0, ...), so with scale 0.5 the logits are 0 and 1. */
const char* c99_client(const char* stage, double* o_0, double* lse) {
  static uint64_t buffers[4][64]; /* aligned to 16 bytes below */
  uint16_t* tensor[4];
  float lse_out[1] = {0};
  fa2_problem problem;
  fa2_options options;
  int i;
  for (i = 0; i < 4; ++i) tensor[i] = (uint16_t*)(((uintptr_t)buffers[i] + 15) / 16 * 16);
  fa2_problem_init(&problem);
  fa2_options_init(&options);
  problem.batch = 1;
  problem.heads_q = 1;
  problem.heads_kv = 1;
  problem.seqlen_q = 1;
  problem.seqlen_k = 2;
  problem.head_dim = 64;
  problem.dtype = FA2_FP16;
  problem.scale = 0.5f;
  options.stage = stage;
  tensor[0][0] = 0x3c00;  /* q_0 = 1 */
  tensor[1][64] = 0x4000; /* K_1,0 = 2 */
  tensor[2][64] = 0x3c00; /* V_1,0 = 1, so O_0 is the weight of key 1 */
  if (fa2_forward(&problem, &options, tensor[0], tensor[1], tensor[2], tensor[3], lse_out, NULL, 0,
                  NULL, NULL) != FA2_OK)
    return fa2_last_error();
  *o_0 = tensor[3][0]; /* as bits */
  *lse = lse_out[0];
  return "";
}
