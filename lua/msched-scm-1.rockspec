-- The Lua module, the program and what they need, for LuaRocks; in the source tree: luarocks --lua-version 5.4 make lua/msched-scm-1.rockspec
-- The libraries that CMake looks for are there already: they are Debian's, no rocks. `./msched --version` installs them.
rockspec_format = "3.0"
package = "msched"
version = "scm-1"
source = {url = "git+file://."} -- what `luarocks make` builds is the tree it is called in
description = {
  summary = "Tuner of tensor programs",
  detailed = "Finds fast schedules of tensor functions: rules in Lua open a design space, each schedule is a trace of instructions that is replayed, mutated, ranked and measured, and the best is given out as an object, library or source.",
  license = "Apache-2.0",
}
dependencies = {"lua >= 5.4, < 5.5"}
supported_platforms = {"linux"}
build = {
  type = "cmake",
  variables = {
    CMAKE_BUILD_TYPE = "Release",
    CMAKE_INSTALL_PREFIX = "$(PREFIX)",
    CMAKE_INSTALL_LIBDIR = "private", -- of the rock's own: what lies in lib/ would be taken for Lua modules
    MSCHED_LUA_MODULES = "$(LIBDIR)",
    MSCHED_TESTS = "OFF",
  },
}
