package main

import (
	"net"
	"slices"
	"strings"
	"testing"

	"zorilla/testnet/hosts/lab"
)

func TestControlChangesTheNetwork(t *testing.T) {
	p, err := lab.PlanOf("grid5000")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	n := &network{dir: dir, plan: p, hosts: p.Hosts(), router: newRouter(p, nil)}
	l, err := net.Listen("unix", lab.ControlSocket(dir))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go (&control{net: n, cut: make([]bool, len(n.hosts))}).serve(l)

	for _, line := range []string{"cut site sophia", "cut site lyon", "heal site lyon", "loss 2.5"} {
		if text, err := lab.Request(dir, strings.Fields(line)); err != nil || text != "" {
			t.Fatalf("%s: %q, %v", line, text, err)
		}
	}
	show, err := lab.Request(dir, []string{"show"})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"sophia-1    sophia    10.0.6.1  site\n", "lyon-2      lyon      10.0.2.2  -\n", "loss 2.5 %; packets"} {
		if !strings.Contains(show, want) {
			t.Errorf("lab show lacks %q:\n%s", want, show)
		}
	}
	for line, want := range map[string]string{
		"cut site paris":        `site "paris": there is no such site`,
		"cut host paris-1":      `host "paris-1": there is no such host`,
		"crash sophia":          `host "sophia": there is no such host`,
		"loss much":             `"much": want a number`,
		"loss NaN":              "NaN percent, want 0 to 100",
		"loss 101":              "101 percent, want 0 to 100",
		"rate host sophia-1 -1": "-1 Mbit/s",
		"rate host sophia-1 no": `"no": want a number`,
		"rate site paris 5":     `site "paris": there is no such site`,
		"rate site sophia -1":   "-1 Mbit/s",
		"cut":                   `"cut" is no request: 'lab help' lists them`,
		"cut site":              "is no request",
		"show all":              "is no request",
	} {
		if _, err := lab.Request(dir, strings.Fields(line)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s gives %v, want %s", line, err, want)
		}
	}
	if _, err := lab.Request(dir, []string{"cut", "site", "sophia\nheal"}); err == nil {
		t.Error("two requests in one were sent")
	}
	if _, err := lab.Request(t.TempDir(), []string{"show"}); err == nil || !strings.Contains(err.Error(), "no lab answers") {
		t.Errorf("without a lab: %v", err)
	}
}

func TestCommandLine(t *testing.T) {
	t.Setenv(lab.Variable, "")
	for _, args := range [][]string{{}, {"grid5000", "true"}, {"-what"}} {
		if code, err := run(args); code != 2 || err != nil {
			t.Errorf("%q gives %d, %v, want 2", args, code, err)
		}
	}
	if code, err := run([]string{"paris"}); code != 2 || err == nil {
		t.Errorf("a network that there is not gives %d, %v", code, err)
	}
	t.Setenv(lab.Variable, t.TempDir())
	for _, args := range [][]string{{"host", "a-1"}, {"host", "../a", "true"}, {"host", "a-1", "true"}, {"show"}} {
		if code, err := run(args); code == 0 || err == nil {
			t.Errorf("in a script without its lab %q gives %d, %v", args, code, err)
		}
	}
}

// A process that sees its child stop may do something about it.
func TestEldersFirst(t *testing.T) {
	parents := map[int]int{998: 12, 1003: 998, 7: 1003, 12: 1, 20: 12} // the numbers have begun anew
	if got, want := eldersFirst(parents), []int{12, 20, 998, 1003, 7}; !slices.Equal(got, want) {
		t.Errorf("in the order %v, want %v", got, want)
	}
	if got := eldersFirst(map[int]int{3: 4, 4: 3}); len(got) != 2 {
		t.Errorf("of two that changed while they were read: %v", got)
	}
}
