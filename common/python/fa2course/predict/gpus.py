"""Published figures of the GPUs that a prediction can be for. Limits (SMs, shared memory,
registers) are the simulator's: common/sim/gpu_models.cpp."""
from dataclasses import dataclass

GUIDE = ("CUDA C++ Programming Guide: \"Arithmetic Instructions\" (results per clock and SM), "
         "\"Compute Capabilities\" (32 banks of 4 bytes)")
# Of the rate of wgmma, which the peak of Hopper stands for: "mma" instructions reach 62.9% of it.
HOPPER_MMA = "Luo et al., \"Benchmarking and Dissecting the Nvidia Hopper GPU Architecture\", " \
             "arXiv:2402.13499"


@dataclass(frozen=True)
class Figures:
    tensor_tflops: float  # dense fp16 with fp32 accumulate, at `clock_ghz`
    clock_ghz: float      # the boost clock that this peak stands for
    mma_share: float      # what mma.sync reaches of it
    fp32: int             # additions, multiplications or FMAs per clock and SM
    exp2: int             # per clock and SM
    dram_gbs: float
    l2_mib: float
    source: str


SHARED_BYTES_PER_CLOCK = 128  # 32 banks of 4 bytes
SCHEDULERS = 4                # instructions per clock and SM

FIGURES = {
    "h200": Figures(989.4, 1.83, 0.629, 128, 16, 4800, 50,
                    "NVIDIA H200 datasheet (TFLOPS, half of the figure with sparsity; 4.8 TB/s); "
                    "NVIDIA H100 whitepaper (1830 MHz for the tensor peak, 50 MB of L2); " +
                    HOPPER_MMA),
    "a100": Figures(312.0, 1.41, 1.0, 64, 16, 2039, 40,
                    "NVIDIA A100 80GB SXM datasheet (312 TFLOPS, 2039 GB/s); NVIDIA A100 "
                    "whitepaper (1410 MHz, 40 MB of L2)"),
    "rtx4090": Figures(165.2, 2.52, 1.0, 128, 16, 1008, 72,
                       "NVIDIA Ada GPU architecture whitepaper (165.2 TFLOPS with fp32 accumulate, "
                       "2520 MHz, 1008 GB/s, 72 MB of L2)"),
    "rtx3090": Figures(71.0, 1.695, 1.0, 128, 16, 936, 6,
                       "NVIDIA Ampere GA102 whitepaper (71 TFLOPS with fp32 accumulate, 1695 MHz, "
                       "936 GB/s, 6 MB of L2)"),
    "l4": Figures(121.0, 2.04, 1.0, 128, 16, 300, 48,
                  "NVIDIA L4 datasheet (242 TFLOPS with sparsity, 30.3 TFLOPS of fp32 = 2.04 GHz, "
                  "300 GB/s); NVIDIA Ada whitepaper (48 MB of L2 in AD104)"),
}


def tensor_flops_per_clock(figures: Figures, sms: int) -> float:
    """Of one SM, by mma.sync."""
    return figures.tensor_tflops * 1e12 / (figures.clock_ghz * 1e9) / sms * figures.mma_share
