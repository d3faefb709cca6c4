package bench

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// there is where workers are: at the other node than the one that their job was
// submitted to, so that every byte goes from node to node.
const there = `name == "node2"`

// stayers is how many jobs may stay.
const stayers = 12

// BenchmarkWay is what the way of a job's files costs, on two nodes on loopback: a big
// input from the start of "zorilla run" to that of the worker at the other node; a big
// output from the worker's end to that of the client; and trees of small files as input.
// Beside it, on the same disk: scp, ssh and tar through an sshd on loopback; and the limit,
// which is a copy by this process over TLS 1.3 that is hashed by both ends. Contents are
// random and new in each round, so that no cache has them; the disk is
// in peace when the time of a rival begins, and none of the rivals waits for it at the end. All
// write new files, and find memory at hand: on a virtual machine that of a file which was just
// removed may be ten times cheaper than other memory, so that it mattered who came after whom. It
// needs Debian's packages of ssh, which it installs as root.
func BenchmarkWay(b *testing.B) {
	b.Run("in-512MiB", func(b *testing.B) {
		f := files(b)
		f.compete(5, f.blob("data", 512<<20), f.stage("data"),
			rival{"scp", timed(func() error {
				return quiet(exec.Command("scp", append(f.sshd.options("-P"), "-q", f.at("data"), "127.0.0.1:"+f.fresh("scp"))...))
			})},
			rival{"go-tls", timed(func() error { return copyOver(sendFile(f.at("data")), writeFile(f.fresh("go")+"/data")) })})
	})
	b.Run("out-256MiB", func(b *testing.B) {
		f := files(b)
		f.compete(5, f.blob("data", 256<<20), f.fetch(256<<20),
			rival{"ssh-cat", timed(func() error { return f.sh("%s cat %s > %s/data", f.sshd, f.at("data"), f.fresh("ssh")) })},
			rival{"go-tls", timed(func() error { return copyOver(sendFile(f.at("data")), writeFile(f.fresh("go")+"/data")) })})
	})
	for _, count := range []int{10_000, 100_000} {
		b.Run(fmt.Sprintf("in-%dx1kB", count), func(b *testing.B) {
			f := files(b)
			f.stays = true
			f.compete(max(3, 50_000/count), f.tree("data", count), f.stage("data"),
				rival{"tar-ssh", timed(func() error {
					return f.sh("tar cf - -C %s data | %s tar xf - -C %s", f.dir, f.sshd, f.fresh("ssh"))
				})},
				rival{"tar-go-tls", timed(func() error { return copyOver(sendTree(f.at("data")), writeTree(f.fresh("go"))) })})
		})
	}
}

// way is what files go through.
type way struct {
	b       *testing.B
	net     *network
	sshd    sshd
	dir     string
	made    int                      // directories, by fresh
	want    string                   // what a worker says that has all of its input
	busy    map[string]time.Duration // processor time of all rounds by part of zorilla
	rounds  int
	inPeace func() // is called before the time of a rival begins
	stays   bool   // jobs last until the end, and their files
}

func files(b *testing.B) *way {
	b.Helper()
	if out, err := exec.Command("bash", "../.ci/tools", "ssh").CombinedOutput(); err != nil {
		leaveOut(b, strings.TrimSpace(string(out)))
	}
	f := &way{b: b, dir: b.TempDir(), busy: map[string]time.Duration{}, inPeace: inPeace(b)}
	f.sshd = startSSHD(b)
	f.net = start(b, 2, stayers)
	b.Cleanup(f.net.stop)
	if err := f.net.command("run", "-q", "--stdin", "none", "--where", there, "--", "true").Run(); err != nil {
		b.Fatalf("the first job: %v", err) // which makes directories
	}
	return f
}

// inPeace returns what waits for the disk, and then makes as much memory free as none of the
// rivals needs in all, which was in use until then.
func inPeace(b *testing.B) func() {
	const enough = 1 << 30
	return func() {
		syscall.Sync()
		m, err := syscall.Mmap(-1, 0, enough, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE|syscall.MAP_POPULATE)
		if err := cmp.Or(err, syscall.Munmap(m)); err != nil {
			b.Errorf("%d bytes of memory: %v", enough, err)
		}
	}
}

func (f *way) at(name string) string { return filepath.Join(f.dir, name) }

