/* Of several ways to compute the same, the fastest. Internal to lua. */
#ifndef MSCHED_LUA_VENDOR_RACE_H
#define MSCHED_LUA_VENDOR_RACE_H

#include <stdbool.h>
#include <stdint.h>

enum { VENDOR_MOST_WAYS = 32 };

struct vendor_race {
  int count; /* of ways, at most VENDOR_MOST_WAYS */
  /* Seconds of one of so many calls of a way, below 0: it fails. */
  double (*sample)(void *data, int way, uint32_t calls);
  /* Runs a way once, which may load code; false: it fails. */
  bool (*warm)(void *data, int way);
  /* Whether the fastest does what it should; else the next is asked. */
  bool (*check)(void *data, int way);
  void *data;
};
/* Times the ways in turn; seconds: of each, its median, below 0 where it fails. The number of the fastest, or -1: all
 * fail. */
int vendor_race(const struct vendor_race *race, double *seconds);

/* With MSCHED_VENDOR_LOG set, a line on the standard error: what a vendor's library was asked, and what it gave. */
void vendor_log(const char *format, ...) __attribute__((format(printf, 1, 2)));
bool vendor_logs(void);

#endif
