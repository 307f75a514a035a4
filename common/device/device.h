#pragma once
// Everything a kernel.cu includes: the primitives of the machine it is compiled for, and the tile
// operations built on them.
#ifdef __CUDACC__
#include "common/device/backend_cuda.h"
#else
#include "common/device/backend_sim.h"
#endif
#include "common/device/attention.h"
#include "common/device/dispatch.h"
#include "common/device/kv_pipeline.h"
#include "common/device/print_tile.h"
#include "common/device/stage.h"
