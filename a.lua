local t=msched.load_trace('dir.lua')
