/* Texts of times and rates, as all commands show them. */
#ifndef MSCHED_LUA_RATES_H
#define MSCHED_LUA_RATES_H

enum { RATES_TEXT = 96 };

void rates_time(double seconds, char out[RATES_TEXT]); /* "1.234 ms" */
/* Operations a second, of a unit of 1e9; bytes a second. "": there are none. */
void rates_operations(double operations, const char *unit, double seconds, char out[RATES_TEXT]);
void rates_bytes(double bytes, double seconds, char out[RATES_TEXT]);
/* The share of its limit that a kernel reaches, at most all of it; below 0: it is not known. */
double rates_share(double limit_seconds, double seconds);

#endif
