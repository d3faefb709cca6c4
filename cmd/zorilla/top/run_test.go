package top

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"zorilla/jobs"
	"zorilla/jobs/work"
	"zorilla/node/api"
)

// fake is a node that tells the example.
type fake struct {
	asked     []string
	err       error
	cancelled []string
	members   bool
	output    chan jobs.Output
	says      chan string
	given     chan struct{} // closed when nobody reads output any more
}

func newFake() *fake {
	return &fake{output: make(chan jobs.Output), says: make(chan string), given: make(chan struct{})}
}

func (f *fake) Nodes(context.Context) ([]api.NodeInfo, error) {
	f.asked = append(f.asked, "nodes")
	return example().nodes, f.err
}

func (f *fake) Survey(context.Context) ([]api.NodeInfo, error) {
	f.asked = append(f.asked, "survey")
	return example().nodes, f.err
}

func (f *fake) Summaries(_ context.Context, members bool) ([]jobs.Summary, error) {
	f.members = members
	return example().jobs, f.err
}

func (f *fake) Job(_ context.Context, job string) (jobs.Status, error) {
	return jobs.Status{ID: jobs.ID(job), State: jobs.Running}, f.err
}

func (f *fake) Cancel(_ context.Context, job string, _ bool) error {
	f.cancelled = append(f.cancelled, job)
	return f.err
}

func (f *fake) follow(ctx context.Context, _ jobs.ID, give func(jobs.Output) error, say func(format string, args ...any)) error {
	for {
		select {
		case text := <-f.says:
			say("%s", text)
		case o, more := <-f.output:
			if !more {
				return nil
			}
			if err := give(o); err != nil {
				return err
			}
		case <-ctx.Done():
			close(f.given)
			return ctx.Err()
		}
	}
}

// program runs the commands of a shell as bubbletea does.
type program struct {
	t     *testing.T
	shell *shell
	begun []chan tea.Msg // of commands
}

func start(t *testing.T, f *fake, o Options) *program {
	o.Service, o.Every = f, 2*time.Second
	o.Status = func(st jobs.Status) string { return "state " + string(st.State) + "\n" }
	if o.Follow == nil {
		o.Follow = f.follow
	}
	ctx, stop := context.WithCancel(t.Context())
	sh := &shell{Options: o, ctx: ctx, screen: newScreen(true), leave: func() {}}
	p := &program{t: t, shell: sh}
	t.Cleanup(func() { // a bubble ends with all that is in it
		stop()
		time.Sleep(time.Minute)
	})
	sh.screen.update(sh.ask()())
	p.run(sh.Init())
	return p
}

// tell gives the shell a message, and what comes of it.
func (p *program) tell(msg tea.Msg) {
	_, cmd := p.shell.Update(msg)
	p.run(cmd)
}

func (p *program) run(cmd tea.Cmd) {
	if cmd != nil {
		answer := make(chan tea.Msg, 1)
		p.begun = append(p.begun, answer)
		go func() { answer <- cmd() }()
	}
	p.drain()
}

// drain passes on what commands have answered, until none does: others wait for the clock,
// or for output.
func (p *program) drain() {
	for again := true; again; {
		again = false
		synctest.Wait()
		for i, answer := range p.begun {
			select {
			case msg := <-answer:
				p.begun = slices.Delete(p.begun, i, i+1)
				if batch, ok := msg.(tea.BatchMsg); ok {
					for _, cmd := range batch {
						p.run(cmd)
					}
				} else if msg != nil {
					p.tell(msg)
				}
				again = true
			default:
			}
			if again {
				break
			}
		}
	}
}

func (p *program) press(keys string) {
	for _, r := range keys {
		key := tea.KeyPressMsg{Code: r, Text: string(r)}
		if r == '\r' {
			key = tea.KeyPressMsg{Code: tea.KeyEnter}
		}
		p.tell(key)
	}
}

func (p *program) sees(text string) {
	p.t.Helper()
	if view := ansi.Strip(p.shell.View().Content); !strings.Contains(view, text) {
		p.t.Errorf("no %q in\n%s", text, view)
	}
}

func TestTheShellDoesWhatIsWanted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		p := start(t, f, Options{Members: true})
		if p.tell(tea.WindowSizeMsg{Width: 100, Height: 30}); p.shell.screen.width != 100 {
			t.Error("its size is not that of the terminal")
		}
		p.sees("sweep")
		p.press("cy")
		if p.sees("job ddddd@zeb2a is being cancelled"); !slices.Equal(f.cancelled, []string{string(jobID("ddddd"))}) || !f.members {
			t.Errorf("cancelled %v, members %t", f.cancelled, f.members)
		}
		f.err = errors.New("it is away")
		p.press("cy")
		p.sees("job ddddd@zeb2a was not cancelled: it is away")
		time.Sleep(2 * time.Second)
		p.drain()
		p.press("j")
		p.sees("it is away: asking again")
		f.err = nil
		p.press("r")
		p.press("\r")
		p.sees("state RUNNING")
		p.press("q")
		p.sees("sweep")
		if _, cmd := p.shell.Update(tea.KeyPressMsg{Code: 'q', Text: "q"}); reflect.ValueOf(cmd).Pointer() != reflect.ValueOf(tea.Quit).Pointer() {
			t.Error("q does not end it")
		}
	})
}

// Members are asked how they are every five seconds at most, since all who look share that.
func TestMembersAreAskedRarely(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		p := start(t, f, Options{})
		for range 6 {
			time.Sleep(2 * time.Second)
			p.drain()
		}
		if want := []string{"survey", "nodes", "nodes", "survey", "nodes", "nodes", "survey"}; !slices.Equal(f.asked, want) {
			t.Errorf("asked %v, want %v", f.asked, want)
		}
	})
}

func TestOutputIsFollowedUntilNobodyLooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		p := start(t, f, Options{})
		p.press("l")
		f.output <- jobs.Output{Stream: work.Stdout, Data: []byte("first\n")}
		p.drain()
		p.sees("first")
		p.sees("(following)")
		f.says <- "lost sight of it"
		p.drain()
		p.sees("first")
		p.sees("lost sight of it")
		p.press("\r")
		p.drain()
		if p.sees("state RUNNING"); p.shell.lines != nil {
			t.Error("output is held that nobody looks at")
		}
		<-f.given
		f.given = make(chan struct{})
		p.press("l")
		before := p.shell.lines
		p.press("q")
		<-f.given
		p.drain()
		p.sees("sweep")

		f.given = make(chan struct{})
		p.press("l")
		before.add(jobs.Output{Stream: work.Stdout, Data: []byte("late\n")})
		p.tell(grown{jobID("ddddd"), before})
		if strings.Contains(p.shell.View().Content, "late") {
			t.Error("what nobody looks at any more is seen")
		}
		close(f.output)
		p.drain()
		p.sees("(nothing follows)")
	})
}

// What follows output is run by bubbletea, which gives the terminal back before a panic ends
// the program.
func TestAPanicWhileOutputIsFollowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := start(t, newFake(), Options{Follow: func(context.Context, jobs.ID, func(jobs.Output) error, func(string, ...any)) error {
			panic("a mistake")
		}})
		_, cmd := p.shell.Update(tea.KeyPressMsg{Code: 'l', Text: "l"})
		recovered := make(chan any, 2)
		for _, cmd := range cmd().(tea.BatchMsg) {
			go func() {
				defer func() { recovered <- recover() }()
				cmd()
			}()
		}
		synctest.Wait()
		if got := <-recovered; got != "a mistake" {
			t.Errorf("got %v", got)
		}
		p.shell.lines.end(nil)
	})
}
