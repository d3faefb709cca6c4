// Package peers is how the examples find each other: ranks of a malleable Zorilla job that
// talk, lose each other, and find those that come in their place. It uses nothing but what
// docs/malleable.md describes, the host file and the epoch, and may be copied.
//
// The host file tells addresses. So each rank listens at one of a few ports that follow
// from the job's ID, and ranks look through those at each address; who answers says which
// rank of which job it is. Two ranks have two connections: each uses its own to ask, and
// answers at the other's.
package peers

import (
	"fmt"
	"hash/fnv"
	"net"
	"os"
	"strconv"
	"strings"
)

// Place is where a worker is in its job.
type Place struct {
	Job           string
	Rank, Attempt int
	Max           int // ranks that there may be
	Slots         int // threads of its own
	Restart       int // the checkpoint that it goes on from, 0 = none
	hostFile      string
	epochFile     string // "" = the hosts do not change
	socket        string // "" = the node cannot be asked
}

// Here returns the place that Zorilla has told in the environment; without Zorilla, the
// only rank.
func Here(getenv func(string) string) (Place, error) {
	p := Place{Job: "alone", Attempt: 1, Max: 1, Slots: 1}
	if getenv("ZORILLA_JOB_ID") == "" {
		return p, nil
	}
	p.Job, p.hostFile, p.epochFile = getenv("ZORILLA_JOB_ID"), getenv("ZORILLA_HOSTFILE"), getenv("ZORILLA_EPOCH_FILE")
	p.socket = getenv("ZORILLA_SOCKET")
	for name, value := range map[string]*int{"RANK": &p.Rank, "ATTEMPT": &p.Attempt, "MAX": &p.Max, "SLOTS": &p.Slots} {
		n, err := strconv.Atoi(getenv("ZORILLA_" + name))
		if err != nil || n < 0 {
			return p, fmt.Errorf("ZORILLA_%s is %q: want a number", name, getenv("ZORILLA_"+name))
		}
		*value = n
	}
	if restart := getenv("ZORILLA_RESTART"); restart != "" {
		n, err := strconv.Atoi(restart)
		if err != nil || n < 1 {
			return p, fmt.Errorf("ZORILLA_RESTART is %q: want the number of a checkpoint", restart)
		}
		p.Restart = n
	}
	if p.Rank >= p.Max || p.Attempt < 1 || p.Slots < 1 {
		return p, fmt.Errorf("rank %d of %d, attempt %d, %d slots: there is no such place", p.Rank, p.Max, p.Attempt, p.Slots)
	}
	return p, nil
}

// Epoch returns the version of the hosts: what was read of them after that is at least as
// new. 0 = they do not change, or it cannot be told.
func (p Place) Epoch() int64 {
	b, err := os.ReadFile(p.epochFile)
	if err != nil {
		return 0
	}
	n, _ := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
	return n
}

// Hosts returns the addresses of the job's nodes, each once.
func (p Place) Hosts() (list []string) {
	b, err := os.ReadFile(p.hostFile)
	if err != nil {
		return nil
	}
	seen := map[string]bool{}
	for line := range strings.Lines(string(b)) {
		addr, _, found := strings.Cut(line, " ")
		if found && net.ParseIP(addr) != nil && !seen[addr] {
			seen[addr] = true
			list = append(list, addr)
		}
	}
	return list
}

// Ports of a job's ranks: below those that kernels give to whoever asks for none, and
// beside those that Zorilla gives as MASTER_PORT.
const (
	firstPort = 30000
	lastPort  = 32700
	maxPorts  = 128
)

// ports returns where the ranks of a job may listen.
func (p Place) ports() (list []int) {
	h := fnv.New32a()
	h.Write([]byte(p.Job))
	n := min(maxPorts, 2*p.Max+8)
	first := firstPort + int(h.Sum32()%uint32(lastPort-firstPort-n))
	for i := range n {
		list = append(list, first+i)
	}
	return list
}
