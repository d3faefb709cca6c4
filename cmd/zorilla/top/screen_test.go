package top

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"

	"zorilla/cmd/zorilla/selector"
	"zorilla/internal/codec"
	"zorilla/jobs"
	"zorilla/node/api"
	"zorilla/node/usage"
	"zorilla/vicinity"
)

var update = flag.Bool("update", false, "write testdata anew")

var noon = time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)

func nodeID(begin string) vicinity.ID {
	return vicinity.ID(begin + strings.Repeat("a", 27-len(begin)))
}

func jobID(begin string) jobs.ID { return jobs.ID(begin).At(nodeID("zeb2a")) }

// example is a network with a bit of everything, and with names that nobody should have.
func example() news {
	busy := make([]byte, 30)
	for i := range busy {
		busy[i] = byte(i * 200 / 29)
	}
	node := func(id, name, site string, slots int) api.NodeInfo {
		return api.NodeInfo{Member: vicinity.Member{ID: nodeID(id), Name: name, Site: site, Slots: slots, Memory: 16 << 30, Platform: "linux/amd64", Addrs: []string{"10.0.0.7:5444"}}}
	}
	n := news{at: noon, nodes: []api.NodeInfo{node("zeb2a", "alpha", "delft", 8), node("zabcd", "beta", "leiden", 4), node("zq3w9", "g\x1b[2Jamma 数", "", 16), node("zfar1", "delta", "delft", 2)}}
	n.nodes[0].Self, n.nodes[0].Busy, n.nodes[0].Lately = true, 6, &usage.Lately{Busy: busy, Shut: make([]byte, 30), Load: 5.75, Free: 9 << 30}
	n.nodes[1].Told, n.nodes[1].Busy, n.nodes[1].State, n.nodes[1].RTT = noon, 4, "paused", codec.Duration(1500*time.Microsecond)
	n.nodes[1].Labels = map[string]string{"rack": "b", "cpu": "new"}
	n.nodes[3].Told, n.nodes[3].State, n.nodes[3].Why = noon, "broken", "no room on its disk"
	job := func(id, name string, state jobs.State, ago time.Duration) jobs.Summary {
		st := jobs.Summary{ID: jobID(id), Origin: nodeID("zeb2a"), Name: name, Args: []string{"./" + name, "data"}, State: state, Submitted: noon.Add(-ago), Wanted: 4, Rigid: true}
		if state != jobs.Pending {
			st.Started = noon.Add(2*time.Second - ago)
		}
		if state.Final() {
			st.Ended = noon.Add(-ago / 2)
		}
		return st
	}
	n.jobs = []jobs.Summary{job("aaaaa", "old", jobs.Completed, time.Hour), job("bbbbb", "train", jobs.Running, 5*time.Minute), job("ccccc", "sweep", jobs.Running, time.Minute),
		job("ddddd", "next", jobs.Pending, 30*time.Second), job("eeeee", "bad\x1b]0;x\a\n", jobs.Failed, 10*time.Minute), job("fffff", "数数数数数数数数数数数数数数数", jobs.Running, 2*time.Hour)}
	n.jobs[2].Array = &jobs.ArrayStatus{Tasks: 200, Done: 90, Running: 6}
	n.jobs[3].Reason = "waiting for 4 workers: 3 asked: 3 busy; and a reason that is so long that it does not fit into a line of 80 columns"
	n.jobs[4].Reason, n.jobs[4].ExitCode = "rank 1 on beta (zabcd) ended with 3", 3
	return n
}

// shown is a screen of some size that has been told the example.
func shown(width, height int) *screen {
	s := newScreen(true)
	s.resize(width, height)
	s.update(example())
	return s
}

// press presses keys, which are separated by blanks, and returns what the last one wants.
func (s *screen) press(keys string) (w want) {
	for key := range strings.FieldsSeq(keys) {
		typed := ""
		if len(key) == 1 {
			typed = key
		}
		w = s.key(key, typed)
	}
	return w
}

