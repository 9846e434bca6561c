#!/bin/sh
# The helper as tests start it: its kernels' threads sleep where they wait for work. By default each spins for some ten
# milliseconds first, and tests that run beside one another wait for that. MSCHED_TESTED_HELPER is the helper itself; it
# gets our environment without OMP_WAIT_POLICY from the program, so that users' settings change no time.
OMP_WAIT_POLICY=passive exec "$MSCHED_TESTED_HELPER" "$@"
