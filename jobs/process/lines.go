package process

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// maxLine bounds a line, which becomes an argument of a command.
const maxLine = 128<<10 - 1

// lineFile finds lines by their numbers, from 1, with eight bytes of memory
// for each.
type lineFile struct {
	file  *os.File
	begin []int64 // of each line, and the end of the last
}

// openLines opens a file for good. It must be a regular one.
func openLines(path string) (*lineFile, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	l := &lineFile{file: f, begin: []int64{0}}
	pos := int64(0)
	for r := bufio.NewReader(f); ; {
		piece, err := r.ReadSlice('\n')
		pos += int64(len(piece))
		switch {
		case err == nil:
			l.begin = append(l.begin, pos)
		case err == io.EOF:
			if pos > l.begin[len(l.begin)-1] { // the last one need not end
				l.begin = append(l.begin, pos)
			}
			return l, nil
		case err != bufio.ErrBufferFull:
			_ = f.Close()
			return nil, err
		}
	}
}

// line returns a line without its end.
func (l *lineFile) line(number int) (string, error) {
	if number < 1 || number >= len(l.begin) {
		return "", fmt.Errorf("there are %d lines", len(l.begin)-1)
	}
	from, to := l.begin[number-1], l.begin[number]
	if to-from > maxLine {
		return "", fmt.Errorf("it has %d bytes, at most %d", to-from, maxLine)
	}
	b := make([]byte, to-from)
	if _, err := l.file.ReadAt(b, from); err != nil {
		return "", err
	}
	b = bytes.TrimSuffix(bytes.TrimSuffix(b, []byte("\n")), []byte("\r"))
	if bytes.IndexByte(b, 0) >= 0 {
		return "", fmt.Errorf("it holds a zero byte")
	}
	return string(b), nil
}

// FillIn puts a line into arguments: in place of each {}, or at their end.
func FillIn(args []string, line string) []string {
	filled, found := make([]string, len(args), len(args)+1), false
	for i, a := range args {
		filled[i] = strings.ReplaceAll(a, "{}", line)
		found = found || strings.Contains(a, "{}")
	}
	if !found {
		filled = append(filled, line)
	}
	return filled
}
