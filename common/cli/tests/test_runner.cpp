#include <algorithm>
#include <memory>

#include "common/cli/compare/requested.h"
#include "common/cli/compare/runner.h"
#include "common/cli/tests/records.h"
#include "common/harness/failure.h"
#include "common/testing/catch.h"

namespace {

using namespace fa2;
using namespace fa2::compare;
using fa2::compare::testing::mentions;

const Listener silent{[](const std::string&) {}, [](const std::vector<Record>&) {}};

Options options() {
  Options o;
  o.backend = "sim";
  o.dtypes = {"fp16"};
  o.tile_modes = {"same"};
  return o;
}

std::vector<Record> run(const std::vector<Entry>& entries, const compare::Shape& shape,
                        const Options& o = options()) {
  const Machine machine = choose_machine(o);
  return run_all(*machine.device, o, {shape}, entries, environment_of_run(*machine.device, o),
                 silent)
      .records;
}

constexpr compare::Shape small{1, 1, 1, 64, 64, 64, false};
constexpr TileRow tiles[] = {{TileMode::same, 64, {64, 64, 4, 1}, 1024}};

size_t no_workspace(const Problem&) { return 0; }
size_t huge_workspace(const Problem&) { return size_t{1} << 50; }
void writes_nothing(const Problem&, const Tensors&, int, void*) {}
void faults(const Problem&, const Tensors&, int, void*) { throw Error("race between two threads"); }
void refuses(const Problem&, const Tensors&, int, void*) {
  throw Failure(FA2_UNSUPPORTED, "this GPU is too small");
}

/// The outcome of a stage that consists of this function, and of a good stage after it.
std::vector<Record> run_with(void (*forward)(const Problem&, const Tensors&, int, void*),
                             size_t (*workspace)(const Problem&) = no_workspace) {
  const Variant variant{"", tiles, workspace, forward};
  const Stage stage{"stage1_test", 1, {&variant, 1}};
  std::vector<Entry> entries = {{&stage, &variant}};
  Options good = options();
  good.stages = {2};
  for (const Entry& e : entries_of(good, Backend::sim)) entries.push_back(e);
  return run(entries, small);
}

TEST_CASE("runner: a stage that writes nothing is wrong, and the rest goes on") {
  const auto records = run_with(writes_nothing);
  REQUIRE(records.size() == 2);
  CHECK(records[0].outcome == compare::Outcome::wrong);
  CHECK(records[0].reason.find("never written") != std::string::npos);
  CHECK(records[1].outcome == compare::Outcome::right);
}

TEST_CASE("runner: a mistake that the simulator caught is wrong, with its message") {
  const auto records = run_with(faults);
  CHECK(records[0].outcome == compare::Outcome::wrong);
  CHECK(records[0].reason == "race between two threads");
  CHECK_FALSE(records[0].counters);
  CHECK(records[1].outcome == compare::Outcome::right);
}

/// A machine that is lost for its process once a kernel has faulted, as a GPU is.
class LosableDevice : public Device {
 public:
  const DeviceInfo& info() const override { return inner_->info(); }
  void* allocate(size_t bytes) override {
    if (lost_) throw Failure(FA2_KERNEL_FAILED, "not run: the GPU is unusable");
    return inner_->allocate(bytes);
  }
  void release(void* memory) noexcept override { inner_->release(memory); }
  void upload(void* to, const void* from, size_t n) override { inner_->upload(to, from, n); }
  void download(void* to, const void* from, size_t n) override { inner_->download(to, from, n); }
  void fill(void* to, unsigned char byte, size_t n) override { inner_->fill(to, byte, n); }
  void run(const Call& call, fa2_counters* counters) override {
    lost_ = call.variant->forward == faults;
    if (lost_) throw Failure(FA2_KERNEL_FAILED, "the kernel failed");
    inner_->run(call, counters);
  }
  Timing time(std::span<const Call>, const TimingOptions&) override { return {}; }

