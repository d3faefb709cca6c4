package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/urfave/cli/v2"

	"zorilla/cmd/zorilla/progress"
	"zorilla/jobs"
	"zorilla/node/api"
	"zorilla/transfer"
	"zorilla/vicinity"
)

func intoFlag() cli.Flag {
	return &cli.StringFlag{Name: "into", Value: ".", Usage: "`DIR` for output files; %r in it stands for the rank, %t for the task of an array"}
}

func forceFlag() cli.Flag {
	return &cli.BoolFlag{Name: "force", Usage: "replace files that are in the way of output files"}
}

// followFlags are those of commands that stay with a job as run does.
func followFlags() []cli.Flag {
	return []cli.Flag{
		intoFlag(), forceFlag(),
		&cli.BoolFlag{Name: "l", Aliases: []string{"label"}, Usage: "begin each line with its rank"},
		&cli.BoolFlag{Name: "follow-output",
			Usage: "write output files while they grow, too, as NAME" + api.PartSuffix + ", of several ranks that share --into NAME.RANK" + api.PartSuffix},
		quietFlag(), progressFlag(),
	}
}

// maxFollowed bounds of how many ranks files are followed: each is asked again and again.
const maxFollowed = 64

// followable refuses to follow files where that cannot be.
func followable(c *cli.Context, spec *jobs.Spec) error {
	switch {
	case !c.Bool("follow-output"):
		return nil
	case spec.Array != nil:
		return usage(c, "--follow-output is about files of ranks: those of a task come when it has ended")
	case spec.Workers() > maxFollowed:
		return usage(c, "--follow-output: %d ranks, at most %d", spec.Workers(), maxFollowed)
	case len(spec.Outputs) == 0:
		return usage(c, "--follow-output: which files? name them with -o")
	}
	return nil
}

// mirror keeps files up to date that grow.
type mirror struct {
	files *api.Partial
	end   context.CancelFunc
	ended chan struct{}
}

// followEvery is how often it asks for news, unless that takes a tenth of the time.
const followEvery = 2 * time.Second

// mirror begins to.
func (f *follower) mirror(ctx context.Context) *mirror {
	if !f.files {
		return nil
	}
	from := f.line.service
	m := &mirror{files: api.NewPartial(from, f.want), ended: make(chan struct{})}
	ctx, m.end = context.WithCancel(ctx)
	go func() {
		defer close(m.ended)
		told, wait := "", followEvery
		for pause(ctx, wait); ctx.Err() == nil; pause(ctx, wait) {
			began := time.Now()
			err := m.update(ctx, from, f.id)
			if err != nil && ctx.Err() == nil && !away(err) && err.Error() != told {
				told = err.Error()
				f.printf("output files cannot be followed now: %s", told)
			}
			wait = max(followEvery, 9*time.Since(began))
		}
	}()
	return m
}

func (m *mirror) update(ctx context.Context, s api.Service, id jobs.ID) error {
	st, err := s.Job(ctx, string(id))
	if err != nil {
		return err
	}
	for _, rank := range runningRanks(&st, -1) {
		err = errors.Join(err, m.files.Update(ctx, &st, rank))
	}
	return err
}

// runningRanks lists the ranks that run and whose final files are not there yet: all, or only one,
// unless that is -1. Of ranks that have the same files it lists the first.
func runningRanks(st *jobs.Status, only int) (ranks []int) {
	nodes := map[vicinity.ID]bool{}
	for _, w := range st.Workers {
		there := slices.ContainsFunc(st.Outputs, func(o jobs.RankOutput) bool { return o.Rank == w.Rank })
		if w.State != jobs.WorkerRunning || there || slices.Contains(ranks, w.Rank) || only >= 0 && w.Rank != only {
			continue
		}
		if !st.Spec.ShareWork || !nodes[w.Node] {
			ranks = append(ranks, w.Rank)
		}
		nodes[w.Node] = true
	}
	return ranks
}

// stop returns when nothing is written any more. It may be called twice.
func (m *mirror) stop() {
	if m != nil {
		m.end()
		<-m.ended
	}
}

// remove removes what was written, when the whole files are there.
func (m *mirror) remove() {
	if m != nil {
		m.files.Remove()
	}
}

func quietFlag() cli.Flag {
	return &cli.BoolFlag{Name: "q", Aliases: []string{"quiet"}, Usage: "no messages but errors"}
}

