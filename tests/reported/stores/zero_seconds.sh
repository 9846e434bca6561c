#!/bin/sh
# An imported record of 0 s was ranked best, and a report of it never ended. Every number of an import has a range: what
# is outside is refused by line, field, value and range, and the rest of the file is kept.
# usage: zero_seconds.sh PROGRAM
. "$(dirname -- "$0")/../expect.sh"

timeout 60 "$program" db import "$here/zero_seconds.jsonl" --db z.db >output 2>&1 && fail "it is imported"
expect_output 'zero_seconds.jsonl:2: `seconds` must be from 1e-12 to 1e\+06 in a record that is measured, not 0$'
expect_output '1 record added, 1 line refused'
expect_status 0 timeout 60 "$program" report -o z.html --db z.db
expect_status 0 timeout 60 "$program" top --db z.db
refuse_output ' 0 ns'

# The same of each number, in the second line of the file.
number=0
spoil() { # field, value, what the message has
  number=$((number + 1))
  sed "2s/\"$1\": *[^,}]*/\"$1\": $2/" "$here/zero_seconds.jsonl" >spoiled.jsonl
  [ "$1" = seconds ] || sed -i '2s/"seconds": *0.0/"seconds": 1.2357142103220603e-08/' spoiled.jsonl
  "$program" db import spoiled.jsonl --db "s$number.db" >output 2>&1 && fail "$1 of $2 is imported"
  expect_output "spoiled.jsonl:2: .*$3"
  expect_status 0 "$program" db check --db "s$number.db"
}
for value in 0 5e-324 -1 1e300 1e7 null '"1"' true; do spoil seconds "$value" '`seconds` must be'; done
for value in NaN Infinity -Infinity 1e400; do spoil seconds "$value" 'column [0-9]*: .*'; done
for value in -1e-9 1e300 '"1"'; do
  spoil low "$value" '`low` must be'
  spoil high "$value" '`high` must be'
done
for value in -1 4294967296 0.5 1e300 '"3"' null; do spoil runs "$value" '`runs` must be an integer from 0 to 4294967295, not'; done
for value in -1 9007199254740992 1.5 '[]'; do spoil candidate "$value" '`candidate` must be an integer from 0 to 9007199254740991, not'; done
for value in 0.5 1e300 '"3"' '{}'; do spoil seed "$value" '`seed` must be an integer'; done
for value in -1 253402300800 9223372036854775807 1e300; do spoil when "$value" '`when` must be an integer from 0 to 253402300799, not'; done
for value in '"zz"' '""' '"0123456789abcdef0"' 7; do spoil module "$value" '`module` must be 1 to 16 hexadecimal digits'; done
for field in target status; do for value in 7 null true '[]'; do spoil "$field" "$value" "\`$field\` must be a string, not"; done; done
spoil target '""' '`target` must name what the record was measured on'
for field in busy pinned; do for value in 1 '"true"' null; do spoil "$field" "$value" "\`$field\` must be true or false, not"; done; done
spoil facts '7, "more": {"x": 1' '`facts` must be an object, not a number'
spoil low 5e5 '`low`, 500000, must not be above `high`'
spoil high 0 'must not be above `high`, 0$'
for value in 1 1.24e-08 1.23e-08; do spoil seconds $value '`seconds`, .*, must be from `low`, 1.23571e-08, to `high`, 1.23571e-08$'; done
for value in -1 1e300; do
  sed "2s/\"seconds\": *0.0/\"seconds\": 1.2357142103220603e-08/; 2s/\"facts\": *{/\"facts\": {\"registers\": $value, /" "$here/zero_seconds.jsonl" >facts.jsonl
  "$program" db import facts.jsonl --db facts.db >output 2>&1 && fail "a fact of $value is imported"
  expect_output 'facts.jsonl:2: fact `registers` must be from 0 to 1e\+18, not '
done

# The ends of the ranges are kept, and drawn.
sed '2s/"seconds": *0.0/"seconds": 1e-12/; 2s/"low": *[^,]*/"low": 0/; 3s/"seconds": *[^,]*/"seconds": 1e6/; 3s/"high": *[^,]*/"high": null/' "$here/zero_seconds.jsonl" >ends.jsonl
expect_status 0 "$program" db import ends.jsonl --db ends.db
expect_status 0 timeout 60 "$program" report -o ends.html --db ends.db
expect_status 0 timeout 60 "$program" top --db ends.db
expect_status 0 "$program" db export again.jsonl --db ends.db
expect_status 0 "$program" db import again.jsonl --db again.db

# A store is no file of records.
"$program" db import ends.db --db other.db >output 2>&1 && fail "a store is imported"
expect_output 'ends.db: this is a store; `msched db merge ends.db` takes its records'
[ "$(wc -l <output)" = 1 ] || fail "not one line: $(head -n 3 output)"
