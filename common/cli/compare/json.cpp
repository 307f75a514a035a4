// compare.json: the format is described in common/cli/README.md.
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "common/cli/compare/record.h"
#include "common/device/error.h"

namespace fa2::compare {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* format_name = "fa2-compare";

template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

template <class T>
std::optional<T> optional_field(const Json& j, const char* key) {
  const auto found = j.find(key);
  if (found == j.end() || found->is_null()) return {};
  return found->get<T>();
}

/// JSON has no NaN and no infinity: they are the strings "nan", "inf" and "-inf".
Json real(const std::optional<double>& value) {
  if (!value) return Json();
  if (std::isnan(*value)) return "nan";
  if (std::isinf(*value)) return *value > 0 ? "inf" : "-inf";
  return *value;
}

std::optional<double> real_field(const Json& j, const char* key) {
  const auto found = j.find(key);
  if (found == j.end() || found->is_null()) return {};
  if (!found->is_string()) return found->get<double>();
  return std::stod(found->get<std::string>());  // stod reads "nan", "inf" and "-inf"
}

Json to_json(const Environment& e) {
  return {{"cpu", e.cpu},
          {"threads", e.threads},
          {"gpu", e.gpu},
          {"sms", e.sms},
          {"compute_capability", e.compute_capability},
          {"peak_tflops", e.peak_tflops},
          {"mma_tflops", e.mma_tflops},
          {"driver", e.driver},
          {"cuda", e.cuda},
          {"compiler", e.compiler},
          {"commit", e.commit},
          {"date", e.date}};
}

Environment environment_from(const Json& j) {
  Environment e;
  j.at("cpu").get_to(e.cpu);
  j.at("threads").get_to(e.threads);
  j.at("gpu").get_to(e.gpu);
  j.at("sms").get_to(e.sms);
  j.at("compute_capability").get_to(e.compute_capability);
  j.at("peak_tflops").get_to(e.peak_tflops);
  e.mma_tflops = j.value("mma_tflops", 0.0);  // files of before it was measured
  j.at("driver").get_to(e.driver);
  j.at("cuda").get_to(e.cuda);
  j.at("compiler").get_to(e.compiler);
  j.at("commit").get_to(e.commit);
  j.at("date").get_to(e.date);
  return e;
}

Shape shape_from(const Json& j) {
  Shape s;
  j.at("B").get_to(s.batch);
  j.at("Hq").get_to(s.heads_q);
  j.at("Hkv").get_to(s.heads_kv);
  j.at("Nq").get_to(s.Nq);
  j.at("Nk").get_to(s.Nk);
  j.at("d").get_to(s.d);
  j.at("causal").get_to(s.causal);
  return s;
}

std::optional<TileUsed> tile_from(const Json& j) {
  if (j.is_null()) return {};
  TileUsed t;
  j.at("Br").get_to(t.Br);
  j.at("Bc").get_to(t.Bc);
  j.at("warps").get_to(t.warps);
  j.at("depth").get_to(t.depth);
  j.at("smem_bytes").get_to(t.smem_bytes);
  return t;
}

Json to_json(const std::optional<fa2_counters>& counters) {
  if (!counters) return Json();
  Json j = Json::object();
#define FA2_PUT(name, meaning) j[#name] = counters->name;
  FA2_COUNTERS(FA2_PUT)
#undef FA2_PUT
  return j;
}

/// A counter that an older file does not have is 0.
std::optional<fa2_counters> counters_from(const Json& j) {
  if (j.is_null()) return {};
  fa2_counters counters{};
#define FA2_GET(name, meaning) counters.name = j.value(#name, uint64_t{0});
  FA2_COUNTERS(FA2_GET)
#undef FA2_GET
  return counters;
}

/// true: right, false: wrong, null: did not run.
Json to_json(Outcome outcome) {
  return outcome == Outcome::not_run ? Json() : Json(outcome == Outcome::right);
}

Outcome outcome_from(const Json& j) {
  if (j.is_null()) return Outcome::not_run;
  return j.get<bool>() ? Outcome::right : Outcome::wrong;
}

Json to_json(const Record& r) {
  Json j;
  j["stage"] = r.stage;
  j["variant"] = r.variant;
  j["number"] = r.number;
  j["backend"] = r.backend;
  j["shape"] = to_json(r.shape);
  j["dtype"] = r.dtype;
  j["tile_mode"] = r.tile_mode;
  j["tile"] = r.tile ? to_json(*r.tile) : Json();
  j["time_ms"] = or_null(r.time_ms);
  j["spread"] = or_null(r.spread);
  j["tflops"] = or_null(r.tflops());
  j["requested_bytes"] = or_null(r.requested_bytes);
  j["requested_gbps"] = or_null(r.requested_gbps());
  j["waves"] = or_null(r.waves);
  j["counters"] = to_json(r.counters);
  j["max_abs_err"] = real(r.max_abs_err);
  j["tolerance"] = real(r.tolerance);
  j["share_of_tolerance"] = real(r.share_of_tolerance);
  j["ok"] = to_json(r.outcome);
  j["reason"] = r.reason;
  j["environment"] = to_json(r.environment);
  return j;
}

Record record_from(const Json& j) {
  Record r;
  j.at("stage").get_to(r.stage);
  j.at("variant").get_to(r.variant);
  j.at("number").get_to(r.number);
  j.at("backend").get_to(r.backend);
  r.shape = shape_from(j.at("shape"));
  j.at("dtype").get_to(r.dtype);
  j.at("tile_mode").get_to(r.tile_mode);
  r.tile = tile_from(j.at("tile"));
  r.time_ms = optional_field<double>(j, "time_ms");
  r.spread = optional_field<double>(j, "spread");
  r.requested_bytes = optional_field<double>(j, "requested_bytes");
  r.waves = optional_field<double>(j, "waves");
  r.counters = counters_from(j.at("counters"));
  r.max_abs_err = real_field(j, "max_abs_err");
  r.tolerance = real_field(j, "tolerance");
  r.share_of_tolerance = real_field(j, "share_of_tolerance");
  r.outcome = outcome_from(j.at("ok"));
  j.at("reason").get_to(r.reason);
  r.environment = environment_from(j.at("environment"));
  return r;
}

}  // namespace

