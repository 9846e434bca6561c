-- Runs whose candidates depend on no time, --deterministic: the function, the target, the seed, the policy and the
-- number of trials say which candidates are asked for, and in which order, whatever is measured, whatever the store
-- has, however many jobs there are. So nothing of a result goes back to the policy: to it each candidate was measured,
-- and took what is estimated (analytical.lua), or all the same where nothing can be estimated. The model is that
-- estimate too; one of a file ranks, and does not learn. A trial is a candidate that was asked for, also where it
-- failed. What the store has of one is not measured again. Times decide one thing: which of the candidates is the best.
local analytical = msched.load "search.cost.analytical"

local fixed = {}

local CYCLE, UNKNOWN = 1e-10, 1 -- seconds: of what estimates count; of what has none

-- What does not go with it: what ends or changes a run by time. Gives the option's name and why.
local REFUSED = {
  {"seconds", "it ends a run by time"},
  {"policy_timeout", "a policy has the time that it takes"},
  {"skip_failing", "whether a rule runs too long depends on the time"},
  {"transfer", "candidates would depend on what the store has"},
  {"failures", "failures end no run, for some depend on the time"},
}
function fixed.refused(options)
  for _, r in ipairs(REFUSED) do if options[r[1]] then return r[1], r[2] end end
  if options.scheduler == "gain" then return "scheduler", "gain is decided by times: tasks are resumed in turn" end
end

local function seconds_of(task, c)
  local cost = analytical.cost(task, c)
  return cost and cost * CYCLE or UNKNOWN
end

-- A candidate is asked for: the answer that its policy gets.
function fixed.answer(task, c)
  local seconds = seconds_of(task, c)
  task.proposed[#task.proposed + 1] = {hash = c.hash, seconds = seconds, sketch = c.sketch_trace,
                                       candidate = c.candidate, trace = c.trace}
  return {status = "measured", seconds = seconds}
end

-- The model of a task that has none of a file: the speed by estimate, as a share of the fastest's.
function fixed.model(task)
  return {predict = function(_, candidates)
    local scores, least = {}, math.huge
    for i, c in ipairs(candidates) do
      scores[i] = seconds_of(task, c)
      least = math.min(least, scores[i])
    end
    for i, seconds in ipairs(scores) do scores[i] = least / seconds end
    return scores
  end}
end

-- What the store has of the task's function: each is known when the policy asks for it, as if it were measured then.
function fixed.read(task, own)
  task.recorded = #own
  for _, k in ipairs(own) do
    task.unfinished[k.record.hash] = k
    if k.trace and k.record.status == "measured" then
      task:note_best(k.record.seconds, k.id, k.record.id, k.record.hash, k.trace)
    end
  end
end

return fixed
