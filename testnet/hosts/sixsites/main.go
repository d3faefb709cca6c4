// Command sixsites proves Zorilla on twelve emulated hosts at six sites with
// the distances of Grid'5000: real node processes, real sockets.
//
//	go run ./testnet/hosts/sixsites     # from the root of the repository; about two minutes
//
// It shows that hosts of a site find each other, join across sites and measure
// their round trips; that jobs go to the nearest free slots; that both sides of
// a cut go on working and heal; that a lost host is replaced and lost packets
// harm nobody; and that nothing is left when the lab ends or is killed. It prints
// a table and ends with 1 if a row of it is wrong. See testnet/hosts for the lab.
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

const (
	plan     = "testnet/hosts/grid5000.json"
	deadline = 6 * time.Minute // it should take a third of that
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	ctx, cancel := context.WithTimeoutCause(ctx, deadline, fmt.Errorf("it took more than %v", deadline))
	var err error
	switch lab := os.Getenv("ZORILLA_LAB"); {
	case lab != "" && len(os.Args) > 1:
		err = probe(os.Args[1:])
	case lab != "":
		err = play(ctx, lab)
	default:
		err = outside(ctx)
	}
	if err != nil {
		if ctx.Err() != nil {
			err = errors.Join(err, context.Cause(ctx))
		}
		fmt.Fprintln(os.Stderr, "sixsites:", err)
	}
	cancel()
	stop()
	if err != nil {
		os.Exit(1)
	}
}

// outside builds the programs, runs this one again as the lab's script, and
// looks for what the lab may have left behind.
func outside(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "zorilla-sixsites-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	for name, folder := range map[string]string{"zorilla": "./cmd/zorilla", "lab": "./testnet/hosts"} {
		build := exec.CommandContext(ctx, "go", "build", "-o", filepath.Join(dir, name), folder)
		build.Stderr = os.Stderr
		if err := build.Run(); err != nil {
			return fmt.Errorf("build %s: %w: start me in the root of the repository", folder, err)
		}
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	before, err := lookAround()
	if err != nil {
		return err
	}
	lab := func(script ...string) *exec.Cmd {
		args := append([]string{"-zorilla", filepath.Join(dir, "zorilla"), plan, "--"}, script...)
		cmd := exec.CommandContext(ctx, filepath.Join(dir, "lab"), args...)
		cmd.Env = append(os.Environ(), censusVariable+"="+filepath.Join(dir, "census"))
		cmd.Stderr = os.Stderr
		cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
		cmd.WaitDelay = 10 * time.Second
		return cmd
	}
	scene := lab(self)
	scene.Stdout = os.Stdout
	played := scene.Run()
	left := before.compare(ctx, filepath.Join(dir, "census"))
	if played != nil || left != nil {
		return errors.Join(played, left)
	}
	fmt.Println("after the lab's end: no process, namespace, link or mount is left")
	if err := kill(lab(self, "linger"), func() error {
		// It must be able to see what would be left.
		if seen, err := before.leftovers(filepath.Join(dir, "census")); err != nil || len(seen) == 0 {
			return fmt.Errorf("nothing can be seen of a lab that runs: %v", err)
		}
		return nil
	}); err != nil {
		return err
	}
	if err := before.compare(ctx, filepath.Join(dir, "census")); err != nil {
		return err
	}
	fmt.Println("after kill -9 of a lab with running nodes: likewise")
	return nil
}

// kill starts a lab and kills it once its script is at work, after a look.
func kill(cmd *exec.Cmd, look func() error) error {
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	_, said := bufio.NewReader(out).ReadString('\n')
	if said != nil {
		return fmt.Errorf("the lab that was to be killed has ended before: %w", errors.Join(said, cmd.Wait()))
	}
	err = errors.Join(look(), cmd.Process.Kill())
	_ = cmd.Wait() // it was killed
	return err
}
