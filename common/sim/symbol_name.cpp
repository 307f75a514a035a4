#include "common/sim/symbol_name.h"

#include <cxxabi.h>
#include <dlfcn.h>
#include <link.h>

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <vector>

namespace fa2::sim {
namespace {

template <class T>
bool read_at(std::ifstream& file, uint64_t offset, T* to, size_t count) {
  file.seekg(static_cast<std::streamoff>(offset));
  file.read(reinterpret_cast<char*>(to), static_cast<std::streamsize>(count * sizeof(T)));
  return file.good();
}

// Kernels are often local functions, which dladdr does not know: looks in the file's own table.
std::string name_in_symbol_table(const char* path, uintptr_t base, uintptr_t address) {
  std::ifstream file(path, std::ios::binary);
  ElfW(Ehdr) header;
  if (!read_at(file, 0, &header, 1) || header.e_shentsize != sizeof(ElfW(Shdr))) return "";
  std::vector<ElfW(Shdr)> sections(header.e_shnum);
  if (!read_at(file, header.e_shoff, sections.data(), sections.size())) return "";
  if (header.e_type == ET_DYN) address -= base;
  for (const ElfW(Shdr) & section : sections) {
    if (section.sh_type != SHT_SYMTAB || section.sh_link >= sections.size()) continue;
    std::vector<ElfW(Sym)> symbols(section.sh_size / sizeof(ElfW(Sym)));
    std::vector<char> names(sections[section.sh_link].sh_size + 1, '\0');
    if (!read_at(file, section.sh_offset, symbols.data(), symbols.size()) ||
        !read_at(file, sections[section.sh_link].sh_offset, names.data(), names.size() - 1))
      continue;
    for (const ElfW(Sym) & symbol : symbols)
      if (ELF64_ST_TYPE(symbol.st_info) == STT_FUNC && symbol.st_name < names.size() &&
          symbol.st_value <= address && address < symbol.st_value + symbol.st_size)
        return &names[symbol.st_name];
  }
  return "";
}

// "void fa2::on_sim::(anonymous namespace)::forward<fa2::sim::half, 0>(int)" -> "forward<half, 0>"
std::string shortened(std::string name) {
  for (const char* space : {"(anonymous namespace)::", "fa2::on_sim::", "fa2::sim::", "fa2::"})
    for (size_t at; (at = name.find(space)) != std::string::npos;)
      name.erase(at, std::char_traits<char>::length(space));
  int depth = 0;  // of template brackets
  size_t begin = 0;
  for (size_t i = 0; i < name.size(); ++i) {
    if (name[i] == '<') ++depth;
    if (name[i] == '>') --depth;
    if (depth == 0 && name[i] == '(') return name.substr(begin, i - begin);
    if (depth == 0 && name[i] == ' ') begin = i + 1;
  }
  return name.substr(begin);
}

}  // namespace

std::string symbol_name(const void* function) {
  Dl_info info{};
  if (dladdr(function, &info) == 0) return "";
  std::string mangled;
  if (info.dli_sname != nullptr && info.dli_saddr == function)
    mangled = info.dli_sname;
  else if (info.dli_fname != nullptr)
    mangled = name_in_symbol_table(info.dli_fname, reinterpret_cast<uintptr_t>(info.dli_fbase),
                                   reinterpret_cast<uintptr_t>(function));
  if (mangled.empty()) return "";
  char* demangled = abi::__cxa_demangle(mangled.c_str(), nullptr, nullptr, nullptr);
  const std::string name = shortened(demangled != nullptr ? demangled : mangled);
  std::free(demangled);
  return name;
}

}  // namespace fa2::sim
