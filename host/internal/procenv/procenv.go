package procenv

import (
	"slices"
	"strings"
)

// Hide overwrites the values in the environment block that other processes can
// read, except those of harmless variables, and makes the process not dumpable:
// processes of the same user can neither read its memory and environment nor
// attach to it, and it leaves no core file. The process keeps its variables.
//
// Call it first in main, while there is one goroutine: strings that were read
// from the environment earlier point into what is overwritten. Processes with
// CAP_SYS_PTRACE, such as root's, can still read the memory.
//
// A process that runs inside an execution of another host, as SENTINEL_COOKIE
// says, stays dumpable, because that host finds it by its environment. Its
// variables are overwritten all the same.
//
// On systems other than Linux the error is [errors.ErrUnsupported].
func Hide() error { return hide() }

// harmless are the variables that stay readable: those that every program gets,
// and those that the Go runtime may keep strings of. The cookie is how a host
// finds its processes.
var harmless = []string{
	"PATH", "HOME", "USER", "LOGNAME", "SHELL", "PWD", "LANG", "TZ", "TERM", "TMPDIR", "GODEBUG", "GOTRACEBACK", "GOGC", "GOMAXPROCS", "GOMEMLIMIT",
	cookie,
}

const cookie = "SENTINEL_COOKIE"

// hidden returns block, entries that end with a zero byte each, with the values
// of all but harmless variables overwritten.
func hidden(block []byte) []byte {
	out := slices.Clone(block)
	for at := 0; at < len(out); {
		end := at
		for end < len(out) && out[end] != 0 {
			end++
		}
		name, value, assigned := strings.Cut(string(out[at:end]), "=")
		if !assigned || !slices.Contains(harmless, name) {
			if !assigned {
				value = name // not a variable: all of it is overwritten
			}
			clear(out[end-len(value) : end])
		}
		at = end + 1
	}
	return out
}
