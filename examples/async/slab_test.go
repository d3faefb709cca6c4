package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
)

func TestDirect(t *testing.T) {
	for _, n := range []int{1, 2, 7, 12} {
		s, solution := newSlab(n, 0, 1), direct(n)
		for i, v := range solution {
			s.u[s.at(i/n/n+1, i/n%n+1, i%n+1)] = v
		}
		if r := s.residual(); !(r < 1e-12) {
			t.Errorf("%d points: the direct solution has a residual of %g", n, r)
		}
		if most := newSlab(n, 0, 1).wrong(solution); n > 2 && most < 1e-3 {
			t.Errorf("%d points: the solution is nothing but %g", n, most)
		}
	}
}

// Slabs that hear of each other late, and do different numbers of sweeps, come to the solution.
func TestSlabsThatAreOutOfStep(t *testing.T) {
	const n, size = 9, 4
	var all []*slab
	planes := 0
	for rank := range size {
		all = append(all, newSlab(n, rank, size))
		planes += all[rank].planes
	}
	if planes != n || all[1].first != 3 {
		t.Fatalf("%d planes of %d, the second slab begins at %d", planes, n, all[1].first)
	}
	for i := range 1200 {
		for rank, s := range all {
			if i%(rank+1) == 0 {
				s.relax(1 + i%3)
			}
			if i%7 != rank {
				continue
			}
			for side, other := range map[int]int{below: rank - 1, above: rank + 1} {
				if other < 0 || other >= size {
					continue
				}
				if err := all[other].beside(1-side, s.face(side)); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	solution := direct(n)
	for rank, s := range all {
		if wrong := s.wrong(solution); !(wrong < 1e-12) {
			t.Errorf("rank %d is wrong by %g", rank, wrong)
		}
	}
}

// What a slab says of its residual bounds by how much it is wrong.
func TestResidual(t *testing.T) {
	const n = 10
	s, solution := newSlab(n, 0, 1), direct(n)
	for s.residual() > 1e-9 {
		s.relax(1)
		if wrong, r := s.wrong(solution), s.residual(); wrong > r/8+1e-14 {
			t.Fatalf("wrong by %g with a residual of %g", wrong, r)
		}
	}
}

func TestPlanesOfAnotherGrid(t *testing.T) {
	s, other := newSlab(8, 0, 2), newSlab(9, 1, 2)
	if err := s.beside(above, other.face(below)); err == nil {
		t.Error("a plane of another grid was taken")
	}
}

func TestCheckpoint(t *testing.T) {
	p := newPart(6, 1, 3, 1, 1e-3, 1)
	p.hear(2, message{Version: version{4, 7}, Plane: bytes.Repeat([]byte{0, 0, 0, 0, 0, 0, 0xf0, 0x3f}, 36)})
	p.step()
	p.step()
	kept := p.keep()
	q := newPart(6, 1, 3, 2, 1e-3, 1)
	if err := q.restore(kept); err != nil {
		t.Fatal(err)
	}
	if q.version() != (version{2, 2}) || q.beside != [2]version{{}, {4, 7}} || fmt.Sprint(q.slab.u) != fmt.Sprint(p.slab.u) || q.phase() != active {
		t.Errorf("it came back as %+v", q)
	}
	p.declare(final)
	if err := q.restore(p.keep()); err != nil || q.phase() != final || q.all[1].Version != (version{2, 2}) {
		t.Errorf("a final slab came back as %+v: %v", q.all[1], err)
	}
	broken := map[string][]byte{"empty": nil, "cut": kept[:len(kept)-1], "with a bit more": append(append([]byte{}, kept...), 0)}
	broken["changed"] = append([]byte{}, kept...)
	broken["changed"][len(kept)/2]++
	broken["of another rank"] = newPart(6, 0, 3, 1, 1e-3, 1).keep()
	broken["of another grid"] = newPart(7, 1, 3, 1, 1e-3, 1).keep()
	for what, b := range broken {
		if newPart(6, 1, 3, 2, 1e-3, 1).restore(b) == nil {
			t.Errorf("a checkpoint that is %s was taken", what)
		}
	}
}

// A checkpoint that is missing or broken ends the rank with an error that names it.
func TestRestartWithoutCheckpoint(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, text := range []string{"", "no slab"} {
		if text != "" {
			if err := os.MkdirAll(stateDir, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(stateFile, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		env := map[string]string{"JOB_ID": "j", "RANK": "0", "ATTEMPT": "2", "MAX": "1", "SLOTS": "1", "RESTART": "3"}
		err := run(nil, func(name string) string { return env[strings.TrimPrefix(name, "ZORILLA_")] }, io.Discard)
		if err == nil || !strings.Contains(err.Error(), "state/slab: ") && !strings.Contains(err.Error(), "state/slab:") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestCheck(t *testing.T) {
	t.Chdir(t.TempDir())
	const n = 5
	solution := direct(n)
	write := func(size int) (files []string) {
		for rank := range size {
			s := newSlab(n, rank, size)
			for i := range s.planes * n * n {
				s.u[s.at(i/n/n+1, i/n%n+1, i%n+1)] = solution[(s.first-1)*n*n+i]
			}
			if err := os.WriteFile(resultFile(rank), s.pack(1, s.planes), 0o600); err != nil {
				t.Fatal(err)
			}
			files = append([]string{resultFile(rank)}, files...)
		}
		return files
	}
	try := func(n int, files ...string) error {
		return run(append([]string{"-check", "-n", fmt.Sprint(n)}, files...), os.Getenv, io.Discard)
	}
	files := write(2)
	if err := try(n, files...); err != nil {
		t.Error(err)
	}
	for what, err := range map[string]error{"a missing file": try(n, files[0]), "a file twice": try(n, files[0], files[0]), "another grid": try(n+1, files...)} {
		if err == nil {
			t.Errorf("%s was accepted", what)
		}
	}
	solution[n*n*n-1] += 1e-6
	if err := try(n, write(3)...); err == nil || !strings.Contains(err.Error(), "wrong by 1.0e-06") {
		t.Errorf("a wrong slab was accepted: %v", err)
	}
}
