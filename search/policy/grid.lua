-- Every candidate once, of all sketches in turn, spread over the space from the start: a sketch's candidates, numbered
-- in mixed radix, are taken in steps of about the golden section of their number.
local steps = msched.load "search.policy.steps"

local function gcd(a, b)
  while b ~= 0 do a, b = b, a % b end
  return a
end

local MOST = 1 << 40 -- candidates of a sketch that are numbered: products of two numbers stay whole

local function grid_of(sketch)
  local draws, size = {}, 1
  for _, d in ipairs(sketch:draws()) do
    local choices = steps.choices(d)
    if choices and #choices > 1 and size * #choices < MOST then
      draws[#draws + 1] = {index = d.index, choices = choices}
      size = size * #choices
    end
  end
  local stride = math.max(1, math.floor(size * 0.6180339887))
  while gcd(stride, size) ~= 1 do stride = stride + 1 end
  return {sketch = sketch, draws = draws, size = size, stride = stride}
end

-- Its candidate number n, from 0; nil: there are not so many.
local function point(grid, n)
  if n >= grid.size then return nil end
  local trace, rest = grid.sketch, n * grid.stride % grid.size
  for _, d in ipairs(grid.draws) do
    trace, rest = trace:with_decision(d.index, d.choices[rest % #d.choices + 1]), rest // #d.choices
  end
  return trace
end

return msched.policy {
  name = "grid",
  run = function(env)
    local grids = {}
    for i, sketch in ipairs(env.sketches) do grids[i] = grid_of(sketch) end
    while env:remaining() > 0 do
      local traces, first = {}, (env.iteration - 1) * env.batch
      for n = first, first + env.batch - 1 do traces[#traces + 1] = point(grids[n % #grids + 1], n // #grids) end
      env:measure(env:unmeasured(env:replay(steps.jobs(traces)), env:remaining()))
    end
  end,
}
