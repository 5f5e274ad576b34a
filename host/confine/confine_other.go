//go:build !linux

package confine

import (
	"encoding/json"
	"os/exec"
)

// start returns the process that carries a plan: the command itself, since this system
// has nothing to restrict it with.
func start(text string) (*exec.Cmd, error) {
	var p plan
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		return nil, err
	}
	return &exec.Cmd{Path: p.Path, Args: p.Args, Dir: p.Dir, Env: p.Env}, nil
}

func readable() []string { return nil }

// Missing says what this machine cannot keep commands from, in words for people.
func Missing() []string {
	return []string{"only Linux has Landlock: commands can read the home folder and write outside of the checkout", "commands have no limits of memory and processes"}
}