func progressFlag() cli.Flag {
	return &cli.StringFlag{Name: "progress", DefaultText: "bar on a terminal, else none",
		Usage: "`HOW` to show what long steps do: bar, json (lines on standard error) or none"}
}

// wanted is what the options of a command say of output files.
func wanted(c *cli.Context, rank int) api.Wanted {
	return api.Wanted{Rank: rank, Into: c.String("into"), Force: c.Bool("force")}
}

// wantedOf is wanted for a job that may be of another node, whose name and patterns are somebody
// else's words: its files go to a directory of their own, unless the user names one.
func wantedOf(c *cli.Context, s api.Service, st *jobs.Status, rank int) (api.Wanted, error) {
	want := wanted(c, rank)
	self, err := s.Node(c.Context)
	if err != nil || st.ID.Origin() == self.ID {
		return want, err
	}
	if want.Foreign = true; !c.IsSet("into") {
		want.Into = ownDir(st)
	}
	return want, nil
}

// ownDir names the directory of the files of a job of another node.
func ownDir(st *jobs.Status) string {
	plain := strings.Map(func(r rune) rune {
		if r < utf8.RuneSelf && (unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("-_.", r)) {
			return r
		}
		return '_'
	}, st.Spec.Name)
	if plain = strings.TrimLeft(plain[:min(len(plain), maxDirName)], "-."); plain == "" {
		return st.ID.Short()
	}
	return plain + "-" + st.ID.Short()
}

// maxDirName is how much of a job's name is in that of its directory.
const maxDirName = 60

// hindered reports what would be in the way of a job's output files.
func hindered(c *cli.Context, spec *jobs.Spec) error {
	way := api.KnownObstacles(spec, wanted(c, -1))
	switch {
	case len(way) == 0:
		return nil
	case way.Replaceable():
		return usage(c, "not submitted: %v: --force replaces files, --into DIR takes another directory for output files", way)
	}
	return usage(c, "not submitted: %v: --into DIR takes another directory for output files", way)
}

// fetch is pull that a signal ends: files get their names when they are complete,
// and what was begun is removed. A second signal does not wait for that. signals
// may be nil.
func fetch(ctx context.Context, con *console, l *lifeline, st jobs.Status, want api.Wanted, signals chan os.Signal) error {
	if signals == nil {
		own, stop := catchFatal()
		defer stop()
		signals = own
	}
	if want.Foreign && want.Into == ownDir(&st) {
		l.tell("job %s was submitted at another node: its files go to %s, --into DIR names another directory", st.ID.Short(), want.Into)
	}
	sig, err := guard(ctx, signals, nil, func(ctx context.Context) error { return pull(ctx, con, l, st, want) })
	if sig == nil || err == nil {
		return err
	}
	con.say("not all output files of job %s were fetched: 'zorilla get %s' fetches the others", st.ID.Short(), st.ID.Short())
	return signalled(sig)
}

// pull fetches outputs and reports what Merge had to say.
func pull(ctx context.Context, con *console, l *lifeline, st jobs.Status, want api.Wanted) error {
	var got api.Pulled
	want.Tell = func(done, total int64) {
		con.line.Show(progress.Update{Step: "fetching output files", Job: st.ID.Short(), Done: done, Total: total})
	}
	err := l.try(ctx, func() (err error) {
		got, err = api.Pull(ctx, l.service, st, want)
		return err
	})
	con.line.Done()
	for _, w := range got.Warnings {
		con.say("warning: %s", strings.ReplaceAll(w, "\n", " "))
	}
	job := st.ID.Short()
	if want.Rank >= 0 {
		job = fmt.Sprintf("%s:%d", job, want.Rank)
	}
	way := transfer.ObstacleError(nil)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, api.ErrNoFile):
		return fmt.Errorf("%w: 'zorilla get %s' fetches all", err, job)
	case !errors.As(err, &way):
		return fmt.Errorf("%w: 'zorilla get %s' tries again", err, job)
	case way.Replaceable():
		return fmt.Errorf("%w: 'zorilla get --force %s' replaces files, 'zorilla get --into DIR %s' takes another directory", err, job, job)
	}
	return fmt.Errorf("%w: 'zorilla get --into DIR %s' takes another directory", err, job)
}
