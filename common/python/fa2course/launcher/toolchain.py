"""Finds what the build needs from the machine: compiler, CMake, Ninja, libraries."""
import importlib.util
import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from . import paths
from .process import output_of

MIN_GCC, MIN_CLANG, MIN_CMAKE = 12, 14, (3, 24)


@dataclass(frozen=True)
class Compiler:
    path: str
    kind: str  # "g++" or "clang++"
    version: str

    @property
    def good_enough(self) -> bool:
        major = int(self.version.split(".")[0])
        return major >= (MIN_GCC if self.kind == "g++" else MIN_CLANG)

    @property
    def for_c(self) -> str | None:
        """The C compiler that came with it: gcc-14 beside g++-14."""
        path = Path(self.path)
        name = path.name.replace("clang++", "clang").replace("g++", "gcc").replace("c++", "cc")
        return shutil.which(path.with_name(name))

    def __str__(self) -> str:
        return f"{self.kind} {self.version} ({self.path})"


def compiler_at(path: str) -> Compiler | None:
    macros = output_of([path, "-dM", "-E", "-x", "c++", "/dev/null"])
    if macros is None:
        return None
    defined = dict(re.findall(r"^#define (\w+) (.*)$", macros, re.MULTILINE))
    kind, names = "g++", ("__GNUC__", "__GNUC_MINOR__", "__GNUC_PATCHLEVEL__")
    if "__clang__" in defined:
        kind, names = "clang++", ("__clang_major__", "__clang_minor__", "__clang_patchlevel__")
    if names[0] not in defined:
        return None
    return Compiler(path, kind, ".".join(defined.get(name, "0") for name in names))


def compilers() -> list[Compiler]:
    """The C++ compilers here, the preferred one first. $CXX, when set, is the only one."""
    if os.environ.get("CXX"):
        names = [os.environ["CXX"]]
    else:
        names = ["c++", "g++", *(f"g++-{v}" for v in range(16, 11, -1)),
                 "clang++", *(f"clang++-{v}" for v in range(22, 13, -1))]
    found: dict[str, Compiler] = {}
    for name in names:
        path = shutil.which(name)
        if path and (compiler := compiler_at(path)):
            found.setdefault(os.path.realpath(path), compiler)
            if compiler.good_enough:  # usually the first: do not ask all the others
                break
    return list(found.values())


def compiler() -> Compiler | None:
    """The compiler to build with."""
    return next((found for found in compilers() if found.good_enough), None)


def cmake_version(path: str) -> tuple[int, ...] | None:
    found = re.search(r"cmake version (\d+)\.(\d+)(?:\.(\d+))?",
                      output_of([path, "--version"]) or "")
    return tuple(int(part or 0) for part in found.groups()) if found else None


def tool(name: str) -> str | None:
    """cmake, ctest or ninja: the system's, else the one that pip put into build/venv."""
    candidates = [shutil.which(name), str(paths.VENV / "bin" / name)]
    for path in candidates:
        if not path or not os.access(path, os.X_OK):
            continue
        if name == "ninja":
            if output_of([path, "--version"]) is None:
                continue
        elif (cmake_version(str(Path(path).with_name("cmake"))) or (0,)) < MIN_CMAKE:
            continue
        return path
    return None


def header(name: str) -> Path | None:
    """A library's header where the compiler or CMake would look for it."""
    prefixes = [*os.environ.get("CMAKE_PREFIX_PATH", "").split(os.pathsep),
                os.environ.get("CONDA_PREFIX", ""), "/usr/local", "/usr"]
    for prefix in filter(None, prefixes):
        path = Path(prefix) / "include" / name
        if path.exists():
            return path
    return None


def has_binary(path: Path, name: str, binary: str) -> bool:
    """Whether the prefix of a header has the library, too: lib/, lib64/ or lib/<triplet>/."""
    prefix = path.parents[name.count("/") + 1]
    return any(next(prefix.glob(f"{folder}/{binary}*"), None)
               for folder in ("lib", "lib64", "lib/*-linux-gnu*"))


def has_venv() -> bool:
    """Whether python3 -m venv works (Debian packs it apart)."""
    return all(importlib.util.find_spec(name) for name in ("venv", "ensurepip"))


@dataclass(frozen=True)
class Library:
    name: str
    headers: tuple[str, ...]  # any of them
    package: str              # of Debian and Ubuntu
    binary: str = ""          # start of the library's file name; "" when headers are all there is

    def where(self) -> Path | None:
        """Its header; None when that or the library is missing (the packages are apart)."""
        for name in self.headers:
            path = header(name)
            if path and (not self.binary or has_binary(path, name, self.binary)):
                return path
        return None

    def found(self) -> bool:
        return self.where() is not None


LIBRARIES = (
    Library("Boost.Context", ("boost/context/fiber.hpp",), "libboost-context-dev",
            "libboost_context"),
    Library("Catch2", ("catch2/catch_all.hpp", "catch2/catch.hpp"), "catch2"),
    Library("CLI11", ("CLI/CLI.hpp",), "libcli11-dev"),
    Library("nlohmann-json", ("nlohmann/json.hpp",), "nlohmann-json3-dev"),
)
