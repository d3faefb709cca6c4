package node

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/rs/zerolog"

	"zorilla/internal/atomicfile"
	"zorilla/internal/owned"
	"zorilla/node/trust"
)

// stateDir is the directory in which a node keeps what it has to know after its
// next start; the package comment lists what is in it.
type stateDir string

func (d stateDir) file(name string) string { return filepath.Join(string(d), name) }

// open makes the directory and locks it for this process.
func (d stateDir) open() (*stateLock, error) {
	dir := string(d)
	if !filepath.IsAbs(dir) {
		return nil, fmt.Errorf("state directory %q: want an absolute path", dir)
	}
	// What is private is 0600 all the same: workers may have to pass through.
	err := os.MkdirAll(filepath.Dir(dir), passable)
	if err == nil {
		err = os.Mkdir(dir, shut)
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("state directory: %w", err)
	}
	if err := d.check(); err != nil {
		return nil, fmt.Errorf("state directory: %w", err)
	}
	file, err := d.lock()
	if err != nil {
		return nil, err
	}
	return &stateLock{d, file}, nil
}

func (d stateDir) lock() (*os.File, error) {
	file, err := os.OpenFile(d.file("lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("state directory: %w", err)
	}
	if !locked(file) {
		file.Close()
		return nil, fmt.Errorf("state directory %s: a node is using it already: choose another with --state-dir", d)
	}
	return file, nil
}

// stateLock is held by the process that uses a state directory.
type stateLock struct {
	dir  stateDir
	file *os.File
}

// Close gives the directory free.
func (l *stateLock) Close() { l.file.Close() }

// renew locks the directory anew if somebody has removed or replaced the file that it is locked by,
// and reports whether that was so. It fails if another node has locked the new file.
func (l *stateLock) renew() (again bool, err error) {
	held, err := l.file.Stat()
	if err != nil {
		return false, fmt.Errorf("state directory: %w", err)
	}
	now, err := os.Stat(l.dir.file("lock"))
	if err == nil && os.SameFile(held, now) || err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	file, err := l.dir.lock()
	if err != nil {
		return false, err
	}
	l.file.Close() // nobody can open the old file any more
	l.file = file
	return true, nil
}

// believed lists what a node reads in its state directory, of journal.db all that begins so.
var believed = []string{"owner.json", "identity.key", "secret", "peers", "web-token", "zorilla.sock",
	"client-token", "journal.db", "jobs", "cache", "work", "work-at", "power", "lock"}

// check refuses a directory that somebody else has prepared, or can change: the node would have
// that user's network, identity and settings.
func (d stateDir) check() error {
	if err := owned.Way(string(d)); err != nil {
		return fmt.Errorf("%w: choose another with --state-dir", err)
	}
	names, err := os.ReadDir(string(d))
	if err != nil {
		return err
	}
	paths := []string{string(d)}
	for _, e := range names {
		if slices.Contains(believed, e.Name()) || strings.HasPrefix(e.Name(), "journal.db") {
			paths = append(paths, d.file(e.Name()))
		}
	}
	for _, path := range paths {
		info, err := os.Stat(path)
		if errors.Is(err, fs.ErrNotExist) { // it leads nowhere, or has just gone
			continue
		}
		if err == nil {
			err = owned.File(path, info)
		}
		if err != nil {
			return fmt.Errorf("%w, or choose another directory with --state-dir", err)
		}
	}
	return nil
}

// locked locks the file. A process that a killed node was just starting holds
// the lock for a moment longer than the node.
func locked(f *os.File) bool {
	for end := time.Now().Add(lockWithin); ; time.Sleep(lockWithin / 100) {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil || time.Now().After(end) {
			return err == nil
		}
	}
}

const lockWithin = time.Second

// invited reads the secret and the addresses to join that the configuration gives, if it gives
// any, and makes nothing.
func (d stateDir) invited(text string, join []string) (given trust.Secret, seeds []string, err error) {
	if text != "" {
		s, err := trust.ParseSecret(text)
		if err != nil {
			return given, nil, err
		}
		given = s
	}
	for _, j := range join {
		if !trust.IsInvite(j) {
			if _, port, err := net.SplitHostPort(j); err != nil || port == "" {
				return given, nil, fmt.Errorf("--join %.80q: want an invite token (zor1.…) or HOST:PORT", j)
			}
			seeds = append(seeds, j)
			continue
		}
		inv, err := trust.ParseInvite(j)
		if err != nil {
			return given, nil, err
		}
		if !given.IsZero() && !given.Equal(inv.Secret) {
			return given, nil, errors.New("--join and --secret name different networks: give one of them")
		}
		given = inv.Secret
		seeds = append(seeds, inv.Addrs...)
	}
	if _, err := os.Stat(d.file("secret")); given.IsZero() && len(seeds) > 0 && errors.Is(err, fs.ErrNotExist) {
		return given, nil, fmt.Errorf("--join %.80q: this node does not know that network's secret yet: "+
			"use the token that 'zorilla invite' prints there, or add --secret-file",
			seeds[0])
	}
	return given, seeds, nil
}

// secret returns the network's secret and the addresses to join: those that the
// configuration gives, of which the secret is then kept, else what is kept here.
func (d stateDir) secret(text string, join []string, log zerolog.Logger) (trust.Secret, []string, error) {
	path := d.file("secret")
	given, seeds, err := d.invited(text, join)
	if err != nil {
		return given, nil, err
	}
	if given.IsZero() {
		s, err := trust.LoadOrNewSecret(path)
		return s, seeds, err
	}
	old, err := trust.LoadSecret(path)
	switch {
	case err == nil && old.Equal(given):
		return given, seeds, nil
	case err == nil:
		log.Warn().Msg("the network secret has changed: this node leaves its old network for the one of the new secret")
		os.Remove(d.file("peers"))
	}
	return given, seeds, trust.SaveSecret(path, given)
}

// formerAddr begins the lines of peers that are addresses of this node itself.
const formerAddr = "self "

// loadPeers reads the saved addresses of members; what is not one is ignored.
func (d stateDir) loadPeers() []string { return d.loadAddrs("") }

// formerAddrs reads where this node was when it ran last.
func (d stateDir) formerAddrs() []string { return d.loadAddrs(formerAddr) }

func (d stateDir) loadAddrs(prefix string) []string {
	b, err := os.ReadFile(d.file("peers"))
	if err != nil {
		return nil
	}
	var addrs []string
	for line := range strings.Lines(string(b)) {
		line, ok := strings.CutPrefix(strings.TrimSpace(line), prefix)
		if _, err := netip.ParseAddrPort(line); err == nil && ok {
			addrs = append(addrs, line)
		}
	}
	return addrs
}

// savePeers keeps addresses of members for the next start, with those of this
// node.
func (d stateDir) savePeers(peers, own []string) error {
	lines := slices.Clone(peers)
	for _, addr := range own {
		lines = append(lines, formerAddr+addr)
	}
	return atomicfile.How{Loose: true}.Write(d.file("peers"), []byte(strings.Join(lines, "\n")+"\n"))
}

// webToken returns the page's token, made at first use.
func (d stateDir) webToken() (string, error) {
	path := d.file("web-token")
	if b, err := os.ReadFile(path); err == nil && len(b) > 20 {
		return strings.TrimSpace(string(b)), nil
	}
	var raw [24]byte
	rand.Read(raw[:])
	token := base64.RawURLEncoding.EncodeToString(raw[:])
	return token, atomicfile.Write(path, []byte(token+"\n"))
}

// keepOutputs returns how many bytes of results are kept here: as many as the
// owner says, else a tenth of the disk.
func (d stateDir) keepOutputs(owner int64) int64 {
	var st syscall.Statfs_t
	if owner > 0 || syscall.Statfs(string(d), &st) != nil {
		return owner
	}
	return int64(st.Blocks) * int64(st.Bsize) / 10
}
