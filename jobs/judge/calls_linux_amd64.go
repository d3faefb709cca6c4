package judge

import "golang.org/x/sys/unix"

// here are those that this processor has beside others.
var here = map[uint32]call{
	unix.SYS_CHMOD:     {-1, 0, -1, false, 1, chmod},
	unix.SYS_CHOWN:     {-1, 0, -1, false, 1, chown},
	unix.SYS_LCHOWN:    {-1, 0, -1, true, 1, chown},
	unix.SYS_UTIME:     {-1, 0, -1, false, 1, utime},
	unix.SYS_UTIMES:    {-1, 0, -1, false, 1, utimes},
	unix.SYS_FUTIMESAT: {0, 1, -1, false, 2, utimes},
}

// utime sets times that are two numbers of seconds.
func utime(c *asked) error {
	return c.setTimes(2, func(v []int64) [2]unix.Timespec {
		return [2]unix.Timespec{{Sec: v[0]}, {Sec: v[1]}}
	})
}

// utimes sets times that are two of struct timeval.
func utimes(c *asked) error {
	return c.setTimes(4, func(v []int64) [2]unix.Timespec {
		return [2]unix.Timespec{{Sec: v[0], Nsec: 1000 * v[1]}, {Sec: v[2], Nsec: 1000 * v[3]}}
	})
}
