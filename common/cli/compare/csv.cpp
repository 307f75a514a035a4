#include "common/cli/compare/csv.h"

#include <charconv>
#include <functional>

#include "common/cli/format.h"

namespace fa2::compare {
namespace {

/// The shortest digits that read back as the same number, with a decimal point.
std::string exact(const std::optional<double>& value) {
  if (!value) return "";
  char text[64];
  const auto end = std::to_chars(text, text + sizeof text, *value).ptr;
  return {text, end};
}

struct CsvColumn {
  const char* head;
  std::string (*cell)(const Record& r);
};

#define FA2_TEXT(head, value)                                                  \
  {                                                                            \
    head, [](const Record& r) -> std::string { return cli::csv_field(value); } \
  }
#define FA2_WHOLE(head, value)                                                 \
  {                                                                            \
    head, [](const Record& r) -> std::string { return std::to_string(value); } \
  }
#define FA2_REAL(head, value)                                         \
  {                                                                   \
    head, [](const Record& r) -> std::string { return exact(value); } \
  }
#define FA2_TILE(head, field)                                                                      \
  {                                                                                                \
    head,                                                                                          \
        [](const Record& r) -> std::string { return r.tile ? std::to_string(r.tile->field) : ""; } \
  }
#define FA2_COUNTER(name, meaning)                              \
  {#name, [](const Record& r) -> std::string {                  \
     return r.counters ? std::to_string(r.counters->name) : ""; \
   }},

std::string ok_cell(const Record& r) {
  if (r.outcome == Outcome::not_run) return "";
  return r.outcome == Outcome::right ? "true" : "false";
}

constexpr CsvColumn columns[] = {FA2_TEXT("stage", r.stage),
                                 FA2_TEXT("variant", r.variant),
                                 FA2_TEXT("backend", r.backend),
                                 FA2_WHOLE("B", r.shape.batch),
                                 FA2_WHOLE("Hq", r.shape.heads_q),
                                 FA2_WHOLE("Hkv", r.shape.heads_kv),
                                 FA2_WHOLE("Nq", r.shape.Nq),
                                 FA2_WHOLE("Nk", r.shape.Nk),
                                 FA2_WHOLE("d", r.shape.d),
                                 FA2_TEXT("causal", r.shape.causal ? "true" : "false"),
                                 FA2_TEXT("dtype", r.dtype),
                                 FA2_TEXT("tile_mode", r.tile_mode),
                                 FA2_TILE("Br", Br),
                                 FA2_TILE("Bc", Bc),
                                 FA2_TILE("warps", warps),
                                 FA2_TILE("depth", depth),
                                 FA2_TILE("smem_bytes", smem_bytes),
                                 FA2_REAL("time_ms", r.time_ms),
                                 FA2_REAL("spread", r.spread),
                                 FA2_REAL("tflops", r.tflops()),
                                 FA2_REAL("requested_gbps", r.requested_gbps()),
                                 FA2_REAL("waves", r.waves),
                                 FA2_REAL("max_abs_err", r.max_abs_err),
                                 FA2_REAL("tolerance", r.tolerance),
                                 FA2_REAL("share_of_tolerance", r.share_of_tolerance),
                                 {"ok", ok_cell},
                                 FA2_TEXT("reason", r.reason),
                                 FA2_TEXT("cpu", r.environment.cpu),
                                 FA2_TEXT("gpu", r.environment.gpu),
                                 FA2_TEXT("driver", r.environment.driver),
                                 FA2_TEXT("cuda", r.environment.cuda),
                                 FA2_TEXT("compiler", r.environment.compiler),
                                 FA2_TEXT("commit", r.environment.commit),
                                 FA2_TEXT("date", r.environment.date),
                                 FA2_COUNTERS(FA2_COUNTER)};

}  // namespace

std::string to_csv(const Results& results) {
  std::string out;
  for (const CsvColumn& c : columns) out += (out.empty() ? "" : ",") + std::string(c.head);
  out += '\n';
  for (const Record& r : results.records) {
    for (const CsvColumn& c : columns) out += (&c == columns ? "" : ",") + c.cell(r);
    out += '\n';
  }
  return out;
}

}  // namespace fa2::compare
