-- SASS as nvdisasm prints it: its kernels, and of each what its main loop has of each class of instructions.
--   kernels(text)   a list in the order of the text: {name =, all = counts, loop = counts or nil}; counts are a table
--                   of numbers: `instructions`, each class, what `NOTED` names, and of a loop `products`
-- The main loop: of the loops with at least half of the most products that a loop has, the one of which products
-- are the greatest share, and the shorter of two; without products, the longest loop that has no other. A loop goes
-- from a label to the last branch back to it.
local sass = {}

-- Classes by the first word of an instruction, before its first dot; what is in none is `other`.
local CLASSES = {
  tensor = "HGMMA QGMMA IGMMA BGMMA HMMA IMMA BMMA DMMA QMMA",
  float = "FFMA FMUL FADD FMNMX FSEL FSETP FSET FCHK HFMA2 HADD2 HMUL2 HMNMX2 HSETP2 HSET2 DFMA DMUL DADD DSETP \z
           DMNMX MUFU IDP RRO",
  address = "IMAD IADD3 IADD LEA LOP3 SHF SHL SHR ISETP ISCADD IMNMX IABS VIADD VIMNMX VIADDMNMX XMAD BFE BFI PRMT \z
             SEL R2UR UIMAD UIADD3 ULEA ULOP3 USHF UISETP USEL UPRMT UMOV UVIADD S2R S2UR CS2R PLOP3 UPLOP3 P2R R2P \z
             POPC FLO BREV SGXT LEPC USGXT UFLO UBREV UPOPC UP2UR UR2UP R2B",
  move = "MOV F2F F2FP F2I I2F I2FP FRND SHFL VOTE VOTEU REDUX MOVM LDC ULDC LDCU I2I",
  shared = "LDS STS LDSM STSM LDGSTS ATOMS UTMALDG UTMASTG UBLKCP UBLKRED UTMAREDG",
  global = "LDG STG LD ST RED ATOM ATOMG",
  spill = "LDL STL",
  barrier = "BAR SYNCS WARPSYNC DEPBAR LDGDEPBAR UTMACMDFLUSH ARRIVES FENCE WARPGROUP UCGABAR_ARV UCGABAR_WAIT ELECT \z
             UTMAPF MEMBAR ERRBAR CGAERRBAR CCTL ENDCOLLECTIVE USETMAXREG NANOSLEEP",
  control = "BRA BRX JMP EXIT CALL RET BSSY BSYNC BREAK BMOV NOP YIELD KILL BPT BRXU JMX",
}
-- Noted besides, by a pattern of the whole instruction: accesses of each memory, and those of 16 bytes; fences that
-- wait for the whole device; waits of a warp group for its products, and such for all of them.
local NOTED = {
  global_loads = "^LDG%f[^%w]", global_stores = "^STG%f[^%w]", shared_loads = "^LDS%f[^%w]",
  shared_stores = "^STS%f[^%w]", wide_global_loads = "^LDG%.[%w.]*128", wide_global_stores = "^STG%.[%w.]*128",
  wide_shared_loads = "^LDS%.[%w.]*128", wide_shared_stores = "^STS%.[%w.]*128", copies = "^LDGSTS%f[^%w]",
  wide_copies = "^LDGSTS%.[%w.]*128", tensor_copies = "^UTMALDG", device_fences = "^MEMBAR%.[%w.]*GPU",
  waits = "^WARPGROUP%.DEPBAR", drains = "^WARPGROUP%.DEPBAR%.LE gsb0, 0x0", fused = "^[FHD]FMA2?%f[^%w]",
}

local class_of = {}
for class, words in pairs(CLASSES) do
  for word in words:gmatch "%S+" do
    assert(not class_of[word], word)
    class_of[word] = class
  end
end

local function new_counts()
  local counts = {instructions = 0, other = 0}
  for class in pairs(CLASSES) do counts[class] = 0 end
  for name in pairs(NOTED) do counts[name] = 0 end
  return counts
end

local function count(list, first, last)
  local counts = new_counts()
  for i = first, last do
    local text = list[i].text
    local class = class_of[text:match "^[%w_]+"] or "other"
    counts.instructions, counts[class] = counts.instructions + 1, counts[class] + 1
    for name, pattern in pairs(NOTED) do if text:find(pattern) then counts[name] = counts[name] + 1 end end
  end
  return counts
end

-- Where the loops begin and end: {first, last} each.
local function loops_of(list, labels)
  local ends, loops = {}, {}
  for i, each in ipairs(list) do
    local to = labels[each.target or ""]
    if to and to <= i then ends[to] = i end
  end
  for first, last in pairs(ends) do loops[#loops + 1] = {first, last} end
  table.sort(loops, function(a, b) return a[1] < b[1] end)
  return loops
end

local function contains_another(loops, loop)
  for _, other in ipairs(loops) do
    if other ~= loop and other[1] >= loop[1] and other[2] <= loop[2] then return true end
  end
end

-- Products of a loop: of tensor cores, or where no loop has these, of floats.
local function count_products(loops)
  for _, class in ipairs {"tensor", "fused"} do
    local most = 0
    for _, loop in ipairs(loops) do
      loop.products = loop.counts[class]
      most = math.max(most, loop.products)
    end
    if most > 0 then return most end
  end
  return 0
end

local function main_loop(list, loops)
  for _, loop in ipairs(loops) do loop.counts = count(list, loop[1], loop[2]) end
  local most, best, longest = count_products(loops), nil, nil
  for _, loop in ipairs(loops) do
    local length = loop.counts.instructions
    loop.share = loop.products / length
    local is_denser = not best or loop.share > best.share
      or (loop.share == best.share and length < best.counts.instructions)
    if most > 0 and 2 * loop.products >= most and is_denser then best = loop end
    local is_inner = length > loop.counts.control and not contains_another(loops, loop)
    if is_inner and (not longest or length > longest.counts.instructions) then longest = loop end
  end
  return best or longest
end

local function finish(kernel)
  local list = kernel.list
  kernel.all = count(list, 1, #list)
  local loop = main_loop(list, loops_of(list, kernel.labels))
  kernel.loop = loop and loop.counts
  if loop then kernel.loop.products = loop.products end
  kernel.list, kernel.labels = nil, nil
end

function sass.kernels(text)
  local kernels, kernel = {}, nil
  for line in text:gmatch "[^\n]+" do
    local name, label = line:match "^%.text%.([%w_$]+):", line:match "^(%.L[%w_]+):"
    local instruction = line:match "^%s+/%*%x+%*/%s+(.-)%s*;"
    if name then
      kernel = {name = name, list = {}, labels = {}}
      kernels[#kernels + 1] = kernel
    elseif kernel and label then kernel.labels[label] = #kernel.list + 1
    elseif kernel and instruction then
      local plain = instruction:gsub("^@!?U?P%w+%s+", "")
      kernel.list[#kernel.list + 1] = {text = plain, target = plain:match "^BRA.-`%((%.L[%w_]+)%)"}
    end
  end
  for _, each in ipairs(kernels) do finish(each) end
  return kernels
end

return sass
