package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// The command starts itself twice, so that the kernel removes everything at
// its end, whatever that is: first as process 1 of namespaces of its own, whose
// end ends all processes in there, then as the one that does the work. The
// variable says which of them a process is.
const (
	stageVariable = "ZORILLA_LAB_STAGE"
	stageInit     = "init"
	stageWork     = "work"
)

// labDir is the lab's directory. Every Linux has this one, and with a file
// system of our own on it nothing of the lab ever is on a disk.
const labDir = "/dev/shm"

// isolate runs this command again in namespaces of its own and returns its
// exit code.
func isolate(args []string) (int, error) {
	runtime.LockOSThread() // Pdeathsig is about the end of this thread
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	cmd, err := startInit(args, false)
	if os.Geteuid() != 0 || errors.Is(err, fs.ErrPermission) {
		cmd, err = startInit(args, true)
	}
	if err != nil {
		return 1, fmt.Errorf("this machine permits no namespaces (%w): run as root, in a container as a privileged one, or let users make namespaces", err)
	}
	go func() {
		for range signals {
			_ = cmd.Process.Signal(syscall.SIGTERM) // fails if it has ended
		}
	}()
	return exitCode(cmd.Wait())
}

// exitCode translates what exec's Wait returned.
func exitCode(err error) (int, error) {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
			return 128 + int(status.Signal()), nil
		}
		return exit.ExitCode(), nil
	}
	if err != nil {
		return 1, err
	}
	return 0, nil
}

func startInit(args []string, userNamespace bool) (*exec.Cmd, error) {
	cmd := exec.Command("/proc/self/exe", args...)
	cmd.Env = append(os.Environ(), stageVariable+"="+stageInit)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: unix.CLONE_NEWPID | unix.CLONE_NEWNS | unix.CLONE_NEWIPC,
		Pdeathsig:  syscall.SIGKILL,
	}
	if userNamespace {
		cmd.SysProcAttr.Cloneflags |= unix.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}}
		// There is only one user in there, so nobody else can run workers.
		cmd.Env = append(cmd.Env, "ZORILLA_RUN_AS=root")
	}
	return cmd, cmd.Start()
}

// serveAsInit is process 1: it prepares the file systems, starts the worker
// and buries orphans until the worker has ended. Then the kernel kills the rest.
func serveAsInit(args []string) (int, error) {
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	for _, m := range []struct {
		what, at, kind, options string
		flags                   uintptr
	}{
		{"none", "/", "", "", unix.MS_REC | unix.MS_PRIVATE},
		{"proc", "/proc", "proc", "", 0},
		{"zorilla-lab", labDir, "tmpfs", "mode=755", unix.MS_NOSUID},
	} {
		if err := unix.Mount(m.what, m.at, m.kind, m.flags, m.options); err != nil {
			return 1, fmt.Errorf("this machine permits namespaces but no mounts in them (%s: %w): run as root, in a container as a privileged one", m.at, err)
		}
	}
	env := append(os.Environ(), stageVariable+"="+stageWork)
	child, err := syscall.ForkExec("/proc/self/exe", append([]string{os.Args[0]}, args...), &syscall.ProcAttr{Env: env, Files: []uintptr{0, 1, 2}})
	if err != nil {
		return 1, err
	}
	go func() {
		for s := range signals {
			if s != syscall.SIGINT { // a terminal sends that one to all of us
				_ = syscall.Kill(child, syscall.SIGTERM)
			}
		}
	}()
	for {
		var status syscall.WaitStatus
		switch pid, err := syscall.Wait4(-1, &status, 0, nil); {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return 1, fmt.Errorf("wait for the worker: %w", err)
		case pid == child && status.Signaled():
			return 128 + int(status.Signal()), nil
		case pid == child:
			return status.ExitStatus(), nil
		}
	}
}
