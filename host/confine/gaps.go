package confine

// The walls around a command, as [Command.Require] names them.
const (
	WallNamespaces = "namespaces" // its own processes, files, sockets and limits
	WallLandlock   = "landlock"   // files, signals and abstract sockets
	WallSeccomp    = "seccomp"    // system calls
	WallCgroup     = "cgroup"     // memory and processes as the kernel counts them
)

// Walls are all walls.
func Walls() []string { return []string{WallNamespaces, WallLandlock, WallSeccomp, WallCgroup} }

// A Gap is something that this machine cannot keep commands from.
type Gap struct {
	Wall string // that is missing or has the gap
	Text string // for people
}

// String returns the gap as one line.
func (g Gap) String() string { return g.Wall + ": " + g.Text }

// Gaps returns what this machine cannot keep commands from. The first call takes as long as a
// command.
func Gaps() []Gap { return gaps() }
