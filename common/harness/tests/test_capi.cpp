// The C interface as callers use it.
#include <cmath>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "common/harness/fa2.h"
#include "common/harness/float16.h"
#include "common/harness/judge.h"
#include "common/testing/catch.h"

using namespace fa2;
using Catch::Matchers::StartsWith;

extern "C" const char* c99_client(const char* stage, double* o_0, double* lse);

namespace {

constexpr char stage_name[] = "stage2_fa1";

/// A call with its memory, so that each test changes one thing.
struct Caller {
  Workload workload;
  fa2_problem problem;
  fa2_options options;
  Outputs out;

  explicit Caller(const char* spec)
      : workload(parse_spec(spec)),
        problem(to_problem(workload.spec())),
        out{HostTensor(shape_q(workload.problem()), workload.problem().O),
            std::vector<float>(static_cast<size_t>(output_rows(workload.problem()))), ""} {
    fa2_options_init(&options);
    options.stage = stage_name;
  }

  fa2_status run(fa2_counters* counters = nullptr) {
    const InputTensors& x = workload.inputs();
    return fa2_forward(&problem, &options, x.Q.data(), x.K.data(), x.V.data(), out.O.data(),
                       out.LSE.data(), nullptr, 0, nullptr, counters);
  }

  /// "" if the outputs are right.
  std::string complaint() const { return judge(workload, out, {64, 128, 4, 1}).message; }

  /// What fa2_forward says about a change.
  std::string sentence() {
    const fa2_status status = run();
    return std::to_string(status) + " " + fa2_last_error();
  }
};

}  // namespace

TEST_CASE("C: a call gives the right result and counts", "[harness]") {
  Caller caller("causal b=2 h=2/1 q=70 k=150");
  fa2_counters counters;
  std::memset(&counters, 0xff, sizeof counters);
  REQUIRE(caller.run(&counters) == FA2_OK);
  CHECK(caller.complaint() == "");
  CHECK(counters.mma > 0);
  CHECK(counters.mma < 1000000);
}

TEST_CASE("C: a program in C99 gets softmax(0, 1) right", "[harness]") {
  double bits = 0, lse = 0;
  CHECK(std::string(c99_client(stage_name, &bits, &lse)) == "");
  CHECK(std::fabs(decode_fp16(static_cast<uint16_t>(bits)) - 1 / (1 + std::exp(-1.0))) < 1e-3);
  CHECK(std::fabs(lse - std::log(1 + std::exp(1.0))) < 1e-5);
}

TEST_CASE("C: Q, K and V may be slices of one buffer", "[harness]") {
  const Spec spec = parse_spec("b=2 h=2 q=40 k=40 layout=packed,packed,packed,bhnd");
  const Workload workload(spec);
  constexpr int64_t slice = 2 * 64;  // heads * d
  std::vector<uint16_t> buffer(2 * 40 * 3 * slice + 8);
  uint16_t* packed = buffer.data() + 4;  // vector memory is aligned to 16 bytes, and so must it be
  while (reinterpret_cast<uintptr_t>(packed) % 16 != 0) ++packed;
  const InputTensors& x = workload.inputs();
  int n = 0;
  for (const HostTensor* tensor : {&x.Q, &x.K, &x.V}) {
    for_each_row(tensor->shape(), [&](int64_t b, int64_t h, int64_t i) {
      const auto row = tensor->row(b, h, i);
      std::memcpy(packed + n * slice + tensor->offset(b, h, i), row.data(), row.size_bytes());
    });
    ++n;
  }
  Caller caller(to_text(spec).c_str());
  REQUIRE(fa2_forward(&caller.problem, &caller.options, packed, packed + slice, packed + 2 * slice,
                      caller.out.O.data(), caller.out.LSE.data(), nullptr, 0, nullptr,
                      nullptr) == FA2_OK);
  CHECK(caller.complaint() == "");
}

TEST_CASE("C: problems without output launch nothing and need no memory for it", "[harness]") {
  for (const char* spec : {"b=0 q=5 k=5", "q=0 k=5", "q=0 k=0"}) {
    Caller c(spec);
    const InputTensors& x = c.workload.inputs();
    fa2_counters counters;
    REQUIRE(fa2_forward(&c.problem, &c.options, nullptr, x.K.data(), x.V.data(), nullptr, nullptr,
                        nullptr, 0, nullptr, &counters) == FA2_OK);
    CHECK(counters.blocks == 0);
  }
}

TEST_CASE("C: wrong arguments give a status and a sentence", "[harness]") {
  {
    Caller c("q=5");
    c.problem.head_dim = 80;
    CHECK(c.sentence() == "1 head_dim is 80; accepted are 64 and 128.");
  }
  {
    Caller c("q=5");
    c.options.stage = "stage9";
    CHECK_THAT(c.sentence(), StartsWith("1 there is no stage \"stage9\"; known are "));
    c.options.stage = nullptr;
    CHECK_THAT(c.sentence(), StartsWith("1 options.stage is empty; it must name a stage"));
  }
  {
    Caller c("q=5");
    c.options.variant = "fast";
    CHECK_THAT(c.sentence(), StartsWith("1 stage2_fa1 has no variant \"fast\"; known are "));
  }
  {
    Caller c("q=5");
    c.options.gpu = "voodoo";
    CHECK_THAT(c.sentence(), StartsWith("1 gpu is \"voodoo\"; the simulator knows h200"));
  }
  {
    Caller c("q=5");
    c.options.backend = 2;
    CHECK(c.sentence() == "1 backend is 2; accepted are 0 (simulator) and 1 (CUDA).");
  }
  {
    Caller c("q=5");
    c.options.abi_version = 0;
    CHECK_THAT(c.sentence(), StartsWith("1 fa2_options.abi_version is 0; this library has"));
  }
}

