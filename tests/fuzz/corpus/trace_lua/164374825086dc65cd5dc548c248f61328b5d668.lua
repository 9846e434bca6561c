return function(ms, sch, v)
end
