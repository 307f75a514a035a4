#include "common/harness/validate.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "common/harness/failure.h"
#include "common/harness/shape.h"
#include "common/harness/text.h"

namespace fa2 {
namespace {

using std::to_string;

void check_struct(const char* name, uint32_t size, uint32_t expected_size, uint32_t version) {
  if (version != FA2_ABI_VERSION)
    invalid(std::string(name) + ".abi_version is " + to_string(version) +
            "; this library has version " + to_string(FA2_ABI_VERSION) + ". Call " + name +
            "_init and build against the fa2.h of this library.");
  if (size != expected_size)
    invalid(std::string(name) + ".struct_size is " + to_string(size) + "; this library expects " +
            to_string(expected_size) + ". Call " + name +
            "_init and build against the fa2.h of this library.");
}

void check_range(const char* name, int64_t value, int64_t least, int64_t most) {
  if (value < least || value > most)
    invalid(std::string(name) + " is " + with_commas(value) + "; it must be between " +
            with_commas(least) + " and " + with_commas(most) + ".");
}

void check_choice(const char* name, int64_t value, int64_t count, const char* accepted) {
  if (value < 0 || value >= count)
    invalid(std::string(name) + " is " + to_string(value) + "; accepted are " + accepted + ".");
}

void check_sizes(const fa2_problem& p) {
  check_range("batch", p.batch, 0, max_count);
  check_range("heads_q", p.heads_q, 1, max_count);
  check_range("heads_kv", p.heads_kv, 1, max_count);
  check_range("seqlen_q", p.seqlen_q, 0, max_seqlen);
  check_range("seqlen_k", p.seqlen_k, 0, max_seqlen);
  if (p.head_dim != 64 && p.head_dim != 128)
    invalid("head_dim is " + with_commas(p.head_dim) + "; accepted are 64 and 128.");
  if (p.heads_q % p.heads_kv != 0)
    invalid("heads_q is " + to_string(p.heads_q) + " and heads_kv is " + to_string(p.heads_kv) +
            "; heads_q must be a multiple of heads_kv.");
  check_choice("dtype", p.dtype, 2, "0 (fp16) and 1 (bf16)");
  check_choice("causal", p.causal, 2, "0 and 1");
  if (!std::isfinite(p.scale) || p.scale < 0)
    invalid("scale is " + short_number(p.scale) +
            "; it must be finite and not negative (0 means 1 / sqrt(head_dim)).");
}

/// A product of sizes that must stay countable in 64 bits.
void check_product(const std::string& what, std::initializer_list<int64_t> factors,
                   int64_t most = max_work) {
  __int128 product = 1;
  for (const int64_t factor : factors) product *= factor;  // at most 2^31 * 2^31 * 2^30 * 2^30
  if (product > most)
    invalid(what + " is more than " + with_commas(most) + "; the sizes are too large.");
}

/// Whether two rows of a tensor share memory. Sorted by stride, each dimension must step over all
/// that the smaller ones span.
bool rows_overlap(const Shape& shape, const Strides& stride) {
  if (shape.elements() == 0) return false;
  struct Dimension {
    int64_t stride, count;
  };
  std::array<Dimension, 3> dims = {
      {{stride.batch, shape.batch}, {stride.head, shape.heads}, {stride.row, shape.rows}}};
  std::sort(dims.begin(), dims.end(),
            [](const Dimension& a, const Dimension& b) { return a.stride < b.stride; });
  int64_t span = shape.d;
  for (const Dimension& dim : dims) {
    if (dim.count <= 1) continue;
    if (dim.stride < span) return true;
    span += (dim.count - 1) * dim.stride;
  }
  return false;
}

Strides check_strides(const std::string& tensor, const int64_t (&given)[3], const Shape& shape) {
  static constexpr const char* axis[3] = {"batch", "head", "row"};
  const int64_t counts[3] = {shape.batch, shape.heads, shape.rows};
  if (given[0] == 0 && given[1] == 0 && given[2] == 0) return contiguous(shape);
  __int128 end = shape.d;
  for (int i = 0; i < 3; ++i) {
    const std::string name = tensor + "_strides[" + to_string(i) + "] (" + axis[i] + ")";
    if (given[i] < 0 || given[i] > max_work)
      invalid(name + " is " + with_commas(given[i]) + "; it must be between 0 and " +
              with_commas(max_work) + " elements.");
    if (given[i] % 8 != 0)
      invalid(name + " is " + with_commas(given[i]) +
              "; it must be a multiple of 8 elements (16 bytes).");
    if (counts[i] > 0) end += static_cast<__int128>(counts[i] - 1) * given[i];
  }
  if (shape.elements() > 0 && end > max_work)
    invalid(tensor + "_strides reach further than " + with_commas(max_work) + " elements.");
  return {given[0], given[1], given[2]};
}

void check_pointer(const char* name, const void* pointer, int64_t elements, uintptr_t alignment) {
  if (elements == 0) return;
  if (pointer == nullptr) invalid(std::string(name) + " is null.");
  if (reinterpret_cast<uintptr_t>(pointer) % alignment != 0)
    invalid(std::string(name) + " is at " + address(pointer) + "; it must be aligned to " +
            to_string(alignment) + " bytes.");
}

}  // namespace

Problem validate(const fa2_problem* given) {
  if (given == nullptr) invalid("problem is null.");
  const fa2_problem& p = *given;
  check_struct("fa2_problem", p.struct_size, sizeof p, p.abi_version);
  check_sizes(p);
  check_product("batch * heads_q", {p.batch, p.heads_q}, max_count);
  check_product("batch * heads_q * seqlen_q * head_dim",
                {p.batch, p.heads_q, p.seqlen_q, p.head_dim});
  check_product("batch * heads_kv * seqlen_k * head_dim",
                {p.batch, p.heads_kv, p.seqlen_k, p.head_dim});
  check_product("batch * heads_q * seqlen_q * seqlen_k",
                {p.batch, p.heads_q, p.seqlen_q, p.seqlen_k});

  Problem out{};
  out.dtype = static_cast<Dtype>(p.dtype);
  out.causal = p.causal == 1;
  out.batch = static_cast<int>(p.batch);
  out.heads_q = static_cast<int>(p.heads_q);
  out.heads_kv = static_cast<int>(p.heads_kv);
  out.Nq = static_cast<int>(p.seqlen_q);
  out.Nk = static_cast<int>(p.seqlen_k);
  out.d = static_cast<int>(p.head_dim);
  out.scale = p.scale == 0 ? 1.f / std::sqrt(static_cast<float>(out.d)) : p.scale;
  out.Q = check_strides("q", p.q_strides, shape_q(out));
  out.K = check_strides("k", p.k_strides, shape_kv(out));
  out.V = check_strides("v", p.v_strides, shape_kv(out));
  out.O = check_strides("o", p.o_strides, shape_q(out));
  if (rows_overlap(shape_q(out), out.O))
    invalid("o_strides are {" + to_string(out.O.batch) + ", " + to_string(out.O.head) + ", " +
            to_string(out.O.row) + "}; with these sizes rows of o overlap.");
  return out;
}

void validate_tensors(const Problem& p, const Tensors& x) {
  check_pointer("q", x.Q, shape_q(p).elements(), 16);
  check_pointer("k", x.K, shape_kv(p).elements(), 16);
  check_pointer("v", x.V, shape_kv(p).elements(), 16);
  check_pointer("o", x.O, shape_q(p).elements(), 16);
  check_pointer("lse", x.LSE, output_rows(p), 4);
  if (x.O != nullptr && (x.O == x.Q || x.O == x.K || x.O == x.V))
    invalid("o is the same memory as an input; it must be its own.");
}

void validate_workspace(const char* stage, size_t needed, const void* workspace, size_t bytes) {
  if (needed == 0) return;
  if (bytes < needed)
    invalid("workspace_bytes is " + with_commas(bytes) + "; " + stage + " needs " +
            with_commas(needed) + " for this problem.");
  check_pointer("workspace", workspace, 1, 16);
}

void validate_options(const fa2_options* options) {
  if (options == nullptr) invalid("options is null.");
  check_struct("fa2_options", options->struct_size, sizeof *options, options->abi_version);
  check_choice("backend", options->backend, 2, "0 (simulator) and 1 (CUDA)");
  check_choice("tile_mode", options->tile_mode, 3, "0 (same), 1 (same_b) and 2 (tuned)");
  check_choice("order", options->order, 3, "0 (forward), 1 (reverse) and 2 (random)");
  check_range("os_threads", options->os_threads, 0, 1024);
}

}  // namespace fa2
