"""Functions by chance, as TVMScript, for `random_sequences --workloads FOLDER`: blocks that carry values from one iteration to
another, whose inits begin other elements than the body updates, that store under conditions or where data say, whose bindings are
sums, quotients and remainders; reductions of pairs, matched elements, blocks in blocks, loops of no iteration. All are small, and
stay within their buffers. Needs no package.
usage: functions.py [--kinds KIND,...] FOLDER COUNT SEED
Kinds (all of them but in turn by chance):
  plain     elements are integers of one type or truths
  floats    floats of one type; products are of constants and indices, so that most sums are exact
  special   floats, infinities and NaN: copied, chosen, negated, their maxima and minima; no sums, whose results depend on order
  vectors   elements are vectors of four
  symbolic  an extent is a variable: it is drawn, from 9 on, for each run
  strided   parameters have strides and offsets, some of them variables
  small     elements are integers of four bits
  loose     as plain; some blocks have no iterations and use the loops around themselves, some names are bound around blocks, some
            updates are computed in another type, and some stores stand beside blocks, in none
  scoped    as loose, and much is done outside of blocks: stores stand before and behind blocks, their elements say how often loops
            run, which conditions hold and what names are bound to; blocks that hold others allocate buffers
  views     as plain; some buffers are other names, of other shapes, for the memory of another
  hidden    as loose; some blocks that hold others declare nothing of what these read and write
  mixed     buffers have floats of several types: a value is computed in one of them, what others hold is cast"""
import os
import random
import sys

SIZES = (12, 12, 8)  # extents of buffers
LEAST, MOST = 9, 24  # that random_sequences draws for an extent that is a variable
DATA = "P"  # a buffer whose elements are indices and conditions


class Extent(int):
    """An extent that is a variable, as the least number that it may be."""

    def __new__(cls, name):
        made = super().__new__(cls, LEAST)
        made.name = name
        return made

    def __str__(self):
        return self.name

    __repr__ = __str__


class Index:
    """An expression in TVMScript with the least and the greatest value it has; of: it is less than this variable."""

    def __init__(self, text, low, high, of=None):
        self.text, self.low, self.high, self.of = text, low, high, of