TEST_CASE("C: a stage may be named by its number", "[harness]") {
  Caller c("q=5 k=5");
  c.options.stage = "2";
  CHECK(c.run() == FA2_OK);
  CHECK(c.complaint() == "");
}

TEST_CASE("C: the last error belongs to its thread", "[harness]") {
  Caller c("q=5");
  c.problem.batch = -1;
  REQUIRE(c.run() == FA2_INVALID_ARGUMENT);
  std::string other = "unset";
  std::thread([&] { other = fa2_last_error(); }).join();
  CHECK(other == "");
  CHECK_THAT(std::string(fa2_last_error()), StartsWith("batch is -1"));
}

TEST_CASE("C: stages, tiles, GPUs and counters can be listed", "[harness]") {
  CHECK(fa2_abi_version() == FA2_ABI_VERSION);
  REQUIRE(fa2_stage_count(FA2_BACKEND_SIM) > 0);
  for (int32_t i = 0; i < fa2_stage_count(FA2_BACKEND_SIM); ++i) {
    CHECK(std::strlen(fa2_stage_name(FA2_BACKEND_SIM, i)) > 0);
    CHECK(fa2_stage_number(FA2_BACKEND_SIM, i) > 0);
    REQUIRE(fa2_variant_count(FA2_BACKEND_SIM, i) > 0);
    CHECK(fa2_variant_name(FA2_BACKEND_SIM, i, 0) != nullptr);
  }
  CHECK(fa2_stage_name(FA2_BACKEND_SIM, -1) == nullptr);
  CHECK(fa2_stage_name(7, 0) == nullptr);
  CHECK(fa2_variant_name(FA2_BACKEND_SIM, 0, 99) == nullptr);
  CHECK(std::string(fa2_gpu_model_key(0)) == "h200");
  CHECK(fa2_gpu_model_key(fa2_gpu_model_count()) == nullptr);
  CHECK(sizeof(fa2_counters) == fa2_counter_count() * sizeof(uint64_t));
  CHECK(std::string(fa2_counter_name(0)) == "blocks");
  CHECK(std::strlen(fa2_counter_meaning(0)) > 0);
  CHECK(fa2_backend_status(FA2_BACKEND_SIM) == FA2_OK);
  double tflops = 0;
  CHECK(fa2_mma_tflops(nullptr) == FA2_INVALID_ARGUMENT);
  if (fa2_backend_status(FA2_BACKEND_CUDA) == FA2_OK) {
    CHECK(fa2_mma_tflops(&tflops) == FA2_OK);
    CHECK(tflops > 20);  // a GPU of sm_80 or later has more, and none of them has so much
    CHECK(tflops < 5000);
  } else {
    CHECK(fa2_mma_tflops(&tflops) == FA2_CANNOT_RUN_HERE);
  }

  Caller c("q=5");
  fa2_tile tile;
  REQUIRE(fa2_tile_info(&c.problem, &c.options, &tile) == FA2_OK);
  CHECK(tile.Br == 64);
  CHECK(tile.Bc == 128);
  size_t bytes = 1;
  REQUIRE(fa2_workspace_bytes(&c.problem, &c.options, &bytes) == FA2_OK);
  CHECK(bytes == 0);
  CHECK(fa2_workspace_bytes(&c.problem, &c.options, nullptr) == FA2_INVALID_ARGUMENT);
}

TEST_CASE("C: threads that call at once get what they get alone", "[harness]") {
  constexpr int threads = 4, calls = 5;
  const char* specs[threads] = {"causal h=2 q=70 k=70", "bf16 q=33 k=140", "d=128 q=65 k=64",
                                "h=4/1 q=5 k=300 layout=bnhd"};
  std::vector<std::string> complaints(threads);
  std::vector<fa2_counters> alone(threads), together(threads);
  for (int t = 0; t < threads; ++t) REQUIRE(Caller(specs[t]).run(&alone[t]) == FA2_OK);
  std::vector<std::thread> workers;
  for (int t = 0; t < threads; ++t)
    workers.emplace_back([&, t] {
      for (int n = 0; n < calls; ++n) {
        Caller caller(specs[t]);
        if (caller.run(&together[t]) != FA2_OK) complaints[t] = fa2_last_error();
        if (complaints[t].empty()) complaints[t] = caller.complaint();
      }
    });
  for (std::thread& worker : workers) worker.join();
  for (int t = 0; t < threads; ++t) {
    CHECK(complaints[t] == "");
    CHECK(std::memcmp(&alone[t], &together[t], sizeof(fa2_counters)) == 0);
  }
}
