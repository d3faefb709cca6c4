package api

import "slices"

// Counter says how often something has happened since the node started, or,
// for what is named a number of, how many there are now.
type Counter struct {
	Group  string `json:"group"` // the part of the node that counts: gossip, vicinity, flood, jobs
	Name   string `json:"name"`  // unique in its group
	Value  int64  `json:"value"`
	Bad    bool   `json:"bad,omitempty"`    // messages that nobody should send; not the bad luck of a healthy network
	Recent int64  `json:"recent,omitempty"` // of what is bad, what came in the last ten minutes
	Help   string `json:"help"`             // what is counted, in a few words
}

// Traffic is all counters of a node; those of a group stand together.
type Traffic []Counter

// Of returns the value of a counter, or 0 if there is none of that name.
func (t Traffic) Of(group, name string) int64 {
	i := slices.IndexFunc(t, func(c Counter) bool { return c.Group == group && c.Name == name })
	if i < 0 {
		return 0
	}
	return t[i].Value
}
