/* What the numbers of a record may be, wherever they come from: a put, an import, a file. Internal to db. */
#ifndef MSCHED_DB_BOUNDS_H
#define MSCHED_DB_BOUNDS_H

#include "db.h"

#define DB_LEAST_SECONDS  1e-12
#define DB_MOST_SECONDS   1e6
#define DB_MOST_FACT      1e18
#define DB_MOST_CANDIDATE (((int64_t)1 << 53) - 1)
#define DB_MOST_WHEN      INT64_C(253402300799) /* the last second of the year 9999 */

/* Whether the run time of a record of the status is in range; a failed one need not have any. */
bool db_is_run_time(double seconds, enum db_status status);
/* Says in `out` which number of the record is out of its range, what it is and what the range is. False: none is. */
bool db_find_out_of_range(const struct db_record *record, char out[DB_WRONG_TEXT]);

#endif