 private:
  std::unique_ptr<Device> inner_ = make_device({});
  bool lost_ = false;
};

TEST_CASE("runner: after a fault that loses the GPU the other rows run in a new process") {
  const Variant variant{"", tiles, no_workspace, faults};
  const Stage stage{"stage1_test", 1, {&variant, 1}};
  const Entry bad = {&stage, &variant};
  Options o = options();
  o.stages = {2};
  const Entry good = entries_of(o, Backend::sim)[0];
  for (const std::vector<Entry>& entries :
       {std::vector{bad, good}, std::vector{good, bad}, std::vector{good, bad, good}}) {
    std::vector<Record> records;
    size_t shown = 0;
    const Listener listener{[](const std::string&) {},
                            [&](const std::vector<Record>& rows) { shown += rows.size(); }};
    int processes = 0;
    for (bool lost = true; lost; ++processes) {
      LosableDevice device;
      const Run run = run_all(device, o, {small, {1, 2, 1, 64, 64, 64, true}}, entries,
                              compare::Environment{}, listener, records);
      REQUIRE(run.records.size() > records.size());
      records = run.records;
      lost = run.device_lost;
    }
    CHECK(processes == (entries.back().stage == &stage ? 2 : 3));
    REQUIRE(records.size() == 2 * entries.size());
    CHECK(shown == records.size());  // every group once
    for (size_t i = 0; i < records.size(); ++i) {
      const bool faulty = entries[i % entries.size()].stage == &stage;
      CHECK(records[i].outcome == (faulty ? compare::Outcome::wrong : compare::Outcome::right));
      CHECK(records[i].reason == (faulty ? "the kernel failed" : ""));
    }
  }
}

TEST_CASE("runner: what cannot run here is not wrong") {
  const auto records = run_with(refuses);
  CHECK(records[0].outcome == compare::Outcome::not_run);
  CHECK(records[0].reason == "this GPU is too small");
  CHECK(records[1].outcome == compare::Outcome::right);
}

TEST_CASE("runner: a workspace that does not fit into memory is never asked for") {
  const auto records = run_with(writes_nothing, huge_workspace);
  CHECK(records[0].outcome == compare::Outcome::not_run);
  CHECK(records[0].reason.find("does not fit") != std::string::npos);
  CHECK(records[1].outcome == compare::Outcome::right);
}

TEST_CASE("runner: tensors that no memory holds are told in every row, and other shapes run") {
  const Options o = options();
  const Machine machine = choose_machine(o);
  const auto entries = entries_of(o, Backend::sim);
  const compare::Shape huge{1 << 14, 1 << 10, 1 << 10, 1 << 14, 64, 128, false};
  const auto records = run_all(*machine.device, o, {huge, small}, entries,
                               environment_of_run(*machine.device, o), silent)
                           .records;
  REQUIRE(records.size() == 2 * entries.size());
  for (size_t i = 0; i < entries.size(); ++i) {
    CHECK(records[i].outcome == compare::Outcome::not_run);
    CHECK(records[i].reason.find("memory") != std::string::npos);
    CHECK(records[entries.size() + i].outcome == compare::Outcome::right);
  }
}

TEST_CASE("runner: every stage is right, counted and never timed") {
  const auto records = run(entries_of(options(), Backend::sim), {1, 2, 1, 100, 130, 64, true});
  REQUIRE_FALSE(records.empty());
  for (const Record& r : records) {
    INFO(label(r) << ": " << r.reason);
    CHECK(r.outcome == compare::Outcome::right);
    REQUIRE(r.counters);
    CHECK(r.counters->mma > 0);
    CHECK_FALSE(r.time_ms);
    CHECK(*r.waves > 0);
    CHECK(*r.max_abs_err > 0);
    CHECK(*r.share_of_tolerance <= 1);
    CHECK(r.environment.gpu.find("simulated") != std::string::npos);
  }
}

TEST_CASE("runner: the bytes that a GPU's record states are those that the simulator counts") {
  const auto entries = entries_of(options(), Backend::sim);
  for (const auto& shape :
       {compare::Shape{1, 2, 2, 128, 256, 64, false}, compare::Shape{1, 2, 1, 100, 130, 64, true},
        compare::Shape{2, 1, 1, 200, 70, 128, true}}) {
    for (const Record& r : run(entries, shape)) {
      if (r.number < 2) continue;
      INFO(label(r) << ", " << label(shape));
      REQUIRE(r.counters);
      CHECK(requested_bytes_of(r) == r.requested_bytes);
    }
  }
}

TEST_CASE("runner: the bf16 and tuned rows say so") {
  Options o = options();
  o.dtypes = {"fp16", "bf16"};
  o.tile_modes = {"same", "tuned"};
  o.stages = {2};
  const auto records = run(entries_of(o, Backend::sim), small, o);
  REQUIRE(records.size() == 4);
  CHECK(records[3].dtype == "bf16");
  CHECK(records[3].tile_mode == "tuned");
}

TEST_CASE("machine: --gpu chooses the simulated GPU and is refused for a real one") {
  Options o = options();
  o.gpu = "a100";
  CHECK(choose_machine(o).device->info().limits.sms == 108);
  o.backend = "cuda";
  CHECK(mentions([&] { choose_machine(o); }, "--gpu"));
  o.backend = "sim";
  o.gpu = "gtx1080";
  CHECK(mentions([&] { choose_machine(o); }, "gtx1080"));
}

TEST_CASE("machine: waves follow from shared memory, threads and SMs") {
  const TileUsed tile{64, 128, 4, 1, 99328};  // 98 KiB: two blocks in 228 KiB
  CHECK(waves_of(264, tile, "h200") == 1);
  CHECK(waves_of(108, tile, "a100") == 1);  // one in 164 KiB
  const TileUsed tiny{64, 64, 8, 1, 0};     // 256 threads: eight blocks of 2048
  CHECK(waves_of(132 * 8, tiny, "h200") == 1);
}

TEST_CASE("machine: a stage that is not built in is named") {
  Options o = options();
  o.stages = {2, 5};
  std::vector<Entry> entries;
  const bool built = std::any_of(stages(Backend::sim).begin(), stages(Backend::sim).end(),
                                 [](const Stage* s) { return s->number == 5; });
  if (built) {
    entries = entries_of(o, Backend::sim);
    CHECK(std::all_of(entries.begin(), entries.end(),
                      [](const Entry& e) { return e.stage->number == 2 || e.stage->number == 5; }));
  } else {
    CHECK(mentions([&] { entries_of(o, Backend::sim); }, "5, which is not built in"));
  }
}

}  // namespace