// fresh makes a directory. Of files that were removed ext4 without a journal looks at all again for
// each one that is made in the next minutes, whoever makes it, so everything is left until the end.
func (f *way) fresh(name string) string {
	f.made++
	dir := f.at(fmt.Sprint(name, f.made))
	if err := os.Mkdir(dir, 0o755); err != nil {
		f.b.Fatal(err)
	}
	return dir
}

func (f *way) sh(format string, args ...any) error {
	return quiet(exec.Command("sh", "-c", fmt.Sprintf(format, args...)))
}

// compete is the function of this name after a preparation of each round, which is not measured.
// It tells also where the processor time of zorilla goes.
func (f *way) compete(rounds int, prepare func() error, all ...rival) {
	f.b.Helper()
	for i, r := range all {
		run := r.run
		all[i].run = func() (time.Duration, error) {
			if i == 0 {
				if err := prepare(); err != nil {
					return 0, err
				}
			}
			f.inPeace()
			return run()
		}
	}
	compete(f.b, rounds, all...)
	text := "processor time of a round, ms:"
	for _, part := range slices.Sorted(maps.Keys(f.busy)) {
		each := ms(f.busy[part]) / float64(f.rounds)
		text += fmt.Sprintf(" %s %.0f", part, each)
		f.b.ReportMetric(each, "cpu-ms/"+part)
	}
	f.b.Log(text)
}

// stage is a job that has the input of that name; the time is that until its worker starts.
func (f *way) stage(name string) rival {
	return rival{"zorilla", func() (time.Duration, error) {
		begun := time.Now()
		script := "date +%s%N; find " + name + " -type f -print0 | du -cb --files0-from=- | tail -n 1"
		if f.stays {
			script += "; exec sleep 1000000"
		}
		out, err := f.job(f.output, "--stdin", "none", "-i", f.at(name), "--", "sh", "-c", script)
		if err != nil {
			return 0, err
		}
		started, size, _ := strings.Cut(out, "\n")
		if got := strings.Fields(size); len(got) != 2 || got[0] != f.want {
			return 0, fmt.Errorf("the worker has %q bytes, want %s", size, f.want)
		}
		return since(begun, started)
	}}
}

// fetch is a job that makes a file, and ends when it is told to; the time is that from then until
// its client has ended.
func (f *way) fetch(size int64) rival {
	return rival{"zorilla", func() (time.Duration, error) {
		into := f.fresh("zorilla")
		out, err := f.job(f.told, "-o", "out", "--into", into, "--", "sh", "-c", fmt.Sprintf("head -c %d /dev/urandom > out; echo made; read end; date +%%s%%N", size))
		ended := time.Now()
		if err != nil {
			return 0, err
		}
		if info, err := os.Stat(filepath.Join(into, "out")); err != nil || info.Size() != size {
			return 0, fmt.Errorf("the output is not whole: %v, %w", info, err)
		}
		took, err := since(ended, out)
		return -took, err
	}}
}

// told tells the worker of a client to end, and returns what it says then.
func (f *way) told(client *exec.Cmd) (string, error) {
	in, err := client.StdinPipe()
	if err != nil {
		return "", err
	}
	defer in.Close()
	out, err := client.StdoutPipe()
	if err == nil {
		err = client.Start()
	}
	if err != nil {
		return "", err
	}
	r := bufio.NewReader(out)
	_, err = r.ReadString('\n')
	if err == nil {
		f.inPeace()
		_, err = io.WriteString(in, "\n")
	}
	said, _ := io.ReadAll(r) // why it is not all is told by Wait
	return string(said), cmp.Or(client.Wait(), err)
}

// job runs one at the other node, and adds up the processor time of all. Output runs its client,
// and returns what that says.
func (f *way) job(output func(client *exec.Cmd) (string, error), args ...string) (string, error) {
	nodes := map[string]int{}
	for pid, words := range processes(f.b) {
		if slices.Contains(f.net.pids(), pid) {
			nodes[map[bool]string{true: "origin", false: "worker's-node"}[words[3] == f.net.state]] = pid
		}
	}
	used := func(sign time.Duration) {
		f.busy["client"] += sign * childrenCPU()
		for part, pid := range nodes {
			f.busy[part] += sign * cpuOf(f.b, pid)
		}
	}
	used(-1)
	var errs bytes.Buffer
	cmd := f.net.command(append([]string{"run", "-q", "--where", there}, args...)...)
	cmd.Stderr = &errs
	out, err := output(cmd)
	if err != nil {
		return "", fmt.Errorf("%w: %.300q", err, errs.String())
	}
	used(1)
	f.rounds++
	return strings.TrimSpace(out), nil
}

