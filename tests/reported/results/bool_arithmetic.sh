# Arithmetic of booleans is refused where it is read, for every target, with what to say instead: usage:
# bool_arithmetic.sh PROGRAM
. "$(dirname -- "$0")/../expect.sh"
refuses() { # a word of the message
  expect_output 'expected numbers, found conditions \(bool\), which have no arithmetic'
  expect_output "$1"
}
with() { # another condition: f.py
  sed "s|(vi < 3) + (vi < 1)|$(printf %s "$1" | sed 's/&/\\\&/g')|" "$here/bool_arithmetic.py" >f.py
  grep -qF -- "$1" f.py || fail "no text of $1 was made"
}
expect_status 1 "$program" run "$here/bool_arithmetic.py"
refuses 'bool_arithmetic.py:11'
for target in llvm c 'cuda -arch=sm_80'; do
  expect_status 1 "$program" tune --no-tune --target "$target" --db x.db "$here/bool_arithmetic.py"
  refuses 'T.Cast\("int32", condition\)'
done
for value in '(vi < 3) - (vi < 1)' '(vi < 3) * (vi < 1)' 'T.max(vi < 3, vi < 1)' 'T.min(vi < 3, vi < 1)' '~(vi < 3)' \
  '-(vi < 3)' 'T.Add(vi < 3, vi < 1)' 'T.Max(vi < 3, vi < 1)' 'T.bitwise_not(vi < 3)' 'T.shift_left(vi < 3, vi < 1)' \
  '(vi < 3) << (vi < 1)' '(vi < 3) // (vi < 1)' '(vi < 3) % (vi < 1)' 'T.abs(vi < 3)' 'T.bool(True) + (vi < 1)'; do
  with "$value"
  expect_status 1 "$program" run f.py
  refuses 'have no arithmetic'
done
# What booleans have: comparisons, and, or, not, &, |, ^, choices and casts, alike in every backend.
for value in '(vi < 3) == (vi < 1)' '(vi < 3) & (vi < 1)' '(vi < 3) ^ (vi < 1)' '(vi < 1) < (vi < 3)' '(vi < 1) >= (vi < 3)' \
  'T.Cast("int32", vi < 3) + T.Cast("int32", vi < 1) == 2' 'T.Select(vi < 3, vi < 1, vi < 5)'; do
  with "$value"
  expect_status 0 "$program" run f.py
  refuse_output 'differ'
done
