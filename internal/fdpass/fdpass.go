// Package fdpass sends values and open files from process to process over a unix
// stream socket: the length in four bytes, big endian, then msgpack; the files travel
// with the length. Both ends trust each other.
package fdpass

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"zorilla/internal/codec"
)

// Pair returns a connection and the other end of it, for another process.
func Pair() (*net.UnixConn, *os.File, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("socket pair: %w", err)
	}
	theirs := os.NewFile(uintptr(pair[1]), "pair")
	conn, err := Open(os.NewFile(uintptr(pair[0]), "pair"))
	if err != nil {
		_ = theirs.Close()
		return nil, nil, err
	}
	return conn, theirs, nil
}

// Open makes a connection of one end of a pair, which it closes.
func Open(end *os.File) (*net.UnixConn, error) {
	defer end.Close()
	conn, err := net.FileConn(end)
	if err != nil {
		return nil, fmt.Errorf("socket pair: %w", err)
	}
	u, ok := conn.(*net.UnixConn)
	if !ok {
		_ = conn.Close()
		return nil, errors.New("not a unix socket")
	}
	return u, nil
}

// maxMessage bounds a message: arguments and environment of the longest job fit in
// easily.
const maxMessage = 16 << 20

// MaxFiles is how many descriptors a message may have.
const MaxFiles = 16

// Send writes a message in one piece, with descriptors.
func Send(conn *net.UnixConn, v any, files ...*os.File) error {
	body, err := codec.Marshal(v)
	if err != nil {
		return err
	}
	b := append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...)
	if len(files) == 0 {
		_, err = conn.Write(b)
		return err
	}
	var fds []int
	for _, f := range files {
		fds = append(fds, int(f.Fd()))
	}
	// The descriptors travel with what is written first; the rest may need several writes.
	n, _, err := conn.WriteMsgUnix(b, unix.UnixRights(fds...), nil)
	if err == nil && n < len(b) {
		_, err = conn.Write(b[n:])
	}
	return err
}

// Receive reads a message into v, and the descriptors that came with it, which are
// closed at an exec.
func Receive(conn *net.UnixConn, v any) (fds []int, err error) {
	return receive(v, conn, func(p, oob []byte) (n, oobn int, err error) {
		n, oobn, _, _, err = conn.ReadMsgUnix(p, oob)
		return n, oobn, err
	})
}

func receive(v any, rest io.Reader, first func(p, oob []byte) (n, oobn int, err error)) (fds []int, err error) {
	var head [4]byte
	oob := make([]byte, unix.CmsgSpace(4*MaxFiles))
	n, oobn, err := first(head[:], oob)
	if err != nil {
		return nil, err
	}
	if n == 0 {
		return nil, io.EOF
	}
	if oobn > 0 {
		if fds, err = rights(oob[:oobn]); err != nil {
			return nil, err
		}
	}
	if _, err := io.ReadFull(rest, head[n:]); err != nil {
		return fds, err
	}
	size := binary.BigEndian.Uint32(head[:])
	if size > maxMessage {
		return fds, fmt.Errorf("%d bytes announced, at most %d", size, maxMessage)
	}
	body := make([]byte, size)
	if _, err := io.ReadFull(rest, body); err != nil {
		return fds, err
	}
	return fds, codec.UnmarshalLarge(body, v, maxMessage)
}

// Blocking is an end of a pair for a thread that does nothing else than to read from
// it: it is woken by the kernel, without a detour over the runtime's other threads.
type Blocking struct{ fd int }

// Block makes one of an end of a pair, which it closes.
func Block(end *os.File) (*Blocking, error) {
	defer end.Close()
	fd, err := unix.FcntlInt(end.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err == nil {
		err = unix.SetNonblock(fd, false)
	}
	if err != nil {
		return nil, fmt.Errorf("socket pair: %w", err)
	}
	return &Blocking{fd}, nil
}

// Receive is as the function.
func (b *Blocking) Receive(v any) (fds []int, err error) {
	return receive(v, b, func(p, oob []byte) (n, oobn int, err error) {
		for {
			n, oobn, _, _, err = unix.Recvmsg(b.fd, p, oob, unix.MSG_CMSG_CLOEXEC)
			if err != unix.EINTR {
				return n, oobn, err
			}
		}
	})
}

// Await waits, for so long at most, until there is something to receive, or a descriptor has
// something to tell, and reports which.
func (b *Blocking) Await(fd int, within time.Duration) (own, other bool) {
	fds := []unix.PollFd{{Fd: int32(b.fd), Events: unix.POLLIN}, {Fd: int32(fd), Events: unix.POLLIN}}
	for end := time.Now().Add(within); ; {
		_, err := unix.Poll(fds, int(max(time.Until(end), 0).Milliseconds()))
		if err != unix.EINTR {
			return fds[0].Revents != 0, fds[1].Revents != 0
		}
	}
}

// Read implements io.Reader.
func (b *Blocking) Read(p []byte) (int, error) {
	for {
		switch n, err := unix.Read(b.fd, p); {
		case err == unix.EINTR:
		case err != nil:
			return 0, err
		case n == 0 && len(p) > 0:
			return 0, io.EOF
		default:
			return n, nil
		}
	}
}

// Send is as the function, without files.
func (b *Blocking) Send(v any) error {
	body, err := codec.Marshal(v)
	if err != nil {
		return err
	}
	for rest := append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...); len(rest) > 0; {
		n, err := unix.Write(b.fd, rest)
		if err != nil && err != unix.EINTR {
			return err
		}
		rest = rest[max(n, 0):]
	}
	return nil
}

func rights(oob []byte) ([]int, error) {
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return nil, err
	}
	if len(messages) != 1 {
		return nil, errors.New("want one control message")
	}
	return unix.ParseUnixRights(&messages[0])
}
