#include "common/cli/compare/options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdio>

#include "common/device/error.h"

namespace fa2::compare {
namespace {

using Words = std::vector<std::string>;

/// "--seqlen -5" becomes "--seqlen=-5": a negative number is a bad value, not an unknown option,
/// and the sentence about it should say so.
Words attach_negative_numbers(const Words& arguments) {
  Words out;
  for (const std::string& word : arguments) {
    const bool negative =
        word.size() > 1 && word[0] == '-' && std::isdigit(static_cast<unsigned char>(word[1]));
    const bool after_option =
        !out.empty() && out.back().starts_with("--") && out.back().find('=') == std::string::npos;
    if (negative && after_option) {
      out.back() += "=" + word;
    } else {
      out.push_back(word);
    }
  }
  return out;
}

int64_t whole_number(const std::string& option, const std::string& word) {
  int64_t value = 0;
  const char* end = word.data() + word.size();
  const auto [stop, error] = std::from_chars(word.data(), end, value);
  if (error == std::errc::result_out_of_range) {
    throw Error(option + " is " + word + "; that is far too large.");
  }
  if (error != std::errc() || stop != end) {
    throw Error(option + " is \"" + word + "\"; it must be a whole number, such as 512.");
  }
  return value;
}

std::vector<int64_t> whole_numbers(const std::string& option, const Words& words) {
  std::vector<int64_t> values;
  for (const auto& word : words) values.push_back(whole_number(option, word));
  return values;
}

std::optional<int64_t> maybe_number(const std::string& option, const std::string& word) {
  if (word.empty()) return {};
  return whole_number(option, word);
}

Words one_of(const std::string& option, const Words& words, const Words& accepted) {
  for (const auto& word : words) {
    if (std::find(accepted.begin(), accepted.end(), word) != accepted.end()) continue;
    std::string list;
    for (const auto& a : accepted) list += (list.empty() ? "" : ", ") + a;
    throw Error(option + " is \"" + word + "\"; accepted are " + list + ".");
  }
  return words;
}

/// What CLI11 fills in, all as words: numbers are read here, so that the sentences are ours.
struct Raw {
  std::string batch, heads, heads_kv, seqlen_k, backend, threads;
  Words seqlens, headdims, stages, mine, dtypes{"fp16"}, tile_modes{"same"};
  bool causal = false, full = false;
};

void add_options(CLI::App& app, Raw& raw, Options& o) {
  const auto list = [&app](const char* name, Words& words, const char* help) {
    app.add_option(name, words, help)->delimiter(',')->type_name("LIST");
  };
  const std::string shapes = "Shapes (every combination)";
  app.add_option("--batch", raw.batch, "Batch size")->type_name("N")->group(shapes);
  app.add_option("--heads", raw.heads, "Query heads")->type_name("N")->group(shapes);
  app.add_option("--heads-kv", raw.heads_kv, "Key/value heads; --heads is a multiple of it")
      ->type_name("N")
      ->group(shapes);
  list("--seqlen", raw.seqlens, "Queries and keys, e.g. 512,1024");
  app.add_option("--seqlen-k", raw.seqlen_k, "Keys, where there are not as many as queries")
      ->type_name("N")
      ->group(shapes);
  list("--headdim", raw.headdims, "Head dims: 64, 128");
  app.add_flag("--causal", raw.causal, "Causal attention only")->group(shapes);
  app.add_flag("--full", raw.full, "Full attention only (neither flag: both)")->group(shapes);
  for (const char* name : {"--seqlen", "--headdim"}) app.get_option(name)->group(shapes);

  list("--dtype", raw.dtypes, "fp16 (default), bf16");
  list("--stages", raw.stages, "Stages by number, e.g. 2,5 (default: all)");
  list("--tiles", raw.tile_modes,
       "same (default): one tile for all stages; same_b: the second common tile, stages 4-6 at "
       "head dim 64; tuned: each stage's best");
  app.add_flag("--variants", o.variants, "Also the variants beside the stages");
  list("--mine", raw.mine,
       "Also own kernels, compiled: 4=FILE.so (./fa2 compare --mine makes them)");
  app.add_option("--backend", raw.backend, "sim or cuda (default: a GPU if one is usable)")
      ->type_name("NAME");
  app.add_option("--gpu", o.gpu, "The GPU whose limits the simulator takes, e.g. a100")
      ->type_name("MODEL");
  app.add_option("--threads", raw.threads, "Threads of the simulator (default: all cores)")
      ->type_name("N");
  app.add_option("--against", o.against, "Say which rows differ from this file of results")
      ->type_name("RESULTS.json");
  app.add_option("--out", o.out, "Folder for compare.json, .csv and .md")
      ->type_name("DIR")
      ->capture_default_str();
  app.add_flag("--quiet", o.quiet, "Print errors only");
  app.add_option("--resume", o.resume)->group("");  // between processes, not for people
}

/// The numbers and names behind the words. Throws Error.
void read_words(const Raw& raw, Options& o) {
  o.shapes.batch = maybe_number("--batch", raw.batch);
  o.shapes.heads = maybe_number("--heads", raw.heads);
  o.shapes.heads_kv = maybe_number("--heads-kv", raw.heads_kv);
  o.shapes.seqlen_k = maybe_number("--seqlen-k", raw.seqlen_k);
  o.shapes.seqlens = whole_numbers("--seqlen", raw.seqlens);
  o.shapes.headdims = whole_numbers("--headdim", raw.headdims);
  if (raw.full != raw.causal) o.shapes.causal = {raw.causal};
  for (int64_t stage : whole_numbers("--stages", raw.stages)) {
    if (stage < 1 || stage > 6) {
      throw Error("--stages has " + std::to_string(stage) + "; the stages are 1 to 6.");
    }
    o.stages.push_back(static_cast<int>(stage));
  }
  for (const std::string& word : raw.mine) {
    const size_t at = word.find('=');
    const int64_t stage = at == word.npos ? 0 : whole_number("--mine", word.substr(0, at));
    if (stage < 1 || stage > 6)
      throw Error("--mine is \"" + word +
                  "\"; it must be a stage and a file, such as 4=kernel.so.");
    o.mine.emplace_back(static_cast<int>(stage), word.substr(at + 1));
  }
  o.dtypes = one_of("--dtype", raw.dtypes, {"fp16", "bf16"});
  o.tile_modes = one_of("--tiles", raw.tile_modes, {"same", "same_b", "tuned"});
  if (!raw.backend.empty()) o.backend = one_of("--backend", {raw.backend}, {"sim", "cuda"})[0];
  const int64_t threads = maybe_number("--threads", raw.threads).value_or(0);
  if (threads < 0 || threads > 1024) {
    throw Error("--threads is " + raw.threads + "; it must be between 0 (all cores) and 1024.");
  }
  o.threads = static_cast<int>(threads);
}

}  // namespace

std::optional<Options> parse_options(std::vector<std::string> arguments) {
  Options o;
  o.out = "build/results/compare";
  o.command = "fa2 compare";
  for (const auto& word : arguments) o.command += " " + word;

  CLI::App app(
      "Runs every stage on the same problems, checks each against the reference, and shows what "
      "each "
      "change moved: counters on the simulator, times on a GPU.",
      "./fa2 compare");
  app.footer("Exit code: 0 done, 1 a result is wrong (or differs: --against), 2 cannot run here.");
  Raw raw;
  add_options(app, raw, o);
  Words reversed = attach_negative_numbers(arguments);
  std::reverse(reversed.begin(), reversed.end());  // as CLI11 wants them
  try {
    app.parse(reversed);
  } catch (const CLI::CallForHelp&) {
    std::fputs(app.help().c_str(), stdout);
    return {};
  } catch (const CLI::ParseError& e) {
    throw Error(std::string(e.what()) + " (see ./fa2 compare --help)");
  }
  read_words(raw, o);
  return o;
}

}  // namespace fa2::compare
