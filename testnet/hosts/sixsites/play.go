package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"zorilla/node/api"
)

// near is how much two round trips may differ, in ms, and still count as the
// same: less than that is noise on a busy machine.
const near = 1.0

// play is the lab's script.
func play(ctx context.Context, lab string) error {
	if err := writeCensus(lab); err != nil {
		return err
	}
	s, err := newScene(lab)
	if err != nil {
		return err
	}
	for _, act := range []struct {
		name string
		play func(context.Context) error
	}{
		{"the lab's own round trips", s.truth},
		{"hosts of a site find each other", s.discover},
		{"join across sites", s.join},
		{"round trips", s.distances},
		{"nearest slots first", s.order},
		{"a full network", s.full},
		{"a site is cut off", s.cutSite},
		{"a host is cut off", s.cutHost},
		{"a host loses its power", s.crash},
		{"lost packets", s.loss},
		{"a thin cable", s.thin},
	} {
		if err = act.play(ctx); err != nil {
			err = fmt.Errorf("%s: %w", act.name, err)
			s.tell()
			break
		}
	}
	s.print()
	if err == nil && s.wrong > 0 {
		err = fmt.Errorf("%d rows of the table are wrong", s.wrong)
	}
	return err
}

// tell prints the last words of all nodes, for whoever looks for the error.
func (s *scene) tell() {
	for host := range s.nodes {
		b, err := os.ReadFile(s.logOf(host))
		if err != nil {
			continue
		}
		lines := strings.Split(strings.TrimSpace(string(b)), "\n")
		fmt.Fprintf(os.Stderr, "--- log of %s\n%s\n", host, strings.Join(lines[max(0, len(lines)-15):], "\n"))
	}
}

// truth measures the emulation itself, without Zorilla.
func (s *scene) truth(ctx context.Context) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	for i, host := range s.hosts() {
		if i%2 == 1 {
			continue // one per site is enough
		}
		cmd := onHost(host, self, "echo")
		if err := cmd.Start(); err != nil {
			return err
		}
		defer func() {
			_ = cmd.Process.Kill() // it runs until then
			_ = cmd.Wait()
		}()
	}
	// Between two sites the best of all pings tells what the lab does, and the
	// median how busy the machine is.
	best := map[string]float64{}
	var usual []float64
	took, err := until(ctx, 30*time.Second, "the best ping between any two sites is right", func(context.Context) (bool, string) {
		for from := range s.sites {
			found, err := s.pings(self, from)
			if err != nil {
				return false, err.Error()
			}
			for to := range s.sites {
				if to == from {
					continue
				}
				pair, t := fmt.Sprint(from, to), found[address(to, 1)]
				if old, ok := best[pair]; !ok || t.Least-s.rtt[from][to] < old {
					best[pair] = t.Least - s.rtt[from][to]
				}
				usual = append(usual, t.Median-s.rtt[from][to])
			}
		}
		most := slices.Max(slices.Collect(maps.Values(best)))
		return most < 2, fmt.Sprintf("%.1f ms too long", most)
	})
	if err != nil {
		return err
	}
	least := slices.Sorted(maps.Values(best))
	slices.Sort(usual)
	s.row("the lab itself: what it adds to the best ping between two sites, smallest and largest", span(least), "0 to 2 ms", least[0] >= 0)
	s.row("and to the median of nine pings (on a busy machine: more)", span(usual)+" in "+seconds(took), "-", true)
	return nil
}

// pings asks the echoes of the other sites from one site.
func (s *scene) pings(self string, from int) (found map[string]trips, err error) {
	args := []string{self, "ping"}
	for to := range s.sites {
		if to != from {
			args = append(args, address(to, 1))
		}
	}
	out, err := onHost(s.sites[from]+"-2", args...).Output()
	if err != nil {
		return nil, fmt.Errorf("ping from %s: %w", s.sites[from], err)
	}
	return found, json.Unmarshal(out, &found)
}

