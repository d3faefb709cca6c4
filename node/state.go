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

	"zorilla/internal/atomicfile"
	"zorilla/node/trust"
)

// openState makes the state directory and locks it for this process.
func (n *Node) openState() (unlock func(), err error) {
	dir := n.cfg.State
	if !filepath.IsAbs(dir) {
		return nil, fmt.Errorf("state directory %q: want an absolute path", dir)
	}
	// Workers of another user pass through; everything private is 0600.
	if err := os.MkdirAll(dir, 0o711); err != nil {
		return nil, fmt.Errorf("state directory: %w", err)
	}
	lock, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("state directory: %w", err)
	}
	if !locked(lock) {
		lock.Close()
		return nil, fmt.Errorf("state directory %s: a node is using it already: choose another with --state", dir)
	}
	return func() { lock.Close() }, nil
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

// secret returns the network's secret and the addresses to join: from the
// configuration, which is then kept, else from the state directory.
func (n *Node) secret() (trust.Secret, []string, error) {
	path := filepath.Join(n.cfg.State, "secret")
	var given trust.Secret
	var seeds []string
	if n.cfg.Secret != "" {
		s, err := trust.ParseSecret(n.cfg.Secret)
		if err != nil {
			return given, nil, err
		}
		given = s
	}
	for _, j := range n.cfg.Join {
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
	if given.IsZero() {
		if _, err := os.Stat(path); len(seeds) > 0 && errors.Is(err, fs.ErrNotExist) {
			return given, nil, fmt.Errorf("--join %.80q: this node does not know that network's secret yet: use the token that 'zorilla invite' prints there, or add --secret-file", seeds[0])
		}
		s, err := trust.LoadOrNewSecret(path)
		return s, seeds, err
	}
	old, err := trust.LoadSecret(path)
	switch {
	case err == nil && old.Equal(given):
		return given, seeds, nil
	case err == nil:
		n.log.Warn().Msg("the network secret has changed: this node leaves its old network for the one it was told to join")
		os.Remove(filepath.Join(n.cfg.State, "peers"))
	}
	return given, seeds, trust.SaveSecret(path, given)
}

// formerAddr begins the lines of peers that are addresses of this node itself.
const formerAddr = "self "

// loadPeers reads the saved addresses of members; what is not one is ignored.
func (n *Node) loadPeers() []string { return n.loadAddrs("") }

// formerAddrs reads where this node was when it ran last.
func (n *Node) formerAddrs() []string { return n.loadAddrs(formerAddr) }

func (n *Node) loadAddrs(prefix string) []string {
	b, err := os.ReadFile(filepath.Join(n.cfg.State, "peers"))
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

// savePeers keeps addresses for the next start, with those of this node.
func (n *Node) savePeers(peers []string) error {
	if n.overlay != nil {
		peers = slices.Clone(peers)
		for _, addr := range n.overlay.Self().Addrs {
			peers = append(peers, formerAddr+addr)
		}
	}
	return atomicfile.How{Sync: atomicfile.Loose}.Write(filepath.Join(n.cfg.State, "peers"), []byte(strings.Join(peers, "\n")+"\n"))
}

// webToken returns the page's token, made at first use.
func (n *Node) webToken() (string, error) {
	path := filepath.Join(n.cfg.State, "web-token")
	if b, err := os.ReadFile(path); err == nil && len(b) > 20 {
		return strings.TrimSpace(string(b)), nil
	}
	var raw [24]byte
	rand.Read(raw[:])
	token := base64.RawURLEncoding.EncodeToString(raw[:])
	return token, atomicfile.Write(path, []byte(token+"\n"))
}
