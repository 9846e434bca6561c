-- Functions of networks that are not tuned have the best of some twenty candidates, not of some hundreds: for tests of
-- what comes after that choice. What is proposed is for lua.untuned and lua.analytical.
local untuned = msched.load "search.untuned"
untuned.PROPOSALS, untuned.DRAWN = {budget = 1000, most = 10, each = 1, downhill = 1, around = 1}, 10
