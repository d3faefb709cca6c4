package top

import (
	"cmp"
	"context"
	"errors"
	"os"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"zorilla/jobs"
	"zorilla/node/api"
)

// Service is what is asked of a node.
type Service interface {
	Nodes(ctx context.Context) ([]api.NodeInfo, error)
	Survey(ctx context.Context) ([]api.NodeInfo, error)
	Summaries(ctx context.Context, members bool) ([]jobs.Summary, error)
	Job(ctx context.Context, job string) (jobs.Status, error)
	Cancel(ctx context.Context, job string, atOnce bool) error
}

// Follow gives the output of a job as it comes, each piece once, until the job or ctx ends,
// and says what keeps it waiting.
type Follow func(ctx context.Context, job jobs.ID, give func(jobs.Output) error, say func(format string, args ...any)) error

// Options say what is shown, and where.
type Options struct {
	Service Service
	Follow  Follow
	Status  func(jobs.Status) string // all that is known of a job, in lines
	Every   time.Duration            // how often the node is asked
	Members bool                     // jobs of every member, not of the node alone
	Colour  bool
	In, Out *os.File // a terminal
}

// askEvery is how often members are asked how they are, through the node: all who look at
// them, or at pages, have that of one question.
const askEvery = 5 * time.Second

// Run shows it until the user has seen enough, or ctx ends: then the error is its cause.
// Another one is why there is nothing to be seen.
func Run(ctx context.Context, o Options) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	sh := &shell{Options: o, ctx: ctx, screen: newScreen(o.Colour), leave: func() {}}
	first := sh.ask()()
	if first.err != nil {
		return cmp.Or(context.Cause(ctx), first.err)
	}
	sh.screen.update(first)
	_, err := tea.NewProgram(sh, tea.WithContext(ctx), tea.WithInput(o.In), tea.WithOutput(o.Out), tea.WithoutSignalHandler()).Run()
	sh.leave()
	if errors.Is(err, tea.ErrProgramKilled) && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// shell drives a screen: bubbletea calls its methods one after the other, and what they
// return beside it.
type shell struct {
	Options
	ctx    context.Context
	screen *screen
	asked  time.Time // when members were
	leave  func()    // ends what is asked about a job that is not looked at any more
	lines  *tail     // of the job whose output is followed
}

// Messages to the shell.
type (
	tick  struct{}
	again struct{ news }
	filed struct { // the status of a job
		job   jobs.ID
		lines []string
		err   error
	}
	done  string   // what became of a deed
	grown struct { // output
		job jobs.ID
		of  *tail
	}
)

// Init implements tea.Model.
func (sh *shell) Init() tea.Cmd { return sh.later() }

func (sh *shell) later() tea.Cmd {
	return tea.Tick(sh.Every, func(time.Time) tea.Msg { return tick{} })
}

// Update implements tea.Model.
func (sh *shell) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch m := msg.(type) {
	case tea.WindowSizeMsg:
		sh.screen.resize(m.Width, m.Height)
	case tea.KeyPressMsg:
		return sh, sh.do(sh.screen.key(m.Keystroke(), m.Key().Text))
	case tea.PasteMsg:
		return sh, sh.do(sh.screen.key("", m.Content))
	case tick:
		ask := sh.ask()
		return sh, func() tea.Msg { return ask() }
	case news:
		return sh, tea.Batch(sh.do(sh.screen.update(m)), sh.later())
	case again: // beside those that come by the clock
		return sh, sh.do(sh.screen.update(m.news))
	case filed:
		sh.screen.fill(m.job, m.lines, m.err)
	case done:
		sh.screen.said(string(m))
	case grown:
		if m.of == sh.lines {
			lines, ended, err := m.of.take()
			sh.screen.follow(m.job, lines, ended, err)
			if note := m.of.said(); note != "" {
				sh.screen.said(note)
			}
			if !ended {
				return sh, m.of.wait(m.job)
			}
		}
	}
	return sh, nil
}

// View implements tea.Model.
func (sh *shell) View() tea.View {
	v := tea.NewView(sh.screen.view())
	v.AltScreen = true
	return v
}

// ask returns what asks the node, beside the shell.
func (sh *shell) ask() func() news {
	now, nodes := time.Now(), sh.Service.Nodes
	if now.Sub(sh.asked) >= askEvery {
		nodes, sh.asked = sh.Service.Survey, now
	}
	return func() news {
		n := news{at: now}
		if n.nodes, n.err = nodes(sh.ctx); n.err == nil {
			n.jobs, n.err = sh.Service.Summaries(sh.ctx, sh.Members)
		}
		return n
	}
}

// do does what the screen wants done.
func (sh *shell) do(w want) tea.Cmd {
	switch w.deed {
	case refresh:
		sh.asked = time.Time{}
		ask := sh.ask()
		return func() tea.Msg { return again{ask()} }
	case quit:
		return tea.Quit
	case suspend:
		return tea.Suspend
	case cancel:
		return func() tea.Msg {
			if err := sh.Service.Cancel(sh.ctx, string(w.job), false); err != nil {
				return done("job " + w.job.Short() + " was not cancelled: " + err.Error())
			}
			return done("job " + w.job.Short() + " is being cancelled")
		}
	case showStatus:
		sh.unfollow()
		return func() tea.Msg {
			st, err := sh.Service.Job(sh.ctx, string(w.job))
			if err != nil {
				return filed{job: w.job, err: err}
			}
			return filed{job: w.job, lines: strings.Split(strings.TrimRight(sh.Status(st), "\n"), "\n")}
		}
	case showLog:
		return sh.follow(w.job)
	case leave:
		sh.unfollow()
	}
	return nil
}

// unfollow ends following the output of a job.
func (sh *shell) unfollow() {
	sh.leave()
	sh.lines = nil
}

// follow begins to follow the output of a job.
func (sh *shell) follow(job jobs.ID) tea.Cmd {
	sh.unfollow()
	ctx, stop := context.WithCancel(sh.ctx)
	st := sh.screen.job(job)
	t := newTail(st == nil || st.Array != nil || st.Max > 1)
	sh.lines, sh.leave = t, stop
	return tea.Batch(t.wait(job), func() tea.Msg { // a panic there leaves the terminal as it was
		t.end(sh.Follow(ctx, job, func(o jobs.Output) error {
			t.add(o)
			return nil
		}, t.say))
		return nil
	})
}

// wait returns when there is more output.
func (t *tail) wait(job jobs.ID) tea.Cmd {
	return func() tea.Msg {
		<-t.wake
		return grown{job, t}
	}
}
