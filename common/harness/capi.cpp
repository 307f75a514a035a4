// The C interface: the C++ one, with exceptions turned into a status and a sentence.
#include <new>
#include <string>

#include "common/harness/call.h"
#include "common/harness/fa2.h"
#include "common/harness/failure.h"
#include "common/harness/validate.h"
#include "common/sim/gpu_models.h"

namespace fa2 {
namespace {

thread_local std::string last_error;

/// Runs the body of a C function.
template <class Body>
fa2_status guarded(Body body) noexcept {
  try {
    body();
    return FA2_OK;
  } catch (...) {
    return status_of_current_exception();
  }
}

const Stage* stage_at(int32_t backend, int32_t index) {
  if (backend != FA2_BACKEND_SIM && backend != FA2_BACKEND_CUDA) return nullptr;
  const auto all = stages(static_cast<Backend>(backend));
  return index >= 0 && static_cast<size_t>(index) < all.size() ? all[index] : nullptr;
}

struct CounterField {
  const char *name, *meaning;
};
#define FA2_COUNTER_ENTRY(name, meaning) {#name, meaning},
constexpr CounterField counter_fields[] = {FA2_COUNTERS(FA2_COUNTER_ENTRY)};
#undef FA2_COUNTER_ENTRY
constexpr int32_t counter_count = sizeof counter_fields / sizeof counter_fields[0];
static_assert(sizeof(fa2_counters) == counter_count * sizeof(uint64_t));

}  // namespace

void set_last_error(const std::string& sentence) noexcept {
  try {
    last_error = sentence;
  } catch (...) {  // no memory for the sentence: the status must do
    last_error.clear();
  }
}

fa2_status status_of_current_exception() noexcept {
  try {
    throw;
  } catch (const Failure& failure) {
    set_last_error(failure.what());
    return failure.status;
  } catch (const Error& error) {  // thrown by a launch: a Finding of the simulator, mostly
    set_last_error(error.what());
    return FA2_KERNEL_FAILED;
  } catch (const std::bad_alloc&) {
    set_last_error("out of host memory.");
    return FA2_INTERNAL_ERROR;
  } catch (const std::exception& error) {
    set_last_error(std::string("internal error: ") + error.what());
    return FA2_INTERNAL_ERROR;
  } catch (...) {
    set_last_error("internal error.");
    return FA2_INTERNAL_ERROR;
  }
}

}  // namespace fa2

using namespace fa2;

extern "C" {

uint32_t fa2_abi_version(void) { return FA2_ABI_VERSION; }

const char* fa2_last_error(void) { return last_error.c_str(); }

fa2_status fa2_forward(const fa2_problem* problem, const fa2_options* options, const void* q,
                       const void* k, const void* v, void* o, float* lse, void* workspace,
                       size_t workspace_bytes, void* stream, fa2_counters* counters) {
  return guarded([&] {
    Call call = plan_call(problem, options);
    call.tensors = {q, k, v, o, lse, workspace};
    validate_tensors(call.problem, call.tensors);
    validate_workspace(call.stage, call.workspace_bytes, workspace, workspace_bytes);
    if (options->backend == FA2_BACKEND_SIM) {
      sim_launch(device_options(*options), call, counters);
    } else {
      if (counters != nullptr) *counters = {};
      cuda_check_pointers(call);
      cuda_launch(call, stream);
    }
  });
}

fa2_status fa2_workspace_bytes(const fa2_problem* problem, const fa2_options* options,
                               size_t* bytes) {
  return guarded([&] {
    if (bytes == nullptr) invalid("bytes is null.");
    *bytes = plan_call(problem, options).workspace_bytes;
  });
}

fa2_status fa2_tile_info(const fa2_problem* problem, const fa2_options* options, fa2_tile* tile) {
  return guarded([&] {
    if (tile == nullptr) invalid("tile is null.");
    const Call call = plan_call(problem, options);
    const TileRow& row = call.variant->tiles[call.tile_row];
    *tile = {call.tile_row,  row.tile.Br,    row.tile.Bc,
             row.tile.warps, row.tile.depth, static_cast<int32_t>(row.smem_bytes)};
  });
}

fa2_status fa2_backend_status(int32_t backend) {
  return guarded([&] {
    if (backend != FA2_BACKEND_SIM && backend != FA2_BACKEND_CUDA)
      invalid("backend is " + std::to_string(backend) +
              "; accepted are 0 (simulator) and 1 (CUDA).");
    if (backend == FA2_BACKEND_CUDA) cuda_info();
  });
}

fa2_status fa2_mma_tflops(double* tflops) {
  return guarded([&] {
    if (tflops == nullptr) invalid("tflops is null.");
    *tflops = cuda_mma_tflops();
  });
}

int32_t fa2_stage_count(int32_t backend) {
  int32_t count = 0;
  while (stage_at(backend, count) != nullptr) ++count;
  return count;
}

const char* fa2_stage_name(int32_t backend, int32_t stage) {
  const Stage* found = stage_at(backend, stage);
  return found == nullptr ? nullptr : found->name;
}

int32_t fa2_stage_number(int32_t backend, int32_t stage) {
  const Stage* found = stage_at(backend, stage);
  return found == nullptr ? 0 : found->number;
}

int32_t fa2_variant_count(int32_t backend, int32_t stage) {
  const Stage* found = stage_at(backend, stage);
  return found == nullptr ? 0 : static_cast<int32_t>(found->variants.size());
}

const char* fa2_variant_name(int32_t backend, int32_t stage, int32_t variant) {
  if (variant < 0 || variant >= fa2_variant_count(backend, stage)) return nullptr;
  return stage_at(backend, stage)->variants[variant].name;
}

int32_t fa2_gpu_model_count(void) { return static_cast<int32_t>(sim::gpu_models().size()); }

const char* fa2_gpu_model_key(int32_t model) {
  return model >= 0 && model < fa2_gpu_model_count() ? sim::gpu_models()[model].key : nullptr;
}

int32_t fa2_counter_count(void) { return counter_count; }

const char* fa2_counter_name(int32_t counter) {
  return counter >= 0 && counter < counter_count ? counter_fields[counter].name : nullptr;
}

const char* fa2_counter_meaning(int32_t counter) {
  return counter >= 0 && counter < counter_count ? counter_fields[counter].meaning : nullptr;
}

}  // extern "C"
