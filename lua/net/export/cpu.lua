-- What a library of C asks the CPU, before it runs code that the CPU may not have: NAME_open's first call.
local ms = msched
local text = ms.load "lua.net.export.c_text"
local cpu = {}

-- The names by which compilers say that they use a feature, where they are not LLVM's in capitals.
local MACROS = {sahf = "__LAHF_SAHF__", cx16 = "__GCC_HAVE_SYNC_COMPARE_AND_SWAP_16"}
local function macro_of(name) return MACROS[name] or "__" .. name:upper():gsub("[.-]", "_") .. "__" end

local function row(feature, why)
  return string.format("    {%s, 0x%xu, %d, %d, %d, 0x%x},\n", text.literal(why), feature.leaf, feature.subleaf,
                       feature.word, feature.bit, feature.kept)
end

-- Rows for a target's features; of source, for those that the compiler uses.
local function rows(target, is_source)
  local lines = {}
  for i, feature in ipairs(ms.cpu_features(not is_source and target or nil)) do
    local by = is_source and "this library was compiled to use" or "code for " .. target .. " may use"
    local line = row(feature, string.format("this machine has no %s, which %s", feature.name, by))
    lines[i] = is_source and string.format("#ifdef %s\n%s#endif\n", macro_of(feature.name), line) or line
  end
  return table.concat(lines)
end

-- A function of code that every x86-64 CPU has, whatever else the compiler may use in others.
local BASELINE_TEXT = [[
#if defined __x86_64__ && defined __GNUC__
#include <cpuid.h>

#define BASELINE __attribute__((target("arch=x86-64")))

static const struct {
  const char *why;
  unsigned leaf, subleaf, word, bit; /* of CPUID; words are EAX to EDX */
  uint64_t kept;                     /* in XCR0: the states whose registers the system keeps */
} features[] = {
@ROWS@    {NULL, 0, 0, 0, 0, 0}};

BASELINE static uint64_t kept_states(void) {
  unsigned a, b, c, d, low, high;
  __cpuid(1, a, b, c, d);
  if (!(c >> 27 & 1)) return 0; /* OSXSAVE */
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (uint64_t)high << 32 | low;
}

/* Why this machine cannot run the code; NULL: it can. Source: Intel's Software Developer's Manual, volume 1, 14.3. */
BASELINE static const char *wrong_machine(void) {
  uint64_t kept = kept_states();
  for (int i = 0; features[i].why; i++) {
    unsigned words[4], last;
    __cpuid(features[i].leaf & 0x80000000u, last, words[1], words[2], words[3]);
    if (last < features[i].leaf) return features[i].why;
    __cpuid_count(features[i].leaf, features[i].subleaf, words[0], words[1], words[2], words[3]);
    if (!(words[features[i].word] >> features[i].bit & 1) || (kept & features[i].kept) != features[i].kept) return features[i].why;
  }
  return NULL;
}
#else
#define BASELINE
static const char *wrong_machine(void) { return NULL; }
#endif
]]

-- cpu.text(target, is_source): that function, BASELINE, and wrong_machine() in C for the target; nil: for any machine.
function cpu.text(target, is_source)
  return text.fill(BASELINE_TEXT, {ROWS = target and rows(target, is_source) or ""})
end

return cpu
