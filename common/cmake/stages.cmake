# The stages of the course, in order. This is the only list: the registry, the tests, the launcher
# and the comparison are made from it, and a test holds the README against it.
set(FA2_STAGES
  stage1_naive
  stage2_fa1
  stage3_fa2_seqpar
  stage4_fa2_warps
  stage5_fa2_registers
  stage6_fa2_deferred
)
