; Operations that some x86 CPUs have instructions of their own for (unit/x86.c).
target triple = "x86_64-pc-linux-gnu"

define void @fma(ptr %p, ptr %q) {
  %a = load <16 x float>, ptr %p, align 4
  %b = load <16 x float>, ptr %q, align 4
  %m = fmul contract <16 x float> %a, %b
  %s = fadd contract <16 x float> %m, %b
  store <16 x float> %s, ptr %p, align 4
  ret void
}

define void @integers(ptr %p, ptr %q) {
  %a = load <16 x i32>, ptr %p, align 4
  %b = load <16 x i32>, ptr %q, align 4
  %m = mul <16 x i32> %a, %b
  %x = call <16 x i32> @llvm.smax.v16i32(<16 x i32> %m, <16 x i32> %b)
  store <16 x i32> %x, ptr %p, align 4
  ret void
}
declare <16 x i32> @llvm.smax.v16i32(<16 x i32>, <16 x i32>)

define void @words(ptr %p, ptr %q) {
  %a = load <32 x i16>, ptr %p, align 2
  %b = load <32 x i16>, ptr %q, align 2
  %m = mul <32 x i16> %a, %b
  %c = icmp sgt <32 x i16> %m, %b
  %s = select <32 x i1> %c, <32 x i16> %a, <32 x i16> %m
  store <32 x i16> %s, ptr %p, align 2
  ret void
}

define void @long_products(ptr %p, ptr %q) {
  %a = load <8 x i64>, ptr %p, align 8
  %b = load <8 x i64>, ptr %q, align 8
  %m = mul <8 x i64> %a, %b
  %d = sitofp <8 x i64> %m to <8 x double>
  store <8 x double> %d, ptr %p, align 8
  ret void
}

define void @counts(ptr %p, ptr %q, ptr %r) {
  %a = load <16 x i32>, ptr %p, align 4
  %n = call <16 x i32> @llvm.ctpop.v16i32(<16 x i32> %a)
  store <16 x i32> %n, ptr %p, align 4
  %b = load <64 x i8>, ptr %q, align 1
  %m = call <64 x i8> @llvm.ctpop.v64i8(<64 x i8> %b)
  store <64 x i8> %m, ptr %q, align 1
  %c = load <16 x i32>, ptr %r, align 4
  %z = call <16 x i32> @llvm.ctlz.v16i32(<16 x i32> %c, i1 false)
  store <16 x i32> %z, ptr %r, align 4
  ret void
}
declare <16 x i32> @llvm.ctpop.v16i32(<16 x i32>)
declare <64 x i8> @llvm.ctpop.v64i8(<64 x i8>)
declare <16 x i32> @llvm.ctlz.v16i32(<16 x i32>, i1)

define i64 @scalar_counts(i64 %a) {
  %n = call i64 @llvm.ctpop.i64(i64 %a)
  %l = call i64 @llvm.ctlz.i64(i64 %a, i1 false)
  %t = call i64 @llvm.cttz.i64(i64 %a, i1 false)
  %s = add i64 %n, %l
  %u = add i64 %s, %t
  ret i64 %u
}
declare i64 @llvm.ctpop.i64(i64)
declare i64 @llvm.ctlz.i64(i64, i1)
declare i64 @llvm.cttz.i64(i64, i1)

define i64 @scalar_bits(i64 %a, i64 %b, i64 %n) {
  %c = xor i64 %a, -1
  %d = and i64 %c, %b
  %s = shl i64 %d, %n
  %l = add i64 %s, 1
  %i = xor i64 %s, -1
  %t = and i64 %l, %i
  ret i64 %t
}

define i64 @fields(i64 %a) {
  %s = lshr i64 %a, 7
  %m = and i64 %s, 4095
  ret i64 %m
}

define i64 @swapped(ptr %p) {
  %a = load i64, ptr %p, align 8
  %b = call i64 @llvm.bswap.i64(i64 %a)
  ret i64 %b
}
declare i64 @llvm.bswap.i64(i64)

