package launch

import (
	"regexp"

	"zorilla/internal/sanitize"
)

// MaxWords is how much Library looks at, in bytes.
const MaxWords = 4096

// Library returns what there is to say of a command that has failed, by the end of what
// it wrote to its standard error: which shared library glibc or musl did not find, for
// the program itself or because it asked, or "". Nobody looks whether the machine has it:
// that is nothing that a job is to learn.
func Library(stderr []byte) string {
	stderr = stderr[max(0, len(stderr)-MaxWords):]
	for _, words := range []string{
		`(?:^|[\s'"(])([^\s'"(:]{1,255}): cannot open shared object file`,
		`Error loading shared library ([^\s:]{1,255}): No such file`,
	} {
		found := regexp.MustCompile(words).FindAllSubmatch(stderr, -1)
		if len(found) == 0 {
			continue
		}
		if name := string(found[len(found)-1][1]); sanitize.Printable(name) {
			return name + ", a shared library that it needs, was not found: what is outside the system directories " + unseen
		}
	}
	return ""
}
