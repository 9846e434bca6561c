-- How much of its long tables, and of what it draws, a test judges: all of it where MSCHED_DRAWS is "all", as
-- `tests/run draws` sets it; else what runs each region of our C that all of it runs, and each type (tests/README.md).
-- of(few, more): the first list, with the second behind it where all is judged. number(few, all): one of the two.
local draws = {all = os.getenv "MSCHED_DRAWS" == "all"}

function draws.of(few, more) return draws.all and table.move(more, 1, #more, #few + 1, few) or few end

function draws.number(few, all) return draws.all and all or few end

return draws
