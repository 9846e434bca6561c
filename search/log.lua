-- The log of a run: what its tasks ask for and what comes of it, as events in the order in which it happens. Progress,
-- --json and reports are made of these alone.
local log = {}

-- The kinds of events and their fields. Each event also has `event`, its kind; `task`, the name of the function; and
-- `elapsed`, seconds since the run began. Seconds are of the clock on the wall, unless it is said otherwise.
log.kinds = {
  cut = { -- a function has so many blocks that it is cut into groups, which are searched apart
    size = "how many blocks it has", anchors = "how many of them use their inputs again and again",
    groups = "how many there are, equal ones as one", instances = "and all of them",
  },
  uncut = { -- a function that should be, cannot be cut: it is searched as it is, which may take long
    reason = "why",
  },
  uncomposed = { -- what is best of a group cannot be done to the whole function: its next best takes its place
    group = "its name", reason = "what was refused",
  },
  opening = { -- spaces are being opened, which takes long: each second, until the first task starts
    opened = "of so many tasks they are", tasks = "and how many there are",
  },
  unopened = { -- the seconds that a run has for opening were over before all spaces were open: it goes on without them
    functions = "names of the functions that have no task so", tasks = "how many tasks there would be",
  },
  start = { -- a task was opened: its space, and what the store knows of it
    target = "what code is generated for", trials = "how many are wanted of the task, those counted included",
    total = "and of all tasks together, where that was asked for",
    operations = "that the function does, of floats or of integers, whichever are more",
    unit = "what 1e9 of them a second are called",
    bytes = "that it moves at the least: each element of its parameters once", weight = "how much the task counts",
    part_of = "the name of the function that the task's is a group of",
    groups = "the groups that the function is composed of, where it was cut",
    shared = "how many trials such a function and its groups have together, where that was asked for",
    shape = "of what the function gives, its last parameter: extents between x",
    equal = "names of the other functions that it stands for", sketches = "how many the space has",
    blocks = "where the space is factored: {block, choices} of each; the sketches are the product of these",
    thinned = "whether there are more sketches, of which these were drawn",
    unscheduled = "true where the function has no blocks: it is measured as it stands",
    known = "records that the store had",
    counted = "those of them that count as trials: of the run that the task goes on with",
    best = "the fastest of them: as few digits as name it", best_seconds = "its median",
    idle = "names of the user's rules that changed no schedule of any task, where there are any; with the first task",
    bound = "seconds that no kernel is faster than",
    limit = "what it takes at least on this machine by the roofline, as measured: {name, of, seconds}: which unit or \z
             level of memory bounds it, operations or bytes of that; where that was asked for and is known",
    vendor = "the library whose routine for it is the fastest, where these were asked for and there is one",
    vendor_seconds = "what one call of that took", vendor_library = "that library with its version",
    vendor_routine = "which of its ways was taken, where it has several",
    seconds = "that opening took", deadline = "`elapsed` when the run ends",
    refused_model = "why the model's file cannot be used: it starts with one that has learned nothing",
  },
  limit = { -- what limits a task of a function that was cut was measured: before it is first searched
    limit = "as of start",
  },
  left_out = { -- a record of the store cannot be used
    record = "its id", reason = "why",
  },
  candidates = { -- jobs were replayed
    jobs = "how many", made = "candidates that came of them", refused = "jobs that were refused",
    seconds = "that it took",
  },
  asked = { -- a policy asked for measurements
    iteration = "which time this is, from 1", candidates = "how many it asked for",
    measured = "how many of them are measured now",
    hashes = "of these modules, in the order in which they were asked for",
    recalled = "how many the store has a result of", repeated = "how many were asked for before",
    seconds = "that the policy took, replaying and the model's predictions included",
  },
  trial = { -- a result
    id = "the record's", short_id = "as few of its digits as name it", status = "measured, censored or failed",
    outcome = "the same in detail",
    seconds = "the median; of one that was censored, a lower bound", low = "of the median's interval",
    high = "and its other end", hash = "of the scheduled module",
    candidate = "its number", reason = "the message of a failure", busy = "whether other programs ran meanwhile",
    build_seconds = "that building it took",
    run_seconds = "that checking and timing it took", done = "trials of the task so far, those counted at the start \z
      included", best = "the fastest record so far: as few digits as name it",
    best_seconds = "its median",
  },
  retimed = { -- one of the best was timed again, in turn with the others, and its record has this time now
    id = "the record's", short_id = "as few of its digits as name it", seconds = "the median",
    low = "of the median's interval", high = "and its other end",
    busy = "whether other programs ran meanwhile", best = "the fastest record now: as few digits as name it",
    best_seconds = "its median",
  },
  transferred = { -- the model starts from one that learned from the store's records of other functions
    samples = "how many it learned from", functions = "of how many functions",
  },
  learned = { -- the model was given results
    lessons = "how many", known = "whether they are those that the store had", seconds = "that it took",
  },
  remark = { -- results are compared otherwise than they should be
    text = "how, and why",
  },
  model_left = { -- the model failed: the search goes on without it
    reason = "what it did, and where",
  },
  said = { -- something outside of the run is to be known: what it waits for, or what its times suffer of
    text = "what",
  },
  wait = { -- nothing came for a while
    waiting = "results that are waited for",
    retiming = "whether these are of the best, which are timed again in the end",
  },
  ["end"] = { -- a task is over
    trials = "how many were measured, those counted at the start included",
    seconds = "from the start of the run to here", best = "the fastest record's id",
    short_id = "as few of its digits as name it",
    best_seconds = "its median", failures = "how many candidates failed, by outcome",
    refused = "how many were refused, by whom", repeated = "candidates that were asked for before",
    busy = "trials during which other programs ran", retimed = "how many of the best were timed again",
    ended = "why: a word", limit = "as of start, as it is known now",
    unused = "which unit the best kernel does not use though its function could, and what of its rate that reaches, \z
              in words",
    text = "why, in a sentence, where trials are left",
    open_seconds = "where the time went: opening the space", replay_seconds = "replaying",
    policy_seconds = "what policies did besides", learn_seconds = "the model's updates",
    wait_seconds = "waiting for results", build_seconds = "building, all builders together",
    run_seconds = "checking and timing",
  },
}

local function check(kind, fields)
  local known = log.kinds[kind]
  assert(known, kind)
  for name in pairs(fields) do assert(known[name], name) end
end

-- A function that gives `listen` events: log(kind, name of the task, fields).
function log.new(listen)
  local started = msched.clock()
  return function(kind, task, fields)
    check(kind, fields)
    fields.event, fields.task, fields.elapsed = kind, task, msched.clock() - started
    listen(fields)
  end
end

return log