// output returns what a client writes; of a job that stays the two lines of its worker.
func (f *way) output(client *exec.Cmd) (string, error) {
	if f.stays && f.rounds == stayers {
		return "", fmt.Errorf("there are slots for %d rounds", stayers)
	}
	if !f.stays {
		out, err := client.Output()
		return string(out), err
	}
	pipe, err := client.StdoutPipe()
	if err == nil {
		err = client.Start()
	}
	if err != nil {
		return "", err
	}
	f.b.Cleanup(func() {
		_ = client.Process.Kill()
		_ = client.Wait() // it was killed
	})
	r := bufio.NewReader(pipe)
	first, err := r.ReadString('\n')
	second := ""
	if err == nil {
		second, err = r.ReadString('\n')
	}
	if err != nil { // it has closed its output, and says why
		return "", cmp.Or(client.Wait(), err)
	}
	f.busy["client"] += cpuOf(f.b, client.Process.Pid)
	return first + second, nil
}

// since is how long after a moment a worker has told the time.
func since(t time.Time, told string) (time.Duration, error) {
	ns, err := strconv.ParseInt(told, 10, 64)
	return time.Unix(0, ns).Sub(t), err
}

// cpuOf is the processor time of a process, in steps of 10 ms.
func cpuOf(b *testing.B, pid int) time.Duration {
	b.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		b.Fatal(err)
	}
	var sum time.Duration
	for _, ticks := range strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+2:]))[11:13] {
		n, err := strconv.ParseInt(ticks, 10, 64)
		if err != nil {
			b.Fatalf("the times of process %d: %v", pid, err)
		}
		sum += time.Duration(n) * time.Second / ticksPerSecond
	}
	return sum
}

// blob makes a file of random bytes, another one each time.
func (f *way) blob(name string, size int64) func() error {
	f.want = strconv.FormatInt(size, 10)
	return func() error {
		return fill(f.at(name), size, random())
	}
}

func random() *rand.ChaCha8 {
	var seed [32]byte
	for i := range seed {
		seed[i] = byte(rand.Uint32())
	}
	return rand.NewChaCha8(seed)
}

func fill(path string, size int64, from *rand.ChaCha8) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	buf := make([]byte, min(size, 1<<20))
	for n := int64(0); n < size && err == nil; n += int64(len(buf)) {
		_, _ = from.Read(buf) // never fails
		_, err = file.Write(buf[:min(int64(len(buf)), size-n)])
	}
	return errors.Join(err, file.Close())
}

// tree makes files of 1 kB, a thousand in a directory, others each time.
func (f *way) tree(name string, count int) func() error {
	const size, each = 1000, 1000
	f.want = strconv.Itoa(size * count)
	old := ""
	return func() error {
		if old != "" { // removed at the end, see fresh
			if err := os.Rename(f.at(name), old); err != nil {
				return err
			}
		}
		old = filepath.Join(f.fresh("old"), name)
		from := random()
		var err error
		for i := 0; i < count && err == nil; i++ {
			dir := filepath.Join(f.at(name), fmt.Sprintf("d%03d", i/each))
			if i%each == 0 {
				err = os.MkdirAll(dir, 0o755)
			}
			if err == nil {
				err = fill(filepath.Join(dir, fmt.Sprintf("f%06d", i)), size, from)
			}
		}
		return err
	}
}

// TestCopies: the copies that zorilla is measured beside copy.
func TestCopies(t *testing.T) {
	f := &way{dir: t.TempDir()}
	in, out := f.at("in"), f.at("out")
	if err := errors.Join(os.Mkdir(out, 0o755), f.tree("in", 1500)(), copyOver(sendTree(in), writeTree(out)),
		f.blob("in/big", 3<<20+1)(), copyOver(sendFile(f.at("in/big")), writeFile(f.at("out/big")))); err != nil {
		t.Fatal(err)
	}
	n := 0
	err := fs.WalkDir(os.DirFS(in), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		n++
		want, _ := os.ReadFile(filepath.Join(in, path)) // it was walked to
		got, err := os.ReadFile(filepath.Join(out, path))
		if err == nil && !bytes.Equal(got, want) {
			err = fmt.Errorf("%s is another", path)
		}
		return err
	})
	if err != nil || n != 1501 {
		t.Errorf("%d files: %v", n, err)
	}
}
