package main

import (
	"context"
	"errors"
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

// catchFatal lets no signal end the process: they are in the channel. What nohup started goes on
// when its terminal is closed.
func catchFatal() (signals chan os.Signal, stop func()) {
	signals, stop = catchPipe()
	for _, sig := range fatalSignals {
		if sig != syscall.SIGHUP || !signal.Ignored(sig) {
			signal.Notify(signals, sig)
		}
	}
	return signals, stop
}

// untilSignal is a context that ends with the next signal that would end the process.
// caught ends it, and reports which one came; nobody reads the signals any more then.
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

// guard calls f, and ends its context when a signal comes that would end the process: sig is that
// one. It waits for f then, which may have to clean up, until the next such signal: err is errLeft
// if that comes. A signal that is to be kept counts only once f has returned: it is in the channel
// again. If none came, sig is nil.
func guard(ctx context.Context, signals chan os.Signal, keep os.Signal, f func(context.Context) error) (sig os.Signal, err error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	done := make(chan error, 1)
	go func() { done <- f(ctx) }()
	kept := false
	for {
		select {
		case err := <-done:
			if kept && sig == nil {
				select {
				case signals <- keep:
				default: // there are others
				}
			}
			return sig, err
		case s := <-signals:
			switch {
			case !slices.Contains(fatalSignals, s):
			case sig == nil && s == keep:
				kept = true
			case sig == nil:
				sig = s
				stop()
			default:
				return sig, errLeft
			}
		}
	}
}

// errLeft: a second signal came before what the first one ended was over.
var errLeft = errors.New("left before it was over")

// signalled is the exit code of a process that a signal ended.
func signalled(sig os.Signal) exitCode {
	code := 128
	if s, ok := sig.(syscall.Signal); ok {
		code += int(s)
	}
	return exitCode(code)
}
