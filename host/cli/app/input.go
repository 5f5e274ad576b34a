package app

import (
	"bufio"
	"os/user"
)

// CanAsk reports whether a person sits at both ends.
func (a *App) CanAsk() bool { return a.Env.StdinTerminal && a.Env.StderrTerminal && !a.StdinClosed }

// typedAhead is the number of lines that are read before they are asked for.
const typedAhead = 64

// TypedLines returns what the user types, line by line. Reading a terminal cannot be
// cancelled, so one goroutine reads it for the rest of the process; its channel
// is closed when the terminal is.
func (a *App) TypedLines() <-chan string {
	if a.typed == nil {
		lines := make(chan string, typedAhead)
		a.typed = lines
		go func() {
			defer close(lines)
			in := bufio.NewScanner(a.Env.Stdin)
			for in.Scan() {
				lines <- in.Text()
			}
		}()
	}
	return a.typed
}

// FreshLines is TypedLines without the lines that were typed before, whose number it
// returns: they answer nothing that is asked later.
func (a *App) FreshLines() (lines <-chan string, old int) {
	lines = a.TypedLines()
	for {
		select {
		case _, ok := <-lines:
			if !ok {
				return lines, old
			}
			old++
		default:
			return lines, old
		}
	}
}

// User is the name of the user at this terminal: of the environment, else of the
// account of the process.
func (a *App) User() string {
	for _, name := range []string{"USER", "LOGNAME"} {
		if v := a.Env.Getenv(name); v != "" {
			return v
		}
	}
	if u, err := user.Current(); err == nil && u.Username != "" {
		return u.Username
	}
	return "user"
}
