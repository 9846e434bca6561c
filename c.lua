local t=msched.functions_of and 1; msched.load_model('dir.lua')
