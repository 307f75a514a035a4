// What the instructions of a softmax cost beside mma.sync, in clocks: how near stage 6 can come to
// what mma.sync alone reaches. No memory, no barriers. notes/performance.md, "The softmax beside
// mma.sync", reads the two tables that this writes.
#include <algorithm>
#include <cstdio>
#include <exception>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "common/device/device.h"
#include "common/harness/backend_cuda.h"
#include "common/harness/device.h"
#include "common/harness/environment.h"
#include "common/harness/mma_operand.h"

namespace fa2::inline FA2_BACKEND {
namespace {

constexpr int warps = 8, schedulers = 4;  // of one SM; one block per SM

/// Clocks from one barrier of the block to another, in clocks[blockIdx.x]; no register meanwhile.
__device__ __forceinline__ void start(long long* clocks) {
  block_barrier();
  if (threadIdx.x == 0) clocks[blockIdx.x] = -clock64();
}
__device__ __forceinline__ void stop(long long* clocks) {
  block_barrier();
  if (threadIdx.x == 0) clocks[blockIdx.x] += clock64();
}

// ---- One instruction beside each product -----------------------------------------------------

enum class Op { add, mul, fma, fma_constant, fma_constants, max, max3, pack, half2_add, logic };

constexpr const char* names[] = {"FADD",
                                 "FMUL",
                                 "FFMA, three registers",
                                 "FFMA, one constant",
                                 "FFMA, two constants",
                                 "FMNMX (max)",
                                 "VIMNMX3 (max of three)",
                                 "F2FP (pack)",
                                 "HADD2",
                                 "LOP3"};

template <Op op>
__device__ __forceinline__ void run(uint32_t& d, uint32_t a, uint32_t b) {
  if constexpr (op == Op::add) asm volatile("add.f32 %0, %0, %1;" : "+r"(d) : "r"(a));
  if constexpr (op == Op::mul) asm volatile("mul.f32 %0, %0, %1;" : "+r"(d) : "r"(a));
  if constexpr (op == Op::fma)
    asm volatile("fma.rn.f32 %0, %1, %2, %0;" : "+r"(d) : "r"(a), "r"(b));
  if constexpr (op == Op::fma_constant)
    asm volatile("fma.rn.f32 %0, %1, 0f3f000000, %0;" : "+r"(d) : "r"(a));
  if constexpr (op == Op::fma_constants)
    asm volatile("fma.rn.f32 %0, %0, 0f3f000000, 0f3f800000;" : "+r"(d));
  if constexpr (op == Op::max) asm volatile("max.f32 %0, %0, %1;" : "+r"(d) : "r"(a));
  if constexpr (op == Op::max3)
    asm volatile("{ .reg .s32 t; max.s32 t, %0, %1; max.s32 %0, t, %2; }"
                 : "+r"(d)
                 : "r"(a), "r"(b));
  if constexpr (op == Op::pack) asm volatile("cvt.rn.f16x2.f32 %0, %0, %1;" : "+r"(d) : "r"(a));
  if constexpr (op == Op::half2_add) asm volatile("add.f16x2 %0, %0, %1;" : "+r"(d) : "r"(a));
  if constexpr (op == Op::logic)
    asm volatile("lop3.b32 %0, %0, %1, %2, 0x96;" : "+r"(d) : "r"(a), "r"(b));
}

/// Each warp issues mma, and `per_mma` of `op` after each. `apart`: the first four warps issue twice
/// as many mma, the others the instructions that belong to them; both kinds are on every scheduler.
template <Op op, int per_mma, bool apart>
__global__ void __launch_bounds__(32 * warps, 1)
    one_instruction(int steps, long long* clocks, uint32_t* never_written) {
  constexpr int products = 8;
  const uint32_t A[4] = {mma_operand(0), mma_operand(1), mma_operand(2), mma_operand(3)};
  uint32_t B[products][2], d[products];
  float D[products][4];
  UNROLL for (int i = 0; i < products; ++i) {
    B[i][0] = mma_operand(4 + i), B[i][1] = mma_operand(40 + i), d[i] = mma_operand(80 + i);
    UNROLL for (int e = 0; e < 4; ++e) D[i][e] = 0.f;
  }
  const auto run_steps = [&]<bool multiply, bool compute>(int count, std::bool_constant<multiply>,
                                                          std::bool_constant<compute>) {
    for (int step = 0; step < count; ++step) UNROLL for (int i = 0; i < products; ++i) {
        if constexpr (multiply) mma_m16n8k16<half>(D[i], A, B[i][0], B[i][1], D[i]);
        if constexpr (compute)
          UNROLL for (int n = 0; n < per_mma; ++n)
              run<op>(d[(i * per_mma + n) % products], B[i][0], B[i][1]);
      }
  };
  constexpr std::true_type yes;
  constexpr std::false_type no;
  start(clocks);
  if constexpr (!apart)
    run_steps(steps, yes, yes);
  else if (warp_id() < schedulers)
    run_steps(2 * steps, yes, no);
  else
    run_steps(2 * steps, no, yes);
  stop(clocks);
  uint32_t sum = 0;
  UNROLL for (int i = 0; i < products; ++i) {
    sum += d[i];
    UNROLL for (int e = 0; e < 4; ++e) sum += __float_as_uint(D[i][e]);
  }
  if (sum == 12345) *never_written = sum;  // so that nothing is optimized away
}

// ---- The softmax of stage 6 ------------------------------------------------------------------

/// Parts of the softmax, each with those before it.
enum Part { only_mma, pack_P, exp2_of_S, scale_and_subtract, row_sums, row_bounds, parts };
constexpr const char* part_names[] = {"mma.sync", "+ pack", "+ EX2", "+ FFMA", "+ sum", "+ bound"};

/// S as it is, in place of P.
template <int M16, int N8>
__device__ __forceinline__ Operand<M16, N8> bits_of(const Fragment<S_tag, M16, N8>& S) {
  Operand<M16, N8> bits;
  UNROLL for (int i = 0; i < M16; ++i) UNROLL for (int n = 0; n < N8; ++n)
      UNROLL for (int q = 0; q < 4; ++q) bits.block[i][n][q] = __float_as_uint(S.block[i][n][q]);
  return bits;
}

/// Stage 6's loop over tiles, on operands that stay in registers. No two products have the same
/// operands, or the compiler would compute one of them.
template <int d, int Bc, int part>
__global__ void __launch_bounds__(32 * warps, 1)
    softmax(int tiles, float scale, float threshold, long long* clocks, float* never_written) {
  constexpr int M16 = 2;  // 32 rows of Q per warp
  uint32_t A[M16][2][4], B[8][2];
  UNROLL for (int i = 0; i < M16; ++i) UNROLL for (int q = 0; q < 8; ++q) A[i][q / 4][q % 4] =
      mma_operand(8 * i + q);
  UNROLL for (int n = 0; n < 8; ++n) B[n][0] = mma_operand(40 + n), B[n][1] = mma_operand(80 + n);
  Fragment<O_tag, M16, d / 8> O;
  float m[2 * M16], l[2 * M16];
  UNROLL for (int r = 0; r < O.rows; ++r) {
    m[r] = scale * (threadIdx.x + r), l[r] = 0.f;
    UNROLL for (int c = 0; c < O.cols; ++c) O(r, c) = m[r] * c;
  }

  start(clocks);
  for (int j = 0; j < tiles; ++j) {
    UNROLL for (int i = 0; i < M16; ++i) UNROLL for (int q = 0; q < 8; ++q) A[i][q / 4][q % 4] =
        recomputed(A[i][q / 4][q % 4]);  // or S would be the same in each tile
    Fragment<S_tag, M16, Bc / 8> S;
    S.fill(0.f);
    UNROLL for (int k = 0; k < d / 16; ++k) UNROLL for (int n = 0; n < Bc / 8; ++n)
        UNROLL for (int i = 0; i < M16; ++i) mma_m16n8k16<half>(
            S.block[i][n], A[i][(k + n / 8) % 2], B[n % 8][0], B[n % 8][1], S.block[i][n]);

    if constexpr (part >= row_bounds) {
      bool grew = false;
      UNROLL for (int r = 0; r < S.rows; ++r) grew |=
          fma(lane_bound(S, r), scale, -m[r]) > threshold;
      if (warp_any(grew)) UNROLL for (int r = 0; r < S.rows; ++r) m[r] += threshold;  // never
    }
    UNROLL for (int r = 0; r < S.rows; ++r) UNROLL for (int c = 0; c < S.cols; ++c) {
      if constexpr (part >= scale_and_subtract) S(r, c) = fma(S(r, c), scale, -m[r]);
      if constexpr (part >= exp2_of_S) S(r, c) = fast_exp2(S(r, c));
      if constexpr (part >= row_sums) l[r] += S(r, c);
    }
    const auto P = [&] {
      if constexpr (part >= pack_P)
        return pack<half>(S);
      else
        return bits_of(S);
    }();
    constexpr int blocks = part >= pack_P ? 1 : 2;  // of P, for 16 keys
    UNROLL for (int k = 0; k < Bc / 16; ++k) UNROLL for (int n = 0; n < d / 8; ++n)
        UNROLL for (int i = 0; i < M16; ++i)
            mma_m16n8k16<half>(O.block[i][n], P.block[i][blocks * k + n % blocks], B[n % 8][0],
                               B[n % 8][1], O.block[i][n]);
  }
  stop(clocks);
  float sum = 0.f;
  UNROLL for (int r = 0; r < O.rows; ++r) {
    sum += m[r] + l[r];
    UNROLL for (int c = 0; c < O.cols; ++c) sum += O(r, c);
  }
  if (sum == 12345.678f) *never_written = sum;
}

// ---- The tables ------------------------------------------------------------------------------

/// Median over the blocks of what they write into `clocks`.
class Clocks {
 public:
  explicit Clocks(int blocks) : host_(blocks) {
    cuda::check(cudaMalloc(&clocks_, host_.size() * sizeof(long long)), "allocating GPU memory");
  }
  ~Clocks() { cudaFree(clocks_); }
  Clocks(const Clocks&) = delete;
  Clocks& operator=(const Clocks&) = delete;

