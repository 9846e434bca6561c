#!/bin/sh
# Any number of records is written together: by a batch, an import, a merge. MSCHED_REPORTED=all: MSCHED_RECORDS of
# them, 100,000 unless said. It prints seconds, bytes a record and the most memory.
# usage: many_records.sh PROGRAM
. "$(dirname -- "$0")/../expect.sh"

records=12000
[ "${MSCHED_REPORTED:-}" != all ] || records=${MSCHED_RECORDS:-100000}
expect_status 0 "$program" tune ops:matmul --trials 1 --target "native -num-cores=1" --db src.db -- 8 8 8
put() { # store, records, records a batch
  expect_status 0 "$program" "$here/many_records.lua" put "$@"
  cat output
}
put many.db src.db "$records" "$records"
expect_status 0 "$program" db check --db many.db
put parts.db src.db 3000 1000
expect_status 0 "$program" db export all.jsonl --db many.db
expect_status 0 "$program" "$here/many_records.lua" import other.db all.jsonl
cat output
expect_output "^import: $records records"
expect_status 0 "$program" db check --db other.db
expect_status 0 "$program" db merge many.db src.db --db third.db
expect_output "^$((records + 1)) records added"
expect_status 0 "$program" db check --db third.db
# Each part of a batch is room for what it changes, also where the process may not have many addresses.
(ulimit -v 700000 && "$program" "$here/many_records.lua" put small.db src.db 12000 12000) >output 2>&1 || fail "few addresses: $(cat output)"
expect_status 0 "$program" db check --db small.db
