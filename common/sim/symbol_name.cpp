#include "common/sim/symbol_name.h"

#include <cxxabi.h>
#include <dlfcn.h>

#include <cstdlib>

namespace fa2::sim {

std::string symbol_name(const void* function) {
  Dl_info info{};
  if (dladdr(function, &info) == 0 || info.dli_sname == nullptr) return "";
  char* demangled = abi::__cxa_demangle(info.dli_sname, nullptr, nullptr, nullptr);
  std::string name = demangled != nullptr ? demangled : info.dli_sname;
  std::free(demangled);
  return name;
}

}  // namespace fa2::sim
