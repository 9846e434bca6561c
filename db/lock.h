/* Who has a store open. Internal to db.
 *
 * LMDB's processes share the first byte of the lock file while they have the store open. That alone does not keep a
 * process out that is opening it while the file is replaced: it would wait for the byte, go on with the table of the old
 * file's transactions, and take an older snapshot of the new file for its newest. So the lock file as a whole (flock) is
 * shared while a store is being opened, and held alone by who replaces the file:
 *
 *   opening     lock file shared; LMDB takes its byte and opens the file; lock file released
 *   replacing   lock file alone, the byte alone; the table emptied, the new file renamed over the old one; both released
 *
 * All of these end with the process, however it ends. */
#ifndef MSCHED_DB_LOCK_H
#define MSCHED_DB_LOCK_H

#include "db.h"

/* Waits until nobody replaces the file. The descriptor stays open as long as LMDB has the store: closing any of a
 * process's descriptors of the lock file drops LMDB's byte. -1: err is filled. -2: the lock file cannot be opened. */
int db_lock_opening(const char *path, ms_error *err);
void db_unlock_opening(int lock);

/* No other process has the store open, nor opens it until db_release_alone. This process has it closed. Returns a
 * descriptor; -1: err is filled. */
int db_hold_alone(const char *path, ms_error *err);
/* What LMDB keeps of the file's transactions is forgotten: it is of a file that is about to be replaced. */
bool db_forget_old(int held, const char *path, ms_error *err);
void db_release_alone(int held);

#endif