// discover starts all nodes with nothing but the secret.
func (s *scene) discover(ctx context.Context) error {
	begin := time.Now()
	for _, h := range s.hosts() {
		if err := s.start(h); err != nil {
			return err
		}
	}
	if _, err := s.know(ctx, 30*time.Second, 2, 2, s.hosts()...); err != nil {
		return err
	}
	for _, h := range s.hosts() {
		members, err := s.nodes[h].client.Nodes(ctx)
		if err != nil {
			return err
		}
		for _, m := range members {
			if s.siteOf(m.Name) != s.siteOf(h) {
				return fmt.Errorf("%s knows %s, which nobody told it", h, m.Name)
			}
		}
	}
	s.row("the two nodes of each site know each other, by the secret alone", seconds(time.Since(begin)), "30 s", true)
	return nil
}

// join starts one node per site anew, with an address of the first site.
func (s *scene) join(ctx context.Context) error {
	var wait sync.WaitGroup
	errs := make([]error, len(s.sites))
	for i, site := range s.sites[1:] {
		wait.Go(func() { errs[i] = s.stop(site + "-1") })
	}
	wait.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	begin := time.Now()
	for _, site := range s.sites[1:] {
		if err := s.start(site+"-1", "--join", address(0, 1)+":5444"); err != nil {
			return err
		}
	}
	if _, err := s.allKnowAll(ctx, 90*time.Second); err != nil {
		return err
	}
	s.row("all know all after five nodes joined by an address", seconds(time.Since(begin)), "90 s", true)
	return nil
}

// distances waits until every node sorts the other sites as they are.
func (s *scene) distances(ctx context.Context) error {
	took, err := until(ctx, 60*time.Second, "all nodes have measured all others", func(ctx context.Context) (bool, string) {
		for _, h := range s.hosts() {
			members, err := s.nodes[h].client.Nodes(ctx)
			if err != nil {
				return false, err.Error()
			}
			for _, m := range members {
				if m.RTT == 0 && !m.Self {
					return false, fmt.Sprintf("%s has not measured %s", h, m.Name)
				}
			}
		}
		return true, ""
	})
	if err != nil {
		return err
	}
	s.row("after that all nodes have measured all others", "after "+seconds(took), "60 s", true)
	var errs, local []float64
	took, err = until(ctx, 90*time.Second, "all nodes sort the sites rightly", func(ctx context.Context) (bool, string) {
		errs, local = nil, nil
		for _, h := range s.hosts() {
			members, err := s.nodes[h].client.Nodes(ctx)
			if err != nil {
				return false, err.Error()
			}
			if wrong := s.sorted(h, members); wrong != "" {
				return false, wrong
			}
			for _, m := range members {
				ms := time.Duration(m.RTT).Seconds() * 1000
				switch a, b := s.siteOf(h), s.siteOf(m.Name); {
				case m.Self:
				case a == b:
					local = append(local, ms)
				default:
					errs = append(errs, math.Abs(ms-s.rtt[a][b]))
				}
			}
		}
		return true, ""
	})
	if err != nil {
		return err
	}
	slices.Sort(errs)
	slices.Sort(local)
	s.row("every node sorts the other sites by round trip, if they differ by 1 ms", seconds(took)+" later", "90 s", true)
	s.row("its round trips to other sites (10.2 to 19.4 ms): median and largest error", middle(errs), "median below 3 ms", errs[len(errs)/2] < 3)
	s.row("its round trip to its own site: median and largest", middle(local), "below 5 ms", last(local) < 5)
	return nil
}

// sorted returns "" if the host's round trips put the sites in their order;
// those that differ by less than near may stand either way.
func (s *scene) sorted(host string, members []api.NodeInfo) string {
	own := s.siteOf(host)
	mean := make([]float64, len(s.sites))
	for _, m := range members {
		mean[s.siteOf(m.Name)] += time.Duration(m.RTT).Seconds() * 1000 / 2
	}
	for a := range s.sites {
		for b := range s.sites {
			if a != own && b != own && s.rtt[own][a]+near < s.rtt[own][b] && mean[a] >= mean[b] {
				return fmt.Sprintf("%s has %s at %.1f ms and %s at %.1f ms; true: %.1f and %.1f", host, s.sites[a], mean[a], s.sites[b], mean[b], s.rtt[own][a], s.rtt[own][b])
			}
		}
	}
	return ""
}

// all waits for the ends of jobs, and reports the first that does not end right.
func all(ctx context.Context, limit time.Duration, list ...*labJob) error {
	var errs []error
	for _, j := range list {
		_, err := j.ends(ctx, limit)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