class Function:
    def __init__(self, seed, kinds):
        self.random = random.Random(seed)
        self.lines, self.blocks, self.loops, self.matches, self.names = [], 0, 0, 0, {}
        self.kind = self.random.choice(kinds) if len(kinds) > 1 else kinds[0]
        self.type = {
            "floats": lambda: self.choose((6, "float32"), (2, "float64"), (3, "float16"), (3, "bfloat16"), (1, "float8_e4m3fn"), (1, "float8_e5m2")),
            "special": lambda: self.choose((6, "float32"), (2, "float64"), (3, "float16"), (3, "bfloat16"), (1, "float8_e4m3fn"), (1, "float8_e5m2")),
            "vectors": lambda: self.choose((3, "int32"), (3, "float32"), (1, "int8"), (1, "float16")),
            "small": lambda: self.choose((1, "int4"), (1, "uint4")),
            "mixed": lambda: "float32",
            "scoped": lambda: self.choose((8, "int32"), (2, "int64"), (1, "int8"), (1, "float32")),
        }.get(self.kind, lambda: self.choose((64, "int32"), (8, "int64"), (8, "int8"), (5, "uint8"), (6, "int16"), (9, "bool")))()
        self.lanes = 4 if self.kind == "vectors" else 1
        self.is_float = "float" in self.type
        self.is_loose = self.kind in ("loose", "scoped", "hidden")
        self.index = "int64" if self.type == "int64" else "int32"
        self.extent = Extent("n") if self.kind == "symbolic" else None
        self.element = self.type + ("x%d" % self.lanes if self.lanes > 1 else "")
        self.parts = {}  # elements of buffers, under the names by which a block matches them
        self.types = {}  # of buffers that have another type than the element
        self.used = []  # buffers that a nest of kind scoped uses

    # ---- Draws ----

    def chance(self, share):
        return self.random.random() < share

    def choose(self, *weighted):
        """One of pairs of weight and value."""
        return self.random.choices([value for _, value in weighted], [weight for weight, _ in weighted])[0]

    def emit(self, depth, text):
        self.lines.append("    " * depth + text)

    # ---- Types ----

    def number(self, value):
        """An extent, in the type of loops."""
        return "T.int64(%d)" % value if self.index == "int64" and not isinstance(value, Extent) else str(value)

    def wide(self, text):
        """A number as an element."""
        return "T.Broadcast(%s, %d)" % (text, self.lanes) if self.lanes > 1 else text

    def cast(self, text):
        """An index, or what is loaded of the data, as an element."""
        return self.wide(text if self.type == self.index else 'T.Cast("%s", %s)' % (self.type, text))

    def constant(self, value):
        if self.is_float:
            return self.wide("T.%s(%d)" % (self.type, value))
        return self.cast(self.number(value)) if self.type == self.index else self.wide('T.Cast("%s", %d)' % (self.type, value))

    def load(self, name, indices):
        text = self.parts[name] if name in self.parts and self.chance(0.5) else self.access(name, indices)
        return self.cast(text) if name == DATA else self.loaded(name, text)

    def loaded(self, name, text):
        """What the buffer holds, as an element."""
        return 'T.Cast("%s", %s)' % (self.type, text) if name in self.types else text

    def stored(self, target, value):
        """An element, as what the buffer holds."""
        other = self.types.get(target.split("[")[0])
        return 'T.Cast("%s", %s)' % (other, value) if other else value

    # ---- Expressions ----

    def combined(self, index, others):
        """An index made of another one."""
        number = self.random.randint(2, 4)
        other = self.random.choice(others)
        wide = max(other.high, -other.low) + 1
        return self.choose(
            (58, index),
            (10, Index("(%s + %d)" % (index.text, number - 3), index.low + number - 3, index.high + number - 3)),
            (5, Index("%s * %d" % (index.text, number), index.low * number, index.high * number)),
            (5, Index("%s // %d" % (index.text, number), index.low // number, index.high // number)),
            (5, Index("%s %% %d" % (index.text, number), 0, number - 1)),
            (3, Index("(%d - %s)" % (index.high, index.text), 0, index.high - index.low)),
            (6, Index("(%s + %s)" % (index.text, other.text), index.low + other.low, index.high + other.high)),
            (4, Index("(%s * %d + %s)" % (index.text, wide, other.text), index.low * wide + other.low, index.high * wide + other.high)),
            (0.7, Index("T.bitwise_and(%s, %s)" % (index.text, self.number(7)), 0, 7)),
            (0.7, Index("T.shift_right(%s, %s)" % (index.text, self.number(1)), index.low >> 1, index.high >> 1)),
            (0.7, Index("T.truncmod(%s, %s)" % (index.text, self.number(3)), -2 if index.low < 0 else 0, 2)),
            (1, Index('T.Cast("%s", T.Cast("%s", %s))' % (self.index, *self.random.choice([("uint8", index.text), ("int8", index.text)])), *self.narrowed(index))),
            (1, Index("(%s - %s)" % (index.text, other.text), index.low - other.high, index.high - other.low)),
            (2, Index("T.max(%s, %s)" % (index.text, other.text), max(index.low, other.low), max(index.high, other.high))),
            (2, Index("%s[%s] %% 8" % (DATA, self.within(index, SIZES[0])), 0, 7)))

    @staticmethod
    def narrowed(index):
        """The ends of an index that goes through a narrow type."""
        return (index.low, index.high) if 0 <= index.low and index.high < 128 else (-128, 255)

    def within(self, index, extent):
        """Its text, held within [0, extent)."""
        if index.low >= 0 and (index.high < extent or (index.of is not None and index.of is extent)):
            return index.text
        last = "%s - 1" % extent if isinstance(extent, Extent) else str(extent - 1)
        if index.low >= 0 and self.chance(0.5):
            return "T.min(%s, %s)" % (index.text, last)
        if self.chance(0.5):
            return "(%s) %% %s" % (index.text, extent)
        return "T.min(T.max(%s, 0), %s)" % (index.text, last)

    def access(self, name, indices):
        """An element of a buffer, most often that which the indices name in order."""
        order = indices[:]
        if self.chance(0.25):
            self.random.shuffle(order)
        parts = []
        for at, extent in enumerate(self.names[name]):
            if at < len(order) and self.chance(0.7):
                index = order[at]
            elif not indices or self.chance(0.06):
                index = Index(str(self.random.randint(0, 3)), 0, 3)
            else:
                index = self.combined(self.random.choice(indices), indices)
            parts.append(self.within(index, extent))
        return "%s[%s]" % (name, ", ".join(parts) or "()")

    def condition(self, indices):
        if self.used and self.chance(0.3):  # of an element that blocks beside it may write
            return "%s < %s" % (self.load(self.random.choice(self.used), indices), self.constant(self.random.randint(0, 4)))
        a, b = self.random.choice(indices), self.random.choice(indices)
        return self.choose(
            (40, "%s < %d" % (a.text, self.random.randint(1, max(1, a.high)))), (15, "%s %% 2 == %d" % (a.text, self.random.randint(0, 1))),
            (20, "%s <= %s" % (a.text, b.text)), (10, "%s + %s < %d" % (a.text, b.text, self.random.randint(1, max(1, a.high + b.high)))),
            (15, "%s[%s] < 3" % (DATA, self.within(a, SIZES[0]))))

    def predicate(self, indices):
        """One condition, or several at once."""
        return " and ".join(self.condition(indices) for _ in range(self.choose((3, 1), (2, 2), (1, 3))))

    def value(self, indices, readable, depth=0):
        kind = self.random.random()
        if kind < 0.1:
            return self.constant(self.random.randint(-3, 3))
        if kind < 0.18:
            return self.cast(self.random.choice(indices).text)
        if depth > 1 or kind < 0.55:
            return self.load(self.random.choice(readable), indices)
        a, b = (self.value(indices, readable, depth + 1) for _ in range(2))
        if self.kind == "special":
            odd = 'T.%s("%s")' % (self.type, self.random.choice(["inf", "-inf", "nan"]))
            return self.choose((4, "T.max(%s, %s)" % (a, b)), (4, "T.min(%s, %s)" % (a, b)), (2, "T.if_then_else(%s, %s, %s)" % (self.condition(indices), a, odd)), (1, odd),
                               (2, "T.if_then_else(%s, %s, %s)" % (self.condition(indices), a, b)), (2, "T.Select(%s < %s, %s, %s)" % (a, b, b, odd)), (1, "(%s * %s)" % (a, self.constant(-1))))
        if self.is_float:
            b = self.choose((3, b), (1, self.constant(self.random.randint(-3, 3))))
            factor = self.choose((1, self.constant(self.random.randint(-2, 3))), (1, self.cast(self.random.choice(indices).text)))
            return self.choose((12, "(%s + %s)" % (a, b)), (6, "(%s - %s)" % (a, b)), (5, "(%s * %s)" % (a, factor)), (2, "T.max(%s, %s)" % (a, b)), (2, "T.min(%s, %s)" % (a, b)),
                               (2, "T.if_then_else(%s, %s, %s)" % (self.condition(indices), a, b)))
        if self.type == "bool":
            return self.choose((3, "(%s and %s)" % (a, b)), (3, "(%s or %s)" % (a, b)), (1, "(not %s)" % a))
        return self.choose((12, "(%s + %s)" % (a, b)), (6, "(%s - %s)" % (a, b)), (6, "(%s * %s)" % (a, b)), (2, "T.max(%s, %s)" % (a, b)),
                           (2, "T.min(%s, %s)" % (a, b)), (2, "T.if_then_else(%s, %s, %s)" % (self.condition(indices), a, b)),
                           (1.5 if self.lanes == 1 and self.type != "bool" else 0, self.divided(indices, a, self.load(self.random.choice(readable), indices))))

    def divided(self, indices, a, b):
        """A quotient or remainder, by what is no zero where it is computed; a condition may say so."""
        divide = self.choose((3, "(%s // %s)"), (2, "(%s %% %s)"), (1, "T.truncdiv(%s, %s)"), (1, "T.truncmod(%s, %s)"))
        index = self.random.choice(indices)
        if index.text.strip("T.int64()").isdigit():
            return divide % (a, self.constant(3))
        return self.choose(
            (3, divide % (a, "T.max(%s, %s)" % (b, self.constant(1)))),
            (4, "T.if_then_else(%s > %s, %s, %s)" % (b, self.constant(0), divide % (a, b), a)),
            (2, "T.if_then_else(%s > 0, %s, %s)" % (index.text, divide % (a, self.cast(index.text)), a)),
            (1, divide % (self.cast(index.text), self.constant(self.random.randint(2, 4)))))

    def update(self, target, value):
        """What a step makes of what is there: sums, maxima, and what does not commute."""
        if self.is_loose and self.type != "bool" and self.chance(0.3):  # in a type that holds more, or less
            other = self.choose((3, "int64"), (2, "int8"), (1, "bool"))
            own, new = ('T.Cast("%s", %s)' % ("int64" if other == "bool" else other, text) for text in (target, value))
            made = self.choose((4, "T.max(%s, %s)" % (own, new)), (2, "T.min(%s, %s)" % (own, new)), (4, "%s + %s" % (own, new)), (2, "%s * %s" % (own, new)))
            return 'T.Cast("%s", %s)' % (self.type, 'T.Cast("bool", %s)' % made if other == "bool" else made)
        if self.type == "bool":
            return self.choose((3, "%s or %s" % (target, value)), (3, "%s and %s" % (target, value)), (1, "not %s" % target), (1, value))
        zero, three = self.constant(0), self.constant(3)
        if self.kind == "special":
            return self.choose((4, "T.max(%s, %s)" % (target, value)), (4, "T.min(%s, %s)" % (target, value)), (2, value),
                               (2, "T.if_then_else(%s > %s, %s, %s)" % (value, zero, value, target)), (1, "T.Select(%s < %s, %s, %s)" % (target, value, target, value)))
        if self.is_float or self.lanes > 1:
            return self.choose((50, "%s + %s" % (target, value)), (10, "T.max(%s, %s)" % (target, value)), (8, "T.min(%s, %s)" % (target, value)),
                               (7, "%s - %s" % (target, value)), (6, "%s - %s" % (value, target)), (6, value))
        return self.choose((50, "%s + %s" % (target, value)), (10, "T.max(%s, %s)" % (target, value)), (8, "T.min(%s, %s)" % (target, value)),
                           (7, "%s - %s" % (target, value)), (7, "%s * %s + %s" % (target, three, value)), (6, "%s - %s" % (value, target)), (6, value),
                           (6, "T.if_then_else(%s > %s, %s + %s, %s)" % (value, zero, target, value, target)))

    # ---- Blocks ----

    def bindings(self, loops):
        """What iterations are bound to: loops, or what is made of them."""
        bound, at = loops[:], self.random.randrange(len(loops))
        loop, number = loops[at], self.random.randint(2, 4)
        kind = self.random.random()
        if kind < 0.12 and len(loops) >= 2:
            inner = bound[1]
            wide = inner.high - min(inner.low, 0) + 1
            bound[:2] = [Index("%s * %d + %s" % (bound[0].text, wide, inner.text), bound[0].low * wide + inner.low, bound[0].high * wide + inner.high)]
        elif kind < 0.24:
            bound[at:at + 1] = [Index("%s // %d" % (loop.text, number), loop.low // number, loop.high // number), Index("%s %% %d" % (loop.text, number), 0, number - 1 if loop.low < 0 else min(number - 1, loop.high))]
        elif kind < 0.28:
            top = self.choose((4, loop.high), (1, 0))
            bound[at] = Index("%d - %s" % (top, loop.text), top - loop.high, top - loop.low)
        elif kind < 0.32:
            more = self.choose((4, number - 1), (1, -number))
            bound[at] = Index("%s %s %d" % (loop.text, "+" if more > 0 else "-", abs(more)), loop.low + more, loop.high + more)
        elif kind < 0.35:
            bound[at] = Index("%s // 2" % loop.text, loop.low // 2, loop.high // 2)
        elif kind < 0.4 and len(loops) >= 2:
            del bound[at]
        elif kind < 0.43:
            bound.append(Index(self.number(0), 0, 0))
        if self.chance(0.15):
            self.random.shuffle(bound)
        return bound

    def iterations(self, depth, loops):
        """Writes the block's iterations; gives all of them, and those that are spatial."""
        reduces, bound, all_of_them, spatial = self.chance(0.55), self.bindings(loops), [], []
        for at, binding in enumerate(bound):
            kind = "spatial"
            if reduces and (at == len(bound) - 1 or self.chance(0.3)):
                kind = "reduce"
            elif self.chance(0.03):
                kind = "opaque"
            end = max(binding.high + 1 + (1 if self.chance(0.04) else 0), binding.low)  # loops of no iteration
            if binding.of is not None:
                self.emit(depth, "v%d = T.axis.%s(%s, %s)" % (at, kind, binding.of, binding.text))
                all_of_them.append(Index("v%d" % at, 0, binding.high, binding.of))
            else:
                domain = self.number(end) if binding.low == 0 else "(%s, %s)" % (self.number(binding.low), self.number(end))
                self.emit(depth, "v%d = T.axis.%s(%s, %s)" % (at, kind, domain, binding.text))
                all_of_them.append(Index("v%d" % at, binding.low, end - 1))
            if kind == "spatial":
                spatial.append(all_of_them[-1])
        return all_of_them, spatial, len(spatial) < len(bound)

    def begins(self, depth, targets, indices, spatial, written, readable):
        """An init, which may begin fewer elements than the body updates, or others."""
        self.emit(depth, "with T.init():")
        own = spatial or indices
        for name, target in targets:
            if self.chance(0.07) and name != targets[-1][0]:
                continue
            if self.chance(0.25):
                target = self.access(self.choose((7, name), (3, self.random.choice(written))), own)
            value = self.choose((55, self.constant(self.random.choice([0, 0, 0, 1, -5]))), (35, self.value(own, readable)), (10, self.value(indices, readable)))
            inner = depth + 1
            if self.chance(0.12):
                self.emit(inner, "if %s:" % self.predicate(own))
                inner += 1
            self.emit(inner, "%s = %s" % (target, self.stored(target, value)))

    def store(self, depth, target, value, indices, readable):
        if self.chance(0.1):
            self.emit(depth, "if %s:" % self.predicate(indices))
            self.emit(depth + 1, "%s = %s" % (target, self.stored(target, value)))
            if self.chance(0.3):
                self.emit(depth, "else:")
                self.emit(depth + 1, "%s = %s" % (target, self.stored(target, self.value(indices, readable))))
        elif self.chance(0.07):
            self.emit(depth, "for k in range(%s):" % self.number(3))
            inner = "T.max(%s, %s)" % (value, self.cast("k")) if self.kind == "special" else "(%s) %s %s" % (value, "and" if self.type == "bool" else "+", self.cast("k"))
            self.emit(depth + 1, "%s = %s" % (target, self.stored(target, inner)))
        else:
            self.emit(depth, "%s = %s" % (target, self.stored(target, value)))

    def matched(self, depth, name, target, share=0.04, tiles=0):
        """Now and then the element under another name, which a block matches: of a part that is the element alone, or a tile of two."""
        if not self.chance(share) or "[" in target[len(name) + 1:]:
            return target
        self.matches += 1
        ranges, shape, inner = [], [], []
        for at, extent in zip(self.split(target[len(name) + 1:-1]), self.names[name]):
            kind = "point" if isinstance(extent, Extent) else self.choose((3, "point"), (tiles, "tile"))
            begin, size, index = {"point": (at, 1, "0"), "tile": ("(%s) // 2 * 2" % at, 2, "(%s) %% 2" % at)}[kind]
            ranges.append("%s:%s + %s" % (begin, begin, self.number(size)))
            shape.append(self.number(size))
            inner.append(index)
        strides = "".join('"s%d_%d", ' % (self.matches, at) for at in range(len(shape)))
        self.emit(depth, 'm%d = T.match_buffer(%s[%s], (%s,), "%s", strides=(%s), offset_factor=1)' % (
            self.matches, name, ", ".join(ranges), ", ".join(shape), self.types.get(name, self.element), strides))
        return "m%d[%s]" % (self.matches, ", ".join(inner))

    @staticmethod
    def split(text):
        """The indices between commas that no bracket holds."""
        parts, deep, start = [], 0, 0
        for at, letter in enumerate(text):
            deep += (letter in "([") - (letter in ")]")
            if letter == "," and not deep:
                parts.append(text[start:at].strip())
                start = at + 1
        return parts + [text[start:].strip()]

    def pair(self, depth, loops, written, readable):
        """An index and the value that it is of: the greatest or the least."""
        self.blocks += 1
        self.emit(depth, 'with T.sblock("b%d"):' % self.blocks)
        depth += 1
        at = [Index("v%d" % n, loop.low, loop.high, loop.of) for n, loop in enumerate(loops)]
        for n, loop in enumerate(loops):
            kind, end = "reduce" if n == len(loops) - 1 else "spatial", self.number(loop.high + 1) if loop.of is None else str(loop.of)
            self.emit(depth, "v%d = T.axis.%s(%s, %s)" % (n, kind, end if not loop.low else "(%s, %s)" % (self.number(loop.low), end), loop.text))
        own = at[:-1] or [Index("0", 0, 0)]
        place, value = (self.access(name, own) for name in (written[0], written[-1])), self.value(at, readable)
        place, best = place
        least = self.chance(0.5)
        self.emit(depth, "with T.init():")
        self.emit(depth + 1, "%s = %s" % (place, self.constant(-1)))
        self.emit(depth + 1, "%s = %s" % (best, self.constant(100 if least else -100)))
        step = self.choose((3, self.cast(at[-1].text)), (1, self.value(at, readable)))
        keeps = "%s %s %s" % (best, self.choose((3, "<=" if least else ">="), (2, "<" if least else ">")), value)
        if self.chance(0.4):
            keeps = "%s %s %s or %s == %s and %s < %s" % (best, "<" if least else ">", value, best, value, place, step)
        self.emit(depth, "x0: T.let[T.%s] = T.Select(%s, %s, %s)" % (self.type, keeps, place, step))
        self.emit(depth, "x1: T.let[T.%s] = T.Select(%s %s %s, %s, %s)" % (self.type, best, "<=" if least else ">=", value, best, value))
        self.emit(depth, "%s = x0" % place)
        self.emit(depth, "%s = x1" % best)

    def block(self, depth, loops, written, readable):
        plain = self.type != "bool" and self.lanes == 1 and not self.types
        fits = [name for name in readable if name != DATA and self.names[name][-1] >= 8]
        if plain and fits and all(self.names[name][-1] >= 8 for name in written) and self.extent is None and self.kind not in ("small", "special") and self.chance(0.05):
            return self.ramped(depth, loops, written, fits)
        if len(written) == 2 and plain and self.chance(0.12):
            return self.pair(depth, loops, written, readable)
        self.blocks += 1
        if self.is_loose and self.chance(0.4):
            index = self.named_by_element(loops) if self.used and self.chance(0.3) else self.combined(self.random.choice(loops), loops)
            self.emit(depth, "y%d: T.let[T.%s] = %s" % (self.blocks, self.index, index.text))
            named = Index("y%d" % self.blocks, index.low, index.high, index.of)
            loops = loops[:self.random.randrange(len(loops))] + [named] if self.chance(0.3) else loops + [named]
        self.emit(depth, 'with T.sblock("b%d"):' % self.blocks)
        depth += 1
        loose = self.is_loose and self.chance(0.5)
        indices, spatial, reduces = (loops, loops, False) if loose else self.iterations(depth, loops)
        if self.chance(0.15):
            self.emit(depth, "T.where(%s)" % self.predicate(loops))
        own, targets = spatial if reduces and spatial and self.chance(0.85) else indices, []
        has_init = reduces and self.chance(0.75)
        if self.chance(0.06) and self.lanes == 1 and not any(self.extent is extent for name in readable for extent in self.names[name]):
            named = sorted({DATA, *readable, *self.used, *([] if has_init else written)})
            self.emit(depth, "T.reads(%s)" % ", ".join("%s[%s]" % (name, ", ".join("0:%s" % extent for extent in self.names[name])) for name in named))
            for name in readable:
                element = self.matched(depth, name, self.access(name, indices), 0.5, 3) if name != DATA else name
                self.parts.update({name: element} if element[0] == "m" else {})
        if not has_init and self.chance(0.15):  # an index under a name, by which elements are found
            index = self.combined(self.random.choice(own), own)
            self.emit(depth, "w: T.let[T.%s] = %s" % (self.index, index.text))
            named = Index("w", index.low, index.high, index.of)
            own, indices = own + [named], indices + [named]
        for _ in range(self.choose((5, 1), (1.5, 2), (0.3, 3))):
            name = self.random.choice(written)
            target = self.access(name, own)
            targets.append((name, target if "w" in own[-1].text or name in self.types else self.matched(depth, name, target)))
        if has_init:
            self.begins(depth, targets, indices, spatial, written, readable)
        values = []
        for _, target in targets:
            value = self.value(indices, readable)
            values.append(self.update(self.loaded(target.split("[")[0], target), value) if has_init or self.chance(0.35) else value)
        if self.chance(0.12):  # all are computed before any is stored
            for at, value in enumerate(values):
                self.emit(depth, "x%d: T.let[T.%s] = %s" % (at, self.element, value))
            values = ["x%d" % at for at in range(len(values))]
        for (_, target), value in zip(targets, values):
            self.store(depth, target, value, indices, readable)
        self.drop_parts()

    def drop_parts(self):
        """What a block matches it uses."""
        for part in self.parts.values():
            at = [n for n, line in enumerate(self.lines) if line.lstrip().startswith(part.split("[")[0] + " = ")]
            if at and not any(part in line for line in self.lines[at[0] + 1:]):
                del self.lines[at[0]]
        self.parts = {}

    def named_by_element(self, loops):
        """An index that an element of the buffers which the nest uses gives."""
        return Index(self.element_as_extent(loops), 0, 3)

    def ramp(self, name, indices):
        """Four elements of the buffer, whose last index steps by one, two, or back."""
        shape, index = self.names[name], self.random.choice(indices)
        first = [self.within(self.random.choice(indices), extent) for extent in shape[:-1]]
        last = self.choose(
            (5, "T.Ramp(%s * 4, 1, 4)" % self.within(index, shape[-1] // 4)), (1, "T.Ramp(%s * 4 + 3, -1, 4)" % self.within(index, shape[-1] // 4)),
            (1, "T.Ramp(%s, 1, 4)" % self.within(index, shape[-1] - 3)), (1, "T.Ramp(%s, 2, 4)" % self.within(index, shape[-1] - 6)))
        return "%s[%s]" % (name, ", ".join(first + [last]))

    def ramped(self, depth, loops, written, readable):
        """A block that stores vectors of four elements."""
        self.blocks += 1
        self.emit(depth, 'with T.sblock("b%d"):' % self.blocks)
        indices, _, _ = self.iterations(depth + 1, loops)
        wide = lambda text: "T.Broadcast(%s, 4)" % text
        read = self.choose((3, lambda: self.ramp(self.random.choice(readable), indices)), (1, lambda: wide(self.value(indices, readable, 2))))()
        target = self.ramp(self.random.choice(written), indices)
        value = self.choose((2, read), (2, "%s + %s" % (read, self.ramp(self.random.choice(readable), indices))), (1, "%s + %s" % (target, read)),
                            (1, "T.max(%s, %s)" % (target, read)))
        self.emit(depth + 1, "%s = %s" % (target, value))

    # ---- Nests ----

    def loop(self, depth, low, extent):
        self.loops += 1
        name = "i%d" % self.loops
        if isinstance(extent, Extent):
            self.emit(depth, "for %s in range(%s):" % (name, extent))
            return Index(name, 0, MOST - 1, extent)
        if isinstance(extent, str):  # an element, at most 3
            self.emit(depth, "for %s in range(%s):" % (name, extent))
            return Index(name, 0, 2)
        ends = [self.number(low)] * (low != 0) + [self.number(low + extent)]
        self.emit(depth, "for %s in range(%s):" % (name, ", ".join(ends)))
        return Index(name, low, low + extent - 1)

    def around(self, depth, loops):
        """A block that holds others, and a loop in it."""
        self.blocks += 1
        self.emit(depth, 'with T.sblock("b%d"):' % self.blocks)
        inner, hidden = [], self.kind == "hidden" and self.chance(0.6)
        for at, loop in enumerate(loops):
            end = self.number(loop.high + 1) if loop.of is None else str(loop.of)
            domain = end if not loop.low else "(%s, %s)" % (self.number(loop.low), end)
            self.emit(depth + 1, "w%d = T.axis.%s(%s, %s)" % (at, self.choose((6, "spatial"), (1, "opaque")), domain, loop.text))
            inner.append(Index("w%d" % at, loop.low, loop.high, loop.of))
        if self.chance(0.15):
            self.emit(depth + 1, "T.where(%s)" % self.predicate(loops))
        if hidden:
            self.emit(depth + 1, "T.reads()")
            self.emit(depth + 1, "T.writes()")
        if self.kind == "scoped" and self.chance(0.4):
            own = self.allocated(depth + 1)
            at = self.loop(depth + 1, 0, 4)
            self.emit(depth + 2, 'with T.sblock("b%dl"):' % self.blocks)
            self.emit(depth + 3, "v0 = T.axis.spatial(%s, %s)" % (self.number(4), at.text))
            self.emit(depth + 3, "%s[v0] = %s" % (own, self.value(inner + [Index("v0", 0, 3)], [name for name in self.used if name != own])))
            self.local = own
        return depth + 2, inner + [self.loop(depth + 1, 0, self.random.choice([2, 3, 4]))]

    def element_as_extent(self, loops):
        """An element of the buffers that the nest uses as the number of a loop's iterations, from 0 to 3."""
        element = 'T.Cast("%s", %s)' % (self.index, self.load(self.random.choice(self.used), loops))
        return "T.min(T.max(%s, %s), %s)" % (element, self.number(0), self.number(3))

    def allocated(self, depth):
        """A buffer of the block, which is to be filled there."""
        name = "L%d" % self.blocks
        self.names[name] = (4,)
        self.emit(depth, '%s = T.sblock_alloc_buffer((4,), "%s")' % (name, self.element))
        return name

    def beside(self, depth, loops, written, readable):
        """A store that stands in no block."""
        name = self.random.choice(written)
        target, value = self.access(name, loops), self.value(loops, readable)
        if self.chance(0.4):
            value = self.update(self.loaded(name, target), value)
        self.store(depth, target, value, loops, readable)

    def nest(self, written, readable):
        depth, loops = 2, []
        for _ in range(self.choose((2, 1), (6, 2), (3, 3))):
            extent = self.choose((1, 1), (1, 2), (2, 3), (4, 4), (3, 6), (3, 8), (0.15, 0))
            if self.extent is not None and self.chance(0.4):
                extent = self.extent
            low = self.choose((90, 0), (3, 1), (1, -1), (1, -2), (1, -extent)) if not isinstance(extent, Extent) else 0
            loops.append(self.loop(depth, low, extent))
            depth += 1
        scoped, self.local = self.kind == "scoped", None
        self.used = sorted({*written, *readable}) if scoped else []
        if scoped and self.chance(0.2):
            loops.append(self.loop(depth, 0, self.element_as_extent(loops)))
            depth += 1
        if self.chance(0.2 if scoped else 0.06):
            self.emit(depth, "if %s:" % self.condition(loops))
            depth += 1
        if self.chance({"scoped": 0.15, "hidden": 0.3}.get(self.kind, 0.06)):
            depth, loops = self.around(depth, loops)
            if self.local:
                readable = readable + [self.local] * 2
        count = self.choose((6, 1), (2, 2), (0.7, 3))
        for _ in range(count):
            inner = [self.loop(depth, 0, self.random.choice([2, 3, 4]))] if count > 1 and self.chance(0.15) else []
            if scoped and self.chance(0.1):
                inner.append(self.loop(depth + len(inner), 0, self.element_as_extent(loops + inner)))
            if self.is_loose and self.chance(0.25 if scoped else 0.12):
                self.beside(depth + len(inner), loops + inner, written, readable)
            self.block(depth + len(inner), loops + inner, written, readable)
            if scoped and self.chance(0.25):
                self.beside(depth + len(inner), loops + inner, written, readable)
        self.used = []

    def over(self, name):
        """A block with an iteration for each element of a buffer: its depth, its iterations, and the element."""
        depth, indices = 2, []
        for extent in self.names[name]:
            indices.append(self.loop(depth, 0, extent))
            depth += 1
        self.blocks += 1
        self.emit(depth, 'with T.sblock("b%d"):' % self.blocks)
        own = []
        for at, index in enumerate(indices):
            self.emit(depth + 1, "v%d = T.axis.spatial(%s, %s)" % (at, self.number(index.high + 1) if index.of is None else index.of, index.text))
            own.append(Index("v%d" % at, 0, index.high, index.of))
        return depth, own, "%s[%s]" % (name, ", ".join(index.text for index in own))

    def fill(self, name, known):
        """A temporary buffer is written whole before anything reads it."""
        depth, own, target = self.over(name)
        self.emit(depth + 1, "%s = %s" % (target, self.stored(target, self.value(own, known))))

    def spoil(self, name):
        """Some elements of a parameter become NaN, or zeros with a sign."""
        depth, _, element = self.over(name)
        zero = "T.Select(%s < %s, T.%s(-0.0), %s)" % (element, self.constant(-1), self.type, element)
        self.emit(depth + 1, "%s = T.Select(%s > %s, T.%s(\"nan\"), %s)" % (element, element, self.constant(2), self.type, zero))

    def views(self, names):
        """Other names for the memory of some buffers, of as many elements or fewer."""
        made = []
        for name in self.random.sample(names, self.random.randint(1, 2)):
            shape, count = self.names[name], 1
            for extent in shape:
                count *= extent
            made.append("V%d" % len(made))
            self.names[made[-1]] = self.choose((2, (count,)), (2, shape[::-1]), (1, (count // 2, 2)), (2, (count // 2,)), (1, shape))
            half = len(self.names[made[-1]]) == 1 and self.names[made[-1]][0] < count
            layout = self.choose((1, ""), (half, ", strides=(2,)"), (half, ", elem_offset=%d" % (count // 2)))
            self.emit(2, '%s = T.decl_buffer(%s, "%s", data=%s.data%s)' % (made[-1], self.names[made[-1]], self.element, name, layout))
        return made

    def text(self):
        parameters, temporaries = ["A", "B", "C"][:self.random.randint(2, 3)], ["T0", "T1"][:self.random.randint(0, 2)]
        for name in parameters + temporaries:
            self.names[name] = tuple(self.random.choice(SIZES) if self.extent is None or self.chance(0.5) else self.extent for _ in range(self.choose((3, 1), (6, 2))))
            if self.kind == "mixed" and self.chance(0.6):
                self.types[name] = self.random.choice(["float16", "bfloat16", "float64", "int8"])
        for name in temporaries if self.extent is not None else []:  # of memory that a kernel can have
            self.names[name] = tuple(SIZES[0] if extent is self.extent else extent for extent in self.names[name])
        if self.extent is not None and not any(self.extent is extent for name in parameters for extent in self.names[name]):
            self.names["A"] = (self.extent,) + self.names["A"][1:]
        self.names[DATA] = (SIZES[0],)
        for name in temporaries:
            more = self.choose((5, 0), (2, 3)) if self.kind == "hidden" else 0  # elements that nothing writes or reads
            shape = tuple(extent + more for extent in self.names[name])
            self.emit(2, '%s = T.sblock_alloc_buffer(%s, "%s")' % (name, shape, self.types.get(name, self.element)))
        views = self.views(parameters + temporaries) if self.kind == "views" else []
        for name in parameters:
            if self.kind == "special" and self.chance(0.2):
                self.spoil(name)
        for at, name in enumerate(temporaries):
            self.fill(name, parameters + [DATA] + temporaries[:at])
        writable, everything = parameters + temporaries + views, parameters + temporaries + views + [DATA]
        for _ in range(self.choose((4, 1), (4, 2), (2, 3))):
            written = self.random.sample(writable, self.random.randint(1, 2))
            readable = self.random.sample(everything, self.random.randint(1, 3))
            if self.chance(0.5):
                readable = [name for name in readable if name not in written] or readable
            self.nest(written, readable)
        given, head = [], []
        for name in parameters + [DATA]:
            self.parameter(name, given, head)
        if self.extent is not None:  # behind the buffers, whose extents are drawn
            given.append("n: T.%s" % self.index)
        return "\n".join(["from tvm.script import ir as I", "from tvm.script import tirx as T", "", "@I.ir_module", "class Module:", "    @T.prim_func(s_tir=True)",
                          "    def main(%s):" % ", ".join(given), '        T.func_attr({"tirx.noalias": True})'] + head + self.lines) + "\n"

    def parameter(self, name, given, head):
        """How a parameter is declared: among those given, or at the head of the function, with its strides."""
        shape, type = self.names[name], self.index if name == DATA else self.types.get(name, self.element)
        if self.kind not in ("strided", "symbolic") or (self.kind == "strided" and self.chance(0.3)):
            given.append('%s: T.Buffer(%s, "%s")' % (name, shape, type))
            return
        given.append("p_%s: T.handle" % name)
        layout = ""
        if self.kind == "strided":
            row = shape[-1] + self.random.randint(0, 3)
            steps = self.choose((4, (row, 1)), (2, (1, shape[0] + 1)), (1, (2 * row, 2))) if len(shape) == 2 else (self.random.choice([1, 2, 3]),)
            if len(shape) == 2 and self.chance(0.3):
                given.append("s_%s: T.int%s" % (name, self.index[3:]))
                steps = ("s_%s" % name, 1)
            layout = ", strides=(%s,)" % ", ".join(self.number(step) if isinstance(step, int) else step for step in steps)
            if self.chance(0.4):
                layout += ", elem_offset=%s" % self.number(self.random.randint(1, 5))
        head.append('        %s = T.match_buffer(p_%s, %s, "%s"%s)' % (name, name, shape, type, layout))


KINDS = ["plain", "loose", "scoped", "views", "floats", "special", "vectors", "symbolic", "strided", "small", "hidden", "mixed"]


def main(folder, count, seed, kinds):
    os.makedirs(folder, exist_ok=True)
    for at in range(count):
        with open(os.path.join(folder, "f%05d.py" % at), "w") as file:
            file.write(Function(seed * 1000003 + at, kinds).text())


if __name__ == "__main__":
    given, named = sys.argv[1:], KINDS
    if given[:1] == ["--kinds"] and len(given) > 1:
        named, given = given[1].split(","), given[2:]
    if len(given) != 3 or not set(named) <= set(KINDS):
        sys.exit(__doc__)
    main(given[0], int(given[1]), int(given[2]), named)
