"""Functions by chance in which instructions apply that need more than a block by chance has, as TVMScript, for
`random_sequences --workloads FOLDER`: softmax and attention (OnlineSoftmax, RebaseExponential, FuseOnlineSoftmax), a padding and what reads it
(DecomposePadding), windows over what was made before (RollingBuffer), reductions of each kind (RFactor), products, copies,
maxima and fills of whole tiles (Blockize, Tensorize). In some, loops and domains begin elsewhere than at 0, some of them in
int64, iterations are bound to names, blocks stand in others that declare nothing, and other uses of parameters beside them.
Needs no package.
usage: idioms.py [--kinds KIND,...] FOLDER COUNT SEED
Kinds (all of them in turn by chance): softmax attention padding windows reductions tiles"""
import os
import random
import re
import sys

LEAST = {"float32": "-340282346638528859811704183484516925440.0", "float64": "-1.7976931348623157e+308", "int64": "-9223372036854775808",
         "int32": "-2147483648", "int8": "-128"}
MOST = {"float32": LEAST["float32"][1:], "int64": "9223372036854775807", "int32": "2147483647", "int8": "127"}


class Function:
    def __init__(self, seed, kinds):
        self.random = random.Random(seed)
        self.parameters, self.temporaries, self.lines, self.loops = [], [], [], 0
        self.known = {}  # parameters, which hold something from the beginning: shape and type
        self.loose, self.wide = self.chance(0.4), self.chance(0.5)
        self.noisy, self.beside_count = self.chance(0.5), 0
        getattr(self, self.random.choice(kinds))()

    def chance(self, share):
        return self.random.random() < share

    def pick(self, *values):
        return self.random.choice(values)

    def parameter(self, name, shape, type):
        self.known[name] = (list(shape), type)
        self.parameters.append('%s: T.Buffer((%s,), "%s")' % (name, ", ".join(map(str, shape)), type))

    def temporary(self, name, shape, type):
        if self.loose and self.chance(0.25):
            self.parameter(name, shape, type)
            return
        self.temporaries.append('        %s = T.sblock_alloc_buffer((%s,), "%s")' % (name, ", ".join(map(str, shape)), type))

    def block(self, name, axes, body, init=()):
        """A block with an iteration of each of axes, (name, extent, kind): in loops of their own, now and then two of one axis,
        or one of more iterations than it has, whose rest a predicate leaves out."""
        loops, bindings, where, named = [], [], [], {}
        for axis, extent, _ in axes:
            loop = "l%d" % self.loops
            self.loops += 1
            factors = [f for f in (2, 3, 4) if extent % f == 0 and extent > f]
            if factors and self.chance(0.12):
                factor = self.random.choice(factors)
                loops += [(loop + "_0", str(extent // factor)), (loop + "_1", str(factor))]
                bindings.append("%s_0 * %d + %s_1" % (loop, factor, loop))
            elif self.chance(0.05):
                loops.append((loop, str(extent + self.random.randint(1, 3))))
                bindings.append(loop)
                where.append("%s < %d" % (loop, extent))
            elif self.loose and self.chance(0.2):  # that begins elsewhere
                low = self.pick(1, 2, 5, -3)
                loops.append((loop, "%d, %d" % (low, extent + low)))
                bindings.append("%s - %d" % (loop, low))
            else:
                loops.append((loop, str(extent)))
                bindings.append(loop)
        domains, moved = [], {}
        for at, (axis, extent, kind) in enumerate(axes):
            wide = self.loose and self.wide and self.chance(0.35)
            text = "T.int64(%d)" if wide else "%d"
            if wide and (bindings[at], str(extent)) in loops:
                loops[loops.index((bindings[at], str(extent)))] = (bindings[at], text % extent)
            elif wide:
                bindings[at] = 'T.Cast("int64", %s)' % bindings[at]
            low = self.pick(1, 3, -2) if self.loose and self.chance(0.12) else 0
            if low:
                moved["v" + axis] = "(v%s - %s)" % (axis, text % low)
                bindings[at] += " + " + text % low
            domains.append("(%s, %s)" % (text % low, text % (extent + low)) if low else text % extent)
            if self.loose and self.chance(0.1):  # by a name
                named["y%d_%d" % (self.loops, at)] = (wide, bindings[at])
                bindings[at] = "y%d_%d" % (self.loops, at)
        rename = lambda line: re.sub(r"\bv\w\b", lambda found: moved.get(found.group(), found.group()), line)
        depth = 2
        if self.loose and self.chance(0.1):  # in a block that declares nothing
            self.lines += ['        with T.sblock("%s_in"):' % name, "            T.reads()", "            T.writes()"]
            depth = 3
        place, before = self.random.randrange(len(loops)), self.chance(0.5)
        noise = self.loose and self.noisy and self.chance(0.4)
        for at, (loop, extent) in enumerate(loops):
            self.lines.append("    " * depth + "for %s in range(%s):" % (loop, extent))
            depth += 1
            if noise and at == place:
                beside = self.beside(depth, [name for name, extent in loops[:at + 1] if "T." not in extent])
                self.lines += beside if before else []
        for let, (wide, value) in named.items():
            self.lines.append("    " * depth + "%s: T.let[T.int%d] = %s" % (let, 64 if wide else 32, value))
        self.lines.append("    " * depth + 'with T.sblock("%s"):' % name)
        depth += 1
        for (axis, extent, kind), domain, binding in zip(axes, domains, bindings):
            self.lines.append("    " * depth + "v%s = T.axis.%s(%s, %s)" % (axis, "spatial" if kind == "S" else "reduce", domain, binding))
        if where:
            self.lines.append("    " * depth + "T.where(%s)" % " and ".join(where))
        if init:
            self.lines.append("    " * depth + "with T.init():")
            self.lines += ["    " * depth + "    " + rename(line) for line in init]
        self.lines += ["    " * depth + rename(line) for line in body]
        if noise and not before:
            self.lines += beside

    def beside(self, depth, loops):
        """Another use of a parameter under the same loops: in a block, or in none."""
        name = self.random.choice(sorted(self.known))
        shape, type = self.known[name]
        index = lambda extent: "(%s + %d) %% %d" % (self.random.choice(loops), self.pick(0, 0, 1, 2), extent) if loops and self.chance(0.8) else str(self.random.randrange(extent))
        self.beside_count += 1
        made = "Z%d" % self.beside_count
        own = made + "[%s]" % index(5)
        value = "%s[%s]" % (name, ", ".join(index(extent) for extent in shape))
        if self.chance(0.3):  # of what blocks read, or write themselves
            own = "%s[%s]" % (name, ", ".join(index(extent) for extent in shape))
        else:
            self.parameter(made, [5], type)
            del self.known[made]
        line = "%s = %s" % (own, self.pick(value, value if "float" in type else "%s * T.%s(3) + %s" % (own, type, value)))
        return ["    " * depth + 'with T.sblock("z%d"):' % self.beside_count, "    " * depth + "    " + line] if self.chance(0.7) else ["    " * depth + line]

    def text(self):
        return "\n".join(["from tvm.script import ir as I", "from tvm.script import tirx as T", "", "@I.ir_module", "class Module:",
                          "    @T.prim_func(s_tir=True)", "    def main(%s):" % ", ".join(self.parameters),
                          '        T.func_attr({"tirx.noalias": True})'] + self.temporaries + self.lines) + "\n"

    # ---- Softmax ----

    def rows(self, most):
        """Axes of rows, and the last, which is reduced over."""
        rows = [("i", self.random.randint(2, 6), "S")]
        if self.chance(0.4):
            rows.append(("h", self.random.randint(2, 3), "S"))
        return rows, ("k", self.random.randint(3, most), "R")

    @staticmethod
    def indices(axes):
        return ", ".join("v" + axis for axis, _, _ in axes)

    @staticmethod
    def shape(axes):
        return [extent for _, extent, _ in axes]

    def maximum_and_sum(self, rows, last, score, type):
        """M and L of score, an expression of the iterations; what an element of the softmax is."""
        at = self.indices(rows)
        least = 'T.%s("-inf")' % type if self.chance(0.1) else "T.%s(%s)" % (type, LEAST[type])
        self.temporary("M", self.shape(rows), type)
        self.temporary("L", self.shape(rows), type)
        maximum = "T.max(M[%s], %s)" if self.chance(0.95) else "T.max(%s, %s)"
        body = maximum % ((at, score) if maximum.startswith("T.max(M") else (score, "M[%s]" % at))
        self.block("maximum", rows + [last], ["M[%s] = %s" % (at, body)], ["M[%s] = %s" % (at, least)])
        exponential = "T.%s(%s - M[%s])" % (self.pick(*["exp"] * 9, "exp2"), score, at)
        if self.chance(0.4):
            all_axes = rows + [(last[0], last[1], "S")]
            self.temporary("E", self.shape(all_axes), type)
            self.block("exponentials", all_axes, ["E[%s] = %s" % (self.indices(all_axes), exponential)])
            exponential = "E[%s]" % self.indices(all_axes)
        self.block("total", rows + [last], ["L[%s] = L[%s] + %s" % (at, at, exponential)], ["L[%s] = T.%s(0)" % (at, type)])
        return exponential

    def score_of(self, element, type):
        if self.chance(0.3):
            element = "%s * T.%s(%s)" % (element, type, self.pick("0.25", "0.5", "-0.5"))
        if self.chance(0.25):
            element = "T.Select(vk <= vi, %s, T.%s(%s))" % (element, type, self.pick(LEAST[type], "-4"))
        return element

    def softmax(self):
        rows, last = self.rows(14)
        type, across = self.pick("float32", "float32", "float64"), self.chance(0.2)
        axes = [last] + rows if across else rows + [last]
        self.parameter("X", self.shape(axes), type)
        exponential = self.maximum_and_sum(rows, last, self.score_of("X[%s]" % self.indices(axes), type), type)
        at, own = self.indices(rows), rows + [(last[0], last[1], "S")]
        self.parameter("Y", self.shape(own), type)
        value = self.pick("%s / L[%s]" % (exponential, at), "%s * (T.%s(1) / L[%s])" % (exponential, type, at),
                          "M[%s] + T.log(L[%s])" % (at, at), "T.log(%s) - T.log(L[%s])" % (exponential, at))
        self.block("Y", own, ["Y[%s] = %s" % (self.indices(own), value)])

    def attention(self):
        rows, last = self.rows(9)
        type, depth, width = self.pick("float32", "float32", "float64"), self.random.randint(2, 4), self.random.randint(2, 4)
        at, outer = self.indices(rows), rows[1:]
        more = (", " if outer else "") + self.indices(outer)
        axes, inner = rows + [(last[0], last[1], "S")], ("d", depth, "R")
        scores = self.indices(axes)
        self.parameter("Q", self.shape(rows) + [depth], type)
        self.parameter("K", [last[1], depth] + self.shape(outer), type)
        self.parameter("V", [last[1], width] + self.shape(outer), type)
        self.parameter("Y", self.shape(rows) + [width], type)
        self.temporary("S", self.shape(axes), type)
        self.block("scores", axes + [inner], ["S[%s] = S[%s] + Q[%s, vd] * K[vk, vd%s]" % (scores, scores, at, more)],
                   ["S[%s] = T.%s(0)" % (scores, type)])
        exponential = self.maximum_and_sum(rows, last, self.score_of("S[%s]" % scores, type), type)
        probability = "%s / L[%s]" % (exponential, at)
        if self.chance(0.3):
            self.temporary("P", self.shape(axes), type)
            self.block("probabilities", axes, ["P[%s] = %s" % (scores, probability)])
            probability = "P[%s]" % scores
        self.block("product", rows + [("w", width, "S"), last],
                   ["Y[%s, vw] = Y[%s, vw] + %s * V[vk, vw%s]" % (at, at, probability, more)], ["Y[%s, vw] = T.%s(0)" % (at, type)])

    # ---- Paddings and windows ----

    def combine(self, type):
        """How a window's elements become one: the text of the update, and what it begins with."""
        return self.pick(("%s + %s", "T.%s(0)" % type), ("%s + %s", "T.%s(0)" % type), ("T.max(%s, %s)", "T.%s(%s)" % (type, LEAST[type])))

    def padding(self):
        type, rank = self.pick("float32", "float32", "int32", "int8"), self.pick(1, 2, 2, 3)
        shape = [self.random.randint(3, 8) for _ in range(rank)]
        before = [self.pick(0, 1, 1, 2, 3) for _ in range(rank)]
        after = [self.pick(0, 1, 1, 2) for _ in range(rank)]
        padded = [b + s + a for b, s, a in zip(before, shape, after)]
        names = ["v%s" % c for c in "abc"[:rank]]
        self.parameter("A", shape, type)
        self.temporary("P", padded, type)
        tests = [t for v, b, s, a in zip(names, before, shape, after) for t in ["%d <= %s" % (b, v)] * (b > 0) + ["%s < %d" % (v, b + s)] * (a > 0)]
        self.random.shuffle(tests)
        source = "A[%s]" % ", ".join("%s - %d" % (v, b) if b else v for v, b in zip(names, before))
        outside = "T.%s(%s)" % (type, self.pick("0", "0", "1", "-3"))
        value = "T.if_then_else(%s, %s, %s)" % (" and ".join(tests), source, outside) if tests else source
        axes = list(zip("abc", padded, "SSS"))
        self.block("pad", axes, ["P[%s] = %s" % (", ".join(names), value)])
        self.window("P", padded, type)

    def window(self, name, shape, type):
        """Windows over a buffer, some dimensions with a stride."""
        windows = [min(extent, self.pick(1, 2, 2, 3, 3)) for extent in shape]
        strides = [self.pick(1, 1, 1, 2) for _ in shape]
        given = [(extent - w) // s + 1 for extent, w, s in zip(shape, windows, strides)]
        outer = list(zip("xyz", given, "SSS"))
        inner = [(axis, w, "R") for axis, w in zip("pqr", windows) if w > 1]
        index = []
        for axis, own, w, s in zip("xyz", "pqr", windows, strides):
            index.append(("v%s * %d" % (axis, s) if s > 1 else "v" + axis) + (" + v" + own if w > 1 else ""))
        element, target = "%s[%s]" % (name, ", ".join(index)), "Y[%s]" % self.indices(outer)
        self.parameter("Y", given, type)
        if not inner:
            self.block("Y", outer, ["%s = %s + T.%s(1)" % (target, element, type)])
            return
        update, first = self.combine(type)
        if self.chance(0.3):
            self.parameter("W", windows, type)
            element = "%s * W[%s]" % (element, ", ".join("v" + own if w > 1 else "0" for own, w in zip("pqr", windows)))
        self.block("Y", outer + inner, ["%s = %s" % (target, update % (target, element))], ["%s = %s" % (target, first)])

    def windows(self):
        type, rank = self.pick("float32", "int32", "int8"), self.pick(1, 2, 2, 3)
        shape = [self.random.randint(4, 9) for _ in range(rank)]
        axes = list(zip("abc", shape, "SSS"))
        at = self.indices(axes)
        self.parameter("A", shape, type)
        self.temporary("B", shape, type)
        self.block("B", axes, ["B[%s] = %s" % (at, self.pick("A[%s] + T.%s(1)" % (at, type), "T.max(A[%s], T.%s(0))" % (at, type)))])
        self.window("B", shape, type)

    # ---- Reductions ----

    def reductions(self):
        type = self.pick("float32", "int32", "int8", "int64")
        outer = [(axis, self.random.randint(2, 6), "S") for axis in "xy"[:self.pick(0, 1, 1, 2)]]
        inner = [(axis, self.pick(4, 6, 8, 9, 12), "R") for axis in "pqr"[:self.pick(1, 1, 2, 3)]]
        if len(inner) > 2:
            inner = [(axis, min(extent, 6), kind) for axis, extent, kind in inner]
        axes = outer + inner
        self.random.shuffle(axes)
        at = self.indices(outer) or "0"
        self.parameter("A", self.shape(axes), type)
        self.parameter("Y", self.shape(outer) or [1], type)
        element = "A[%s]" % self.indices(axes)
        kind = self.random.randint(0, 5)
        if kind == 5:
            self.arguments(outer, inner, element, at, type)
            return
        update, first = [("%s + %s", "0"), ("T.max(%s, %s)", LEAST[type]), ("T.min(%s, %s)", MOST[type]), ("%s * %s", "1"), ("%s + %s", "0")][kind]
        if kind == 3 and type == "float32":
            update, first = "%s + %s", "0"
        if kind == 4:
            self.parameter("W", self.shape(inner), type)
            element = "%s * W[%s]" % (element, self.indices(inner))
        target = "Y[%s]" % at
        self.block("Y", outer + inner, ["%s = %s" % (target, update % ((target, element) if self.chance(0.8) else (element, target)))],
                   ["%s = T.%s(%s)" % (target, type, first)])

    def arguments(self, outer, inner, element, at, type):
        """The greatest, and the first place where it is."""
        self.wide = False
        place = "0"
        for axis, extent, _ in inner:
            place = "v" + axis if place == "0" else "(%s) * %d + v%s" % (place, extent, axis)
        self.parameter("Z", self.shape(outer) or [1], "int32")
        target, number = "Y[%s]" % at, "Z[%s]" % at
        self.block("Y", outer + inner,
                   ["n: T.let[T.int32] = T.Select(%s > %s or %s == %s and %s < %s, %s, %s)" % (target, element, target, element, number, place, number, place),
                    "m: T.let[T.%s] = T.Select(%s >= %s, %s, %s)" % (type, target, element, target, element),
                    "%s = n" % number, "%s = m" % target],
                   ["%s = -1" % number, "%s = T.%s(%s)" % (target, type, LEAST[type])])

    # ---- Tiles ----

    def tiles(self):
        of = self.pick("product", "product", "copy", "columns", "rows", "fill", "relu")
        i, j, k = self.pick(4, 8, 12), self.pick(4, 8, 16), self.pick(4, 8)
        batch = [("b", self.pick(2, 3), "S")] if self.chance(0.3) else []
        more, b = "vb, " if batch else "", self.shape(batch)
        axes = batch + [("i", i, "S"), ("j", j, "S")]
        target = "C[%svi, vj]" % more
        if of == "product":
            given, made = self.pick(("float32", "float32"), ("float16", "float32"), ("int8", "int32"))
            across = given == "float32" and self.chance(0.3)
            self.parameter("A", b + ([k, i] if across else [i, k]), given)
            self.parameter("B", b + [k, j], given)
            self.parameter("C", b + [i, j], made)
            a, right = "A[%s%s]" % (more, "vk, vi" if across else "vi, vk"), "B[%svk, vj]" % more
            if given != made:
                a, right = ("T.Cast(\"%s\", %s)" % (made, x) for x in (a, right))
            self.block("C", axes + [("k", k, "R")], ["%s = %s + %s * %s" % (target, target, a, right)], ["%s = T.%s(0)" % (target, made)])
            return
        type = {"columns": "int32", "rows": "float32", "relu": "float32"}.get(of) or self.pick("float32", "int32")
        if of == "copy":
            type = self.pick("float32", "float16", "int32", "int8", "uint8")
        if of in ("columns", "rows"):
            self.parameter("A", b + [j, i], type)
            self.parameter("C", b + [i], type)
            spatial, target = batch + [("i", i, "S")], "C[%svi]" % more
            element = "A[%svj, vi]" % more
            if of == "rows":
                self.parameters[-2] = 'A: T.Buffer((%s,), "%s")' % (", ".join(map(str, b + [i, j])), type)
                self.known["A"] = (b + [i, j], type)
                element = "A[%svi, vj]" % more
            update, first = ("T.max(%s, %s)", LEAST[type])
            if of == "rows" and self.chance(0.5):
                update, first = "%s + %s", "0"
            self.block("C", spatial + [("j", j, "R")], ["%s = %s" % (target, update % (target, element))], ["%s = T.%s(%s)" % (target, type, first)])
            return
        self.parameter("A", b + [i, j], type)
        self.parameter("C", b + [i, j], type)
        value = {"copy": "A[%svi, vj]" % more, "fill": "T.%s(0)" % type, "relu": "T.max(A[%svi, vj], T.float32(0))" % more}[of]
        self.block("C", axes, ["%s = %s" % (target, value)])


KINDS = ["softmax", "attention", "padding", "windows", "reductions", "tiles"]


def main(folder, count, seed, kinds):
    os.makedirs(folder, exist_ok=True)
    for at in range(count):
        with open(os.path.join(folder, "i%05d.py" % at), "w") as file:
            file.write(Function(seed * 1000003 + at, kinds).text())


if __name__ == "__main__":
    given, named = sys.argv[1:], KINDS
    if given[:1] == ["--kinds"] and len(given) > 1:
        named, given = given[1].split(","), given[2:]
    if len(given) != 3 or not set(named) <= set(KINDS):
        sys.exit(__doc__)
    main(given[0], int(given[1]), int(given[2]), named)
