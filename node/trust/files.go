package trust

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"zorilla/internal/atomicfile"
	"zorilla/internal/owned"
)

// ErrExposed is wrapped by errors about a key or secret file that others than
// its owner can read or write.
var ErrExposed = errors.New("is open to others")

const maxFile = 64 << 10

// LoadSecret reads the secret file at path, see ParseSecret. It refuses a file
// that others than its owner can read or write; that error wraps ErrExposed.
func LoadSecret(path string) (Secret, error) {
	b, err := readPrivate(path)
	if err != nil {
		return Secret{}, fmt.Errorf("secret file: %w", err)
	}
	s, err := ParseSecret(string(b))
	if err != nil {
		return Secret{}, fmt.Errorf("secret file %s: %w", path, err)
	}
	return s, nil
}

// LoadOrNewSecret is LoadSecret for a node's own state directory: it makes a
// new random secret, and the directory, if there is none.
func LoadOrNewSecret(path string) (Secret, error) {
	_, err := loadOrCreate(path, func() ([]byte, error) {
		s, err := NewSecret(rand.Reader)
		return []byte(s.Text() + "\n"), err
	})
	if err != nil {
		return Secret{}, fmt.Errorf("secret file: %w", err)
	}
	return LoadSecret(path)
}

// SaveSecret writes the secret file at path, in place of one that may be there.
func SaveSecret(path string, s Secret) error {
	if err := writePrivate(path, []byte(s.Text()+"\n"), false); err != nil {
		return fmt.Errorf("secret file: %w", err)
	}
	return nil
}

// loadOrCreate returns the contents of the file, which fresh supplies if it
// does not exist. Of several processes that do this at once one creates the
// file and all get the same contents.
func loadOrCreate(path string, fresh func() ([]byte, error)) ([]byte, error) {
	b, err := readPrivate(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return b, err
	}
	if b, err = fresh(); err != nil {
		return nil, err
	}
	if err := writePrivate(path, b, true); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	return readPrivate(path)
}

func readPrivate(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return nil, fmt.Errorf("%s %w (mode %#o): run 'chmod 600 %s'", path, ErrExposed, mode, path)
	}
	if err := owned.File(path, info); err != nil {
		return nil, err
	}
	b, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(b) > maxFile {
		err = fmt.Errorf("%s is larger than %d bytes: not a key or secret", path, maxFile)
	}
	return b, err
}

// writePrivate writes the file, and makes its directory; fresh as that of
// atomicfile.How.New.
func writePrivate(path string, b []byte, fresh bool) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return atomicfile.How{New: fresh}.Write(path, b)
}
