package subprocess

import (
	"os"
	stdruntime "runtime"
	"sync/atomic"
)

// Marker is the environment variable that makes a program a helper of another
// one; its value names the kind of helper.
const Marker = "SENTINEL_CHILD"

// A Command is a program that serves as a helper when the [Marker] says so. It
// starts with an environment of Env and the marker alone. The zero value is no
// program.
type Command struct {
	Path string
	Args []string
	Env  []string
}

// Kind returns what kind of helper this process was started as, "" for none.
func Kind() string { return os.Getenv(Marker) }

// served says that this program's main looks for a kind before anything else,
// so starting it again gives a helper and not a second host.
var served atomic.Bool

// Served notes that this program can be started as its own helper.
func Served() { served.Store(true) }

// Own returns the command that starts this program again, the zero value if
// its main does not begin with what serves helpers.
func Own() Command {
	if !served.Load() {
		return Command{}
	}
	return Command{Path: self()}
}

// self is the path of the running program. On Linux it names the image itself,
// so a helper is of the same release when the file was replaced meanwhile.
func self() string {
	const image = "/proc/self/exe"
	if stdruntime.GOOS == "linux" {
		if _, err := os.Stat(image); err == nil {
			return image
		}
	}
	path, err := os.Executable()
	if err != nil {
		return ""
	}
	return path
}
