-- Moves a factor between two parts of one tile, or draws again a number that a loop is split by, how many elements a
-- thread loads at once, where the init of register tiles goes, how far copies run ahead, whether products overlap,
-- whether copies hold wider elements, or how a product's results leave.
local common = msched.load "rules.common"

-- what such numbers are noted as; "": nothing
local NOTED = {["meta_schedule.cooperative_fetch"] = true, ["msched.init_before_tiles"] = true,
               ["msched.nontemporal"] = true, ["msched.epilogue_tile"] = true, ["tensor_store"] = true,
               ["software_pipeline_stage"] = true, ["software_pipeline_overlap"] = true,
               ["software_pipeline_alternate"] = true, ["msched.widen"] = true, [""] = true}

local function prime_factor(stream, n) -- one of n's prime factors, by the stream
  local primes = {}
  local p = 2
  while p * p <= n do
    while n % p == 0 do
      primes[#primes + 1] = p
      n = n // p
    end
    p = p + 1
  end
  if n > 1 then primes[#primes + 1] = n end
  return primes[stream:below(#primes) + 1]
end

local function mutate_tile(stream, draw)
  local limit, factors, from = draw.attrs[2], {table.unpack(draw.decision)}, {}
  for i, f in ipairs(factors) do if f > 1 then from[#from + 1] = i end end
  if #from == 0 or #factors < 2 then return nil end
  for _ = 1, 16 do
    local i = from[stream:below(#from) + 1]
    local j = stream:below(#factors - 1) + 1
    if j >= i then j = j + 1 end
    local p = prime_factor(stream, factors[i])
    if j ~= #factors or limit < 1 or factors[j] * p <= limit then
      factors[i], factors[j] = factors[i] // p, factors[j] * p
      return factors
    end
  end
  return nil
end

return msched.mutator {
  name = "tile_size",
  apply = function(trace, stream)
    local choices = trace:changeable "SamplePerfectTile"
    for _, index in ipairs(trace:changeable "SampleCategorical") do
      local d = trace:draw(index)
      if NOTED[d.annotates or not d.binds and ""] then choices[#choices + 1] = index end
    end
    table.sort(choices)
    if #choices == 0 then return nil end
    local d = trace:draw(choices[stream:below(#choices) + 1])
    local decision
    if d.kind == "SamplePerfectTile" then
      decision = mutate_tile(stream, d)
    else
      decision = common.other_choice(stream, d)
    end
    return decision and trace:with_decision(d.index, decision)
  end,
}
