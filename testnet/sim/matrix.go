package sim

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Matrix is the round trips between the hosts of a network that somebody has measured, at
// one time or more, or how long packets take there one way.
type Matrix struct {
	times [][][]time.Duration // by time, from, to; 0 = not measured
	most  time.Duration
	ways  bool // of packets one way
}

const (
	maxMatrix = 4096 // hosts
	maxTimes  = 64
	// maxMeasured bounds a round trip: what is longer counts as not measured.
	maxMeasured = 10 * time.Second
)

// ReadMatrix reads round trips in milliseconds, one source for each time: a line for each
// host with its round trips to all, in the same order, between blanks, tabs or commas.
// What is not a positive number was not measured; lines that begin with # are left out.
func ReadMatrix(sources ...io.Reader) (*Matrix, error) {
	if len(sources) == 0 || len(sources) > maxTimes {
		return nil, fmt.Errorf("round trips at %d times: want 1 to %d", len(sources), maxTimes)
	}
	m := new(Matrix)
	for _, r := range sources {
		rows, err := readRows(r)
		if err != nil {
			return nil, err
		}
		if n := len(rows); n < 2 || len(m.times) > 0 && n != len(m.times[0]) {
			return nil, fmt.Errorf("round trips of %d hosts: want two or more, the same at each time", n)
		}
		m.times = append(m.times, rows)
		for _, row := range rows {
			m.most = max(m.most, slices.Max(row))
		}
	}
	return m, nil
}

// ReadWays reads how long packets take one way, from the host of the line to each, as
// ReadMatrix reads round trips: both ways between two hosts may differ.
func ReadWays(sources ...io.Reader) (*Matrix, error) {
	m, err := ReadMatrix(sources...)
	if err == nil {
		m.ways = true
	}
	return m, err
}

func readRows(r io.Reader) (rows [][]time.Duration, err error) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxMatrix*32)
	for lines.Scan() {
		words := strings.FieldsFunc(lines.Text(), func(r rune) bool { return r == ' ' || r == '\t' || r == ',' || r == '\r' })
		if len(words) == 0 || words[0][0] == '#' {
			continue
		}
		if len(rows) == maxMatrix || len(rows) > 0 && len(words) != len(rows[0]) {
			return nil, fmt.Errorf("line %d of the round trips has %d numbers: want a square of at most %d", len(rows)+1, len(words), maxMatrix)
		}
		row := make([]time.Duration, len(words))
		for i, w := range words {
			if ms, err := strconv.ParseFloat(w, 64); err == nil && ms > 0 && ms < float64(maxMeasured/time.Millisecond) {
				row[i] = time.Duration(ms * float64(time.Millisecond))
			}
		}
		rows = append(rows, row)
	}
	if len(rows) > 0 && len(rows) != len(rows[0]) {
		return nil, fmt.Errorf("round trips of %d hosts to %d: want a square", len(rows), len(rows[0]))
	}
	return rows, lines.Err()
}

// Len returns how many hosts were measured.
func (m *Matrix) Len() int { return len(m.times[0]) }

// Layout lays n hosts out, each at the place of a measured one drawn at random, several
// at one where there are not so many; and says which way of a round trip is the longer
// one. The round trip is the median of those that were measured, in both directions, and
// the longest of all where there is none; each way is 30 to 70 % of it.
func (m *Matrix) Layout(n int, seed uint64) (Layout, Paths) {
	rows := rand.New(rand.NewPCG(seed, 0x3a7)).Perm(m.Len())
	rows = rows[:min(n, len(rows))]
	l := Layout{Sizes: make([]int, len(rows)), RTT: make([][]time.Duration, len(rows))}
	for i := range n {
		l.Sizes[i%len(rows)]++
	}
	for i, a := range rows {
		l.RTT[i] = make([]time.Duration, len(rows))
		for k, b := range rows[:i] {
			l.RTT[i][k] = m.between(a, b)
			l.RTT[k][i] = l.RTT[i][k]
		}
	}
	s := sampled{m: m, rows: rows, rtt: l.RTT}
	if m.ways {
		s.ways = make([][]time.Duration, len(rows))
		for i, a := range rows {
			for _, b := range rows {
				s.ways[i] = append(s.ways[i], m.way(a, b))
			}
		}
	}
	return l, s
}

func (m *Matrix) between(a, b int) time.Duration {
	if m.ways {
		return m.way(a, b) + m.way(b, a)
	}
	if d, ok := m.median([2]int{a, b}, [2]int{b, a}); ok {
		return d
	}
	return m.most
}

// way is how long packets take one way on the whole.
func (m *Matrix) way(a, b int) time.Duration {
	for _, pair := range [][2]int{{a, b}, {b, a}} {
		if d, ok := m.median(pair); ok {
			return d
		}
	}
	return m.most
}

// median is that of what was measured between pairs; ok is false if nothing was.
func (m *Matrix) median(pairs ...[2]int) (d time.Duration, ok bool) {
	var all []time.Duration
	for _, t := range m.times {
		for _, p := range pairs {
			if d := t[p[0]][p[1]]; d > 0 {
				all = append(all, d)
			}
		}
	}
	if len(all) == 0 {
		return 0, false
	}
	slices.Sort(all)
	return all[len(all)/2], true
}

// sampled is the paths between some hosts of a matrix.
type sampled struct {
	m    *Matrix
	rows []int // by site
	rtt  [][]time.Duration
	ways [][]time.Duration // from, to; nil = only round trips were measured
}

func (s sampled) Way(rnd *rand.Rand, from, to int) time.Duration {
	d := s.rtt[from][to]
	a, b := s.rows[from], s.rows[to]
	if s.ways != nil {
		if rnd != nil {
			if d := s.m.times[rnd.IntN(len(s.m.times))][a][b]; d > 0 {
				return d
			}
		}
		return s.ways[from][to]
	}
	if rnd != nil {
		t := s.m.times[rnd.IntN(len(s.m.times))]
		for _, x := range []time.Duration{t[a][b], t[b][a]} {
			if x > 0 {
				d = x
				break
			}
		}
	}
	share := 0.3 + 0.4*float64(hash(uint64(min(a, b))<<32+uint64(max(a, b)))%1000)/1000
	if a > b {
		share = 1 - share
	}
	return time.Duration(float64(d) * share)
}
