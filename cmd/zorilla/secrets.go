package main

import (
	"net/url"
	"os"
	"strings"
	"unsafe"

	"zorilla/cmd/zorilla/config"
)

// ownArgs returns the arguments of this process and overwrites the secrets among
// them where others see them: in the memory that the kernel shows as the
// process's command line, which is what os.Args consists of. So they are on a
// process list only for the moment until then.
func ownArgs() []string {
	args := make([]string, len(os.Args))
	for i, arg := range os.Args {
		args[i] = strings.Clone(arg)
	}
	for i, from := range secretsIn(args) {
		overwrite(os.Args[i][from:])
	}
	return args
}

// secretsIn returns which of the arguments hold a secret, and from which byte: of a node its
// own, of all commands the token in the address of a page, which opens its node.
func secretsIn(args []string) map[int]int {
	found := map[int]int{}
	for i, arg := range args {
		if strings.HasPrefix(arg, "http") && config.Secret(config.NodeOption, arg) {
			found[i] = config.Token(arg)
		}
		if !strings.HasPrefix(arg, "-") {
			continue
		}
		name, value, joined := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		at, from := i, len(arg)-len(value)
		if !joined {
			if i+1 == len(args) {
				continue
			}
			at, from, value = i+1, 0, args[i+1]
		}
		switch {
		case !config.Secret(name, value):
		case name == config.NodeOption:
			found[at] = from + config.Token(value)
		case args[1] == "node":
			found[at] = from
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
	for _, name := range []string{"ZORILLA_SECRET", "ZORILLA_JOIN"} {
		os.Unsetenv(name)
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
