-- `msched export --pinned`: all pinned kernels of a store as one library, with one header and a table of their names.
local ms = msched
local cli = ms.load "lua.cli.cli"
local library = {}

local files = ms.load "lua.lib.files"
local write, read, run, identifier = files.write, files.read, files.run, files.identifier

-- The pinned records, {record, name}, of a target where one is given, in order of their workloads' names.
local function pinned_of(store, target)
  local names, list, taken = {}, {}, {}
  for _, w in ipairs(store:workloads()) do names[w.id] = w.name end
  for _, r in ipairs(store:records {target = target}) do
    if r.pinned and names[r.workload] then list[#list + 1] = {record = r, name = identifier(names[r.workload])} end
  end
  table.sort(list, function(a, b)
    return a.name ~= b.name and a.name < b.name or a.name == b.name and a.record.id < b.record.id
  end)
  for _, each in ipairs(list) do
    local other = taken[each.name]
    if other then
      cli.refuse("two pinned kernels are called %s, records %s and %s: unpin one, or choose a target with --target",
                 each.name, store:short_id(other.record.key), store:short_id(each.record.key))
    end
    taken[each.name] = each
  end
  if #list == 0 then
    cli.refuse("no record of %s is pinned%s; `msched db pin ID` does", store:path(), target and " for " .. target or "")
  end
  return list
end

-- Writes the object and the header of each to the folder; gives the headers' text. renamed: takes a message about each
-- whose name differs from its function's.
local function write_kernels(store, list, folder, options, renamed)
  local headers, taken = {}, {}
  for i, each in ipairs(list) do
    local r = each.record
    if not options.force then ms.load "lua.cli.store.recheck".export(store, r, r.target) end
    local _, _, sch = ms.load "lua.lib.records".schedule_of(store, r)
    local kernel = ms.build(sch:func(), {target = r.target})
    local base = folder .. "/" .. each.name
    local symbol, owner = kernel:export(base .. ".o")
    if taken[symbol] then
      cli.refuse("the kernels of records %s and %s would both be called %s: unpin one, or give their functions names",
                 store:short_id(taken[symbol].record.key), store:short_id(r.key), symbol)
    end
    taken[symbol], each.symbol = each, symbol
    if owner then renamed[#renamed + 1] = cli.renamed_text(options.output, sch:func():name(), symbol, owner) end
    kernel:export(base .. ".h", symbol)
    headers[i] = read(base .. ".h")
  end
  return table.concat(headers, "\n")
end

local function header_of(name, kernels)
  return string.format([[
/* Kernels made by msched. %s_kernels is a table of them, which ends with one whose name is NULL. */
#ifndef %s_KERNELS_H
#define %s_KERNELS_H

%s
#ifdef __cplusplus
extern "C" {
#endif

/* run: takes the address of each argument, in order, and so many bytes aligned to 64, as its own declaration says. */
struct %s_kernel {
  const char *name, *record, *target;
  int32_t (*run)(void **args, void *workspace);
  uint32_t workspace;
};
extern const struct %s_kernel %s_kernels[];

#ifdef __cplusplus
}
#endif
#endif
]], name, name:upper(), name:upper(), kernels, name, name, name)
end

local function table_of(name, list, header)
  local lines = {string.format('#include "%s"\n#include <stddef.h>\n\nconst struct %s_kernel %s_kernels[] = {\n',
                               header, name, name)}
  for _, each in ipairs(list) do
    lines[#lines + 1] = string.format("  {%q, %q, %q, %s, %s_WORKSPACE},\n", each.name, each.record.id,
                                      each.record.target, each.symbol, each.symbol)
  end
  return table.concat(lines) .. "  {NULL, NULL, NULL, NULL, 0},\n};\n"
end

-- A shared library that is closed stays where it is: the threads of its parallel loops are not ended.
local function link(path, form, folder)
  if form == "a" then run("rm -f %s && ar rcs %s %s/*.o", path, path, folder)
  else run("${CC:-cc} -shared -Wl,-z,nodelete -o %s %s/*.o -lgomp -lm", path, folder) end
end

function library.export(store, options)
  local path = options.output
  if options.name then cli.misuse("--name takes one record: kernels of --pinned have their functions' names") end
  local base, form = path:match "^(.*)%.(%w+)$"
  if form ~= "so" and form ~= "a" then cli.misuse("--pinned writes a library: FILE ends with .so or .a") end
  local replaced = cli.is_there(path) or cli.is_there(base .. ".h")
  local name = identifier((base:match "[^/]*$":gsub("^lib", "")))
  local list, renamed = nil, {}
  local ok, message = pcall(ms.with_folder, function(folder)
    list = pinned_of(store, options.target)
    local header = header_of(name, write_kernels(store, list, folder, options, renamed))
    write(folder .. "/all.h", header)
    write(folder .. "/all.c", table_of(name, list, "all.h"))
    run("${CC:-cc} -fPIC -O1 -c -o %s/all.o %s/all.c", folder, folder)
    link(path, form, folder)
    write(base .. ".h", header)
  end)
  if not ok and type(message) == "string" then cli.refuse("%s", message) end
  if not ok then error(message, 0) end
  print(string.format("%s and %s.h: %s%s", path, base, replaced and "replaced, " or "",
                      cli.count_text(#list, "kernel")))
  for _, text in ipairs(renamed) do print(text) end
  return cli.DONE
end

return library
