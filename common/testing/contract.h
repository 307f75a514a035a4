#pragma once
// The contract of every stage as a list of problems, run on any stage, variant, tile and machine.
// Nothing here needs a test framework: ./fa2 check and grade use it too.
#include <string>
#include <vector>

#include "common/harness/run.h"

namespace fa2::testing {

struct ContractCase {
  std::string name;
  Spec spec;
};

/// What a correct stage must get right, as problems around the edges of this tile: element types,
/// masks, ragged and empty shapes, head groups, strides, scales, adversarial inputs, NaN.
std::vector<ContractCase> contract_cases(const Tile& tile, int d);

/// Problems that users of attention kernels reported as broken; the names say where. The simulator
/// gets 65,600 blocks without keys instead of with one each, which would take it minutes.
std::vector<ContractCase> reported_cases(int d, Backend backend);

/// "" if the stage gets the problem right, else one sentence, or the simulator's whole message.
/// Throws Failure if the problem cannot be run on this machine (FA2_UNSUPPORTED: no memory).
std::string run_case(Device& device, const Stage& stage, const Variant& variant, int tile_row,
                     const Spec& spec);

/// "" if one batch gives the same bits alone as among others (flash-attention #47).
std::string check_batch_independence(Device& device, const Stage& stage, const Variant& variant,
                                     int tile_row);

/// "" if results and counters are the same with any number of OS threads and any order of threads.
std::string check_determinism(const Stage& stage, const Variant& variant, int tile_row);

/// The rows of a variant's tile table, without repetitions, that fit the machine.
std::vector<int> distinct_tile_rows(const Variant& variant, const GpuLimits& gpu);

}  // namespace fa2::testing
