package bench

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"zorilla/internal/units"
)

var (
	dense    = flag.Int("dense", 512, "MiB of the dense file of BenchmarkMemory")
	sparse   = flag.Int("sparse", 20<<10, "MiB of its sparse file, of which 16 are data")
	fetchers = flag.Int("fetchers", 12, "nodes that fetch them")
	empty    = flag.Int("empty", 1_000_000, "files of BenchmarkEmptyFiles")
)

// memoryBound is what transfer's documentation promises of a node.
const memoryBound = 100 << 20

// BenchmarkMemory is how much memory nodes take at most while one of them serves many
// others a dense file as the input of a job, and then a sparse one of which only the
// data are to move: the peak of what is resident, of the origin's node and the largest of the
// others. Target: less than 100 MiB each. The disk needs room for two copies
// of the dense file at each node.
func BenchmarkMemory(b *testing.B) {
	byName(b)
	n := start(b, 1+*fetchers, 1)
	defer n.stop()
	dir := b.TempDir()
	data := filepath.Join(dir, "data")
	for _, c := range []struct {
		name string
		make func() error
		size int64
	}{
		{"dense", func() error { return fill(data, int64(*dense)<<20, random()) }, int64(*dense) << 20},
		{"sparse", func() error { return pierce(data, int64(*sparse)<<20) }, int64(*sparse) << 20},
	} {
		b.Run(c.name, func(b *testing.B) {
			if err := c.make(); err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				n.b = b
				moved := n.peaks(func() {
					out, err := n.command("run", "-q", "--stdin", "none", "-n", strconv.Itoa(*fetchers), "--where", `name != "node1"`, "-i", data,
						"--", "stat", "-c", "%s %b", "data").CombinedOutput()
					lines := strings.Split(strings.TrimSpace(string(out)), "\n")
					if err != nil || len(lines) != *fetchers {
						b.Fatalf("%v: %.500s", err, out)
					}
					for _, line := range lines {
						size, blocks, _ := strings.Cut(line, " ")
						if size != strconv.FormatInt(c.size, 10) {
							b.Fatalf("a worker has %s bytes, not %d", size, c.size)
						}
						if most, err := strconv.ParseInt(blocks, 10, 64); c.name == "sparse" && (err != nil || most > 64<<20/512) {
							b.Fatalf("a worker's file takes %s blocks: %v", blocks, err)
						}
					}
				})
				text := fmt.Sprintf("%s to %d nodes:", units.Bytes(c.size), *fetchers)
				for who, peak := range moved {
					text += fmt.Sprintf(" %s %s", who, units.Bytes(peak))
					b.ReportMetric(float64(peak)/(1<<20), "MiB/"+who)
					if peak > memoryBound {
						text += " (too much)"
					}
				}
				b.Log(text)
			}
			b.ReportMetric(0, "ns/op") // it says nothing
		})
	}
}

// peaks returns how much memory was resident at most while f ran: of the origin's node,
// and of the largest of the others.
func (n *network) peaks(f func()) map[string]int64 {
	n.b.Helper()
	all := n.pids()
	for _, pid := range all {
		if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte("5"), 0); err != nil {
			n.b.Fatal(err)
		}
	}
	f()
	found := map[string]int64{}
	for _, pid := range all {
		who := "fetcher"
		if args := processes(n.b)[pid]; len(args) > 3 && args[3] == n.state {
			who = "origin"
		}
		found[who] = max(found[who], peakOf(n.b, pid))
	}
	return found
}

// peakOf is how many bytes of a process were resident at most.
func peakOf(b *testing.B, pid int) int64 {
	b.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		b.Fatal(err)
	}
	_, after, _ := bytes.Cut(text, []byte("VmHWM:"))
	if fields := strings.Fields(string(after)); len(fields) > 0 {
		if kb, err := strconv.ParseInt(fields[0], 10, 64); err == nil {
			return kb << 10
		}
	}
	b.Fatalf("process %d does not tell its peak: %.100s", pid, text)
	return 0
}

// pierce makes a file of holes, with 16 MiB of random bytes in it.
func pierce(path string, size int64) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	err = f.Truncate(size)
	from, buf := random(), make([]byte, 1<<20)
	for i := int64(0); i < 16 && err == nil; i++ {
		_, _ = from.Read(buf) // never fails
		_, err = f.WriteAt(buf, size/16*i)
	}
	return errors.Join(err, f.Close())
}

// BenchmarkEmptyFiles is what very many files without content cost as the input of a job at
// another node: seconds from the start of "zorilla run" to its end, and the peak of the
// memory of the client, the origin and the worker's node.
func BenchmarkEmptyFiles(b *testing.B) {
	byName(b)
	n := start(b, 2, 1)
	defer n.stop()
	data := filepath.Join(b.TempDir(), "data")
	for i := range *empty {
		dir := filepath.Join(data, fmt.Sprintf("d%04d", i/1000))
		if i%1000 == 0 {
			if err := os.MkdirAll(dir, 0o755); err != nil {
				b.Fatal(err)
			}
		}
		f, err := os.Create(filepath.Join(dir, fmt.Sprintf("f%07d", i)))
		if err != nil {
			b.Fatal(err)
		}
		f.Close()
	}
	var took time.Duration
	var client int64
	for b.Loop() {
		moved := n.peaks(func() {
			cmd := n.command("run", "-q", "--stdin", "none", "--where", there, "-i", data, "--", "sh", "-c", "find data -type f | wc -l")
			begun := time.Now()
			out, err := cmd.CombinedOutput()
			took = time.Since(begun)
			if err != nil || strings.TrimSpace(string(out)) != strconv.Itoa(*empty) {
				b.Fatalf("%v: %.300s", err, out)
			}
			client = cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss << 10
		})
		b.Logf("%d empty files: %.1f s; client %s, origin %s, worker's node %s", *empty, took.Seconds(), units.Bytes(client),
			units.Bytes(moved["origin"]), units.Bytes(moved["fetcher"]))
	}
	b.ReportMetric(took.Seconds(), "s")
	b.ReportMetric(0, "ns/op") // with what goes before: it says nothing
}
