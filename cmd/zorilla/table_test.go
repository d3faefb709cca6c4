package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"zorilla/cmd/zorilla/columns"
	"zorilla/internal/codec"
	"zorilla/jobs"
	"zorilla/node/api"
	"zorilla/node/api/apitest"
	"zorilla/vicinity"
)

// TestStatusLooksGood compares the status of a job with a picture of it. Run
// with UPDATE_GOLDEN=1 to draw it anew, and read the difference.
func TestStatusLooksGood(t *testing.T) {
	st := apitest.Example()
	st.Workers[0].Exit.CPU, st.Workers[0].Exit.Peak = 3.204, 41<<20
	st.Workers[0].Exit.Read, st.Workers[0].Exit.Written, st.Workers[0].Exit.Counted = 12<<10, 3<<30, true
	st.Workers[1].Exit.CPU = 0.02 // by a node that counts no disks
	running := apitest.Example()
	running.State, running.Reason, running.Ended, running.Spec.Name, running.LastKnown = jobs.Running, "", time.Time{}, "", true
	running.Workers[0].State, running.Workers[0].Exit = jobs.WorkerRunning, nil
	running.Workers[1] = jobs.WorkerStatus{Rank: 1, State: jobs.WorkerWanted}
	waiting := jobs.Status{ID: "aaaaa@zeb2a", Origin: st.Origin, Spec: jobs.Spec{Args: []string{"bin/long-program-name", "with", "arguments"}, Min: 9, Max: 9, Slots: 1}, State: jobs.Pending, Reason: "needs 5 more workers: " + strings.Repeat("busy ", 20), Submitted: st.Submitted}

	var got bytes.Buffer
	con := &console{stdout: &got}
	now := st.Submitted.Add(3 * time.Minute)
	for _, s := range []jobs.Status{st, running, waiting} {
		if err := con.printStatus(s, now, false); err != nil {
			t.Fatal(err)
		}
		got.WriteString("\n")
	}
	if err := con.printTable(jobTable([]jobs.Summary{waiting.Summary(), running.Summary(), st.Summary()}, now, jobColumns...)); err != nil {
		t.Fatal(err)
	}
	got.WriteString("\n")
	if err := con.printStatus(st, now, true); err != nil {
		t.Fatal(err)
	}
	got.WriteString("\n")
	e := jobs.Explanation{
		ID: waiting.ID, State: jobs.Pending, Summary: waiting.Reason, Wanted: 5, Asked: 12, Offered: 2,
		Declined: map[string]int{"busy": 7, "owner is away": 1, "no memory": 1, "no gpu": 1},
		Nodes:    []jobs.NodeAnswer{{Node: st.Workers[0].Node, Name: "there", RTT: codec.Duration(time.Millisecond), Offered: 2, Hops: 3, Reason: "only 2 slots", At: st.Submitted}},
		Rounds:   st.Rounds, Since: st.Submitted, Next: now.Add(4 * time.Second),
	}
	if err := printExplanation(con, e, now, true); err != nil {
		t.Fatal(err)
	}

	golden := filepath.Join("testdata", "status.golden")
	if os.Getenv("UPDATE_GOLDEN") != "" {
		if err := os.WriteFile(golden, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got.Bytes(), want) {
		t.Errorf("got:\n%s\nwant:\n%s", &got, want)
	}
}

// What other machines say must not steer the terminal.
func TestTablesAreClean(t *testing.T) {
	var got bytes.Buffer
	con := &console{stdout: &got}
	if err := con.printTable([][]string{{"a\x1b]0;x\a", "b\nc", "ü"}}); err != nil {
		t.Fatal(err)
	}
	if got.String() != "a?]0;x?  b?c  ü\n" {
		t.Errorf("got %q", &got)
	}
}

// Columns are aligned as a terminal shows them, whatever is written in them.
func TestTablesAreAligned(t *testing.T) {
	var got bytes.Buffer
	con := &console{stdout: &got}
	if err := con.printTable([][]string{{"NAME", "N"}, {"日本", "1"}, {"e\u0301te\u0301", "2"}, {"🙂 hm", "3"}, {columns.Cut("日本語の名前", 8), "4"}, {columns.Cut("abcdefghi", 8), "5"}}); err != nil {
		t.Fatal(err)
	}
	if want := "NAME      N\n日本      1\ne\u0301te\u0301       2\n🙂 hm     3\n日本語…   4\nabcdefg…  5\n"; got.String() != want {
		t.Errorf("got:\n%s\nwant:\n%s", &got, want)
	}
}

func TestOnlyATerminalHasColours(t *testing.T) {
	if colours(&bytes.Buffer{}) {
		t.Error("a buffer is taken for a terminal")
	}
}

func TestTimesAreInTheZoneOfTheReader(t *testing.T) {
	noon := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	for zone, want := range map[*time.Location]string{
		time.UTC:                            "2026-05-01T12:00:00Z (1m00s ago)",
		time.FixedZone("NST", -3*3600-1800): "2026-05-01T08:30:00-03:30 (1m00s ago)",
	} {
		if got := stamp(noon, noon.Add(time.Minute).In(zone)); got != want {
			t.Errorf("in %v: %s, want %s", zone, got, want)
		}
	}
}

func TestNodesTellHowOldTheLoadIs(t *testing.T) {
	now := time.Now()
	node := func(name, state string, age time.Duration) api.NodeInfo {
		n := api.NodeInfo{Member: vicinity.Member{Name: name, Slots: 4}, Told: now.Add(-age), Busy: 2, State: state}
		if age < 0 {
			n.Told = time.Time{}
		}
		return n
	}
	rows := nodeTable([]api.NodeInfo{node("self", "", 0), node("fresh", "paused", oldLoad-1), node("old", "draining", 17*time.Second), node("unknown", "", -1)}, false)
	for i, want := range [][2]string{{"BUSY", "STATE"}, {"2/4", "ready"}, {"2/4", "paused"}, {"2/4, 17s ago", "draining"}, {"?/4", "unknown"}} {
		if got := [2]string{rows[i][6], rows[i][9]}; got != want {
			t.Errorf("%s: got %q, want %q", rows[i][1], got, want)
		}
	}
}

func TestNodesTellHowFastTheyAre(t *testing.T) {
	for want, b := range map[string]api.Bandwidth{
		"-": {}, "12.0/-": {To: api.Speed{Rate: 12 << 20}}, "-/>0.50": {From: api.Speed{Rate: 1 << 19, Least: true}},
		">118/3.0": {To: api.Speed{Rate: 118 << 20, Least: true}, From: api.Speed{Rate: 3 << 20}},
	} {
		if rows := nodeTable([]api.NodeInfo{{Bandwidth: b}}, false); rows[0][4] != "MIB/S" || rows[1][4] != want {
			t.Errorf("got %s, want %s", rows[1][4], want)
		}
	}
}

func TestClustersThatSayNothingHaveNoName(t *testing.T) {
	list := func(clusters ...string) []api.NodeInfo {
		nodes := make([]api.NodeInfo, len(clusters))
		for i, c := range clusters {
			nodes[i].Cluster = c
		}
		return nodes
	}
	column := func(nodes []api.NodeInfo) string {
		var names []string
		for _, row := range nodeTable(nodes, false)[1:] {
			names = append(names, row[7])
		}
		return strings.Join(names, " | ")
	}
	for want, nodes := range map[string][]api.NodeInfo{
		"-":                                list("near a"),
		"- | - | -":                        list("near a", "near a", "near a"),
		"- | - | - | -":                    list("near a", "near a", "near a", ""),
		"near a | near a | - ":             list("near a", "near a", "near b"),
		"delft | delft":                    list("delft", "delft"),
		"delft | delft, near b":            list("delft", "delft, near b"),
		"near a | near a | near b| near b": list("near a", "near a", "near b", "near b"),
	} {
		if got := column(nodes); strings.ReplaceAll(got, " ", "") != strings.ReplaceAll(want, " ", "") {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	place := list("near sea", "near sea")
	place[0].Site = "near sea"
	if got := column(place); got != "near sea | near sea" {
		t.Errorf("a site of that name: got %s", got)
	}
}

func TestStatusNamesEarlierAttempts(t *testing.T) {
	st, now := apitest.Example(), time.Now()
	st.Earlier = []int{1, 2, 3}
	want := []string{"attempts", fmt.Sprintf("what earlier ones printed is kept (1 to 3): 'zorilla logs --attempt 1 %s'", st.ID.Short())}
	if rows := facts(st, now); !slices.ContainsFunc(rows, func(row []string) bool { return slices.Equal(row, want) }) {
		t.Errorf("nothing of earlier attempts: %q", rows)
	}
}

// A job of which the journal lost the first entry was not submitted in the year 1.
func TestATimeThatIsNotKnownIsNotTold(t *testing.T) {
	st, now := apitest.Example(), time.Now()
	st.Submitted = time.Time{}
	if rows := jobTable([]jobs.Summary{st.Summary()}, now, jobColumns...); rows[1][5] != "-" {
		t.Errorf("its age is %s", rows[1][5])
	}
	if rows := facts(st, now); !slices.ContainsFunc(rows, func(row []string) bool { return slices.Equal(row, []string{"submitted", "not known"}) }) {
		t.Errorf("got %q", rows)
	}
}
