package subprocess

import (
	"os"
	stdruntime "runtime"
	"sync/atomic"
)

// Marker is the environment variable that makes a program run as a helper of
// another process. Its value is the kind of helper.
const Marker = "SENTINEL_CHILD"

// A Command is a program that acts as a helper when [Marker] is set. Its
// environment is Env and the marker, nothing else. The zero value means that
// there is no program.
type Command struct {
	Path string
	Args []string
	Env  []string
}

// Kind returns the kind of helper that this process was started as, "" if it is
// not a helper.
func Kind() string { return os.Getenv(Marker) }

// selfEnabled is set by programs whose main checks [Kind] before it does
// anything else. Only those may be started again as a helper: any other would
// become a second host.
var selfEnabled atomic.Bool

// EnableSelf declares that this program can be started as its own helper.
func EnableSelf() { selfEnabled.Store(true) }

// Self returns the command that starts this program again. It is the zero value
// if [EnableSelf] was not called.
func Self() Command {
	if !selfEnabled.Load() {
		return Command{}
	}
	return Command{Path: selfPath()}
}

// selfPath returns the path of the running program. On Linux that is the running
// image itself, so a helper is of the same version even if the file was
// replaced.
func selfPath() string {
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
