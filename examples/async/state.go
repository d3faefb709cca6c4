package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"hash/crc32"
	"os"
	"time"

	"zorilla/examples/peers"
)

// A checkpoint is a directory; this one has a file.
const (
	stateDir  = "state"
	stateFile = stateDir + "/slab"
)

// kept is the first line of a checkpoint; the slab follows, and a checksum of all.
type kept struct {
	N, Rank, Size, Iteration int
	Beside                   [2]version
	Final                    bool
}

func (p *part) keep() []byte {
	s := p.slab
	b, err := json.Marshal(kept{s.n, p.rank, len(p.all), p.iteration, p.beside, p.phase() >= final})
	if err != nil {
		panic(err) // numbers have no errors
	}
	b = append(append(b, '\n'), s.pack(0, s.planes+1)...)
	return binary.LittleEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
}

// restore has a new part go on from a checkpoint.
func (p *part) restore(b []byte) error {
	end := len(b) - 4
	if end < 0 || crc32.ChecksumIEEE(b[:end]) != binary.LittleEndian.Uint32(b[end:]) {
		return errors.New("the checksum is wrong")
	}
	var k kept
	line, values, _ := bytes.Cut(b[:end], []byte("\n"))
	if err := json.Unmarshal(line, &k); err != nil {
		return err
	}
	if k.N != p.slab.n || k.Rank != p.rank || k.Size != len(p.all) {
		return errors.New("it is of another slab")
	}
	if err := p.slab.unpack(0, p.slab.planes+1, values); err != nil {
		return err
	}
	p.iteration, p.beside = k.Iteration, k.Beside
	if k.Final {
		p.declare(final)
	}
	return nil
}

func (s *solver) checkpoints(ctx context.Context) {
	for tick := time.NewTicker(s.options.checkpoint); ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			s.checkpoint(false)
		}
	}
}

// checkpoint writes what the next attempt of this rank needs, and has the node take it. The rank
// iterates meanwhile.
func (s *solver) checkpoint(wait bool) {
	if s.refused {
		return
	}
	s.mu.Lock()
	b := s.part.keep()
	s.mu.Unlock()
	err := os.MkdirAll(stateDir, 0o777)
	if err == nil {
		err = os.WriteFile(stateFile+".new", b, 0o666)
	}
	if err == nil {
		err = os.Rename(stateFile+".new", stateFile)
	}
	if err == nil {
		_, err = s.place.Checkpoint(stateDir, wait)
	}
	if err != nil {
		s.refused = errors.Is(err, peers.ErrNoCheckpoints)
		s.say("no checkpoint: %v", err)
	}
}
