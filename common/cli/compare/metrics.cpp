#include "common/cli/compare/metrics.h"

#include "common/cli/format.h"

namespace fa2::compare {
namespace {

std::string whole(double value) { return cli::count(static_cast<uint64_t>(value)); }
std::string kib(double value) { return cli::kib(static_cast<uint64_t>(value)); }
std::string mib(double value) { return cli::mib(static_cast<uint64_t>(value)); }

/// A metric that is the expression `of`, of the counters c.
#define FA2_METRIC(name, head, of, show, unit) \
  {                                            \
    name, head, unit,                          \
        [](const Record& r) {                  \
          const fa2_counters& c = *r.counters; \
          return static_cast<double>(of);      \
        },                                     \
        show                                   \
  }

constexpr Metric all[] = {
    FA2_METRIC("blocks", "blocks", c.blocks, whole, ""),
    {"waves", "waves", "", [](const Record& r) { return r.waves.value_or(0); }, cli::number},
    {"shared memory per block", "", " KiB",
     [](const Record& r) { return r.tile ? static_cast<double>(r.tile->smem_bytes) : 0; }, kib},
    FA2_METRIC("global bytes", "global\nMiB", c.global_load_bytes + c.global_store_bytes, mib,
               " MiB"),
    FA2_METRIC("tile bytes", "tiles,\nshared KiB",
               c.shared_load_bytes_tiles + c.shared_store_bytes_tiles, kib, " KiB"),
    FA2_METRIC("statistics bytes", "statistics,\nshared KiB",
               c.shared_load_bytes_statistics + c.shared_store_bytes_statistics, kib, " KiB"),
    FA2_METRIC("partial O bytes", "partial O,\nshared KiB",
               c.shared_load_bytes_partial_o + c.shared_store_bytes_partial_o, kib, " KiB"),
    FA2_METRIC(
        "wavefronts", "wave-\nfronts",
        c.shared_wavefronts_tiles + c.shared_wavefronts_statistics + c.shared_wavefronts_partial_o,
        whole, ""),
    FA2_METRIC("excess wavefronts", "excess",
               c.shared_wavefronts_tiles + c.shared_wavefronts_statistics +
                   c.shared_wavefronts_partial_o - c.shared_wavefronts_ideal_tiles -
                   c.shared_wavefronts_ideal_statistics - c.shared_wavefronts_ideal_partial_o,
               whole, ""),
    FA2_METRIC("block barriers", "block\nbarriers", c.block_barriers, whole, ""),
    FA2_METRIC("warp syncs", "warp\nsyncs", c.warp_syncs, whole, ""),
    FA2_METRIC("shuffles", "shuffles", c.shuffles, whole, ""),
    FA2_METRIC("mma", "mma", c.mma, whole, ""),
    FA2_METRIC("exp2 of P", "exp2\nof P", c.exp2_p, whole, ""),
    FA2_METRIC("exp2 of statistics", "exp2\nof stat.", c.exp2_stats, whole, ""),
    FA2_METRIC("normalisations", "normali-\nsations", c.normalisations, whole, ""),
    FA2_METRIC("multiplies on O", "multiplies\non O", c.fp32_mul_O + c.fp32_fma_O, whole, ""),
    FA2_METRIC("mbarrier waits", "", c.mbarrier_waits, whole, ""),
    FA2_METRIC("votes", "", c.votes, whole, ""),
    FA2_METRIC("ldmatrix", "", c.ldmatrix, whole, ""),
    FA2_METRIC("cp.async", "", c.cp_async, whole, ""),
    FA2_METRIC("fp32 FLOPs on O", "", c.fp32_add_O + c.fp32_mul_O + 2 * c.fp32_fma_O, whole, ""),
    FA2_METRIC("fp32 FLOPs on S", "", c.fp32_add_S + c.fp32_mul_S + 2 * c.fp32_fma_S, whole, ""),
    FA2_METRIC("fp32 FLOPs on statistics", "",
               c.fp32_add_stat + c.fp32_mul_stat + 2 * c.fp32_fma_stat, whole, ""),
};

}  // namespace

std::span<const Metric> metrics() { return all; }

}  // namespace fa2::compare
