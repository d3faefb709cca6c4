package main

import (
	"os"
	"os/signal"
	"syscall"
)

// fatalSignals would end the process at once.
var fatalSignals = []os.Signal{os.Interrupt, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGHUP}

// catchPipe lets a write to a closed standard output fail, which would end the
// process silently otherwise. Further signals may be asked for on the channel.
func catchPipe() (signals chan os.Signal, stop func()) {
	signals = make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGPIPE)
	return signals, func() { signal.Stop(signals) }
}

// signalled is the exit code of a process that a signal ended.
func signalled(sig os.Signal) exitCode {
	code := 128
	if s, ok := sig.(syscall.Signal); ok {
		code += int(s)
	}
	return exitCode(code)
}
