#include "common/harness/spec.h"

#include <iterator>
#include <locale>
#include <sstream>

#include "common/harness/failure.h"
#include "common/harness/text.h"

namespace fa2 {
namespace {

constexpr const char* layout_names[] = {"bhnd",   "bnhd",      "row_gap", "head_gap",
                                        "packed", "far_batch", "far_row"};
static_assert(std::size(layout_names) == layout_count);

constexpr const char* inputs_names[] = {
    "normal",   "large_logits",   "zeros",     "constant_rows",  "dominant_key",
    "negative", "negative_start", "ascending", "ascending_slow", "descending",
    "large_V",  "tiny_V",         "nan_Q",     "nan_K",          "nan_V",
    "inf_Q",    "inf_K",          "inf_V",     "nan_first_head", "all_minus_inf"};
static_assert(std::size(inputs_names) == inputs_count);

template <size_t n>
int index_of(std::string_view word, const char* const (&names)[n], const std::string& what) {
  std::string known;
  for (size_t i = 0; i < n; ++i) {
    if (word == names[i]) return static_cast<int>(i);
    known += (i == 0 ? "" : ", ") + std::string(names[i]);
  }
  invalid("\"" + std::string(word) + "\" is no " + what + "; known are " + known + ".");
}

template <class Number>
Number number(std::string_view word, std::string_view field) {
  Number value{};
  std::istringstream in{std::string(word)};
  in.imbue(std::locale::classic());  // a decimal point everywhere
  if (!(in >> value) || in.peek() != std::istringstream::traits_type::eof())
    invalid("\"" + std::string(word) + "\" is no number; \"" + std::string(field) +
            "=\" needs one.");
  return value;
}

/// The text before the first `separator`, which is removed from `rest` along with it.
std::string_view take(std::string_view& rest, char separator) {
  const size_t at = rest.find(separator);
  const std::string_view word = rest.substr(0, at);
  rest = at == std::string_view::npos ? std::string_view() : rest.substr(at + 1);
  return word;
}

void parse_layouts(Spec& spec, std::string_view value) {
  for (size_t i = 0; i < spec.layouts.size(); ++i) {
    const std::string_view word = take(value, ',');
    if (word.empty() && i > 0)
      spec.layouts[i] = spec.layouts[i - 1];  // one layout stands for all
    else
      spec.layouts[i] = static_cast<Layout>(index_of(word, layout_names, "layout"));
  }
}

void parse_word(Spec& spec, std::string_view word) {
  std::string_view value = word;
  const std::string_view key = take(value, '=');
  if (word == "fp16" || word == "bf16")
    spec.dtype = word == "fp16" ? Dtype::fp16 : Dtype::bf16;
  else if (word == "causal" || word == "full")
    spec.causal = word == "causal";
  else if (key == "b")
    spec.batch = number<int64_t>(value, key);
  else if (key == "h") {
    spec.heads_q = spec.heads_kv = number<int64_t>(take(value, '/'), key);
    if (!value.empty()) spec.heads_kv = number<int64_t>(value, key);
  } else if (key == "q")
    spec.Nq = number<int64_t>(value, key);
  else if (key == "k")
    spec.Nk = number<int64_t>(value, key);
  else if (key == "d")
    spec.d = number<int64_t>(value, key);
  else if (key == "scale")
    spec.scale = number<float>(value, key);
  else if (key == "layout")
    parse_layouts(spec, value);
  else if (key == "inputs")
    spec.inputs = static_cast<Inputs>(index_of(value, inputs_names, "set of inputs"));
  else if (key == "seed")
    spec.seed = number<uint64_t>(value, key);
  else
    invalid("\"" + std::string(word) +
            "\" is no part of a problem; known are fp16, bf16, causal, " +
            "full, b=, h=, q=, k=, d=, scale=, layout=, inputs=, seed=.");
}

/// A few rows of padding after each head: what a batch of shorter sequences has.
constexpr int64_t padding_rows = 3;
constexpr int64_t far_batch_stride = (int64_t{1} << 31) + 8,
                  far_row_stride = (int64_t{1} << 25) + 8;

/// Whether no layout's strides overflow. Sizes far beyond this are refused by validate(), whatever
/// their strides.
bool has_strides(const Shape& shape) {
  __int128 product = 4;
  for (const int64_t size : {shape.batch, shape.heads, shape.rows, shape.d}) {
    if (size > INT32_MAX || size < INT32_MIN) return false;
    product *= (size < 0 ? -size : size) + padding_rows;
  }
  return product < int64_t{1} << 61;
}

void set_strides(int64_t (&out)[3], Layout layout, const Shape& shape) {
  if (!has_strides(shape)) return;
  const Strides s = strides_of(layout, shape);
  out[0] = s.batch, out[1] = s.head, out[2] = s.row;
}

}  // namespace

const char* name_of(Layout layout) { return layout_names[static_cast<int>(layout)]; }
const char* name_of(Inputs inputs) { return inputs_names[static_cast<int>(inputs)]; }

Strides strides_of(Layout layout, const Shape& s) {
  switch (layout) {
    case Layout::bhnd:
      break;
    case Layout::bnhd:
      return {s.rows * s.heads * s.d, s.d, s.heads * s.d};
    case Layout::row_gap:
      return {s.heads * s.rows * (s.d + 8), s.rows * (s.d + 8), s.d + 8};
    case Layout::head_gap: {
      const int64_t head = (s.rows + padding_rows) * s.d;
      return {s.heads * head + 24, head, s.d};
    }
    case Layout::packed:
      return {s.rows * 3 * s.heads * s.d, s.d, 3 * s.heads * s.d};
    case Layout::far_batch:
      return {far_batch_stride, s.rows * s.d, s.d};
    case Layout::far_row:
      return {s.rows * far_row_stride, s.d, far_row_stride};
  }
  return contiguous(s);
}

std::string to_text(const Spec& spec) {
  using std::to_string;
  std::string text = spec.dtype == Dtype::fp16 ? "fp16" : "bf16";
  text += spec.causal ? " causal" : " full";
  text += " b=" + to_string(spec.batch) + " h=" + to_string(spec.heads_q) + "/" +
          to_string(spec.heads_kv) + " q=" + to_string(spec.Nq) + " k=" + to_string(spec.Nk) +
          " d=" + to_string(spec.d) + " scale=" + short_number(spec.scale, 9) + " layout=";
  for (size_t i = 0; i < spec.layouts.size(); ++i)
    text += (i == 0 ? "" : ",") + std::string(name_of(spec.layouts[i]));
  return text + " inputs=" + name_of(spec.inputs) + " seed=" + to_string(spec.seed);
}

Spec parse_spec(std::string_view text) {
  Spec spec;
  while (!text.empty()) {
    const std::string_view word = take(text, ' ');
    if (!word.empty()) parse_word(spec, word);
  }
  return spec;
}

fa2_problem to_problem(const Spec& spec) {
  fa2_problem p;
  fa2_problem_init(&p);
  p.batch = spec.batch;
  p.heads_q = spec.heads_q;
  p.heads_kv = spec.heads_kv;
  p.seqlen_q = spec.Nq;
  p.seqlen_k = spec.Nk;
  p.head_dim = spec.d;
  p.dtype = static_cast<int32_t>(spec.dtype);
  p.causal = spec.causal;
  p.scale = spec.scale;
  const Shape q = {spec.batch, spec.heads_q, spec.Nq, spec.d};
  const Shape kv = {spec.batch, spec.heads_kv, spec.Nk, spec.d};
  set_strides(p.q_strides, spec.layouts[0], q);
  set_strides(p.k_strides, spec.layouts[1], kv);
  set_strides(p.v_strides, spec.layouts[2], kv);
  set_strides(p.o_strides, spec.layouts[3], q);
  return p;
}

}  // namespace fa2
