package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// censusVariable names the file in which the lab's script writes down the
// namespaces that exist in there, one per line.
const censusVariable = "ZORILLA_CENSUS"

// writeCensus writes down this process's namespaces and those of the hosts.
func writeCensus(lab string) error {
	var b bytes.Buffer
	for _, kind := range []string{"pid", "mnt", "ipc"} {
		link, err := os.Readlink("/proc/self/ns/" + kind)
		if err != nil {
			return err
		}
		fmt.Fprintln(&b, link)
	}
	entries, err := os.ReadDir(filepath.Join(lab, "net"))
	if err != nil {
		return err
	}
	for _, e := range entries {
		inode, err := inodeOf(filepath.Join(lab, "net", e.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, "net:[%d]\n", inode)
	}
	return os.WriteFile(os.Getenv(censusVariable), b.Bytes(), 0o600)
}

// surroundings is what the machine had before the lab.
type surroundings struct {
	links, mounts []string
}

func lookAround() (surroundings, error) {
	var s surroundings
	interfaces, err := net.Interfaces()
	if err != nil {
		return s, err
	}
	for _, i := range interfaces {
		s.links = append(s.links, i.Name)
	}
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return s, err
	}
	s.mounts = strings.Split(strings.TrimSpace(string(mounts)), "\n")
	return s, nil
}

// compare waits until nothing is left of the lab whose namespaces are in the
// file, and returns what does not go.
func (s surroundings) compare(ctx context.Context, census string) error {
	for end := time.Now().Add(10 * time.Second); ; {
		left, err := s.leftovers(census)
		if err != nil || len(left) == 0 {
			return err
		}
		if time.Now().After(end) || ctx.Err() != nil {
			return errors.New("the lab left behind: " + strings.Join(left, "; "))
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// leftovers returns processes in the namespaces, and links and mounts that were
// not there before and look like those of a lab: others may come and go.
func (s surroundings) leftovers(census string) ([]string, error) {
	b, err := os.ReadFile(census)
	if err != nil {
		return nil, fmt.Errorf("the lab's script did not tell its namespaces: %w", err)
	}
	namespaces := strings.Fields(string(b))
	if len(namespaces) < 3+1+12 {
		return nil, fmt.Errorf("the lab had only %d namespaces", len(namespaces))
	}
	now, err := lookAround()
	if err != nil {
		return nil, err
	}
	var left []string
	for _, l := range now.links {
		if !slices.Contains(s.links, l) && slices.ContainsFunc([]string{"site", "host", "port"}, func(p string) bool { return strings.HasPrefix(l, p) }) {
			left = append(left, "link "+l)
		}
	}
	for _, m := range now.mounts {
		if !slices.Contains(s.mounts, m) && (strings.HasPrefix(m, "zorilla-lab ") || strings.HasPrefix(m, "nsfs ")) {
			left = append(left, "mount "+m)
		}
	}
	processes, err := filepath.Glob("/proc/[0-9]*/ns/*")
	if err != nil {
		return nil, err
	}
	for _, p := range processes {
		if link, err := os.Readlink(p); err == nil && slices.Contains(namespaces, link) { // an error: it has ended
			left = append(left, strings.TrimPrefix(p, "/proc/")+" is "+link)
		}
	}
	return left, nil
}