func TestViews(t *testing.T) {
	for name, e := range map[string]struct {
		width, height int
		keys          string
	}{
		"jobs-80x24": {80, 24, ""}, "jobs-200x50": {200, 50, "j"}, "nodes-80x24": {80, 24, "tab j"}, "nodes-200x50": {200, 50, "2"},
		"small": {40, 8, "G"}, "filter": {80, 10, "/ t r a i n enter"}, "typing": {80, 10, "/ d e l f t"}, "asks": {80, 10, "c"}, "node": {80, 16, "2 j enter"}, "nothing": {80, 8, "/ x y z"},
	} {
		t.Run(name, func(t *testing.T) {
			s := shown(e.width, e.height)
			s.press(e.keys)
			got := regexp.MustCompile(`(?m) +$`).ReplaceAllString(ansi.Strip(s.view()), "") + "\n"
			path := filepath.Join("testdata", name+".txt")
			if *update {
				if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if want, err := os.ReadFile(path); err != nil || got != string(want) {
				t.Errorf("%v, go test -update writes it anew; got\n%s", err, got)
			}
		})
	}
}

// selectedID is the beginning of what is selected.
func (s *screen) selectedID() string {
	if r := s.selected(); r != nil {
		return r.key[:5]
	}
	return ""
}

func TestTheSelectionStaysWithWhatItIsAbout(t *testing.T) {
	s := shown(80, 24)
	if got := s.selectedID(); got != "ddddd" { // the newest of those that have not ended
		t.Fatalf("%s is selected", got)
	}
	for _, e := range []struct{ keys, want string }{
		{"j", "ccccc"}, {"down down", "fffff"}, {"k", "bbbbb"}, {"G", "aaaaa"}, {"j", "aaaaa"}, {"home", "ddddd"}, {"up", "ddddd"}, {"pgdown", "aaaaa"}, {"g j", "ccccc"},
		{"tab", "zeb2a"}, {"j j", "zq3w9"}, {"tab", "ccccc"}, {"2", "zq3w9"}, {"1", "ccccc"},
		{"/ f f f f", "fffff"}, {"esc", "fffff"}, {"/ n o s u c h", ""}, {"esc", "ddddd"}, {"j", "ccccc"},
	} {
		if s.press(e.keys); s.selectedID() != e.want {
			t.Errorf("after %s: %s is selected, want %s", e.keys, s.selectedID(), e.want)
		}
	}
	n := example()
	n.jobs = append(n.jobs, n.jobs[3])
	n.jobs[len(n.jobs)-1].ID = jobID("newer")
	n.jobs[len(n.jobs)-1].Submitted = noon
	if s.update(n); s.selectedID() != "ccccc" {
		t.Errorf("after a new job: %s", s.selectedID())
	}
	n = example()
	n.jobs = append(n.jobs[:2:2], n.jobs[3:]...)
	if s.update(n); s.selectedID() != "fffff" { // it stood two rows below the top
		t.Errorf("after it has gone: %s", s.selectedID())
	}
}

func TestWhatKeysWant(t *testing.T) {
	c, b, ended := jobID("ccccc"), jobID("ddddd"), jobID("aaaaa")
	for _, e := range []struct {
		keys string
		want want
		foot string
	}{
		{"q", want{deed: quit}, ""},
		{"ctrl+c", want{deed: quit}, ""},
		{"/ ctrl+c", want{deed: quit}, ""},
		{"c ctrl+c", want{deed: quit}, ""},
		{"ctrl+z", want{deed: suspend}, ""},
		{"r", want{deed: refresh}, ""},
		{"/ q", want{}, "type what"},
		{"c", want{}, "end job ddddd@zeb2a (next)? y: yes"},
		{"c y", want{cancel, b}, ""},
		{"j c Y", want{cancel, c}, ""},
		{"c n", want{}, "not cancelled"},
		{"c enter", want{}, "not cancelled"},
		{"c j y", want{}, "q quit"},
		{"G c", want{}, "job aaaaa@zeb2a has ended"},
		{"G c y", want{}, "q quit"},
		{"enter", want{showStatus, b}, "q back"},
		{"G enter", want{showStatus, ended}, "q back  ↑↓ scroll  l log"},
		{"l", want{showLog, b}, "(following)"},
		{"l l", want{}, "(following)"},
		{"l enter", want{showStatus, b}, "l log  c cancel"},
		{"enter l", want{showLog, b}, "enter status"},
		{"l c y", want{cancel, b}, ""},
		{"l q", want{deed: leave}, "q quit"},
		{"enter esc", want{deed: leave}, "q quit"},
		{"enter q q", want{deed: quit}, ""},
		{"2 c", want{}, "that is for jobs: tab shows them"},
		{"2 l", want{}, "that is for jobs"},
		{"2 enter q", want{deed: leave}, "tab jobs"},
		{"a", want{}, "all jobs that have ended"},
		{"/ x x x enter c", want{}, "q quit"},
	} {
		s := shown(80, 24)
		if got := s.press(e.keys); got != e.want {
			t.Errorf("%s: wants %+v, want %+v", e.keys, got, e.want)
		}
		if foot := ansi.Strip(s.foot()); e.foot != "" && !strings.Contains(foot, e.foot) {
			t.Errorf("%s: says %q, want %q", e.keys, foot, e.foot)
		}
	}
}

func TestAllThatHaveEnded(t *testing.T) {
	n := example()
	for i := range 30 {
		st := n.jobs[0]
		st.ID, st.Ended = jobID(fmt.Sprintf("old%02d", i)), noon.Add(-time.Duration(i)*time.Minute)
		n.jobs = append(n.jobs, st)
	}
	s := shown(80, 24)
	s.update(n)
	if got := len(s.rows(jobTab)); got != 4+selector.Recent {
		t.Errorf("%d rows", got)
	}
	if s.press("a"); len(s.rows(jobTab)) != len(n.jobs) {
		t.Errorf("%d rows of all", len(s.rows(jobTab)))
	}
	if s.press("a"); len(s.rows(jobTab)) != 4+selector.Recent {
		t.Error("still all")
	}
}

// What was asked before counts no more when the answer to a later question is there.
func TestOlderNewsIsNone(t *testing.T) {
	s := shown(80, 24)
	for about, late := range map[string]news{"an answer": example(), "an error": {err: fmt.Errorf("it was away")}} {
		late.at = noon.Add(-time.Second)
		late.jobs = nil
		if s.update(late); len(s.rows(jobTab)) != 6 || !s.now.at.Equal(noon) || s.err != nil {
			t.Errorf("%s: %d rows at %v, %v", about, len(s.rows(jobTab)), s.now.at, s.err)
		}
	}
}

// A node that is away leaves what was known, and says so.
func TestANodeThatIsAway(t *testing.T) {
	s := shown(80, 24)
	s.update(news{at: noon.Add(time.Minute), err: fmt.Errorf("no node is \x1b[31mrunning")})
	if view := s.view(); !strings.Contains(ansi.Strip(view), "train") || !strings.Contains(view, "no node is ?[31mrunning: asking again") {
		t.Errorf("got %s", view)
	}
	s.update(example())
	if strings.Contains(s.view(), "asking again") {
		t.Error("still away")
	}
}

// FuzzScreen has no keys, sizes or news break a screen: each view has as many lines as the
// terminal, none is wider, and nothing of others reaches it that moves a cursor.
func FuzzScreen(f *testing.F) {
	f.Add([]byte("jjk\x01lqc\x02y/abc\x03"), 80, 24)
	f.Add([]byte("2jGg\x01/\x02\x02\x03\x04a"), 1, 1)
	f.Add([]byte("\x05l\x05\x06\x05kkG"), 30, 7)
	keys := []string{"", "enter", "backspace", "esc", "tab", "log", "news", "pgdown", "ctrl+u"}
	f.Fuzz(func(t *testing.T, typed []byte, width, height int) {
		s := shown(1+abs(width)%250, 1+abs(height)%80)
		for _, b := range typed[:min(len(typed), 20)] {
			name, text := string(rune(b)), string(rune(b))
			if int(b) < len(keys) {
				name, text = keys[b], ""
			}
			switch w := s.key(name, text); {
			case name == "log" && s.text != nil:
				s.follow(s.text.job, []string{outputLine("a\x1b[2Jb\tc\r" + strings.Repeat("数", 50)), "", outputLine(string(typed))}, b%2 == 0, nil)
			case name == "news":
				n := example()
				n.jobs = n.jobs[int(b)%len(n.jobs):]
				s.update(n)
			case w.deed == showStatus:
				s.fill(w.job, strings.Split(strings.Repeat("word ", 100), "d"), nil)
			}
		}
		lines := strings.Split(s.view(), "\n")
		if len(lines) != s.height {
			t.Fatalf("%d lines, want %d", len(lines), s.height)
		}
		for _, line := range lines {
			if ansi.StringWidth(line) > s.width {
				t.Fatalf("%d columns, want %d: %q", ansi.StringWidth(line), s.width, line)
			}
			if strings.ContainsAny(unstyled(line), "\x1b\r\a\t\u009b") {
				t.Fatalf("%q", line)
			}
		}
	})
}

func abs(n int) int { return int(uint(n) >> 1) }

// unstyled takes our own colours away.
func unstyled(line string) string {
	for _, code := range []string{"", "1", "2", "7", "31", "32", "33", "36"} {
		line = strings.ReplaceAll(line, "\x1b["+code+"m", "")
	}
	return line
}

func TestColoursAreLeftOut(t *testing.T) {
	s := shown(80, 24)
	if !strings.Contains(s.view(), "\x1b[36mRUNNING\x1b[m") {
		t.Errorf("no colour: %q", s.view())
	}
	s.colour = false
	if view := s.view(); strings.Contains(view, "\x1b[3") || !strings.Contains(view, "\x1b[7m") {
		t.Errorf("got %q", view)
	}
}

// The summary is about nodes that have told how they are, and about no more memory than
// there is.
func TestTheSummaryCountsWhatIsKnown(t *testing.T) {
	s := shown(200, 24)
	if head := ansi.Strip(s.head()); !strings.Contains(head, "4 nodes  10/14 slots busy (of 3 nodes)  3 active, 1 waiting  load 5.8  7 GiB of 16 GiB used") {
		t.Errorf("got %s", head)
	}
	n := example()
	n.nodes = n.nodes[:2]
	n.nodes[1].Lately = &usage.Lately{Free: 40 << 30}
	s.update(n)
	if head := ansi.Strip(s.head()); !strings.Contains(head, "2 nodes  10/12 slots busy  3 active, 1 waiting  load 5.8  7 GiB of 32 GiB used") {
		t.Errorf("got %s", head)
	}
}
