package jobs

import (
	"fmt"
	"strings"
)

// Dependency says what must have become of another job before this one looks
// for workers.
type Dependency struct {
	Kind DependencyKind `json:"kind"`
	Job  ID             `json:"job"`
}

// DependencyKind is how the other job must end.
type DependencyKind string

// The kinds of dependencies.
const (
	AfterOK    DependencyKind = "afterok"    // COMPLETED
	AfterNotOK DependencyKind = "afternotok" // in any other way
	AfterAny   DependencyKind = "afterany"   // it does not matter
)

// MaxDependencies bounds what one job may wait for.
const MaxDependencies = 64

// check returns what is wrong, as a user sees it.
func (d Dependency) check() string {
	switch d.Kind {
	case AfterOK, AfterNotOK, AfterAny:
	default:
		return fmt.Sprintf("-d %.40s: want %s, %s or %s, as in afterok:JOB", d.Kind, AfterOK, AfterAny, AfterNotOK)
	}
	if !d.Job.Valid() {
		return fmt.Sprintf("-d %s:%.40s: not a job's whole ID", d.Kind, strings.ToValidUTF8(string(d.Job), "?"))
	}
	return ""
}

// Met reports whether a job that ended in this state fulfils the dependency.
func (d Dependency) Met(s State) bool {
	switch d.Kind {
	case AfterOK:
		return s == Completed
	case AfterNotOK:
		return s != Completed
	}
	return true
}
