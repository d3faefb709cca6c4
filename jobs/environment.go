package jobs

import (
	"slices"
	"strings"
)

// ownVariables begins the names of all environment variables that Zorilla reads or sets.
const ownVariables = "ZORILLA_"

// Foreign returns the variables of an environment that are not Zorilla's own, such as a node's
// secret, or the network that a client is to find.
func Foreign(environ []string) []string {
	return slices.DeleteFunc(slices.Clone(environ), func(kv string) bool { return strings.HasPrefix(kv, ownVariables) })
}
