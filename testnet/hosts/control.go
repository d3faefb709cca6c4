package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"text/tabwriter"
	"time"
)

const maxMbit = 100_000

const controlUsage = `lab host HOST COMMAND [ARGUMENT...]     run a command on a host
lab show                                hosts, addresses, what is cut, packets between sites
lab cut site SITE | host HOST           nothing gets in or out any more
lab heal [site SITE | host HOST]        end this cut, or all
lab loss PERCENT                        lose packets between sites
lab rate host HOST MBIT                 limit each direction of a host's cable; 0: no limit
lab rate site SITE MBIT                 limit what a site sends to all others together
lab crash HOST                          kill all processes of a host
`

// control answers the requests of "lab" in the script: one line each, and
// after the answer's text a line that is "ok" or "error: ...".
type control struct {
	mu  sync.Mutex // one change at a time
	net *network
	cut []bool // by host; guarded by mu
}

// serve answers requests until the listener is closed.
func (c *control) serve(l net.Listener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer conn.Close()
			_ = conn.SetDeadline(time.Now().Add(30 * time.Second))
			line, err := bufio.NewReader(io.LimitReader(conn, 4096)).ReadString('\n')
			if err != nil {
				return
			}
			text, err := c.do(strings.Fields(line))
			end := "ok"
			if err != nil {
				end = "error: " + err.Error()
			}
			fmt.Fprintf(conn, "%s%s\n", text, end)
		}()
	}
}

// do carries out one request.
func (c *control) do(args []string) (text string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.net
	is := func(words ...string) bool { // "" stands for any word
		if len(words) != len(args) {
			return false
		}
		for i, w := range words {
			if w != "" && w != args[i] {
				return false
			}
		}
		return true
	}
	switch {
	case is("show"):
		return c.show(), nil
	case is("heal"):
		clear(c.cut)
		return "", n.heal()
	case is("cut", "site", ""), is("heal", "site", ""):
		i, err := known("site", args[2], n.plan.SiteIndex)
		if err == nil {
			n.cutSite(i, args[0] == "cut")
		}
		return "", err
	case is("cut", "host", ""), is("heal", "host", ""):
		i, err := known("host", args[2], n.plan.HostIndex)
		if err == nil {
			c.cut[i] = args[0] == "cut"
			err = n.cutHost(i, c.cut[i])
		}
		return "", err
	case is("loss", ""):
		percent, err := number(args[1], checkLoss)
		if err == nil {
			err = n.lose(percent)
		}
		return "", err
	case is("rate", "host", "", ""):
		return "", limit(args, n.plan.HostIndex, n.hostRate)
	case is("rate", "site", "", ""):
		return "", limit(args, n.plan.SiteIndex, n.siteRate)
	case is("crash", ""):
		i, err := known("host", args[1], n.plan.HostIndex)
		if err != nil {
			return "", err
		}
		return "", n.crash(i)
	}
	return "", fmt.Errorf("%.80q is no request: 'lab help' lists them", strings.Join(args, " "))
}

// limit carries out a request "rate".
func limit(args []string, index func(string) int, do func(i int, mbit float64) error) error {
	i, err := known(args[1], args[2], index)
	if err != nil {
		return err
	}
	mbit, err := number(args[3], checkRate)
	if err != nil {
		return err
	}
	return do(i, mbit)
}

// known returns the index of a site or host.
func known(what, name string, index func(string) int) (int, error) {
	if i := index(name); i >= 0 {
		return i, nil
	}
	return 0, fmt.Errorf("%s %.40q: there is no such %s: 'lab show' lists them", what, name, what)
}

func checkLoss(percent float64) error {
	if !(percent >= 0 && percent <= 100) {
		return fmt.Errorf("%v percent, want 0 to 100", percent)
	}
	return nil
}

func checkRate(mbit float64) error {
	if !(mbit == 0 || mbit >= 0.01 && mbit <= maxMbit) {
		return fmt.Errorf("%v Mbit/s, want 0.01 to %d, or 0 for no limit", mbit, maxMbit)
	}
	return nil
}

func number(text string, check func(float64) error) (float64, error) {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return 0, fmt.Errorf("%.40q: want a number", text)
	}
	return v, check(v)
}

func (c *control) show() string {
	now := c.net.router.now.Load()
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "HOST\tSITE\tADDRESS\tCUT")
	for i, h := range c.net.hosts {
		cut := "-"
		switch {
		case c.cut[i]:
			cut = "host"
		case now.cut[h.Site]:
			cut = "site"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", h.Name, c.net.plan.Sites[h.Site].Name, h.Addr, cut)
	}
	_ = w.Flush() // into memory
	r := c.net.router
	fmt.Fprintf(&b, "between sites: loss %v %%; packets: %d carried, %d lost or cut, %d beyond a queue\n",
		now.loss, r.carried.Load(), r.lost.Load(), r.dropped.Load())
	return b.String()
}
