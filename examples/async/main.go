// Async solves Poisson's equation in a cube by asynchronous iterations: each rank has a slab of
// the grid and goes on with it at its own speed, with the newest planes of its neighbours that
// it has. It waits for nobody. A rank that is lost is replaced by one that goes on from its last
// checkpoint, or begins anew; meanwhile the others go on with what it said last, and then learn
// where it is.
//
//	zorilla run -n 2..4 --retries 5 -o 'slab-*' -- ./async -n 64 -checkpoint 2s
//	./async -n 64 -check slab-*
//
// There are as many slabs as the job may have ranks, MAX of -n MIN..MAX, or fewer if these
// would have fewer than -planes planes: then the lowest rank that is there asks for as many
// workers as there are slabs, and who has come meanwhile ends at once. The others end when they
// have found, each for itself, that nothing is left to do anywhere: see end.go.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"zorilla/examples/peers"
)

func main() {
	if err := run(os.Args[1:], os.Getenv, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "async:", err)
		os.Exit(1)
	}
}

type options struct {
	n, planes, sweeps int
	tolerance         float64
	pause, checkpoint time.Duration
	alone             time.Duration
	verify, check     bool
	times             bool
}

func parse(args []string) (o options, files []string, err error) {
	flags := flag.NewFlagSet("async", flag.ContinueOnError)
	flags.IntVar(&o.n, "n", 64, "points of the grid in each direction")
	flags.Float64Var(&o.tolerance, "tolerance", 1e-6, "the largest residual of the solution; the source is 1 where it is largest")
	flags.DurationVar(&o.pause, "pause", 0, "pause after each iteration")
	flags.IntVar(&o.planes, "planes", 4, "the fewest planes that are worth a worker")
	flags.IntVar(&o.sweeps, "sweeps", 10, "sweeps of an iteration")
	flags.DurationVar(&o.checkpoint, "checkpoint", 0, "time between checkpoints, 0 = none")
	flags.DurationVar(&o.alone, "alone", time.Minute, "how long a rank waits for others when nobody is there")
	flags.BoolVar(&o.verify, "verify", false, "compare the solution with that of a direct method")
	flags.BoolVar(&o.times, "times", false, "print how long each iteration took and each plane of a neighbour, by the clocks of both machines")
	flags.BoolVar(&o.check, "check", false, "compare the files that follow, of all ranks, with the solution of a direct method; -n is that of the job")
	if err := flags.Parse(args); err != nil {
		return o, nil, err
	}
	if o.n < 1 || o.n > 512 || o.planes < 1 || o.sweeps < 1 {
		return o, nil, fmt.Errorf("-n %d -planes %d -sweeps %d: want a grid of 1 to 512 points, and at least a plane for a worker and a sweep of it",
			o.n, o.planes, o.sweeps)
	}
	// What rounding leaves of a residual grows with the square of n.
	if least := 1e-15 * float64((o.n+1)*(o.n+1)); !(o.tolerance >= least) {
		return o, nil, fmt.Errorf("-tolerance %g: want at least %.1e with -n %d, for numbers are not more exact", o.tolerance, least, o.n)
	}
	if o.pause < 0 || o.checkpoint < 0 || o.alone < 0 {
		return o, nil, fmt.Errorf("-pause %v -checkpoint %v -alone %v: want times from 0", o.pause, o.checkpoint, o.alone)
	}
	return o, flags.Args(), nil
}

func run(args []string, getenv func(string) string, stdout io.Writer) error {
	o, files, err := parse(args)
	if err != nil {
		return err
	}
	if o.check {
		return check(o, files, stdout)
	}
	if len(files) > 0 {
		return fmt.Errorf("%q: only -check reads files", files)
	}
	p, err := peers.Here(getenv)
	if err != nil {
		return err
	}
	slabs := max(1, min(p.Max, o.n/o.planes))
	if p.Rank >= slabs {
		fmt.Fprintf(stdout, "rank %d: has no slab\n", p.Rank)
		return nil
	}
	s := &solver{place: p, options: o, out: stdout, part: newPart(o.n, p.Rank, slabs, p.Attempt, o.tolerance, o.sweeps),
		news: make(chan struct{}), over: make(chan struct{}), callers: map[*peers.Conn]bool{}}
	if p.Restart > 0 {
		b, err := os.ReadFile(stateFile)
		if err != nil {
			return err
		}
		if err := s.part.restore(b); err != nil {
			return fmt.Errorf("%s: not a checkpoint of this rank: %w", stateFile, err)
		}
		s.say("goes on from checkpoint %d in iteration %d", p.Restart, s.part.iteration)
	}
	return s.solve()
}

// resultFile is where a rank leaves its slab, as little endian numbers of 8 bytes.
func resultFile(rank int) string { return fmt.Sprintf("slab-%d.bin", rank) }

// wrongBy is how far a solution of this tolerance is from that of the direct method at most: an
// eighth of it, and as much again for each rank that was lost in the end and began anew, for
// which this has room once.
func (o options) wrongBy() float64 { return o.tolerance / 4 }

// check puts the slabs of all ranks together, and compares them with the direct solution.
func check(o options, files []string, stdout io.Writer) error {
	parts := make([][]byte, len(files))
	for _, name := range files {
		number := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(name), "slab-"), ".bin")
		rank, err := strconv.Atoi(number)
		if err != nil || rank < 0 || rank >= len(files) || parts[rank] != nil {
			return fmt.Errorf("%s: want slab-0.bin to slab-%d.bin, each once", name, len(files)-1)
		}
		if parts[rank], err = os.ReadFile(name); err != nil {
			return err
		}
	}
	whole := newSlab(o.n, 0, 1)
	var all []byte
	for rank, b := range parts {
		if want := 8 * newSlab(o.n, rank, len(parts)).planes * o.n * o.n; len(b) != want {
			return fmt.Errorf("%s has %d bytes: want %d of a grid with -n %d in %d slabs", resultFile(rank), len(b), want, o.n, len(parts))
		}
		all = append(all, b...)
	}
	if err := whole.unpack(1, whole.planes, all); err != nil {
		return err
	}
	wrong := whole.wrong(direct(o.n))
	fmt.Fprintf(stdout, "%d slabs: residual %.1e, wrong by %.1e\n", len(parts), whole.residual(), wrong)
	if !(wrong <= o.wrongBy()) {
		return fmt.Errorf("wrong by %.1e: want at most %.1e with -tolerance %g", wrong, o.wrongBy(), o.tolerance)
	}
	return nil
}
