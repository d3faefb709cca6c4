package bench

import (
	"archive/tar"
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"hash"
	"io"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// buffer is how many bytes the plain copies move at a time.
const buffer = 1 << 20

// copyOver is the plainest copy that does what must be done: it sends over one connection
// of TLS 1.3 on loopback; both ends hash what passes with SHA-256, and compare.
func copyOver(send func(io.Writer) error, receive func(io.Reader) error) error {
	cert, err := certificate()
	if err != nil {
		return err
	}
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{cert}})
	if err != nil {
		return err
	}
	defer l.Close()
	sums := make(chan []byte, 1)
	sent := make(chan error, 1)
	go func() {
		c, err := l.Accept()
		if err == nil {
			h := sha256.New()
			err = errors.Join(send(io.MultiWriter(h, c)), c.Close())
			sums <- h.Sum(nil)
		}
		sent <- err
	}()
	c, err := tls.Dial("tcp", l.Addr().String(), &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		return errors.Join(err, l.Close(), <-sent)
	}
	h := sha256.New()
	err = errors.Join(receive(&hashed{c, h}), c.Close(), <-sent)
	if err == nil && !bytes.Equal(h.Sum(nil), <-sums) {
		err = errors.New("the copy is another")
	}
	return err
}

type hashed struct {
	from io.Reader
	sum  hash.Hash
}

func (h *hashed) Read(p []byte) (int, error) {
	n, err := h.from.Read(p)
	h.sum.Write(p[:n])
	return n, err
}

func certificate() (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, err
}

// plain hides what else a reader or a writer can do, for copies with this buffer.
type (
	plainReader struct{ io.Reader }
	plainWriter struct{ io.Writer }
)

func sendFile(path string) func(io.Writer) error {
	return func(w io.Writer) error {
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		_, err = io.CopyBuffer(plainWriter{w}, plainReader{f}, make([]byte, buffer))
		return err
	}
}

func writeFile(path string) func(io.Reader) error {
	return func(r io.Reader) error {
		f, err := os.Create(path)
		if err != nil {
			return err
		}
		_, err = io.CopyBuffer(plainWriter{f}, r, make([]byte, buffer))
		return errors.Join(err, f.Close())
	}
}

// sendTree sends what is in a directory.
func sendTree(dir string) func(io.Writer) error {
	return func(w io.Writer) error {
		gathered := make([]byte, 0, buffer)
		t := tar.NewWriter(writer(func(p []byte) (int, error) { // a header and a small file need not be a record each
			var err error
			if len(gathered)+len(p) > buffer {
				_, err = w.Write(gathered)
				gathered = gathered[:0]
			}
			gathered = append(gathered, p...)
			return len(p), err
		}))
		if err := errors.Join(t.AddFS(os.DirFS(dir)), t.Close()); err != nil {
			return err
		}
		_, err := w.Write(gathered)
		return err
	}
}

type writer func([]byte) (int, error)

func (w writer) Write(p []byte) (int, error) { return w(p) }

func writeTree(dir string) func(io.Reader) error {
	return func(r io.Reader) error {
		root, err := os.OpenRoot(dir)
		if err != nil {
			return err
		}
		defer root.Close()
		t, buf := tar.NewReader(r), make([]byte, buffer)
		for {
			h, err := t.Next()
			if errors.Is(err, io.EOF) {
				_, err = io.Copy(io.Discard, r) // what pads the end
				return err
			}
			if err != nil {
				return err
			}
			if h.Typeflag == tar.TypeDir {
				if err := root.MkdirAll(h.Name, 0o755); err != nil {
					return err
				}
				continue
			}
			f, err := root.Create(h.Name)
			if err == nil {
				_, err = io.CopyBuffer(plainWriter{f}, t, buf)
				err = errors.Join(err, f.Close())
			}
			if err != nil {
				return err
			}
		}
	}
}

// sshd is one on loopback with a key of its own, and what its clients need.
type sshd struct{ key, port string }

// options are those of a client that need not be asked for anything; port is its option
// for that.
func (s sshd) options(port string) []string {
	return []string{"-i", s.key, port, s.port, "-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null", "-o", "LogLevel=ERROR"}
}

// String is the begin of a command that runs another one.
func (s sshd) String() string {
	return "ssh " + strings.Join(s.options("-p"), " ") + " 127.0.0.1"
}

// startSSHD starts one that lasts until the end of the benchmark.
func startSSHD(b *testing.B) sshd {
	b.Helper()
	dir := scratchOf(b)
	key := filepath.Join(dir, "ssh-key")
	if _, err := os.Stat(key); err != nil {
		if out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key).CombinedOutput(); err != nil {
			b.Fatalf("ssh-keygen: %v: %s", err, out)
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(l.Addr().String())
	_ = l.Close() // for sshd, that cannot choose itself
	s := sshd{key, port}
	config := filepath.Join(dir, "sshd.conf")
	text := fmt.Sprintf("ListenAddress 127.0.0.1:%[1]s\nHostKey %[2]s\nAuthorizedKeysFile %[2]s.pub\nStrictModes no\nUsePAM no\nPidFile none\nPermitRootLogin yes\nSubsystem sftp internal-sftp\n", port, key)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		b.Fatal(err)
	}
	if os.Geteuid() == 0 {
		if err := os.MkdirAll("/run/sshd", 0o755); err != nil { // it insists on that
			b.Fatal(err)
		}
	}
	var log bytes.Buffer
	cmd := exec.Command("/usr/sbin/sshd", "-D", "-e", "-f", config)
	cmd.Stderr = &log
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // fails if it has ended
		_ = cmd.Wait()
	})
	begun := time.Now()
	for {
		out, err := exec.Command("sh", "-c", s.String()+" true").CombinedOutput()
		if err == nil {
			return s
		}
		if time.Since(begun) > 10*time.Second {
			b.Fatalf("sshd does not answer: %v: %s", err, out)
		}
		<-time.After(20 * time.Millisecond)
	}
}
