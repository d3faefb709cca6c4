package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"zorilla/internal/owned"
	"zorilla/internal/units"
	"zorilla/jobs"
	"zorilla/node"
	"zorilla/vicinity"
)

// nodeOptions is what the command line says of a node.
type nodeOptions struct {
	State, Work            string // absolute
	Join                   []string
	Secret                 string
	Name, Site             string
	Listen, Advertise, Web string
	WebInsecure            bool
	RunAs                  string // user name or number, or FIRST-LAST; "" = users.Default if root, else oneself
	NodeLimit, OrphanLimit time.Duration
	Pin                    bool
	KeepFor                time.Duration
	KeepOutputs            int64 // bytes; 0 = a tenth of the disk
	Cache                  int64 // bytes; 0 = as usual
	KeepFree               int64 // bytes; 0 = as usual; negative = nothing
	Labels                 map[string]string
	Require                string   // one of node.Requirements
	Changes                []string // to what the owner allows
	Verbose                bool
	Log                    io.Writer
	lent
}

// lent is what the machine has, as its owner says; 0 = what it reports.
type lent struct {
	Slots  int
	GPUs   int // negative = none
	Speeds vicinity.Speeds
}

// optionsOf reads the command line of a node that logs to log.
func optionsOf(c *cli.Context, log io.Writer) (nodeOptions, error) {
	o := nodeOptions{
		State: c.String("state-dir"), Work: c.String("work"), Join: commas(c.StringSlice("join")), Secret: c.String("secret"),
		Name: c.String("name"), Site: c.String("site"),
		Listen: c.String("listen"), Advertise: c.String("advertise"), Web: c.String("web"), WebInsecure: c.Bool("web-insecure"),
		lent: lent{Slots: c.Int("slots")}, RunAs: c.String("run-as"), Require: c.String("require-sandbox"),
		NodeLimit: c.Duration("node-limit"), OrphanLimit: c.Duration("orphan-limit"), Pin: c.Bool("pin"),
		Verbose: c.Bool("v"), Log: log,
	}
	if c.IsSet("slots") && o.Slots < 1 {
		return o, usage(c, "--slots %d: want 1 or more", o.Slots)
	}
	switch {
	case o.NodeLimit < 0:
		return o, usage(c, "--node-limit %v: want 0 or more", o.NodeLimit)
	case o.NodeLimit == 0:
		o.NodeLimit = -1 // the node's word for it
	}
	if !slices.Contains(node.Requirements(), o.Require) {
		return o, usage(c, "--require-sandbox %s: want none, basic or full", o.Require)
	}
	if o.OrphanLimit <= 0 {
		return o, usage(c, "--orphan-limit %v: want more than 0", o.OrphanLimit)
	}
	if err := keepOptions(c, &o); err != nil {
		return o, usage(c, "%v", err)
	}
	if err := ownerOptions(c, &o); err != nil {
		return o, err
	}
	if file := c.String("secret-file"); file != "" {
		if o.Secret != "" {
			return o, usage(c, "--secret and --secret-file: give one of them")
		}
		b, err := readOwn(file)
		if err != nil {
			return o, fmt.Errorf("--secret-file: %w", err)
		}
		if o.Secret = strings.TrimSpace(string(b)); o.Secret == "" {
			return o, fmt.Errorf("--secret-file %s: is empty", file)
		}
	}
	if o.State == "" {
		state, err := node.DefaultState()
		if err != nil {
			return o, err
		}
		o.State = state
	}
	var err error
	if o.State, err = filepath.Abs(o.State); err != nil {
		return o, err
	}
	if o.Work != "" {
		if o.Work, err = filepath.Abs(o.Work); err != nil {
			return o, err
		}
	}
	return o, nil
}

// keepOptions reads how long, and how much of, results are kept, and what is kept free.
func keepOptions(c *cli.Context, o *nodeOptions) (err error) {
	if o.KeepFor, err = parseTime("--keep-for", c.String("keep-for")); err == nil && c.String("keep-outputs") != "" {
		o.KeepOutputs, err = parseSize("--keep-outputs", c.String("keep-outputs"))
	}
	if size := c.String("cache"); err == nil && size != "" {
		o.Cache, err = parseSize("--cache", size)
	}
	switch free := c.String("keep-free"); {
	case err != nil || free == "":
	case free == "0":
		o.KeepFree = -1 // the node's word for it
	default:
		o.KeepFree, err = parseSize("--keep-free", free)
	}
	return err
}

