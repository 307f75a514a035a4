// fa2-compare: runs every stage on the same problems, checks each, and shows what each change
// moved.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <nlohmann/json.hpp>

#include "common/cli/compare/against.h"
#include "common/cli/compare/csv.h"
#include "common/cli/compare/machine.h"
#include "common/cli/compare/options.h"
#include "common/cli/compare/report.h"
#include "common/cli/compare/runner.h"
#include "common/cli/output_files.h"
#include "common/cli/terminal.h"
#include "common/device/error.h"

namespace {

using namespace fa2::compare;
namespace cli = fa2::cli;

enum ExitCode { done = 0, wrong = 1, cannot_run = 2 };

/// The recorded times are kept here while a view points to them.
struct Display {
  RecordedTimes recorded;
  View view;

  explicit Display(const Options& o, bool simulator) {
    if (simulator)
      recorded = read_recorded_times(recorded_folder(), o.gpu.empty() ? "h200" : o.gpu);
    view = {cli::terminal_width(), cli::charset_of_environment(),
            recorded.empty() ? nullptr : &recorded};
  }
};

void say(const Options& o, const std::string& text) {
  if (o.quiet) return;
  std::fputs(text.c_str(), stdout);
  std::fflush(stdout);
}

/// A line for those who would wonder whether it hangs; empty for a short run.
std::string duration_line(const std::vector<Shape>& shapes, size_t rows_per_shape, int threads) {
  double seconds = 0;
  for (const Shape& s : shapes) seconds += simulator_seconds(s);
  const double minutes = seconds * static_cast<double>(rows_per_shape) / std::max(threads, 1) / 60;
  if (minutes < 2) return {};
  return "This takes the simulator about " + cli::number(minutes) + " minutes.\n";
}

std::string json_of(const Results& results) {
  using Json = nlohmann::ordered_json;
  return to_json(results).dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

constexpr const char* resume_file = "compare.resume.json";

/// A faulting kernel has made the GPU unusable for this process. A new one takes the records and
/// runs what is left. Does not return.
[[noreturn]] void go_on_in_a_new_process(const Options& o, std::vector<std::string> arguments,
                                         const Results& results) {
  say(o, "A kernel has made the GPU unusable for its process; the rest runs in a new one.\n");
  cli::write_files(o.out, {{resume_file, json_of(results)}});
  if (o.resume.empty()) arguments.push_back("--resume=" + o.out + "/" + resume_file);
  std::string program = "fa2-compare";
  std::vector<char*> words = {program.data()};
  for (std::string& word : arguments) words.push_back(word.data());
  words.push_back(nullptr);
  execv("/proc/self/exe", words.data());
  throw fa2::Error("the rest could not be run in a new process; choose fewer --stages.");
}

/// What the process before this one has left; nothing in the first one.
Results results_before(const Options& o) {
  if (o.resume.empty()) return {};
  Results results = read_results(o.resume);
  unlink(o.resume.c_str());
  return results;
}

void introduce(const Options& o, const View& view, const Machine& machine,
               const Environment& environment, const std::vector<Shape>& shapes,
               size_t rows_per_shape) {
  if (!machine.remark.empty()) say(o, cli::wrap(machine.remark, view.width) + "\n");
  const std::string line = environment_line(environment, backend_name(*machine.device));
  say(o, cli::wrap(line, view.width) + "\n\n");
  if (environment.threads > 0) {  // the simulator
    say(o, duration_line(shapes, rows_per_shape, environment.threads));
  }
}

Results run(const Options& o, const std::vector<std::string>& arguments, const Display& display,
            const Machine& machine, const std::vector<Shape>& shapes,
            const std::vector<Entry>& entries) {
  const Results before = results_before(o);
  Results results;
  results.command = o.resume.empty() ? o.command : before.command;
  results.environment = environment_of_run(*machine.device, o);
  const size_t rows_per_shape = o.dtypes.size() * o.tile_modes.size() * entries.size();
  if (o.resume.empty())
    introduce(o, display.view, machine, results.environment, shapes, rows_per_shape);
  cli::Progress progress(static_cast<int>(shapes.size() * rows_per_shape), o.quiet);
  Listener listener;
  listener.step = [&](const std::string& what) { progress.step(what); };
  listener.group_is_done = [&](const std::vector<Record>& rows) {
    progress.clear();
    for (const Group& group : groups_of(rows)) say(o, group_text(group, display.view));
  };
  Run run =
      run_all(*machine.device, o, shapes, entries, results.environment, listener, before.records);
  results.records = std::move(run.records);
  if (run.device_lost) {
    progress.clear();
    go_on_in_a_new_process(o, arguments, results);
  }
  return results;
}

void write(const Options& o, const Results& results, const Display& display) {
  View markdown = display.view;
  markdown.charset = cli::Charset::utf8;
  cli::write_files(o.out, {{"compare.json", json_of(results)},
                           {"compare.csv", to_csv(results)},
                           {"compare.md", markdown_report(results, markdown)}});
  say(o, "Written: compare.json, compare.csv, compare.md in " + o.out + "\n");
}

/// Wrong beats cannot run: if one row is wrong, that is the news.
int exit_code_of(const std::vector<Record>& records) {
  bool any_ran = false, any_wrong = false;
  for (const Record& r : records) {
    any_ran |= r.outcome != Outcome::not_run;
    any_wrong |= r.outcome == Outcome::wrong;
  }
  if (any_wrong) return wrong;
  return any_ran ? done : cannot_run;
}

int compare(const std::vector<std::string>& arguments) {
  const auto options = parse_options(arguments);
  if (!options) return done;
  const Options& o = *options;
  const Machine machine = choose_machine(o);
  const std::string backend = backend_name(*machine.device);
  const auto shapes = shapes_of(o.shapes, backend);
  const auto entries = entries_of(o, machine.device->info().backend);
  const auto records_then =
      o.against.empty() ? std::vector<Record>{} : read_results(o.against).records;
  cli::prepare_folder(o.out);

  const Display display(o, backend == "sim");
  const Results results = run(o, arguments, display, machine, shapes, entries);
  write(o, results, display);
  const int code = exit_code_of(results.records);
  if (o.against.empty()) return code;
  const Comparison comparison = compare_with(results.records, records_then);
  std::fputs(text_of(comparison, o.against, results.environment).c_str(), stdout);
  return code == done ? exit_code_of(comparison) : code;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const int status = compare({argv + 1, argv + argc});
    fa2::cli::end_output();
    return status;
  } catch (const std::bad_alloc&) {
    std::fputs("fa2 compare: out of memory; choose a smaller shape.\n", stderr);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "fa2 compare: %s\n", e.what());
  }
  return cannot_run;
}
