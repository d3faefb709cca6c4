package proc

import (
	"bytes"
	"os"
	"strconv"
)

// Descendants lists the living processes below pid. Processes that are made
// or moved meanwhile may be missing: callers look again.
func Descendants(pid int) []int {
	if _, err := os.Stat("/proc/thread-self/children"); err != nil {
		return scanDescendants(pid)
	}
	var all []int
	for queue := []int{pid}; len(queue) > 0; queue = queue[1:] {
		kids := children(queue[0])
		all = append(all, kids...)
		queue = append(queue, kids...)
	}
	return all
}

// Orphans lists the children of this process's first thread, which are orphans that
// came back to it as long as that thread starts none itself. Where the kernel cannot
// tell it lists all children.
func Orphans() []int {
	me := os.Getpid()
	b, err := os.ReadFile("/proc/self/task/" + strconv.Itoa(me) + "/children")
	if err != nil {
		return scanDescendants(me)
	}
	return numbers(b)
}

// children asks the kernel for the children of each thread of a process,
// which costs no look at the rest of the machine.
func children(pid int) []int {
	dir := "/proc/" + strconv.Itoa(pid) + "/task"
	threads, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	var kids []int
	for _, t := range threads {
		b, _ := os.ReadFile(dir + "/" + t.Name() + "/children")
		kids = append(kids, numbers(b)...)
	}
	return kids
}

func numbers(b []byte) []int {
	var all []int
	for _, f := range bytes.Fields(b) {
		if n, err := strconv.Atoi(string(f)); err == nil {
			all = append(all, n)
		}
	}
	return all
}

// scanDescendants does the same on kernels without the children files.
func scanDescendants(pid int) []int {
	kids := map[int][]int{}
	for _, p := range All() {
		if st, err := ReadStat(p); err == nil {
			kids[st.Parent] = append(kids[st.Parent], p)
		}
	}
	var all []int
	for queue := []int{pid}; len(queue) > 0; queue = queue[1:] {
		all = append(all, kids[queue[0]]...)
		queue = append(queue, kids[queue[0]]...)
	}
	return all
}

// All lists all processes of the machine.
func All() []int {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	var all []int
	for _, n := range names {
		if p, err := strconv.Atoi(n); err == nil {
			all = append(all, p)
		}
	}
	return all
}
