/* Processes that this one started, and descriptors: signalled, waited for and closed only where they are there. A call
 * that failed leaves -1, and kill(-1) ends every process of the user. Internal to jit. */
#ifndef MSCHED_JIT_PROCESS_H
#define MSCHED_JIT_PROCESS_H

#include <stdbool.h>
#include <sys/types.h>

/* Whether a number can be that of a child: fork's 0 and -1, and the first process, cannot. */
bool process_is_child(pid_t pid);
/* Starts a program in a process group of its own, so that a terminal's signals do not reach it, with every signal as it
 * is by default and none blocked; again for a second where processes or memory are short. `socket` becomes each of its
 * descriptors in `as`, which -1 ends. Returns 0, or an errno: *pid is then 0. */
int process_spawn(const char *path, char **words, char **environment, int socket, const int *as, pid_t *pid);
/* Of a process that process_spawn started: notes who did, whose family this one and its children are then. */
void process_note_host(void);
/* Whether a process is of this one's family: the process that noted no host, and what it started by process_spawn, with
 * their groups. A process of another program, or another run of this one in the same session, is not. Source:
 * proc(5). */
bool process_is_family(pid_t pid);
/* Sends a signal to a child of this process, by its number. A number that can be no child's is a bug: it asserts, and
 * signals nobody. Returns false where the child is gone already, or the system refuses. */
bool process_signal(pid_t pid, int signal);
/* Waits until a child ends, or stops (see waitpid for options). Returns whether it did; *status may be NULL. */
bool process_wait(pid_t pid, int *status, int options);
/* Ends a child, whatever it does, and forgets it: *pid becomes 0; 0 is none. Returns its status for wait's macros, 0
 * where nobody knows it. */
int process_end(pid_t *pid);
/* The same with all of the process group that it leads, as children of process_spawn do. */
void process_end_group(pid_t *pid);
/* Returns when a child that was sent SIGSTOP does not run any more, or has ended; its status stays to be waited for. */
void process_wait_stopped(pid_t pid);
/* A descriptor that gives nothing to read and takes nothing: /dev/null, or, where there is none, as in a bare chroot,
 * one by which the root folder can be named, and nothing else be done: EBADF. -1: errno says why. */
int descriptor_open_nowhere(void);
/* Closes a descriptor, and forgets it: *fd becomes -1; -1 is none. */
void descriptor_close(int *fd);
/* What helps after a call that starts processes, or what they need, failed with this errno: in words. */
const char *process_remedy(int error);

#endif
