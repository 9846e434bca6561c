-- The register-pressure estimate of kernels (jit/cuda/registers.h) against the registers that ptxas reports.
local estimated = {}

-- Close: off by at most SLACK registers or a share of SHARE; near: by at most SLACK or a factor of FACTOR. A minimum
-- share of the kernels must be each. Of the pairs in which one kernel has MORE times the other's registers, a minimum
-- share must be estimated in that order. Constant estimates, halved or doubled ones, and those without a thread's
-- arrays were tried and fail. The real estimate reaches 92 to 96 %, 81 to 83 % and 90 to 95 %.
local SLACK, SHARE, FACTOR, MORE = 16, 0.35, 2, 1.5
local CLOSE, NEAR, ORDER = 0.73, 0.85, 0.8

function estimated.new()
  return setmetatable({count = 0, close = 0, near = 0, memory = 0, wrong = 0, errors = {}, far = {}, both = {}},
                      {__index = estimated})
end

-- A kernel's resources, before it was assembled and after.
function estimated:note(asked, got)
  local most = math.min(255, 65536 // ((asked.threads + 31) // 32 * 32) // 8 * 8)
  assert(asked.estimated_registers > 0 and asked.estimated_registers <= most,
         asked.name .. ": more registers are estimated than a block has")
  self.memory = self.memory + 1
  if asked.estimated_spills ~= (got.spill_stores + got.spill_loads + got.stack_bytes > 0) then
    self.wrong = self.wrong + 1
  end
  if asked.estimated_spills then return end
  self.both[#self.both + 1] = {asked.estimated_registers, got.registers}
  local off = math.abs(asked.estimated_registers - got.registers)
  self.count, self.errors[#self.errors + 1] = self.count + 1, off
  if off <= math.max(SLACK, SHARE * got.registers) then self.close = self.close + 1 end
  local more, less = math.max(asked.estimated_registers, got.registers),
    math.min(asked.estimated_registers, got.registers)
  if off <= SLACK or more <= FACTOR * less then self.near = self.near + 1
  else
    self.far[#self.far + 1] = string.format("%s: %d estimated, %d", asked.name, asked.estimated_registers,
                                            got.registers)
  end
end

-- How many pairs whose registers differ by a factor of MORE are estimated in the right order, and how many there are.
local function in_order(list)
  local right, all = 0, 0
  for _, a in ipairs(list) do
    for _, b in ipairs(list) do
      if a[2] >= MORE * b[2] then
        all = all + 1
        if a[1] > b[1] then right = right + 1 end
      end
    end
  end
  return right, all
end

-- What jit/cuda/registers.h says holds of all that were noted. Gives a line on them.
function estimated:check()
  table.sort(self.errors)
  local right, all = in_order(self.both)
  local said =
    string.format("registers estimated near for %d of %d kernels, close for %d, median error %d; pairs in order for \z
                   %d of %d; local memory right for %d of %d", self.near, self.count, self.close,
                  self.errors[(#self.errors + 1) // 2] or 0, right, all, self.memory - self.wrong, self.memory)
  assert(self.near >= NEAR * self.count and self.close >= CLOSE * self.count,
         said .. "\n" .. table.concat(self.far, "\n"))
  assert(right >= ORDER * all, said)
  assert(2 * self.count >= self.memory and 5 * self.wrong <= self.memory, said)
  return said
end

return estimated
