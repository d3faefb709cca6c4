package process

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"zorilla/internal/fdpass"
	"zorilla/internal/sanitize"
	"zorilla/jobs/launch"
	"zorilla/jobs/session"
	"zorilla/jobs/session/server"
)

// maxSessions bounds the commands that run beside that of a worker.
const maxSessions = 128

// serveSession serves a connection that is for a session.
func (c *control) serveSession(conn net.Conn) {
	defer conn.Close()
	c.mu.Lock()
	why := ""
	switch {
	case c.closed:
		why = "the worker has ended"
	case c.sessions >= maxSessions:
		why = fmt.Sprintf("%d commands run in the worker beside its own: that is enough", maxSessions)
	default:
		c.sessions++
		c.serving.Add(1)
	}
	c.mu.Unlock()
	if why != "" {
		_ = writeMessage(conn, message{Kind: kindRefused, Text: why})
		return
	}
	defer func() {
		c.mu.Lock()
		c.sessions--
		c.mu.Unlock()
		c.serving.Done()
	}()
	_ = conn.SetReadDeadline(time.Now().Add(helloWithin))
	start, err := session.ReadStart(session.NewReader(conn))
	if err != nil {
		return
	}
	_ = conn.SetReadDeadline(time.Time{})
	cmd, files, err := c.s.accompany(start)
	if err != nil {
		_ = writeMessage(conn, message{Kind: kindRefused, Text: sanitize.OneLine(err.Error())})
		return
	}
	// Who has gone shows to what serves the session.
	if writeMessage(conn, message{Kind: kindProgress}) == nil {
		_ = session.NewWriter(conn).Write(session.KindBegan, nil)
	}
	server.Serve(conn.(*net.UnixConn), cmd, files, c.s.ended)
}

// within has the loop call f while it decides about the worker, and reports whether it did.
func (s *keeper) within(f func()) bool {
	done := make(chan struct{})
	s.post(func(time.Time) {
		f()
		close(done)
	})
	select {
	case <-done:
		return true
	case <-s.ended: // the last event is over by then, or was dropped
		select {
		case <-done:
			return true
		default:
			return false
		}
	}
}

// accompany begins a command beside the worker's own.
func (s *keeper) accompany(start *session.Start) (cmd *companion, files server.Files, err error) {
	if s.tasks != nil {
		return nil, files, errors.New("a worker of an array runs its tasks alone")
	}
	c := s.commandOf(start.Args, mergeEnv(s.spec.Env, start.Env))
	c.Memory, c.Terminal = 0, start.Terminal
	theirs, files, master, err := s.ends(start.Terminal != nil)
	defer closeFiles(theirs)
	if err == nil {
		over := errors.New("the worker has ended")
		err = over
		cmd = &companion{keeper: s}
		s.within(func() {
			if s.life.Phase() == Running {
				cmd.Sidecar, err = s.world.launcher.StartSidecar(s.number, c, theirs)
			}
		})
	}
	if err == nil && master != nil {
		closeFiles(theirs)
		files.Input, err = cmd.terminal(master)
		files.Output = files.Input
	}
	if err != nil {
		for _, f := range []*os.File{files.Input, files.Output, files.Errors} {
			_ = f.Close() // nil is an error, and nothing else
		}
	}
	return cmd, files, err
}

// mergeEnv adds variables to an environment. Of two of a name the later one counts.
func mergeEnv(env, more []string) []string {
	byName := map[string]string{}
	for _, kv := range slices.Concat(env, more) {
		name, _, _ := strings.Cut(kv, "=")
		byName[name] = kv
	}
	return slices.Sorted(maps.Values(byName))
}

// ends makes what a command has for standard input, output and error: its ends, and the
// others, or a way for that of a terminal.
func (s *keeper) ends(terminal bool) (theirs [3]*os.File, ours server.Files, master *net.UnixConn, err error) {
	if terminal {
		master, theirs[0], err = fdpass.Pair()
		if err == nil {
			theirs[1], err = os.Open(os.DevNull)
			theirs[2] = theirs[1]
		}
		return theirs, ours, master, err
	}
	for i, own := range []**os.File{&ours.Input, &ours.Output, &ours.Errors} {
		var p [2]int
		if err := unix.Pipe2(p[:], unix.O_CLOEXEC); err != nil {
			return theirs, ours, nil, fmt.Errorf("pipe: %w", err)
		}
		if i == 0 {
			p[0], p[1] = p[1], p[0]
		}
		err = unix.SetNonblock(p[0], true)
		*own, theirs[i] = os.NewFile(uintptr(p[0]), "session"), os.NewFile(uintptr(p[1]), "session")
		if err == nil && s.spec.RunsAs() { // for /dev/stdout and /dev/stderr
			err = unix.Fchown(p[1], s.spec.UID, s.spec.GID)
		}
		if err != nil {
			return theirs, ours, nil, err
		}
	}
	return theirs, ours, nil, nil
}

// companion is a command beside that of a worker.
type companion struct {
	*launch.Sidecar
	keeper *keeper
}

// terminal takes the other end of the command's terminal.
func (c *companion) terminal(way *net.UnixConn) (*os.File, error) {
	defer way.Close()
	go func() {
		<-c.Done()
		_ = way.SetReadDeadline(time.Now())
	}()
	var b [1]byte
	oob := make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := way.ReadMsgUnix(b[:], oob)
	var fds []int
	if err == nil {
		var messages []unix.SocketControlMessage
		if messages, err = unix.ParseSocketControlMessage(oob[:n]); err == nil && len(messages) == 1 {
			fds, err = unix.ParseUnixRights(&messages[0])
		}
	}
	if len(fds) != 1 {
		c.Kill()
		<-c.Done()
		if _, why := c.Result(); why != nil {
			err = why
		}
		return nil, cmp.Or(err, errors.New("no terminal came"))
	}
	unix.CloseOnExec(fds[0])
	if err := unix.SetNonblock(fds[0], true); err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fds[0]), "terminal"), nil
}

// Exit implements server.Command.
func (c *companion) Exit() session.Exit {
	status, err := c.Result()
	if err != nil {
		e := verdict(err)
		return session.Exit{Code: e.Code, Text: sanitize.OneLine(e.Detail)}
	}
	if !status.Signaled() {
		return session.Exit{Code: status.ExitStatus()}
	}
	e := session.Exit{Code: 128 + int(status.Signal())}
	running := false
	c.keeper.within(func() { running = c.keeper.life.Phase() == Running })
	if !running {
		e.Text = "the worker has ended, and the command with it"
	}
	return e
}
