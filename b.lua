local t=msched.load_array('dir.lua')
