package node

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"zorilla/jobs"
	"zorilla/jobs/agent"
	"zorilla/jobs/journal"
	"zorilla/jobs/remover"
	"zorilla/jobs/users"
	"zorilla/node/gossip"
	"zorilla/transfer"
	"zorilla/vicinity"
)

// Defaults of a node's addresses.
const (
	DefaultListen = "0.0.0.0:5444"
	DefaultWeb    = "127.0.0.1:5446"
)

// Config says what a node is like. The zero value with State set is a usable
// node on the default addresses.
type Config struct {
	State string // directory, absolute; made if missing
	Work  string // directory below which workers have theirs, absolute; "" = in State
	Owner Owner

	Listen      string   // "host:port", TCP and UDP; DefaultListen
	Advertise   string   // "host:port" that others dial, if not what Listen says
	Web         string   // "host:port" of the page; "" = DefaultWeb or the next free port; "none" = no page
	WebInsecure bool     // the page may be where others on the network read along: it has no TLS
	Join        []string // "host:port" of members, or invite tokens
	Secret      string   // phrase or text form; "" = of the state directory, made if missing

	Seams Seams
	Log   zerolog.Logger
}

// Owner is what the machine's owner says of the node.
type Owner struct {
	Name   string     // label; the host name
	Site   string     // free label
	Slots  int        // capacity; the number of cores
	Memory int64      // bytes; what the machine has
	RunAs  *jobs.User // whom workers run as; nil = the node's own user
	// Users are numbers of which each job gets one, instead of RunAs; nil = none. The
	// node is root.
	Users *users.Range
	// Require is what must confine workers, or the node does not start: a value of
	// Requirements; "" = nothing.
	Require string

	// Pin: ranks of MPI programs get processors of their own, which this machine's other
	// nodes, if it has some, may give to theirs, too. Slots are no more than there are.
	Pin bool

	// NodeLimit is how long workers go on without the node; 0 = an hour,
	// negative = they end with it. OrphanLimit is how long they go on without
	// word of the node where their job was submitted; 0 = an hour.
	NodeLimit, OrphanLimit time.Duration

	// KeepFor is how long results of jobs that were submitted here are kept
	// after their end; 0 = a week. KeepOutputs is how many bytes of them; 0 = a
	// tenth of the disk that the state directory is on.
	KeepFor     time.Duration
	KeepOutputs int64

	// Cache is how many bytes of chunks that nobody needs are kept for later jobs;
	// 0 = transfer.DefaultCache.
	Cache int64

	// KeepFree is how many bytes workers leave free where their files are; 0 = 1 GiB, or
	// 2 % of that file system if that is less; negative = none.
	KeepFree int64

	Labels  map[string]string // told to others, see vicinity.CheckLabels
	GPUs    int               // 0 = those that the machine reports; negative = none
	Speeds  vicinity.Speeds   // 0 of one = what the machine reports, and of the power what is measured
	Changes []string          // to what the owner allows, see jobs.Limits.Change; kept for later starts
}

// Seams are the node's ways to the outside. Nil means the real thing.
type Seams struct {
	Net       gossip.Net
	Overlay   func(gossip.Config) (Overlay, error)
	Runner    agent.Runner
	Hooks     agent.HookRunner // with another Runner than the real one: nil = commands of --on-end are refused
	CleanRoot func(root string, pace remover.Pace, keep ...string) error
	Journal   journal.Journal
	Store     transfer.PinStore
	Rand      *rand.Rand
	Offline   bool // no unix socket and no page: tests call Service directly; nor is its disk looked at, and its speeds are the owner's
}

// DefaultState returns the state directory that is used if none is named:
// $XDG_STATE_HOME/zorilla or ~/.local/state/zorilla, and /var/lib/zorilla for
// root, whose home other users cannot enter.
func DefaultState() (string, error) {
	if dir := os.Getenv("XDG_STATE_HOME"); dir != "" {
		return filepath.Join(dir, "zorilla"), nil
	}
	if os.Geteuid() == 0 {
		return "/var/lib/zorilla", nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("state directory: %w: name one with --state-dir", err)
	}
	return filepath.Join(home, ".local", "state", "zorilla"), nil
}

// Socket returns where a node with this state directory serves its clients.
func Socket(state string) string { return filepath.Join(state, "zorilla.sock") }

// Overlay is a node's way to the other nodes. The real one is
// *gossip.Overlay, whose documentation says what the methods do.
type Overlay interface {
	// Listen binds the node's port; Self and PeerListener can be used then.
	Listen(ctx context.Context) error
	// Run takes part in the network until ctx ends.
	Run(ctx context.Context) error

	Self() vicinity.Member
	Members() []vicinity.Member
	Member(id vicinity.ID) (vicinity.Member, bool)
	Seeds() []string

	Send(to vicinity.ID, kind byte, payload []byte) error
	PeerListener() net.Listener
	Way(id vicinity.ID) gossip.Way
	Leave()
	DialPeer(ctx context.Context, id vicinity.ID, addrs []string, protos ...string) (net.Conn, error)

	Stats() map[string]int64
}

var _ Overlay = (*gossip.Overlay)(nil)

// Requirements are the values of Owner.Require, the weakest first.
func Requirements() []string { return []string{"none", "basic", "full"} }

// require returns an error if what confines workers is less than what the owner wants.
func require(what string, enforces []string) error {
	has := func(name string) bool { return slices.Contains(enforces, name) }
	var ok bool
	missing := ""
	switch what {
	case "", "none":
		return nil
	case "basic":
		ok, missing = has("landlock") || has("namespaces"), "neither Landlock (kernel 5.13 or later, CONFIG_SECURITY_LANDLOCK) nor namespaces"
	case "full":
		ok, missing = has("namespaces"), "no namespaces for its user (kernel 5.12 or later; "+
			"not forbidden by kernel.unprivileged_userns_clone, kernel.apparmor_restrict_unprivileged_userns, user.max_user_namespaces or a container)"
	default:
		return fmt.Errorf("--require-sandbox %.20q: want %s", what, strings.Join(Requirements(), ", "))
	}
	if ok {
		return nil
	}
	found := "nothing works"
	if len(enforces) > 0 {
		found = "what works is " + strings.Join(enforces, ", ")
	}
	return fmt.Errorf("--require-sandbox %s: this machine has %s; %s", what, missing, found)
}
