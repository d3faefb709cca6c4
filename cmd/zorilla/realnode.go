package main

import (
	"context"
	"fmt"
	"os"
	"os/user"
	"strconv"
	"time"

	"github.com/rs/zerolog"

	"zorilla/jobs"
	"zorilla/jobs/proc"
	"zorilla/node"
	"zorilla/node/api"
)

// runNode is the real startNode.
func runNode(ctx context.Context, o nodeOptions, ready func(s api.Service, first bool)) error {
	if err := proc.Guard(); err != nil { // it holds the secret
		return err
	}
	runAs, err := workerUser(o.RunAs)
	if err != nil {
		return err
	}
	level := zerolog.InfoLevel
	if o.Verbose {
		level = zerolog.DebugLevel
	}
	log := zerolog.New(zerolog.ConsoleWriter{Out: o.Log, TimeFormat: time.DateTime, NoColor: !colours(o.Log)}).
		Level(level).With().Timestamp().Logger()
	n, err := node.New(node.Config{
		State: o.State, Work: o.Work,
		Owner:  node.Owner{Name: o.Name, Site: o.Site, Slots: o.Slots, RunAs: runAs, Require: o.Require, Labels: o.Labels, GPUs: o.GPUs, Changes: o.Changes, NodeLimit: o.NodeLimit, OrphanLimit: o.OrphanLimit, KeepFor: o.KeepFor, KeepOutputs: o.KeepOutputs},
		Listen: o.Listen, Advertise: o.Advertise, Web: o.Web, Join: o.Join, Secret: o.Secret,
		Log: log,
	})
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

// workerUser returns whom workers run as, or nil for the node's own user.
func workerUser(name string) (*jobs.User, error) {
	root := os.Geteuid() == 0
	if name == "" {
		if !root {
			return nil, nil
		}
		name = "nobody"
	}
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
