package bench

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

const streamRounds = 5

var streamed = flag.Int("streamed", 256, "MiB of standard output or input")

// BenchmarkStreams is what a program's standard output takes to the client, and the
// client's input to the program, from one node to another on loopback; beside ssh to an
// sshd of its own, and, of output, beside the plainest copy over TLS. Target: at least nine
// tenths as fast as ssh, and seven tenths as fast as the copy.
func BenchmarkStreams(b *testing.B) {
	if out, err := exec.Command("bash", "../.ci/tools", "ssh").CombinedOutput(); err != nil {
		leaveOut(b, strings.TrimSpace(string(out)))
	}
	sshd := startSSHD(b)
	ssh := func(words ...string) *exec.Cmd {
		return exec.Command("sh", "-c", "exec "+sshd.String()+" "+strings.Join(words, " "))
	}
	n := start(b, 2, 1)
	defer n.stop()
	there := []string{"run", "-q", "--where", fmt.Sprintf("id != %q", n.self()), "--stdin"}
	data := zeros(b, *streamed)
	size := strconv.Itoa(*streamed << 20)
	b.Run("stdout", func(b *testing.B) {
		compete(b, streamRounds,
			rival{"zorilla", counted(size, func() *exec.Cmd { return n.command(append(there, "none", "head", "-c", size, "/dev/zero")...) })},
			rival{"ssh", counted(size, func() *exec.Cmd { return ssh("head", "-c", size, "/dev/zero") })},
			rival{"tls", timed(func() error { return copyOver(sendZeros(int64(*streamed)<<20), discard) })})
	})
	b.Run("stdin", func(b *testing.B) {
		compete(b, streamRounds,
			rival{"zorilla", said(size, func() *exec.Cmd { return n.command(append(there, data, "wc", "-c")...) })},
			rival{"ssh", said(size, func() *exec.Cmd { return fed(b, ssh("wc", "-c"), data) })})
	})
}

// self is the ID of the node that commands talk to.
func (n *network) self() string {
	n.b.Helper()
	c := n.client()
	defer c.Close()
	st, err := c.Node(n.b.Context())
	if err != nil {
		n.b.Fatal(err)
	}
	return string(st.ID)
}

// counted measures a command that is to write so many bytes, which nobody keeps.
func counted(size string, cmd func() *exec.Cmd) func() (time.Duration, error) {
	return timed(func() error {
		c, count := cmd(), new(counter)
		var trouble bytes.Buffer
		c.Stdout, c.Stderr = count, &trouble
		err := c.Run()
		if got := fmt.Sprint(*count); err == nil && got != size {
			err = fmt.Errorf("%s bytes instead of %s", got, size)
		}
		if err != nil {
			err = fmt.Errorf("%w: %.300s", err, trouble.String())
		}
		return err
	})
}

// counter counts what is written, in large steps if it is read from.
type counter int64

// Write implements io.Writer.
func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}

// ReadFrom implements io.ReaderFrom, for as little copying as can be.
func (c *counter) ReadFrom(r io.Reader) (sum int64, err error) {
	buf := make([]byte, 1<<20)
	for {
		n, err := r.Read(buf)
		sum += int64(n)
		if *c += counter(n); err != nil {
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return sum, err
		}
	}
}

// sendZeros sends so many bytes that no file has.
func sendZeros(size int64) func(io.Writer) error {
	return func(w io.Writer) error {
		f, err := os.Open("/dev/zero")
		if err != nil {
			return err
		}
		defer f.Close()
		_, err = io.CopyBuffer(plainWriter{w}, plainReader{io.LimitReader(f, size)}, make([]byte, buffer))
		return err
	}
}

// discard reads what comes as who keeps nothing of it.
func discard(r io.Reader) error {
	_, err := io.CopyBuffer(plainWriter{io.Discard}, r, make([]byte, buffer))
	return err
}

// said measures a command that is to say something.
func said(want string, cmd func() *exec.Cmd) func() (time.Duration, error) {
	return timed(func() error {
		c := cmd()
		out, err := c.CombinedOutput()
		if got := strings.TrimSpace(string(out)); err != nil || got != want {
			return fmt.Errorf("%v: %.300q instead of %q", err, got, want)
		}
		return nil
	})
}

// fed has a command read a file.
func fed(b *testing.B, c *exec.Cmd, path string) *exec.Cmd {
	f, err := os.Open(path)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { f.Close() })
	c.Stdin = f
	return c
}

// zeros makes a file of so many MiB that is in memory.
func zeros(b *testing.B, mib int) string {
	b.Helper()
	dir, err := scratch()
	path := filepath.Join(dir, "zeros")
	if err == nil {
		err = os.WriteFile(path, make([]byte, mib<<20), 0o644)
	}
	if err != nil {
		b.Fatal(err)
	}
	return path
}
