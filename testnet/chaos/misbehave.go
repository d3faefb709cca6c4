package main

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// The ways in which a worker is hostile.
const (
	wayBomb    = "fork"
	waySpin    = "spin"
	wayTouch   = "touch"   // memory of its own
	wayMemfd   = "memfd"   // a file without a name
	wayShm     = "shm"     // a file in /dev/shm
	waySegment = "segment" // of System V
	wayFile    = "file"
	wayFiles   = "files" // many
)

// What they come to if nobody stops them: enough to be seen, and nothing that a
// machine could not bear.
const (
	bombForks = 5000 // a worker may have 4096 processes
	hogs      = 160 << 20
	fills     = 24 << 20
	piece     = 1 << 20
	spins     = 2 // threads, and as many processes

	// unstopped is when they end by themselves, which is wrong. Their supervisor may be
	// paused meanwhile.
	unstopped = 40 * time.Second
)

// isHostile reports whether a worker is: the first of its job.
func (p *program) isHostile(w who) bool { return p.Hostile != "" && w.rank == 0 }

// stopped is the exit code of a hostile worker that needed more than it asked for.
func (p *program) stopped() int {
	if p.Hostile == wayBomb || p.Hostile == waySpin {
		return 0 // nobody sees it: their job ends by its time
	}
	return 128 + int(syscall.SIGKILL)
}

// misbehave is hostile until somebody ends it.
func (p *program) misbehave() error {
	defer time.Sleep(unstopped)
	switch p.Hostile {
	case wayBomb:
		return bomb()
	case waySpin:
		return spin()
	case wayFile, wayFiles:
		return fill(p.Hostile == wayFiles)
	}
	return hoard(p.Hostile)
}

// bomb forks until it is refused, and then goes on trying.
func bomb() error {
	refused := false
	for n := 0; n < bombForks; {
		switch errno := fork(false); {
		case errno == syscall.EAGAIN || errno == syscall.ENOMEM:
			if !refused {
				fmt.Println(bombRefused)
			}
			refused = true
			time.Sleep(20 * time.Millisecond)
		case errno != 0:
			return errno
		default:
			if n++; n%32 == 0 { // others want to use this machine
				time.Sleep(time.Millisecond)
			}
		}
	}
	if !refused {
		fmt.Println(bombGrew)
	}
	return nil
}

// What a bomb says: the second is no part of what a job is to write.
const (
	bombRefused = "was refused a process"
	bombGrew    = "forked without end"
)

// spin keeps more processors busy than it has slots, in other sessions, too.
func spin() error {
	runtime.GOMAXPROCS(spins + 2)
	for range spins {
		if errno := fork(true); errno != 0 {
			return errno
		}
		go func() {
			for sum := [32]byte{}; ; {
				sum = sha256.Sum256(sum[:])
			}
		}()
	}
	return nil
}

// fork starts a process that sleeps, or spins, for ever in a session of its own. It is
// a copy of this one with one thread, in which nothing of Go's runtime may be used.
//
//go:noinline
//go:norace
func fork(spin bool) syscall.Errno {
	pid, _, errno := syscall.RawSyscall6(syscall.SYS_CLONE, uintptr(syscall.SIGCHLD), 0, 0, 0, 0, 0)
	if errno != 0 || pid != 0 {
		return errno
	}
	_, _, _ = syscall.RawSyscall(syscall.SYS_SETSID, 0, 0, 0)
	for {
		if spin {
			_, _, _ = syscall.RawSyscall(syscall.SYS_GETPPID, 0, 0, 0)
			continue
		}
		_, _, _ = syscall.RawSyscall6(syscall.SYS_PPOLL, 0, 0, 0, 0, 0, 0)
	}
}

// hoard needs memory: its own if the other kind is not to be had.
func hoard(way string) error {
	var err error
	switch way {
	case wayShm:
		err = pour(unix.Open("/dev/shm/hoard", unix.O_CREAT|unix.O_WRONLY|unix.O_CLOEXEC, 0o600))
	case wayMemfd:
		err = pour(unix.MemfdCreate("hoard", unix.MFD_CLOEXEC))
	case waySegment:
		err = segment()
	}
	if way != wayTouch && err == nil {
		return nil
	}
	own, err := unix.Mmap(-1, 0, hogs, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	touch(own)
	return err
}

// pour writes to a file that stays open.
func pour(fd int, err error) error {
	for n := 0; n < hogs && err == nil; n += piece {
		_, err = unix.Write(fd, make([]byte, piece))
	}
	return err
}

// segment has a segment of System V.
func segment() error {
	id, err := unix.SysvShmGet(unix.IPC_PRIVATE, hogs, unix.IPC_CREAT|0o600)
	if err != nil {
		return err
	}
	b, err := unix.SysvShmAttach(id, 0, 0)
	touch(b)
	return err
}

// touch writes to each page.
func touch(b []byte) {
	for i := 0; i < len(b); i += os.Getpagesize() {
		b[i] = 1
	}
}

// fill writes to the disk: a large file, or many small ones in directories in
// directories.
func fill(many bool) error {
	if !many {
		return os.WriteFile("fills", make([]byte, fills), 0o600)
	}
	const size = 16 << 10
	dir := "."
	for i := range fills / size {
		if i%64 == 0 {
			dir = filepath.Join(dir, "deeper")
			if err := os.Mkdir(dir, 0o700); err != nil {
				return err
			}
		}
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprint(i)), make([]byte, size), 0o600); err != nil {
			return err
		}
	}
	return nil
}
