// Package judge decides about system calls that change modes, owners, times and extended
// attributes of files, of processes that Landlock keeps in some directories: it has no say in
// these calls. Without a mount namespace, and a user of its own, a process could open its
// user's private files to everybody.
//
// A seccomp filter stops such a call (SECCOMP_RET_USER_NOTIF, seccomp_unotify(2)) and tells the
// judge, which reads the call's arguments, opens the file that is meant, looks where that is, and
// makes the call itself on what it has opened. What the process changes meanwhile is of no
// consequence: nothing that was looked at is looked up again. The call is never let pass.
//
// A call takes some 30 µs instead of one. When the judge has ended calls fail with ENOSYS.
package judge
