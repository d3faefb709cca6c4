package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"zorilla/jobs"
)

// summary prints how the jobs of each kind ended, and what was done to the nodes.
func (p *play) summary() {
	p.mu.Lock()
	defer p.mu.Unlock()
	ends := map[string]map[jobs.State]int{}
	took := map[string]time.Duration{}
	for _, j := range p.story {
		if ends[j.kind] == nil {
			ends[j.kind] = map[jobs.State]int{}
		}
		st, ended := p.ends[p.ids[j.number]]
		if !ended {
			st.State = "open"
		} else {
			took[j.kind] = max(took[j.kind], st.Ended.Sub(st.Submitted))
		}
		ends[j.kind][st.State]++
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\nKIND\tENDS\tLONGEST")
	for _, kind := range slices.Sorted(maps.Keys(ends)) {
		var list []string
		for _, state := range slices.Sorted(maps.Keys(ends[kind])) {
			list = append(list, fmt.Sprintf("%d %s", ends[kind][state], state))
		}
		fmt.Fprintf(w, "%s\t%s\t%s\n", kind, strings.Join(list, ", "), seconds(took[kind]))
	}
	fmt.Fprintln(w, "\nTORMENT\tTIMES\t")
	for _, d := range slices.Sorted(maps.Keys(p.deeds)) {
		fmt.Fprintf(w, "%s\t%d\t\n", d, p.deeds[d])
	}
	_ = w.Flush() // like any print
	fmt.Println()
}

// report keeps what is needed to find out why something is wrong: what failed
// jobs look like now, the nodes' logs, journals and output.
func (p *play) report() error {
	dir := p.o.keep
	var err error
	if dir == "" {
		dir, err = os.MkdirTemp("", fmt.Sprintf("zorilla-chaos-seed-%d-", p.o.seed))
	} else {
		err = os.MkdirAll(dir, 0o755)
	}
	if err != nil {
		return err
	}
	for id := range p.failed {
		err = errors.Join(err, p.explain(filepath.Join(dir, string(id)), id))
	}
	for _, h := range p.hosts {
		err = errors.Join(err, copyFile(h.logFile(), filepath.Join(dir, h.name+".log")), keepState(h.state(), filepath.Join(dir, h.name)))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "chaos: not all can be kept:", err)
	}
	fmt.Printf("seed %d: %d things are wrong:\n", p.o.seed, len(p.wrong))
	for i, text := range p.wrong {
		if i == 30 {
			fmt.Printf("  and %d more\n", len(p.wrong)-i)
			break
		}
		fmt.Println("  " + text)
	}
	again := fmt.Sprintf("go run ./testnet/chaos -seed %d -length %v -jobs %d", p.o.seed, p.o.length, p.o.jobs)
	if p.o.hail {
		again += " -hail"
	}
	return fmt.Errorf("status and explanation of the jobs, logs and states of the nodes: %s; again: %s", dir, again)
}

// explain writes down how a job is, and prints it in short. Its origin may have
// to be started for that.
func (p *play) explain(path string, id jobs.ID) error {
	ctx, cancel := context.WithTimeout(context.Background(), startTime)
	defer cancel()
	var h *host
	p.mu.Lock()
	for _, j := range p.story {
		if st := p.ends[id]; p.ids[j.number] == id || st.Spec.Name == j.spec.Name {
			h = p.host(j.origin)
		}
	}
	p.mu.Unlock()
	if h == nil {
		return fmt.Errorf("job %s: nobody knows its origin", id)
	}
	if h.ended() {
		if err := h.start(ctx); err != nil {
			return err
		}
	}
	st, err := h.client().Job(ctx, string(id))
	if err != nil {
		return err
	}
	e, err := h.client().Explain(ctx, string(id))
	if err != nil {
		return err
	}
	b, err := json.MarshalIndent(map[string]any{"status": st, "explanation": e}, "", "  ")
	if err != nil {
		return err
	}
	fmt.Printf("%s of %s: %s with %d: %s\n  %s\n", id, h.name, st.State, st.ExitCode, st.Reason, e.Summary)
	for _, w := range st.Workers {
		fmt.Printf("  rank %d attempt %d at %s: %s, %d and %d bytes, exit %+v\n", w.Rank, w.Attempt, w.Name, w.State, w.Stdout, w.Stderr, w.Exit)
	}
	for _, text := range st.Warnings {
		fmt.Println("  " + text)
	}
	return os.WriteFile(path+".json", b, 0o644)
}

// keepState copies what is durable of a node, and the small files of the workers
// that it has left.
func keepState(from, to string) error {
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	err := errors.Join(copyFile(filepath.Join(from, "journal.db"), filepath.Join(to, "journal.db")), os.CopyFS(filepath.Join(to, "jobs"), os.DirFS(filepath.Join(from, "jobs"))))
	claims, _ := filepath.Glob(filepath.Join(from, "work", "*", "*")) // the pattern is good
	for _, path := range claims {
		if info, serr := os.Lstat(path); serr == nil && info.Mode().IsRegular() && info.Size() < 1<<20 {
			err = errors.Join(err, copyFile(path, filepath.Join(to, filepath.Base(filepath.Dir(path))+"."+filepath.Base(path))))
		}
	}
	return err
}

func copyFile(from, to string) error {
	b, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, b, 0o600)
}
