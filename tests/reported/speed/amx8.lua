-- Products of bytes in the layout of AMX: msched tune amx8.lua --rules amx_space.lua [-- M N K]
local ms=require"msched"; local te=ms.te
local m,n,k=...
local M,N,K=tonumber(m) or 1024,tonumber(n) or 1024,tonumber(k) or 1024
local A=te.placeholder({M,K},"int8","A"); local B=te.placeholder({K//4,N,4},"int8","B")
local k0,k1=te.reduce_axis(K//4,"k0"),te.reduce_axis(4,"k1")
local C=
  te.compute({M,N},
             function(i,j) return te.sum(te.cast(A[{i,k0*4+k1}],"int32")*te.cast(B[{k0,j,k1}],"int32"),{k0,k1}) end,"C")
return {te.func("amx8",{A,B,C})}
