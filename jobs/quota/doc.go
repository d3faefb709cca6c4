// Package quota has the file system itself keep directories within a limit, by project
// quotas: those of ext4 (mkfs -O quota,project, mount -o prjquota) and of xfs (mount
// -o prjquota), from Linux 5.14 on, for who is root of the machine.
//
// All that is made below the directories of a [Quota] belongs to its project: what it
// takes is counted as it is allocated, to the last block, whether it has a name, is open,
// mapped or on its way through a socket. Beyond the limit the kernel refuses to write
// (EDQUOT, ENOSPC on xfs). Nothing can be renamed or linked into the directories from
// outside; there is no other difference. Who is in a user namespace can neither leave the
// project nor have files made outside of it.
//
// A project is a number. [New] takes one of its own range at random, that nothing on the
// file system and nobody in /etc/projid has; the directories keep it, so that [Of] finds
// it again after a restart. A directory that is in a project of the machine's
// administrator stays there: New refuses it.
package quota
