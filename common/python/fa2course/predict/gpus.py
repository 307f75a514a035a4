"""Published figures of the GPUs that a prediction can be for. Limits (SMs, shared memory,
registers) are the simulator's: common/sim/gpu_models.cpp."""
from dataclasses import dataclass

# Per SM: https://docs.nvidia.com/cuda/cuda-c-programming-guide/ of CUDA 13. FP32 cores, and 16
# special function units for exponentials: sections 20.7.1 (compute capability 8.x), 20.8.1 (9.0).
# 32 banks of 32 bits per clock: 20.4.3.
SHARED_BYTES_PER_CLOCK = 128

H100_PAPER = "NVIDIA H100 whitepaper v1.04, " \
             "https://resources.nvidia.com/en-us-hopper-architecture/nvidia-h100-tensor-c, Table 3"
A100_PAPER = "NVIDIA A100 whitepaper v1.0, https://images.nvidia.com/aem-dam/en-zz/Solutions/" \
             "data-center/nvidia-ampere-architecture-whitepaper.pdf, Table 4"
ADA_PAPER = "NVIDIA Ada whitepaper v2.1, https://images.nvidia.com/aem-dam/Solutions/Data-Center/" \
            "l4/nvidia-ada-gpu-architecture-whitepaper-v2.1.pdf, Appendix A"
GA102_PAPER = "NVIDIA GA102 whitepaper v2, https://www.nvidia.com/content/PDF/" \
              "nvidia-ampere-ga-102-gpu-architecture-whitepaper-v2.pdf, Appendix A"
# The peak of Hopper stands for wgmma. 62.9% is the average that the paper gives, on an H800 PCIe.
# For m16n8k16 in fp16 others quote 494.4 of 756.5 TFLOPS (65.3%) from it: not confirmed.
HOPPER_MMA = "Luo et al., https://arxiv.org/abs/2501.12084, section 6.2 (mma: 62.9% of the peak)"


@dataclass(frozen=True)
class Figures:
    tensor_tflops: float  # dense fp16 with fp32 accumulate, at `clock_ghz`
    clock_ghz: float      # the boost clock that this peak stands for
    mma_share: float      # what mma.sync reaches of it
    fp32: int             # additions, multiplications or FMAs per clock and SM
    exp2: int             # per clock and SM
    dram_gbs: float
    source: str


FIGURES = {
    "h200": Figures(989.4, 1.83, 0.629, 128, 16, 4800,
                    "https://www.nvidia.com/en-us/data-center/h200/ (4.8 TB/s; 1,979 TFLOPS with "
                    "sparsity, as the H100 SXM); " + H100_PAPER + " (989.4 TFLOPS; 1830 MHz for "
                    "tensor cores, 1980 MHz else); " + HOPPER_MMA),
    "a100": Figures(312.0, 1.41, 1.0, 64, 16, 2039,
                    "https://www.nvidia.com/en-us/data-center/a100/ (80 GB SXM: 2,039 GB/s); " +
                    A100_PAPER + " (312 TFLOPS, 1410 MHz)"),
    "rtx4090": Figures(165.2, 2.52, 1.0, 128, 16, 1008,
                       ADA_PAPER + " (165.2 TFLOPS with fp32 accumulate, half of the 330.3 with "
                       "fp16; 2520 MHz, 1008 GB/s)"),
    "rtx3090": Figures(71.0, 1.695, 1.0, 128, 16, 936,
                       GA102_PAPER + " (71 TFLOPS with fp32 accumulate, half of the 142 with fp16; "
                       "1695 MHz, 936 GB/s)"),
    "l4": Figures(121.0, 2.04, 1.0, 128, 16, 300,
                  "https://www.nvidia.com/en-us/data-center/l4/ (242 TFLOPS with sparsity, "
                  "accumulator not named: with fp32 not confirmed; 300 GB/s; 30.3 TFLOPS of fp32 "
                  "on 58 SMs = 2.04 GHz, which the device reports too)"),
}


def tensor_flops_per_clock(figures: Figures, sms: int) -> float:
    """Of one SM, by mma.sync."""
    return figures.tensor_tflops * 1e12 / (figures.clock_ghz * 1e9) / sms * figures.mma_share
