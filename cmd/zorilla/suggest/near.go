package suggest

import (
	"fmt"
	"slices"
	"strings"
)

// minBegin is how many letters of a word, at least, tell which one is meant.
const minBegin = 3

// Meant returns the word of a list that somebody has meant by another one: what it is
// called here, the only one that begins so, or what it is nearly; "" = nothing like that. A
// letter is near to its own capital alone.
func Meant(word string, list []string, others map[string]string) string {
	word = strings.ToLower(word)
	if here := others[word]; slices.Contains(list, here) {
		return here
	}
	if len(word) == 1 {
		if slices.Contains(list, word) {
			return word
		}
		return ""
	}
	if begin := slices.DeleteFunc(slices.Clone(list), func(w string) bool { return !strings.HasPrefix(w, word) }); len(begin) == 1 && len(word) >= minBegin {
		return begin[0]
	}
	best, least := "", 1+len(word)/4
	for _, w := range list {
		if n := distance(word, w); len(w) > 1 && n <= least && (n < least || best == "") {
			best, least = w, n
		}
	}
	return best
}

// distance is how many letters have to be added, left out, replaced, or swapped with
// their neighbours to make one word of the other.
func distance(a, b string) int {
	rows := [3][]int{}
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
	}
	for j := range rows[1] {
		rows[1][j] = j
	}
	for i := range len(a) {
		before, last, row := rows[i%3], rows[(i+1)%3], rows[(i+2)%3]
		row[0] = i + 1
		for j := range len(b) {
			n := last[j]
			if a[i] != b[j] {
				n++
			}
			n = min(n, last[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				n = min(n, before[j-1]+1)
			}
			row[j+1] = n
		}
	}
	return rows[(len(a)+1)%3][len(b)]
}

// Dashes is an option as it is typed.
func Dashes(option string) string {
	if len(option) == 1 {
		return "-" + option
	}
	return "--" + option
}

// Option is Meant for options: the number of workers is called as everybody types it.
func Option(word string, list []string) string {
	if meant := Meant(word, list, Options); meant != "np" || word == meant {
		return meant
	}
	return "n"
}

// UnknownOption says that there is no such option, and which one of a list may have been
// meant.
func UnknownOption(option string, list []string) string {
	text := "unknown option " + Dashes(option)
	if len(option) > 1 && slices.Contains(list, option[:1]) && option[1] >= '0' && option[1] <= '9' { // as -n4
		return fmt.Sprintf("unknown option -%s: did you mean -%s %s?", option, option[:1], option[1:])
	}
	if meant := Option(option, list); meant != "" {
		text += ": did you mean " + Dashes(meant) + "?"
	}
	return text
}

// Commands are commands of other programs, by what they are called here.
var Commands = map[string]string{
	"srun": "run", "sbatch": "submit", "salloc": "alloc", "squeue": "ps", "sacct": "ps", "scancel": "cancel", "sinfo": "nodes", "scontrol": "status",
	"qsub": "submit", "qstat": "ps", "qdel": "cancel", "bsub": "submit", "bjobs": "ps", "bkill": "cancel",
	"list": "ps", "dir": "ls", "files": "ls", "jobs": "ps", "job": "status",
	"queue": "ps", "htop": "top", "info": "status", "show": "status", "inspect": "status", "describe": "status",
	"kill": "cancel", "stop": "cancel", "del": "cancel", "delete": "rm", "remove": "rm", "prune": "rm",
	"log": "logs", "tail": "logs", "output": "logs", "cat": "logs", "fetch": "get", "download": "get", "cp": "get", "why": "explain",
	"members": "nodes", "workers": "nodes", "hosts": "nodes", "start": "node", "join": "node", "serve": "node",
	"server": "node", "worker": "node", "daemon": "node",
	"ssh": "exec", "shell": "exec", "attach-to": "attach", "retry": "rerun", "resubmit": "rerun",
	"scale": "resize", "migrate": "move", "vacate": "move", "ping": "rtt", "token": "invite", "unpause": "resume", "unlock": "resume",
}

// Options are options of other programs, by what they are called here.
var Options = map[string]string{
	"ntasks": "np", "nodes": "np", "nproc": "np", "nprocs": "np", "procs": "np", "ranks": "np", "workers": "np",
	"replicate": "replicas", "cpu": "c", "cpus": "c", "cpus-per-task": "c", "cores": "c", "slots": "c",
	"job-name": "name", "jobname": "name",
	"gres": "gpus", "gpu": "gpus", "walltime": "time", "time-limit": "time", "timelimit": "time", "timeout": "time",
	"memory": "mem", "mem-per-cpu": "mem", "constraint": "where", "requirements": "where",
	"volume": "mount", "v": "mount", "bind": "mount", "label-output": "label",
	"requeue": "retries", "retry": "retries", "restart": "retries", "host": "node", "socket": "node",
	"filter": "state", "status": "state", "states": "state", "last": "limit",
	"lines": "tail", "kind": "format", "outputs": "output", "inputs": "input",
	"ids": "quiet", "parallel": "array", "tasks": "array",
}
