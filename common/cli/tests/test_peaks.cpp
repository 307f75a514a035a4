#include "common/cli/compare/peaks.h"
#include "common/testing/catch.h"

namespace {

using fa2::compare::datasheet_tflops;

TEST_CASE("peaks: a GPU is known by the name that the driver gives it") {
  CHECK(datasheet_tflops("NVIDIA H200") == 989.4);
  CHECK(datasheet_tflops("NVIDIA H100 80GB HBM3") == 989.4);
  CHECK(datasheet_tflops("NVIDIA H100 PCIe") == 756);
  CHECK(datasheet_tflops("NVIDIA A100-SXM4-80GB") == 312);
  CHECK(datasheet_tflops("A100-PCIE-40GB") == 312);
  CHECK(datasheet_tflops("NVIDIA GeForce RTX 4090") == 165.2);
  CHECK(datasheet_tflops("NVIDIA GeForce RTX 3090") == 71);
  CHECK(datasheet_tflops("NVIDIA L4") == 121);
}

TEST_CASE("peaks: another GPU, or a part of one, does not get the peak of a similar name") {
  for (const char* gpu :
       {"NVIDIA H200 NVL", "NVIDIA H100 NVL", "NVIDIA GH200 480GB", "NVIDIA L40S",
        "NVIDIA GeForce RTX 3090 Ti", "NVIDIA GeForce RTX 4090 D",
        "NVIDIA GeForce RTX 4090 Laptop GPU", "NVIDIA A100-SXM4-40GB MIG 3g.20gb", "GPU", ""}) {
    CAPTURE(gpu);
    CHECK(datasheet_tflops(gpu) == 0);
  }
}

}  // namespace