  template <class Kernel, class... Args>
  double median(Kernel kernel, Args... args) {
    for (int run = 0; run < 2; ++run) {  // the first loads the code
      kernel<<<static_cast<unsigned>(host_.size()), 32 * warps>>>(args..., clocks_, nullptr);
      cuda::check(cudaGetLastError(), "starting a kernel");
    }
    cuda::check(
        cudaMemcpy(host_.data(), clocks_, host_.size() * sizeof(long long), cudaMemcpyDeviceToHost),
        "reading the clocks");
    std::nth_element(host_.begin(), host_.begin() + host_.size() / 2, host_.end());
    return static_cast<double>(host_[host_.size() / 2]);
  }

 private:
  std::vector<long long> host_;
  long long* clocks_ = nullptr;
};

constexpr int steps = 4096;

/// Clocks per mma of a scheduler.
template <Op op, int per_mma, bool apart = false>
double per_product(Clocks& clocks) {
  return clocks.median(one_instruction<op, per_mma, apart>, steps) /
         (8.0 * steps * warps / schedulers);
}

template <int d, int Bc, int part>
double per_product_of_softmax(Clocks& clocks) {
  constexpr int tiles = 256, products = 2 * 2 * (d / 16) * (Bc / 8);  // of a warp and tile
  return clocks.median(softmax<d, Bc, part>, tiles, 0.18f, 8.f) /
         (1.0 * products * tiles * warps / schedulers);
}

template <int... op>
void instructions(Clocks& clocks, std::integer_sequence<int, op...>) {
  const double alone = per_product<Op::add, 0>(clocks);
  std::printf("One instruction after each mma.sync. mma.sync alone: %.2f clocks.\n\n", alone);
  std::printf("%-24s %12s %14s %20s\n", "clocks more for each", "1 per mma", "2 per mma",
              "1, in other warps");
  const auto row = [&]<int i>(std::integral_constant<int, i>) {
    constexpr Op which{i};
    std::printf("%-24s %12.2f %14.2f %20.2f\n", names[i], per_product<which, 1>(clocks) - alone,
                (per_product<which, 2>(clocks) - alone) / 2,
                per_product<which, 1, true>(clocks) - per_product<which, 0, true>(clocks));
  };
  (row(std::integral_constant<int, op>()), ...);
}

template <int d, int Bc, int... part>
void phases(Clocks& clocks, std::integer_sequence<int, part...>) {
  const double measured[] = {per_product_of_softmax<d, Bc, part>(clocks)...};
  std::printf("d = %-3d", d);
  for (const double x : measured) std::printf(" %9.2f", x);
  std::printf(" %18.0f%%\n", 100 * measured[only_mma] / measured[parts - 1]);
}

void print_tables() {
  const std::unique_ptr<Device> device = make_device({.backend = Backend::cuda});
  const Environment here = environment_of(*device);
  std::printf("%s, driver %s, CUDA %s, commit %s\n", here.gpu.c_str(), here.driver.c_str(),
              here.cuda.c_str(), here.commit.c_str());
  std::printf("Two warps per scheduler, mma.sync m16n8k16 in fp16 with fp32 accumulate.\n\n");
  Clocks clocks(device->info().limits.sms);
  instructions(clocks, std::make_integer_sequence<int, std::size(names)>());

  std::printf("\nStage 6's softmax, 32 rows per warp, without memory. Clocks per mma.sync:\n\n%7s",
              "");
  for (const char* name : part_names) std::printf(" %9s", name);
  std::printf(" %19s\n", "most to expect");
  phases<64, 128>(clocks, std::make_integer_sequence<int, parts>());
  phases<128, 64>(clocks, std::make_integer_sequence<int, parts>());
}

}  // namespace
}  // namespace fa2::inline FA2_BACKEND

int main() {
  try {
    fa2::print_tables();
    return std::fflush(stdout) == 0 ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "fa2-softmax-beside-mma: %s\n", error.what());
    return 1;
  }
}
