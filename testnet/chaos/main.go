// Command chaos torments a small network of real nodes and then looks whether
// every promise about jobs was kept.
//
//	go run ./testnet/chaos                                     # 200 jobs in two minutes; root of the repository
//	go run ./testnet/chaos -seed 7 -length 10m -jobs 1000      # any other story
//	go run ./testnet/chaos -story sixsites                     # twelve nodes at six sites, row by row; about a minute
//
// Five nodes run on five emulated hosts at three sites (see testnet/hosts). Jobs
// of all kinds are submitted at all of them: gangs, malleable jobs, arrays, with
// files, much output, failures, retries, dependencies, cancellations and time
// limits. Meanwhile nodes are killed with -9, origins too, stopped, paused and
// cut off, all at once now and then; hosts lose their power, packets get lost;
// workers are paused and lose their supervisors. One job in ten is hostile: it forks
// without end, needs more memory or disk than it asked for, or keeps more processors busy
// than it has slots. At the end the network is healed, and then
//
//   - every job that was accepted has ended, and as it must: a lost node excuses
//     only a rigid job without retries, and only if the node was really away for
//     longer than jobs wait, or its workers were killed;
//   - every byte of output, every output file and every task's output is right,
//     there once, and from the attempt that counts, at the host that is told;
//   - hostile jobs were ended, and the limit named at which; no other job, and no other
//     rank of theirs, was harmed;
//   - all nodes tell the same again after they were killed and started;
//   - no process, slot, hold, work directory, queue entry, socket, control group or
//     shared memory is left.
//
// Workers that run again elsewhere need an excuse, too. With GOFLAGS=-race in the
// environment the nodes are built with the race detector, and what it finds is wrong.
//
// The same seed gives the same jobs and the same torments at the same times; what
// they meet differs from run to run, since the nodes are real. If something is
// wrong it says what, keeps the nodes' logs and states, and ends with 1.
//
// The story sixsites is not left to chance: twelve hosts at six sites with the
// distances of Grid'5000 find each other and join, jobs go to the nearest free
// slots, both sides of a cut go on working and heal, a lost host is replaced, lost
// packets harm nobody, nor do hostile jobs, and nothing is left when a lab ends or is
// killed. Each is a row of a table with a target; the same judge looks at its jobs.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"zorilla/testnet/hosts/lab"
)

// grace is how long after its length a story may take to come to its end.
const grace = 4 * time.Minute

func main() {
	if len(os.Args) > 1 && os.Args[1] == workMode {
		os.Exit(workMain(os.Args[2:]))
	}
	o, err := parse(os.Args[1:])
	if err != nil {
		os.Exit(2) // it has printed why
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	ctx, cancel := context.WithTimeoutCause(ctx, o.length+grace, fmt.Errorf("it took more than %v", o.length+grace))
	if lab.Inside() {
		err = perform(ctx, o)
	} else {
		err = outside(ctx, o, os.Args[1:])
	}
	if err != nil {
		if ctx.Err() != nil {
			err = errors.Join(err, context.Cause(ctx))
		}
		fmt.Fprintln(os.Stderr, "chaos:", err)
	}
	cancel()
	stop()
	if err != nil {
		os.Exit(1)
	}
}

// outside plays this program as the script of a lab, with whose end the kernel
// removes all that there was.
func outside(ctx context.Context, o options, args []string) error {
	stage, err := lab.Build(ctx, o.plan())
	if err != nil {
		return err
	}
	defer stage.Close()
	if err := stage.Play(ctx, args...); err != nil || o.story != storySixSites {
		return err
	}
	fmt.Println("after the lab's end: no process, namespace, link or mount is left")
	if err := stage.Kill(ctx, "-story", storyLinger); err != nil {
		return err
	}
	fmt.Println("after kill -9 of a lab with running nodes: likewise")
	return nil
}
