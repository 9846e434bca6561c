# What functions of several intrinsics are, or begin with (vm/intrinsics/intrinsics.c says how they are named): those
# that describe are whole; after those that end in `_by` a section's own lines say what does it. m, n, k: extents;
# factor: an offset's.
### fill.template
@T.prim_func(s_tir=True)
def fill(c: T.handle):
    C = T.match_buffer(c, (<m>, <n>), "<type>", align=64, offset_factor=<factor>, scope="<to>")
    with T.sblock("root"):
        T.reads()
        T.writes(C[0:<m>, 0:<n>])
        for i, j in T.grid(<m>, <n>):
            with T.sblock("init"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.reads()
                T.writes(C[vi, vj])
                C[vi, vj] = T.<type>(0)

### fill_by.template
@T.prim_func(s_tir=True)
def fill(c: T.handle):
    sc = T.int32()
    tc = T.int32()
    C = T.match_buffer(c, (<m>, <n>), "<type>", align=64, offset_factor=<factor>, scope="<to>", strides=[sc, tc])
    with T.sblock("root"):
        T.reads()
        T.writes(C[0:<m>, 0:<n>])

### copy.template
@T.prim_func(s_tir=True)
def copy(a: T.handle, c: T.handle):
    A = T.match_buffer(a, (<m>, <n>), "<type>", align=64, offset_factor=<factor>, scope="<from>")
    C = T.match_buffer(c, (<m>, <n>), "<type>", align=64, offset_factor=<to_factor>, scope="<to>")
    with T.sblock("root"):
        T.reads(A[0:<m>, 0:<n>])
        T.writes(C[0:<m>, 0:<n>])
        for i, j in T.grid(<m>, <n>):
            with T.sblock("<block>"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.reads(A[vi, vj])
                T.writes(C[vi, vj])
                C[vi, vj] = A[vi, vj]

### copy_by.template
@T.prim_func(s_tir=True)
def copy(a: T.handle, c: T.handle):
    sa = T.int32()
    ta = T.int32()
    sc = T.int32()
    tc = T.int32()
    A = T.match_buffer(a, (<m>, <n>), "<type>", align=64, offset_factor=<factor>, scope="<from>", strides=[sa, ta])
    C = T.match_buffer(c, (<m>, <n>), "<type>", align=64, offset_factor=<to_factor>, scope="<to>", strides=[sc, tc])
    with T.sblock("root"):
        T.reads(A[0:<m>, 0:<n>])
        T.writes(C[0:<m>, 0:<n>])

### product.template
@T.prim_func(s_tir=True)
def product(a: T.handle, b: T.handle, c: T.handle):
    A = T.match_buffer(a, (<a_m>, <a_n>), "<type>", align=64, offset_factor=<factor>, scope="<a>")
    B = T.match_buffer(b, (<b_m>, <b_n>), "<b_type>", align=64, offset_factor=<factor>, scope="<b>")
    C = T.match_buffer(c, (<m>, <n>), "<sum>", align=64, offset_factor=<c_factor>, scope="<c>")
    with T.sblock("root"):
        T.reads(C[0:<m>, 0:<n>], A[0:<a_m>, 0:<a_n>], B[0:<b_m>, 0:<b_n>])
        T.writes(C[0:<m>, 0:<n>])
        for i, j, k in T.grid(<m>, <n>, <k>):
            with T.sblock("update"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                T.reads(C[vi, vj], A[<a_at>], B[<at>])
                T.writes(C[vi, vj])
                C[vi, vj] = C[vi, vj] + <cast>A[<a_at>]<end> * <cast>B[<at>]<end>

### product_by.template
@T.prim_func(s_tir=True)
def product(a: T.handle, b: T.handle, c: T.handle):
    sa = T.int32()
    ta = T.int32()
    sb = T.int32()
    tb = T.int32()
    sc = T.int32()
    tc = T.int32()
    A = T.match_buffer(a, (<a_m>, <a_n>), "<type>", align=64, offset_factor=<factor>, scope="<a>", strides=[sa, ta])
    B = T.match_buffer(b, (<b_m>, <b_n>), "<b_type>", align=64, offset_factor=<factor>, scope="<b>", strides=[sb, tb])
    C = T.match_buffer(c, (<m>, <n>), "<sum>", align=64, offset_factor=<c_factor>, scope="<c>", strides=[sc, tc])
    with T.sblock("root"):
        T.reads(C[0:<m>, 0:<n>], A[0:<a_m>, 0:<a_n>], B[0:<b_m>, 0:<b_n>])
        T.writes(C[0:<m>, 0:<n>])

### dot.template
@T.prim_func(s_tir=True)
def dot(a: T.handle, b: T.handle, c: T.handle):
    A = T.match_buffer(a, (4,), "<a>", offset_factor=1)
    B = T.match_buffer(b, (<n>, 4), "<b>", offset_factor=1)
    C = T.match_buffer(c, (<n>,), "<sum>", offset_factor=1)
    with T.sblock("root"):
        T.reads(C[0:<n>], A[0:4], B[0:<n>, 0:4])
        T.writes(C[0:<n>])
        for i in range(<n>):
            for k in range(4):
                with T.sblock("update"):
                    vi, vk = T.axis.remap("SR", [i, k])
                    T.reads(C[vi], A[vk], B[vi, vk])
                    T.writes(C[vi])
                    C[vi] = C[vi] + T.Cast("<sum>", A[vk]) * T.Cast("<sum>", B[vi, vk])

### dot_by.template
@T.prim_func(s_tir=True)
def dot(a: T.handle, b: T.handle, c: T.handle):
    A = T.match_buffer(a, (4,), "<a>", offset_factor=1)
    B = T.match_buffer(b, (<n>, 4), "<b>", offset_factor=1)
    C = T.match_buffer(c, (<n>,), "<sum>", offset_factor=1)
    with T.sblock("root"):
        T.reads(C[0:<n>], A[0:4], B[0:<n>, 0:4])
        T.writes(C[0:<n>])
