package main

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"
)

// pingPort is where echoes listen.
const pingPort = "7007"

// probe is this program on a host, or in place of the script:
//
//	echo            answers packets
//	ping ADDRESS... prints the trips to each as JSON
//	linger          starts a node and stays
func probe(args []string) error {
	switch args[0] {
	case "echo":
		return echo()
	case "ping":
		return ping(args[1:])
	case "linger":
		return linger()
	}
	return fmt.Errorf("%q: want echo, ping or linger", args[0])
}

func echo() error {
	c, err := net.ListenPacket("udp4", ":"+pingPort)
	if err != nil {
		return err
	}
	b := make([]byte, 1500)
	for {
		n, from, err := c.ReadFrom(b)
		if err != nil {
			return err
		}
		if _, err := c.WriteTo(b[:n], from); err != nil {
			return err
		}
	}
}

// trips is what ping tells of one address, in milliseconds.
type trips struct{ Least, Median float64 }

func ping(addresses []string) error {
	found := map[string]trips{}
	for _, a := range addresses {
		c, err := net.Dial("udp4", net.JoinHostPort(a, pingPort))
		if err != nil {
			return err
		}
		var all []time.Duration
		b := make([]byte, 64)
		for try := 0; len(all) < 9 && try < 50; try++ {
			begin := time.Now()
			_ = c.SetDeadline(begin.Add(200 * time.Millisecond))
			if _, err := c.Write(b); err != nil {
				continue // nobody listens yet
			}
			if _, err := c.Read(b); err == nil {
				all = append(all, time.Since(begin))
			}
		}
		if err := c.Close(); err != nil {
			return err
		}
		if len(all) < 9 {
			return fmt.Errorf("%s answers %d of 9 pings", a, len(all))
		}
		slices.Sort(all)
		found[a] = trips{all[0].Seconds() * 1000, all[len(all)/2].Seconds() * 1000}
	}
	return json.NewEncoder(os.Stdout).Encode(found)
}

// linger is a script that runs until it is killed, with a daemon beside it.
func linger() error {
	lab := os.Getenv("ZORILLA_LAB")
	node := onHost("nancy-1", "zorilla", "node", "--web", "none")
	node.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	out, err := node.StdoutPipe()
	if err != nil {
		return err
	}
	if err := node.Start(); err != nil {
		return err
	}
	var said strings.Builder
	for b := make([]byte, 1); !strings.HasSuffix(said.String(), "\n"); {
		if _, err := out.Read(b); err != nil {
			return fmt.Errorf("the node ended: %w", err)
		}
		said.Write(b)
	}
	if err := writeCensus(lab); err != nil {
		return err
	}
	fmt.Println("kill me")
	return node.Wait()
}

func inodeOf(file string) (uint64, error) {
	var st syscall.Stat_t
	if err := syscall.Stat(file, &st); err != nil {
		return 0, fmt.Errorf("%s: %w", file, err)
	}
	return st.Ino, nil
}
