/* Who has a store open. Internal to db.
 *
 * LMDB's processes share the first byte of the lock file while they have the store open; one that finds it free sets
 * the file up, and others wait for it. That does not do:
 * - Where who sets it up is killed, those who wait go on with mutexes that are set up in part, and wait for ever later.
 * - One that opens the store while its file is replaced would go on with the table of the old file's transactions, and
 *   take an older snapshot of the new file for its newest.
 * So the lock file as a whole (flock) is held alone by who opens the store and by who replaces its file: nobody ever
 * waits for the byte.
 *
 *   opening     lock file; LMDB takes its byte and opens the file; lock file released
 *   replacing   lock file, the byte alone; the table emptied, the new file renamed over the old one; both released
 *
 *   writing     the second byte alone; LMDB's mutex taken, and given back; the byte released
 *
 * All of these end with the process, however it ends. So one process at a time waits for LMDB's mutex: where several
 * did and the holder was killed together with the one that was woken, no other was ever woken. */
#ifndef MSCHED_DB_LOCK_H
#define MSCHED_DB_LOCK_H

#include "db/db.h"

/* Waits until nobody else opens the store or replaces the file. The descriptor stays open as long as LMDB has the
 * store: closing any of a process's descriptors of the lock file drops LMDB's byte. -1: err is filled. -2: the lock
 * file cannot be opened. */
int db_lock_opening(const char *path, ms_error *err);
void db_unlock_opening(int lock);
/* Gives the lock file the blocks that LMDB maps: it only makes the file longer, and on a full disk a signal would end
 * who touches such a page. 0, or why the disk has none (errno). lock: of db_lock_opening; below 0: 0. */
int db_fill_lock(int lock);

/* Waits until no other process writes. lock: of db_lock_opening; below 0, or where its file system has no such locks,
 * LMDB's mutex alone keeps writers apart. */
void db_lock_writing(int lock);
void db_unlock_writing(int lock);

/* No other process has the store open, nor opens it until db_release_alone. This process has it closed. Returns a
 * descriptor; -1: err is filled. */
int db_hold_alone(const char *path, ms_error *err);
/* What LMDB keeps of the file's transactions is forgotten: it is of a file that is about to be replaced. */
bool db_forget_old(int held, const char *path, ms_error *err);
void db_release_alone(int held);

#endif
