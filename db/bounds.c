/* The ranges of a record's numbers.
 *
 *   seconds       of what was run: 1e-12 to 1e6, else 0 to 1e6 or infinite
 *   low, high     0 to 1e6; high may be infinite: it is not known
 *   candidate     below 2^53
 *   when          from 1970 to the year 9999, in seconds
 *   facts         0 to 1e18
 * Of what was run, low <= seconds <= high; of all, low <= high: what a file holds that is not so is refused as it
 * comes in, and read where a store has it.
 * Numbers that are bounded by their type alone: runs (32 bits), seed, the module's hash (64 bits). */
#include "bounds.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>

bool db_is_run_time(double seconds, enum db_status status) {
  bool was_run = status == DB_MEASURED || status == DB_CENSORED;
  return was_run ? seconds >= DB_LEAST_SECONDS && seconds <= DB_MOST_SECONDS
                 : seconds >= 0 && (seconds <= DB_MOST_SECONDS || isinf(seconds));
}

int64_t db_when(int64_t seconds) { return seconds < 0 ? 0 : seconds <= DB_MOST_WHEN ? seconds : DB_MOST_WHEN; }

static bool find_fact(const struct db_record *r, struct db_fact *out) {
  size_t at = 0;
  while (db_next_fact(r, &at, out))
    if (out->kind == DB_NUMBER && !(out->number >= 0 && out->number <= DB_MOST_FACT)) return true;
  return false;
}

bool db_find_out_of_range(const struct db_record *r, char out[DB_WRONG_TEXT]) {
  assert(r && out && r->status <= DB_UNMEASURED);
  struct db_fact fact;
  if (!db_is_run_time(r->seconds, r->status))
    snprintf(out, DB_WRONG_TEXT, "`seconds` must be from %g to %g in a record that is %s, not %g",
             r->status == DB_MEASURED || r->status == DB_CENSORED ? DB_LEAST_SECONDS : 0, DB_MOST_SECONDS,
             db_status_names[r->status], r->seconds);
  else if (!(r->low >= 0 && r->low <= DB_MOST_SECONDS))
    snprintf(out, DB_WRONG_TEXT, "`low` must be from 0 to %g, not %g", DB_MOST_SECONDS, r->low);
  else if (!(r->high >= 0 && (r->high <= DB_MOST_SECONDS || isinf(r->high))))
    snprintf(out, DB_WRONG_TEXT, "`high` must be from 0 to %g, or null, not %g", DB_MOST_SECONDS, r->high);
  else if (r->candidate > (uint64_t)DB_MOST_CANDIDATE)
    snprintf(out, DB_WRONG_TEXT, "`candidate` must be from 0 to 2^53 - 1, not %lld", (long long)r->candidate);
  else if (r->when < 0 || r->when > DB_MOST_WHEN)
    snprintf(out, DB_WRONG_TEXT, "`when` must be from 0 to %lld, in seconds since 1970, not %lld",
             (long long)DB_MOST_WHEN, (long long)r->when);
  else if (find_fact(r, &fact))
    snprintf(out, DB_WRONG_TEXT, "fact `%.40s` must be from 0 to %g, not %g", fact.name, DB_MOST_FACT, fact.number);
  else
    return false;
  return true;
}

static bool find_unordered(const struct db_record *r, char out[DB_WRONG_TEXT]) {
  bool was_run = r->status == DB_MEASURED || r->status == DB_CENSORED;
  if (r->low > r->high)
    snprintf(out, DB_WRONG_TEXT, "`low`, %g, must not be above `high`, %g", r->low, r->high);
  else if (was_run && !(r->seconds >= r->low && r->seconds <= r->high))
    snprintf(out, DB_WRONG_TEXT, "`seconds`, %g, must be from `low`, %g, to `high`, %g", r->seconds, r->low, r->high);
  else
    return false;
  return true;
}

bool db_find_wrong_number(const struct db_record *r, char out[DB_WRONG_TEXT]) {
  return db_find_out_of_range(r, out) || find_unordered(r, out);
}
