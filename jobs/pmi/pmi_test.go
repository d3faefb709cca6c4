package pmi

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"testing/synctest"
)

// A conversation as MPICH 4.0 begins one, with what else its library can ask.
func TestConversation(t *testing.T) {
	r := New(Place{Rank: 1, Size: 3, Nodes: []int{0, 0, 1}, Name: "kvs"})
	for _, step := range [][2]string{
		{"cmd=init pmi_version=1 pmi_subversion=1", "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0"},
		{"cmd=get_maxes", "cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=4096"},
		{"cmd=get_appnum", "cmd=appnum appnum=0"},
		{"cmd=get_universe_size", "cmd=universe_size size=3"},
		{"cmd=get_my_kvsname", "cmd=my_kvsname kvsname=kvs"},
		{"cmd=get kvsname=kvs key=PMI_process_mapping", "cmd=get_result rc=0 msg=success value=(vector,(0,1,2),(1,1,1))"},
		{"cmd=put kvsname=kvs key=a-1 value=x=y -", "cmd=put_result rc=0 msg=success"},
		{"cmd=put kvsname=other key=a-1 value=x", "cmd=put_result rc=-1 msg=no_such_kvsname"},
		{"cmd=put kvsname=kvs key=" + strings.Repeat("k", 65) + " value=x", "cmd=put_result rc=-1 msg=too_long"},
		{"cmd=get kvsname=kvs key=a-1", "cmd=get_result rc=0 msg=success value=x=y -"},
		{"cmd=get kvsname=kvs key=a-2", "cmd=get_result rc=-1 msg=no_such_key value=unknown"},
		{"cmd=lookup_name service=s", "cmd=lookup_result info=not_supported rc=-1 msg=not_supported"},
		{"mcmd=spawn", ""}, {"nprocs=2", ""}, {"execname=cmd=finalize", ""}, {"endcmd", "cmd=spawn_result rc=-1 errmsg=not_supported"},
		{"cmd=barrier_in", ""},
	} {
		got, err := r.Line(step[0])
		if err != nil || strings.TrimSuffix(got, "\n") != step[1] {
			t.Fatalf("%s: got %q, %v, want %q", step[0], got, err, step[1])
		}
	}
	b, waits := r.Waits()
	if !waits || b.Number != 1 || len(b.Puts) != 1 || b.Puts[0] != (Put{"a-1", "x=y -"}) || !r.Unfinished() {
		t.Fatalf("it waits %v at %+v", waits, b)
	}
	if out, err := r.Pass(Pass{Number: 2}); out != "" || err != nil {
		t.Errorf("it passes a barrier where it is not: %q, %v", out, err)
	}
	if out, err := r.Pass(Pass{1, []Put{{"a-2", "z"}, {"a-1", "x=y"}}}); out != "cmd=barrier_out\n" || err != nil {
		t.Fatalf("barrier: %q, %v", out, err)
	}
	if got, _ := r.Line("cmd=get kvsname=kvs key=a-2"); got != "cmd=get_result rc=0 msg=success value=z\n" {
		t.Errorf("get after the barrier: %q", got)
	}
	if _, err := r.Line("cmd=barrier_in"); err != nil {
		t.Fatal(err)
	}
	if b, _ := r.Waits(); b.Number != 2 || len(b.Puts) != 0 {
		t.Errorf("second barrier: %+v", b)
	}
	if _, err := r.Line("cmd=finalize"); !errors.Is(err, ErrProtocol) {
		t.Errorf("it speaks while it waits: %v", err)
	}
	r.Pass(Pass{Number: 2})
	if got, err := r.Line("cmd=finalize"); got != "cmd=finalize_ack\n" || err != nil || r.Unfinished() {
		t.Errorf("finalize: %q, %v", got, err)
	}
}

