-- Registers of kernels as foreseen (jit/registers.h) against what the assembler says of them.
local foreseen = {}

-- Off by so many, or such a share of what there are: of as many kernels in twenty; off by so many, or such a factor.
local SLACK, SHARE, CLOSE, FACTOR, NEAR = 16, 0.35, 12, 2, 16

function foreseen.new() return setmetatable({count = 0, close = 0, near = 0, memory = 0, wrong = 0, errors = {}, far = {}}, {__index = foreseen}) end

-- A kernel's resources, before it was assembled and after.
function foreseen:note(asked, got)
  local most = math.min(255, 65536 // ((asked.threads + 31) // 32 * 32) // 8 * 8)
  assert(asked.foreseen_registers > 0 and asked.foreseen_registers <= most, asked.name .. ": more registers are foreseen than a block has")
  self.memory = self.memory + 1
  if asked.foreseen_spills ~= (got.spill_stores + got.spill_loads + got.stack_bytes > 0) then self.wrong = self.wrong + 1 end
  if asked.foreseen_spills then return end
  local off = math.abs(asked.foreseen_registers - got.registers)
  self.count, self.errors[#self.errors + 1] = self.count + 1, off
  if off <= math.max(SLACK, SHARE * got.registers) then self.close = self.close + 1 end
  local more, less = math.max(asked.foreseen_registers, got.registers), math.min(asked.foreseen_registers, got.registers)
  if off <= SLACK or more <= FACTOR * less then self.near = self.near + 1
  else self.far[#self.far + 1] = string.format("%s: %d foreseen, %d", asked.name, asked.foreseen_registers, got.registers) end
end

-- What jit/registers.h says holds of all that were noted. Gives a line on them.
function foreseen:check()
  table.sort(self.errors)
  local said = string.format("registers as foreseen for %d of %d kernels, close for %d, median error %d; what lies in memory for %d of %d", self.near,
                             self.count, self.close, self.errors[(#self.errors + 1) // 2] or 0, self.memory - self.wrong, self.memory)
  assert(20 * self.near >= NEAR * self.count and 20 * self.close >= CLOSE * self.count, said .. "\n" .. table.concat(self.far, "\n"))
  assert(5 * self.wrong <= self.memory, said)
  return said
end

return foreseen
