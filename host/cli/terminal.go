package cli

import "bufio"

// canAsk reports whether a person sits at both ends.
func (a *app) canAsk() bool { return a.env.StdinTerminal && a.env.StderrTerminal && !a.deaf }

// typed returns what is typed, line by line. Reading a terminal cannot be
// called off, so one goroutine reads it for the rest of the process; its channel
// is closed when the terminal is.
func (a *app) typedLines() <-chan string {
	if a.typed == nil {
		lines := make(chan string)
		a.typed = lines
		go func() {
			defer close(lines)
			in := bufio.NewScanner(a.env.Stdin)
			for in.Scan() {
				lines <- in.Text()
			}
		}()
	}
	return a.typed
}

// user is the name of the user at this terminal.
func (a *app) user() string {
	for _, name := range []string{"USER", "LOGNAME"} {
		if v := a.env.Getenv(name); v != "" {
			return v
		}
	}
	return "user"
}
