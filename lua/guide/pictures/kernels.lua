-- What the pictures of README.md tune: a convolution, a product and a softmax.
local ms = require "msched"
return {ms.ops.func("conv2d", {"1", "28", "28", "128", "128", "3", "pad=1"}),
        ms.ops.func("matmul", {"512", "512", "512"}), ms.ops.func("softmax", {"256x256"})}
