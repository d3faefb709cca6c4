package main

import (
	"context"
	"os"
	"os/signal"
	"slices"
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

// catchFatal lets no signal end the process: they are in the channel.
func catchFatal() (signals chan os.Signal, stop func()) {
	signals, stop = catchPipe()
	signal.Notify(signals, fatalSignals...)
	return signals, stop
}

// untilSignal is a context that ends with the next signal that would end the process.
// caught ends it, and tells which one came; nobody reads the signals any more then.
func untilSignal(ctx context.Context, signals <-chan os.Signal) (_ context.Context, caught func() os.Signal) {
	ctx, stop := context.WithCancel(ctx)
	done := make(chan os.Signal, 1)
	go func() {
		defer close(done)
		defer stop()
		for {
			select {
			case sig := <-signals:
				if slices.Contains(fatalSignals, sig) {
					done <- sig
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}()
	return ctx, func() os.Signal {
		stop()
		return <-done
	}
}

// signalled is the exit code of a process that a signal ended.
func signalled(sig os.Signal) exitCode {
	code := 128
	if s, ok := sig.(syscall.Signal); ok {
		code += int(s)
	}
	return exitCode(code)
}
