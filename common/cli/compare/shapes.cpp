#include "common/cli/compare/shapes.h"

#include <algorithm>

#include "common/cli/format.h"
#include "common/device/error.h"
#include "common/harness/validate.h"

namespace fa2::compare {
namespace {

constexpr double simulator_rate = 1e8;  // B H Nq Nk d per second on one core, measured
constexpr double day = 24 * 3600;

std::vector<Shape> simulator_defaults() {
  return {{1, 2, 2, 256, 256, 64, false},
          {1, 2, 2, 512, 512, 64, false},
          {1, 2, 2, 512, 512, 64, true},
          {1, 2, 2, 512, 512, 128, true}};
}

/// The sweep of the course: B2 H16, N 512 to 16384, d 64 and 128.
ShapeRequest gpu_defaults() {
  ShapeRequest r;
  r.batch = 2;
  r.heads = 16;
  r.seqlens = {512, 1024, 2048, 4096, 8192, 16384};
  r.headdims = {64, 128};
  return r;
}

/// `asked`, filled up from `defaults`.
std::vector<Shape> combinations(const ShapeRequest& asked, const ShapeRequest& defaults) {
  const auto seqlens = asked.seqlens.empty() ? defaults.seqlens : asked.seqlens;
  const auto headdims = asked.headdims.empty() ? defaults.headdims : asked.headdims;
  const auto causal = asked.causal.empty() ? std::vector<bool>{false, true} : asked.causal;
  const int64_t batch = asked.batch.value_or(*defaults.batch);
  // With --heads-kv 32 alone, the heads cannot be fewer.
  const int64_t heads = asked.heads.value_or(std::max(*defaults.heads, asked.heads_kv.value_or(0)));
  std::vector<Shape> shapes;
  for (int64_t d : headdims)
    for (bool c : causal)
      for (int64_t n : seqlens)
        shapes.push_back(
            {batch, heads, asked.heads_kv.value_or(heads), n, asked.seqlen_k.value_or(n), d, c});
  return shapes;
}

void check(const Shape& s, const std::string& backend) {
  if (s.batch == 0 || s.Nq == 0 || s.Nk == 0) {
    throw Error(label(s) + " has nothing to compare: batch and seqlen must be at least 1.");
  }
  fa2_problem p;
  fa2_problem_init(&p);
  p.batch = s.batch;
  p.heads_q = s.heads_q;
  p.heads_kv = s.heads_kv;
  p.seqlen_q = s.Nq;
  p.seqlen_k = s.Nk;
  p.head_dim = s.d;
  p.causal = s.causal;
  validate(&p);
  const double seconds = simulator_seconds(s);
  if (backend == "sim" && seconds > day) {
    throw Error(label(s) + " would take the simulator about " + cli::number(seconds / day) +
                " days per stage; choose a smaller shape (512 is a good --seqlen).");
  }
}

}  // namespace

bool ShapeRequest::has_sizes() const {
  return batch || heads || heads_kv || seqlen_k || !seqlens.empty() || !headdims.empty();
}

std::vector<Shape> shapes_of(const ShapeRequest& request, const std::string& backend) {
  std::vector<Shape> shapes;
  if (backend == "sim" && !request.has_sizes()) {
    shapes = simulator_defaults();
    std::erase_if(shapes, [&](const Shape& s) {
      const auto& wanted = request.causal;
      return !wanted.empty() && std::find(wanted.begin(), wanted.end(), s.causal) == wanted.end();
    });
  } else {
    ShapeRequest defaults = gpu_defaults();
    if (backend == "sim") {
      defaults.batch = 1;
      defaults.heads = 2;
      defaults.seqlens = {512};
      defaults.headdims = {64};
    }
    shapes = combinations(request, defaults);
  }
  std::vector<Shape> unique;
  for (const Shape& s : shapes) {
    check(s, backend);
    if (std::find(unique.begin(), unique.end(), s) == unique.end()) unique.push_back(s);
  }
  return unique;
}

double simulator_seconds(const Shape& s) {
  double work = s.causal ? 0.5 : 1;
  for (int64_t extent : {s.batch, s.heads_q, s.Nq, s.Nk, s.d}) {
    work *= static_cast<double>(extent);
  }
  return work / simulator_rate;
}

}  // namespace fa2::compare
