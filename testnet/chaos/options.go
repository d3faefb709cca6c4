package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// The stories: jobs and torments by chance, one that is told row by row, and a
// node that runs until it is killed, for who looks at what is left of it then.
const (
	storyChance   = "chance"
	storySixSites = "sixsites"
	storyLinger   = "linger"
)

// options is the command line.
type options struct {
	story  string
	seed   uint64
	length time.Duration
	jobs   int
	keep   string
}

// plan names the network of the story.
func (o *options) plan() string {
	if o.story == storyChance {
		return "small"
	}
	return "grid5000"
}

// name tells a story from others.
func (o *options) name() string {
	if o.story == storyChance {
		return fmt.Sprintf("seed %d", o.seed)
	}
	return o.story
}

func parse(args []string) (options, error) {
	o := options{story: storyChance, seed: 1, length: 2 * time.Minute, jobs: 200}
	flags := flag.NewFlagSet("chaos", flag.ContinueOnError)
	flags.StringVar(&o.story, "story", o.story, "chance, or sixsites, which takes no options but -keep")
	flags.Uint64Var(&o.seed, "seed", o.seed, "of the jobs and of what is done to the nodes")
	flags.DurationVar(&o.length, "length", o.length, "how long jobs are submitted and nodes tormented")
	flags.IntVar(&o.jobs, "jobs", o.jobs, "how many jobs")
	flags.StringVar(&o.keep, "keep", "", "keep logs and states in this `DIRECTORY` (default: a new one, if something is wrong)")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	var err error
	switch {
	case flags.NArg() > 0:
		err = fmt.Errorf("%q: want options only", flags.Arg(0))
	case o.story != storyChance && o.story != storySixSites && o.story != storyLinger:
		err = fmt.Errorf("-story %q: want %s or %s", o.story, storyChance, storySixSites)
	case o.length < 10*time.Second || o.length > 24*time.Hour:
		err = fmt.Errorf("-length %v: want 10s to 24h", o.length)
	case o.jobs < 1 || o.jobs > 100_000:
		err = fmt.Errorf("-jobs %d: want 1 to 100000", o.jobs)
	}
	flags.Visit(func(f *flag.Flag) {
		if o.story != storyChance && f.Name != "story" && f.Name != "keep" && err == nil {
			err = fmt.Errorf("-%s: the story %s has no such choice: leave it out", f.Name, o.story)
		}
	})
	if o.keep != "" && err == nil {
		o.keep, err = filepath.Abs(o.keep)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "chaos:", err)
	}
	return o, err
}

// seconds writes a time of the story.
func seconds(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'f', 1, 64) + " s" }
