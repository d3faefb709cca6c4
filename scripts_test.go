package zorilla_test

import (
	"bufio"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"zorilla/vicinity"
)

// unwanted matches the lines of scripts that say what a command must not have printed.
var unwanted = regexp.MustCompile(`^(?:\[[^]]*\] *)?! (?:stdout|stderr|grep) (.*)$`)

// word matches what is within one ID, and more than a letter.
var word = regexp.MustCompile(`^\w{2,}$`)

// IDs are random, and stand in much of what a command prints: a script that wants a short word
// not to be in it fails now and then. Such a word needs what is around it, as in ' bad$'.
func TestScriptsDoNotFindWordsInIDs(t *testing.T) {
	ids := randomIDs(200_000)
	seen := 0
	err := filepath.WalkDir("cmd/zorilla/testdata", func(path string, d fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".txtar" {
			return err
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		lines := bufio.NewScanner(f)
		for number := 1; lines.Scan(); number++ {
			m := unwanted.FindStringSubmatch(lines.Text())
			if m == nil {
				continue
			}
			seen++
			pattern := strings.Trim(strings.TrimSpace(m[1]), "'")
			re, err := regexp.Compile("(?m)" + pattern)
			if err != nil { // of several words: of grep -e
				continue
			}
			if found := re.FindString(ids); found != "" && word.MatchString(found) {
				t.Errorf("%s:%d: %q may be in an ID, as %.40q is: say what is around it", path, number, pattern, found)
			}
		}
		return lines.Err()
	})
	if err != nil {
		t.Fatal(err)
	}
	if seen < 50 {
		t.Errorf("%d lines say what must not be printed: are they written otherwise?", seen)
	}
}

// randomIDs are as many IDs of nodes, each in brackets.
func randomIDs(n int) string {
	random := rand.New(rand.NewPCG(1, 2))
	var b strings.Builder
	for range n {
		var key [32]byte
		for i := range key {
			key[i] = byte(random.Uint32())
		}
		b.WriteString("(" + string(vicinity.IDFromKey(key[:])) + ")\n")
	}
	return b.String()
}
