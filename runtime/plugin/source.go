package plugin

// A Source is where the code of one plugin comes from.
type Source struct {
	Name string                 // identifies the source, for messages too: a file name or "builtin"
	Wasm func() ([]byte, error) // called at most once
	// Prepared is what [runtime.Runtime.PreparePlugin] made of the same bytes; it is
	// used up. Default nil: the load compiles and executes the module.
	Prepared Prepared
	// Replaces is the Name of another source whose place this one takes: its file
	// was renamed. Default none; one of the same Name is always replaced.
	Replaces string
	// Trusted plugins are granted all they ask for and their stateless types
	// are reused. Only for modules that ship with the program. Default false.
	Trusted bool
	// Manifest returns the SHA-256 in hex of a Trusted module and what its describe returns. The
	// module is then loaded when its first step is executed, and compiled once for all runtimes
	// of the process. One that is not as Manifest says cannot be executed. Default nil: the
	// module is loaded at once.
	Manifest func() (digest string, describes []byte)
}

// Prepared is a module that is compiled, described and checked, and not live yet. It
// holds memory until it is loaded or closed.
type Prepared interface {
	// Close frees a module that was not loaded. It may be called more than once.
	Close()
}