define void @bytes(ptr %p, ptr %q) {
  %a = load <64 x i8>, ptr %p, align 1
  %r = call <64 x i8> @llvm.bitreverse.v64i8(<64 x i8> %a)
  %v = shufflevector <64 x i8> %r, <64 x i8> poison, <64 x i32> <i32 63, i32 1, i32 61, i32 3, i32 59, i32 5, i32 57, i32 7, i32 55, i32 9, i32 53, i32 11, i32 51, i32 13, i32 49, i32 15, i32 47, i32 17, i32 45, i32 19, i32 43, i32 21, i32 41, i32 23, i32 39, i32 25, i32 37, i32 27, i32 35, i32 29, i32 33, i32 31, i32 0, i32 2, i32 4, i32 6, i32 8, i32 10, i32 12, i32 14, i32 16, i32 18, i32 20, i32 22, i32 24, i32 26, i32 28, i32 30, i32 32, i32 34, i32 36, i32 38, i32 40, i32 42, i32 44, i32 46, i32 48, i32 50, i32 52, i32 54, i32 56, i32 58, i32 60, i32 62>
  store <64 x i8> %v, ptr %q, align 1
  ret void
}
declare <64 x i8> @llvm.bitreverse.v64i8(<64 x i8>)

define void @rotations(ptr %p, ptr %q, <4 x i32> %c, ptr %r) {
  %a = load <32 x i16>, ptr %p, align 2
  %b = load <32 x i16>, ptr %q, align 2
  %f = call <32 x i16> @llvm.fshl.v32i16(<32 x i16> %a, <32 x i16> %b, <32 x i16> %b)
  store <32 x i16> %f, ptr %p, align 2
  %d = call <4 x i32> @llvm.fshl.v4i32(<4 x i32> %c, <4 x i32> %c, <4 x i32> %c)
  store <4 x i32> %d, ptr %r, align 16
  ret void
}
declare <32 x i16> @llvm.fshl.v32i16(<32 x i16>, <32 x i16>, <32 x i16>)
declare <4 x i32> @llvm.fshl.v4i32(<4 x i32>, <4 x i32>, <4 x i32>)

define i32 @bytes_summed(ptr %p, ptr %q) {
entry:
  br label %loop
loop:
  %i = phi i64 [0, %entry], [%next, %loop]
  %sum = phi <16 x i32> [zeroinitializer, %entry], [%more, %loop]
  %at = getelementptr i8, ptr %p, i64 %i
  %bt = getelementptr i8, ptr %q, i64 %i
  %a = load <16 x i8>, ptr %at, align 1
  %b = load <16 x i8>, ptr %bt, align 1
  %ax = zext <16 x i8> %a to <16 x i32>
  %bx = sext <16 x i8> %b to <16 x i32>
  %m = mul nsw <16 x i32> %ax, %bx
  %more = add <16 x i32> %m, %sum
  %next = add i64 %i, 16
  %done = icmp eq i64 %next, 1024
  br i1 %done, label %exit, label %loop
exit:
  %all = call i32 @llvm.vector.reduce.add.v16i32(<16 x i32> %more)
  ret i32 %all
}
declare i32 @llvm.vector.reduce.add.v16i32(<16 x i32>)

define i32 @words_summed(ptr %p, ptr %q) {
entry:
  br label %loop
loop:
  %i = phi i64 [0, %entry], [%next, %loop]
  %sum = phi <8 x i32> [zeroinitializer, %entry], [%more, %loop]
  %at = getelementptr i16, ptr %p, i64 %i
  %bt = getelementptr i16, ptr %q, i64 %i
  %a = load <8 x i16>, ptr %at, align 2
  %b = load <8 x i16>, ptr %bt, align 2
  %ax = sext <8 x i16> %a to <8 x i32>
  %bx = sext <8 x i16> %b to <8 x i32>
  %m = mul nsw <8 x i32> %ax, %bx
  %more = add <8 x i32> %m, %sum
  %next = add i64 %i, 8
  %done = icmp eq i64 %next, 1024
  br i1 %done, label %exit, label %loop
exit:
  %all = call i32 @llvm.vector.reduce.add.v8i32(<8 x i32> %more)
  ret i32 %all
}
declare i32 @llvm.vector.reduce.add.v8i32(<8 x i32>)