Json to_json(const Shape& s) {
  return {{"B", s.batch}, {"Hq", s.heads_q}, {"Hkv", s.heads_kv}, {"Nq", s.Nq},
          {"Nk", s.Nk},   {"d", s.d},        {"causal", s.causal}};
}

Json to_json(const TileUsed& t) {
  return {{"Br", t.Br},
          {"Bc", t.Bc},
          {"warps", t.warps},
          {"depth", t.depth},
          {"smem_bytes", t.smem_bytes}};
}

Json to_json(const Results& results) {
  Json records = Json::array();
  for (const Record& r : results.records) records.push_back(to_json(r));
  return {{"format", format_name},
          {"version", format_version},
          {"command", results.command},
          {"environment", to_json(results.environment)},
          {"records", std::move(records)}};
}

Results results_from_json(const Json& j) {
  if (!j.is_object() || j.value("format", "") != format_name) {
    throw Error("this is no file of fa2 compare (it has no \"format\": \"fa2-compare\")");
  }
  if (const int version = j.value("version", 0); version != format_version) {
    throw Error("it has version " + std::to_string(version) + " of the format, and only version " +
                std::to_string(format_version) + " can be read");
  }
  Results results;
  try {
    j.at("command").get_to(results.command);
    results.environment = environment_from(j.at("environment"));
    for (const Json& record : j.at("records")) results.records.push_back(record_from(record));
  } catch (const std::exception& e) {
    throw Error("record " + std::to_string(results.records.size() + 1) +
                " is not complete: " + e.what());
  }
  return results;
}

Results read_results(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw Error("Cannot read " + path + ": there is no such file, or it is not readable.");
  try {
    return results_from_json(Json::parse(file));
  } catch (const nlohmann::json::exception&) {
    throw Error("Cannot read " + path + ": it is not JSON.");
  } catch (const Error& e) {
    throw Error("Cannot read " + path + ": " + e.what() + ".");
  }
}

}  // namespace fa2::compare
