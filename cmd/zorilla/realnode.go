package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"strconv"
	"time"

	"github.com/rs/zerolog"

	"zorilla/internal/freemem"
	"zorilla/jobs"
	"zorilla/jobs/proc"
	"zorilla/jobs/users"
	"zorilla/node"
	"zorilla/node/api"
)

// runNode is the real startNode.
func runNode(ctx context.Context, o nodeOptions, ready func(s api.Service, first bool)) error {
	if err := proc.Guard(); err != nil { // it holds the secret
		return err
	}
	runAs, numbers, err := workerUsers(o.RunAs)
	if err != nil {
		return err
	}
	level := zerolog.InfoLevel
	if o.Verbose {
		level = zerolog.DebugLevel
	}
	log := zerolog.New(zerolog.ConsoleWriter{Out: o.Log, TimeFormat: time.DateTime, NoColor: !colours(o.Log)}).
		Level(level).With().Timestamp().Logger()
	cfg := node.Config{
		State: o.State, Work: o.Work,
		Owner: node.Owner{
			Name: o.Name, Site: o.Site, Labels: o.Labels,
			Slots: o.Slots, GPUs: o.GPUs, Speeds: o.Speeds, Pin: o.Pin, Changes: o.Changes,
			RunAs: runAs, Users: numbers, Require: o.Require,
			NodeLimit: o.NodeLimit, OrphanLimit: o.OrphanLimit,
			KeepFor: o.KeepFor, KeepOutputs: o.KeepOutputs, KeepFree: o.KeepFree, Cache: o.Cache,
		},
		Listen: o.Listen, Advertise: o.Advertise, Web: o.Web, WebInsecure: o.WebInsecure, Join: o.Join, Secret: o.Secret,
		Log: log,
	}
	go freemem.Run(ctx)
	for {
		err := live(ctx, cfg, ready)
		if !errors.Is(err, node.ErrMoved) || ctx.Err() != nil {
			return err
		}
		log.Warn().Msg("the address of this machine has changed: joining the network again")
		ready = func(api.Service, bool) {} // how others join was said
	}
}

// live is one life of a node.
func live(ctx context.Context, cfg node.Config, ready func(s api.Service, first bool)) error {
	n, err := node.New(cfg)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	told := make(chan struct{})
	go func() {
		defer close(told)
		select {
		case <-n.Ready():
			ready(n.Service(), n.First())
		case <-ctx.Done():
		}
	}()
	err = n.Run(ctx)
	stop()
	<-told
	return err
}

// workerUsers returns whom workers run as, or the numbers of which each job gets one;
// neither for the node's own user.
func workerUsers(named string) (*jobs.User, *users.Range, error) {
	root := os.Geteuid() == 0
	numbers, err := users.Default, error(nil)
	switch {
	case named == "" && !root:
		return nil, nil, nil
	case named == "" && !numbers.Mapped(): // in a container of an ordinary user
		named = "nobody"
	case users.IsRange(named):
		if numbers, err = users.Parse(named); err == nil && !root {
			err = errors.New("only root can run workers as other users")
		}
		if err == nil && !numbers.Mapped() {
			err = errors.New("this container has no such users")
		}
	}
	if named != "" && !users.IsRange(named) {
		u, err := workerUser(named, root)
		return u, nil, err
	}
	if err == nil {
		err = numbers.Check()
	}
	if err != nil {
		return nil, nil, fmt.Errorf("--run-as: %w", err)
	}
	return nil, &numbers, nil
}

func workerUser(name string, root bool) (*jobs.User, error) {
	u, err := user.Lookup(name)
	if err != nil {
		if u, err = user.LookupId(name); err != nil {
			return nil, fmt.Errorf("--run-as %s: no such user", name)
		}
	}
	uid, err1 := strconv.Atoi(u.Uid)
	gid, err2 := strconv.Atoi(u.Gid)
	if err1 != nil || err2 != nil {
		return nil, fmt.Errorf("--run-as %s: user %s of group %s has no number", name, u.Uid, u.Gid)
	}
	if !root && uid != os.Geteuid() {
		return nil, fmt.Errorf("--run-as %s: only root can run workers as another user", name)
	}
	return &jobs.User{UID: uid, GID: gid}, nil
}
