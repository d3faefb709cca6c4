package main

import (
	"net/url"
	"os"
	"strings"
	"unsafe"
)

// secretOptions are those of the node command whose values nobody else on the
// machine shall see.
var secretOptions = []string{"secret", "join"}

// ownArgs returns the arguments of this process and overwrites the secrets among
// them where others see them: in the memory that the kernel shows as the
// process's command line, which is what os.Args consists of. So they are on a
// process list only for the moment until then.
func ownArgs() []string {
	args := make([]string, len(os.Args))
	for i, arg := range os.Args {
		args[i] = strings.Clone(arg)
	}
	if len(args) > 1 && args[1] == "node" {
		for i, from := range secretsIn(args) {
			overwrite(os.Args[i][from:])
		}
	}
	for i, from := range tokensIn(args) {
		overwrite(os.Args[i][from:])
	}
	return args
}

// tokensIn returns which of the arguments are the address of a page with its token, and from
// which byte that is.
func tokensIn(args []string) map[int]int {
	found := map[int]int{}
	for i, arg := range args {
		if at := strings.Index(arg, "/?token="); at >= 0 && (strings.HasPrefix(arg, "http") || strings.HasPrefix(strings.TrimLeft(arg, "-"), "node=http")) {
			found[i] = at + len("/?token=")
		}
	}
	return found
}

// secretsIn returns which of the arguments hold a secret, and from which byte.
func secretsIn(args []string) map[int]int {
	found := map[int]int{}
	for i, arg := range args {
		name, _, joined := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		for _, option := range secretOptions {
			switch {
			case !strings.HasPrefix(arg, "-") || name != option:
			case joined:
				found[i] = strings.Index(arg, "=") + 1
			case i+1 < len(args):
				found[i+1] = 0
			}
		}
	}
	return found
}

// overwrite changes the bytes of a string that is in memory of the process's
// own, as the elements of os.Args are, but constants are not.
func overwrite(s string) {
	b := unsafe.Slice(unsafe.StringData(s), len(s))
	for i := range b {
		b[i] = '.'
	}
}

// forgetSecrets keeps secrets in the environment from what the node starts.
func forgetSecrets() {
	for _, name := range secretOptions {
		os.Unsetenv("ZORILLA_" + strings.ToUpper(name))
	}
}

// withoutToken returns the address of a page as everybody may see it.
func withoutToken(page string) string {
	u, err := url.Parse(page)
	if err != nil {
		return ""
	}
	u.RawQuery = ""
	return u.String()
}