define void @halves(ptr %p, ptr %q) {
  %a = load <16 x half>, ptr %p, align 2
  %b = load <16 x half>, ptr %q, align 2
  %s = fadd <16 x half> %a, %b
  store <16 x half> %s, ptr %p, align 2
  ret void
}

define void @short_halves(ptr %p, ptr %q) {
  %a = load <16 x float>, ptr %p, align 4
  %b = fptrunc <16 x float> %a to <16 x bfloat>
  store <16 x bfloat> %b, ptr %q, align 2
  ret void
}

define void @few_short_halves(ptr %p, ptr %q) {
  %a = load <8 x float>, ptr %p, align 4
  %b = fptrunc <8 x float> %a to <8 x bfloat>
  store <8 x bfloat> %b, ptr %q, align 2
  ret void
}

define <4 x float> @rounded(<4 x float> %a, <4 x float> %b) {
  %f = call <4 x float> @llvm.floor.v4f32(<4 x float> %a)
  %e = shufflevector <4 x float> %f, <4 x float> %b, <4 x i32> <i32 0, i32 2, i32 4, i32 6>
  %o = shufflevector <4 x float> %f, <4 x float> %b, <4 x i32> <i32 1, i32 3, i32 5, i32 7>
  %s = fadd <4 x float> %e, %o
  ret <4 x float> %s
}
declare <4 x float> @llvm.floor.v4f32(<4 x float>)

define <4 x float> @every_other(<4 x float> %a, <4 x float> %b) {
  %s = fadd <4 x float> %a, %b
  %d = fsub <4 x float> %a, %b
  %r = shufflevector <4 x float> %d, <4 x float> %s, <4 x i32> <i32 0, i32 5, i32 2, i32 7>
  ret <4 x float> %r
}

define <16 x i8> @shuffled(<16 x i8> %a) {
  %r = shufflevector <16 x i8> %a, <16 x i8> poison, <16 x i32> <i32 15, i32 3, i32 9, i32 1, i32 4, i32 7, i32 2, i32 11, i32 0, i32 5, i32 13, i32 6, i32 8, i32 10, i32 14, i32 12>
  ret <16 x i8> %r
}

define <2 x i64> @greater(<2 x i64> %a, <2 x i64> %b) {
  %c = icmp sgt <2 x i64> %a, %b
  %s = select <2 x i1> %c, <2 x i64> %a, <2 x i64> %b
  ret <2 x i64> %s
}

define void @gathered(ptr %p, <8 x i64> %at, ptr %out, <8 x i1> %mask) {
  %a = getelementptr float, ptr %p, <8 x i64> %at
  %v = call <8 x float> @llvm.masked.gather.v8f32.v8p0(<8 x ptr> %a, i32 4, <8 x i1> %mask, <8 x float> zeroinitializer)
  call void @llvm.masked.store.v8f32.p0(<8 x float> %v, ptr %out, i32 4, <8 x i1> %mask)
  ret void
}
declare <8 x float> @llvm.masked.gather.v8f32.v8p0(<8 x ptr>, i32, <8 x i1>, <8 x float>)
declare void @llvm.masked.store.v8f32.p0(<8 x float>, ptr, i32, <8 x i1>)

define void @past_caches(float %a, ptr %p) {
  store float %a, ptr %p, align 4, !nontemporal !0
  ret void
}
!0 = !{i32 1}

define void @fetched(ptr %p) {
  call void @llvm.prefetch.p0(ptr %p, i32 1, i32 3, i32 1)
  ret void
}
declare void @llvm.prefetch.p0(ptr, i32, i32, i32)

define i128 @exchanged(ptr %p, i128 %a, i128 %b) {
  %pair = cmpxchg ptr %p, i128 %a, i128 %b seq_cst seq_cst
  %old = extractvalue {i128, i1} %pair, 0
  ret i128 %old
}

define void @added(ptr %p, i32 %a) {
  %old = atomicrmw or ptr %p, i32 %a monotonic
  ret void
}

define void @copied(ptr %p, ptr %q) {
  call void @llvm.memcpy.p0.p0.i64(ptr %p, ptr %q, i64 96, i1 false)
  ret void
}
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