// What is not of the protocol, or too much, ends the conversation.
func TestRefusals(t *testing.T) {
	long := strings.Repeat("v", maxValue)
	for name, lines := range map[string][]string{
		"words":        {"hello"},
		"command":      {"cmd=rm"},
		"no command":   {"key=1"},
		"many puts":    slicesOf(MaxPuts+1, func(i int) string { return fmt.Sprintf("cmd=put kvsname=k key=%d value=", i) }),
		"large puts":   slicesOf(MaxPutBytes/(maxValue+17)+1, func(i int) string { return fmt.Sprintf("cmd=put kvsname=k key=%d value=%s", i, long) }),
		"same key":     slicesOf(MaxPuts+1, func(int) string { return "cmd=put kvsname=k key=k value=1" }),
		"other's puts": {"cmd=barrier_in", "pass"},
	} {
		r := New(Place{Size: 1, Name: "k"})
		var err error
		for i, line := range lines {
			if line == "pass" {
				_, err = r.Pass(Pass{1, []Put{{"a b", "c"}}})
			} else {
				_, err = r.Line(line)
			}
			if err != nil && i < len(lines)-1 {
				t.Fatalf("%s: refused at %d: %v", name, i, err)
			}
		}
		if !errors.Is(err, ErrProtocol) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// An abort ends the conversation, with its code.
func TestAbort(t *testing.T) {
	for text, want := range map[string]int{"cmd=abort exitcode=42": 42, "cmd=abort exitcode=": 1, "cmd=abort": 1} {
		_, err := New(Place{Size: 2, Name: "k"}).Line(text)
		if a, ok := errors.AsType[*Aborted](err); !ok || a.Code != want {
			t.Errorf("%s: %v, want %d", text, err, want)
		}
	}
}

func slicesOf(n int, f func(int) string) (list []string) {
	for i := range n {
		list = append(list, f(i))
	}
	return list
}

func TestMapping(t *testing.T) {
	for want, nodes := range map[string][]int{
		"":                                 nil,
		"(vector,(0,1,3))":                 {0, 0, 0},
		"(vector,(0,3,2))":                 {0, 0, 1, 1, 2, 2},
		"(vector,(0,3,1),(0,3,1))":         {0, 1, 2, 0, 1, 2},
		"(vector,(0,2,2),(2,1,1))":         {0, 0, 1, 1, 2},
		"(vector,(0,1,1),(1,1,2),(0,1,1))": {0, 1, 1, 0},
	} {
		if got := mapping(nodes); got != want {
			t.Errorf("%v: %s, want %s", nodes, got, want)
		}
	}
}

// All ranks of a program meet at barriers, and get what all have put.
func TestServers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size = 5
		var all [size]*Server
		ends := make(chan error, size)
		for rank := range size {
			theirs, ours := net.Pipe()
			all[rank] = NewServer(Place{Rank: rank, Size: size, Name: "k"}, ours)
			go func() {
				ends <- all[rank].Run()
				ours.Close()
			}()
			go func() {
				defer theirs.Close()
				say := func(line string) string {
					fmt.Fprintln(theirs, line)
					b := make([]byte, 1000)
					n, _ := theirs.Read(b)
					return string(b[:n])
				}
				say("cmd=init pmi_version=1 pmi_subversion=1")
				for round := range 3 {
					say(fmt.Sprintf("cmd=put kvsname=k key=%d-%d value=v", round, rank))
					if got := say("cmd=barrier_in"); got != "cmd=barrier_out\n" {
						t.Errorf("barrier: %q", got)
					}
					for other := range size {
						if got := say(fmt.Sprintf("cmd=get kvsname=k key=%d-%d", round, other)); !strings.Contains(got, "rc=0") {
							t.Errorf("round %d, rank %d of %d: %q", round, rank, other, got)
						}
					}
				}
				say("cmd=finalize")
			}()
		}
		for round := 1; round <= 3; round++ {
			pass := Pass{Number: round}
			for _, s := range all {
				<-s.Arrived()
				b, waits := s.Waits()
				if !waits || b.Number != round {
					t.Errorf("waits %v at %+v in round %d", waits, b, round)
				}
				pass.Puts = append(pass.Puts, b.Puts...)
			}
			for _, s := range all {
				if err := s.Pass(pass); err != nil {
					t.Error(err)
				}
			}
		}
		for _, s := range all {
			if <-s.Ended(); s.Unfinished() {
				t.Error("a rank has not said that it is done")
			}
			if err := <-ends; err != nil {
				t.Error(err)
			}
		}
	})
}

// A rank that goes on while it waits is not answered, and harms nobody.
func TestServerOfARankThatErrs(t *testing.T) {
	for _, text := range []string{"cmd=barrier_in\ncmd=barrier_in\n", strings.Repeat("x", maxLine+1), "cmd=init", "\n"} {
		theirs, ours := net.Pipe()
		s := NewServer(Place{Size: 2, Name: "k"}, ours)
		go func() {
			fmt.Fprint(theirs, text)
			theirs.Close()
		}()
		if err := s.Run(); err == nil {
			t.Errorf("%.20q: accepted", text)
		}
		ours.Close()
	}
}

func FuzzRank(f *testing.F) {
	f.Add("cmd=init pmi_version=1\ncmd=put kvsname=k key=a value=b\ncmd=barrier_in\npass\ncmd=get kvsname=k key=a\nmcmd=spawn\nendcmd\ncmd=finalize")
	f.Fuzz(func(t *testing.T, text string) {
		r := New(Place{Size: 2, Name: "k"})
		for line := range strings.SplitSeq(text, "\n") {
			if line == "pass" {
				b, _ := r.Waits()
				if out, err := r.Pass(Pass(b)); err == nil && out != "" && strings.Count(out, "\n") != 1 {
					t.Errorf("answer %q", out)
				}
				continue
			}
			answer, err := r.Line(line)
			if err != nil {
				return
			}
			if n := strings.Count(answer, "\n"); n > 1 || n == 1 && !strings.HasSuffix(answer, "\n") {
				t.Errorf("%q is answered with %q", line, answer)
			}
			for _, p := range r.puts {
				if p.Check() != nil {
					t.Errorf("it keeps %+v", p)
				}
			}
		}
	})
}