// commas splits values further: a variable can hold only one string.
func commas(values []string) []string {
	var out []string
	for _, v := range values {
		for part := range strings.SplitSeq(v, ",") {
			if part = strings.TrimSpace(part); part != "" {
				out = append(out, part)
			}
		}
	}
	return out
}

// ownerOptions reads what the owner says of a node when it is started.
func ownerOptions(c *cli.Context, o *nodeOptions) error {
	o.Labels = map[string]string{}
	for _, l := range commas(c.StringSlice("label")) {
		k, v, found := strings.Cut(l, "=")
		if !found {
			return usage(c, "--label %s: want NAME=VALUE", l)
		}
		o.Labels[k] = v
	}
	if err := vicinity.CheckLabels(o.Labels); err != nil {
		return usage(c, "--label: %v", err)
	}
	if c.IsSet("gpus") {
		if o.GPUs = c.Int("gpus"); o.GPUs < 0 || o.GPUs > jobs.MaxGPUs {
			return usage(c, "--gpus %d: want 0 to %d", o.GPUs, jobs.MaxGPUs)
		}
		if o.GPUs == 0 {
			o.GPUs = -1 // the node's word for none
		}
	}
	if err := speedOptions(c, &o.Speeds); err != nil {
		return usage(c, "%v", err)
	}
	var check jobs.Limits
	words := []string{"mounts", "network", "upload-limit", "max-kept", "hours", "after-hours", "max-walltime"}
	for _, name := range append([]string{"max-jobs", "max-workers-per-job", "allow", "deny", "expose"}, words...) {
		if !c.IsSet(name) {
			continue
		}
		values := commas(c.StringSlice(name))
		if slices.Contains(words, name) {
			values = []string{c.String(name)}
		}
		for i, p := range values {
			if name != "expose" || p == "none" {
				continue
			}
			abs, err := filepath.Abs(p)
			if err != nil {
				return err
			}
			values[i] = abs
		}
		value := strings.Join(values, ",")
		if n := c.Int(name); name == "max-jobs" || name == "max-workers-per-job" {
			if value = strconv.Itoa(n); n == 0 {
				value = "none"
			}
		}
		change := name + "=" + value
		if err := check.Change(change); err != nil {
			return usage(c, "--%s: %v", name, errors.Unwrap(err))
		}
		o.Changes = append(o.Changes, change)
	}
	return nil
}

// maxPower is what --power accepts at most: a thousand such cores in one.
const maxPower = 1_000_000

// speedOptions reads what the owner says of the speed of the machine; 0 = nothing.
func speedOptions(c *cli.Context, s *vicinity.Speeds) (err error) {
	if text := c.String("clock"); c.IsSet("clock") {
		if s.Clock, err = units.ParseClock(text); err != nil {
			return fmt.Errorf("--clock %s: %w", text, err)
		}
	}
	if s.Power = int64(c.Int("power")); c.IsSet("power") && (s.Power < 1 || s.Power > maxPower) {
		return fmt.Errorf("--power %d: want 1 to %d (1000 = a core of a server with 2.4 GHz)", s.Power, maxPower)
	}
	if text := c.String("bandwidth"); c.IsSet("bandwidth") {
		if s.Bandwidth, err = units.ParseBandwidth(text); err != nil {
			return fmt.Errorf("--bandwidth %s: %w", text, err)
		}
	}
	return nil
}

// maxSecretFile bounds what is read as a secret.
const maxSecretFile = 64 << 10

// readOwn reads a file that nobody else can have written, which may be a pipe.
func readOwn(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err == nil {
		err = owned.File(path, info)
	}
	if err == nil && info.Mode().IsRegular() {
		err = owned.Way(filepath.Dir(path))
	}
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(io.LimitReader(f, maxSecretFile+1))
	if err == nil && len(b) > maxSecretFile {
		err = fmt.Errorf("%s is larger than %d bytes: not a secret", path, maxSecretFile)
	}
	return b, err
}
