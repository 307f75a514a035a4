// Single accesses that are wrong by themselves: unwritten, out of bounds, misaligned, null,
// read-only.
#include "common/sim/tests/support.h"

namespace fa2::tests {
namespace {

using In = gptr<const float>;
using Out = gptr<float>;

// ---- Shared memory that nobody has written ------------------------------------------------------

TEST_CASE("unwritten: a plain read") {
  const Finding f = planted(
      rule::unwritten, +[](In, Out out) {
        const sptr<float> s = floats();
        if (thread_id() < 63) s[thread_id()] = 1.f;
        block_barrier();
        const float x = HERE(s[thread_id()]);
        out[thread_id()] = x;
      });
  CHECK(f.thread == Index3{63, 0, 0});
  CHECK(f.array == "s_smem");
  CHECK(f.offset == 4 * 63);
  CHECK(f.action.find("s_smem[63]") != std::string::npos);
}

TEST_CASE("unwritten: a row of an ldmatrix, half of it") {
  planted(
      rule::unwritten, +[](In, Out) {
        const sptr<half> s = dyn_smem<half>(0, 512, Use::tiles, "tile");
        for (int i = thread_id(); i < 252; i += 64) s[i] = half(1.f);
        block_barrier();
        uint32_t r[4];
        HERE(ldmatrix_x4(r, s + (thread_id() % 32) * 8));
      });
}

TEST_CASE("unwritten: what the last block left does not count") {
  const Finding f = planted(
      rule::unwritten, +[](In, Out out) {
        const sptr<float> s = floats();
        if (blockIdx.x == 0) s[thread_id()] = 1.f;
        const float x = HERE(s[thread_id()]);
        out[thread_id()] = x;
      });
  CHECK(f.block == Index3{1, 0, 0});
}

TEST_CASE("written: by halves, by the whole, by a copy of zeros") {
  legal(+[](In in, Out out) {
    const sptr<half> h = dyn_smem<half>(0, 128, Use::tiles, "h");
    const sptr<uint32_t> pairs = dyn_smem<uint32_t>(0, 64, Use::tiles, "pairs");
    h[2 * thread_id()] = half(1.f), h[2 * thread_id() + 1] = half(2.f);
    const uint32_t x = pairs[thread_id()];
    const sptr<float4_t> v = dyn_smem<float4_t>(1024, 64, Use::partial_o, "v");
    v[thread_id()] = float4_t{1, 2, 3, 4};
    const sptr<float> f = dyn_smem<float>(1024, 256, Use::partial_o, "f");
    const float y = f[4 * thread_id() + 3];
    const sptr<float> c = dyn_smem<float>(4096, 256, Use::tiles, "c");
    cp_async_16(c + 4 * thread_id(), in, false);
    cp_async_commit();
    cp_async_wait<0>();
    const float z = c[4 * thread_id()];
    if (x != 0x40003c00u || y != 4.f || z != 0.f) f[-1] = 0.f;
    out[thread_id()] = y;
  });
}

// ---- Bounds of shared memory --------------------------------------------------------------------

TEST_CASE("shared bounds: behind the end of an array, inside of the next one") {
  const Finding f = planted(
      rule::shared_bounds, +[](In, Out) {
        const sptr<float> a = dyn_smem<float>(0, 64, Use::statistics, "a_smem");
        const sptr<float> b = dyn_smem<float>(256, 64, Use::statistics, "b_smem");
        b[thread_id()] = 0.f;
        HERE(a[thread_id() + 1] = 1.f);
      });
  CHECK(f.array == "a_smem");
  CHECK(f.offset == 256);
  CHECK(f.action.find("a_smem[64]") != std::string::npos);
}

TEST_CASE("shared bounds: a negative index") {
  const Finding f = planted(
      rule::shared_bounds, +[](In, Out out) {
        const sptr<float> s = written_floats();
        const float x = HERE(s[thread_id() - 1]);
        out[thread_id()] = x;
      });
  CHECK(f.offset == -4);
}

TEST_CASE("shared bounds: an ldmatrix row and a copy's destination") {
  planted(
      rule::shared_bounds, +[](In, Out) {
        const sptr<half> s = dyn_smem<half>(0, 256, Use::tiles, "tile");
        for (int i = thread_id(); i < 256; i += 64) s[i] = half(1.f);
        block_barrier();
        uint32_t r[4];
        HERE(ldmatrix_x4(r, s + (thread_id() % 32 + 1) * 8));
      });
  planted(
      rule::shared_bounds, +[](In in, Out) {
        const sptr<float> s = dyn_smem<float>(0, 255, Use::tiles, "tile");
        HERE(cp_async_16(s + 4 * thread_id(), in, true));
        cp_async_commit();
        cp_async_wait<0>();
      });
}

TEST_CASE("shared bounds: an array larger than what the launch asks for") {
  const Finding f =
      planted(rule::shared_bounds,
              +[](In, Out) { HERE(dyn_smem<float>(0, 65, Use::tiles, "K_smem")); }, {1, 32, 256});
  CHECK(f.array == "K_smem");
}

TEST_CASE("shared bounds, legal: the last element, an array twice, one array over another") {
  legal(
      +[](In, Out) {
        const sptr<float> s = dyn_smem<float>(0, 64, Use::statistics, "s");
        s[63 - thread_id()] = 1.f;
        dyn_smem<float>(0, 64, Use::statistics, "s")[63 - thread_id()] = 2.f;
        block_barrier();
        const sptr<float4_t> v = dyn_smem<float4_t>(0, 16, Use::partial_o, "v");
        if (thread_id() < 16) v[thread_id()] = float4_t{};
        block_barrier();
        const sptr<float> end = s + 64;
        if (thread_id() == 63) end[-1] = 3.f;
      },
      {1, 64, 256});
}

// ---- Global memory ------------------------------------------------------------------------------

TEST_CASE("global bounds: behind the end, by a load") {
  const Finding f = planted(
      rule::global_bounds, +[](In in, Out out) {
        const float x = HERE(in[Memory::floats - 63 + thread_id()]);
        out[thread_id()] = x;
      });
  CHECK(f.array == "in");
  CHECK(f.offset == 4 * Memory::floats);
}

TEST_CASE("global bounds: before the begin, by a store") {
  const Finding f = planted(
      rule::global_bounds, +[](In, Out out) { HERE(out[thread_id() - 1] = 1.f); });
  CHECK(f.array == "out");
  CHECK(f.offset == -4);
}

TEST_CASE("global bounds: a row behind the last one, by a copy") {
  planted(
      rule::global_bounds, +[](In in, Out) {
        const sptr<float> s = floats();
        const In row = in + (Memory::floats - 4 * 63);
        HERE(cp_async_16(s + 4 * thread_id(), row + 4 * thread_id(), true));
        cp_async_commit();
        cp_async_wait<0>();
      });
}

TEST_CASE("global bounds: from one array into another") {
  const Finding f = planted(
      rule::global_bounds, +[](In in, Out out) {
        const int64_t distance = in.get() - static_cast<const float*>(out.get());
        const float x = HERE(In(out.get())[distance]);
        out[0] = x;
      });
  CHECK(f.array == "out");
}

TEST_CASE("global bounds: memory that belongs to nobody, and store2") {
  planted(
      rule::global_bounds, +[](In, Out) {
        float local = 0;
        HERE(gptr<float>(&local)[0] = 1.f);
      });
  planted(
      rule::global_bounds, +[](In, Out out) {
        const gptr<half> h(reinterpret_cast<half*>(out.get()));
        HERE(store2(h + 2 * Memory::floats, 0));
      });
}

TEST_CASE("read-only: a store to an input") {
  const Finding f = planted(
      rule::read_only, +[](In in, Out) {
        const gptr<float> input(const_cast<float*>(in.get()));
        HERE(input[thread_id()] = 1.f);
      });
  CHECK(f.array == "in");
}

TEST_CASE("null: a load, a store, a copy") {
  planted(
      rule::null_pointer, +[](In, Out out) {
        const gptr<const float> p(nullptr);
        const float x = HERE(p[thread_id()]);
        out[0] = x;
      });
  planted(
      rule::null_pointer, +[](In, Out) { HERE(gptr<float>(nullptr)[3] = 1.f); });
  planted(
      rule::null_pointer, +[](In, Out) {
        HERE(cp_async_16(floats() + 4 * thread_id(), gptr<const float>(nullptr), true));
        cp_async_wait<0>();
      });
}

TEST_CASE("global, legal: the whole array, 64-bit indices, null that is only compared") {
  legal(+[](In in, Out out) {
    const In end = in + int64_t{Memory::floats};
    for (int i = thread_id(); i < Memory::floats; i += 64)
      out[i] = static_cast<float>(end[static_cast<int64_t>(i) - Memory::floats]);
    const gptr<const float> nothing;
    if (!(nothing == nullptr) || nothing || in == nullptr) out[-1] = 0.f;
    const gptr<const float> read_back = out;
    if (read_back[thread_id()] != static_cast<float>(thread_id())) out[-1] = 0.f;
  });
}

TEST_CASE("global, legal: a copy that is not valid may have any source") {
  legal(+[](In in, Out out) {
    const sptr<float> s = floats();
    cp_async_16(s + 4 * thread_id(), in + Memory::floats, false);
    cp_async_commit();
    cp_async_wait<0>();
    out[thread_id()] = s[4 * thread_id() + 3];
  });
}

// ---- Alignment ----------------------------------------------------------------------------------

TEST_CASE("misaligned: an ldmatrix row, a copy on both sides, a pair of halves, an array") {
  planted(
      rule::misaligned, +[](In, Out) {
        const sptr<half> s = dyn_smem<half>(0, 1024, Use::tiles, "tile");
        for (int i = thread_id(); i < 1024; i += 64) s[i] = half(1.f);
        block_barrier();
        uint32_t r[4];
        HERE(ldmatrix_x4(r, s + (thread_id() % 32) * 12));
      });
  const Finding f = planted(
      rule::misaligned,
      +[](In in, Out) { HERE(cp_async_16(floats() + 4 * thread_id() + 2, in, true)); });
  CHECK(f.offset == 8);
  planted(
      rule::misaligned,
      +[](In in, Out) { HERE(cp_async_16(floats() + 4 * thread_id(), in + 1, true)); });
  planted(
      rule::misaligned, +[](In, Out out) {
        const gptr<half> h(reinterpret_cast<half*>(out.get()));
        HERE(store2(h + 1, 0));
      });
  planted(
      rule::misaligned, +[](In, Out) { HERE(dyn_smem<float4_t>(8, 1, Use::partial_o, "v")); });
}

TEST_CASE("aligned, legal: rows of 16 bytes, odd elements one by one") {
  legal(+[](In, Out) {
    const sptr<half> s = dyn_smem<half>(2, 1023, Use::tiles, "tile");
    s[thread_id()] = half(1.f);
    const sptr<uint8_t> b = dyn_smem<uint8_t>(4095, 64, Use::tiles, "b");
    b[thread_id()] = uint8_t{1};
    const sptr<double> d = dyn_smem<double>(8192, 64, Use::tiles, "d");
    d[thread_id()] = 1.0;
  });
}

TEST_CASE("outside of a kernel there is nothing to do primitives with") {
  const auto refused = "a kernel's primitive was used outside of a kernel";
  const int in_host_memory = 5;
  const gptr<const int> p(&in_host_memory);  // arguments of kernels are made there: this is fine
  CHECK_THROWS_WITH(int(p[0]), refused);
  CHECK_THROWS_WITH(block_barrier(), refused);
  CHECK_THROWS_WITH(warp_any(true), refused);
  CHECK_THROWS_WITH(shuffle_xor(1.f, 1), refused);
  CHECK_THROWS_WITH(cp_async_commit(), refused);
  CHECK_THROWS_WITH(threadIdx, refused);
  CHECK_THROWS_WITH(blockIdx, refused);
}

}  // namespace
}  // namespace fa2::tests
