package control

import "time"

// Info describes the owner of a store.
type Info struct {
	PID     int       `json:"pid"`
	Version string    `json:"version,omitempty"`
	Started time.Time `json:"started"`
	Runs    []string  `json:"runs"`             // active runs of the process, oldest first
	Serves  bool      `json:"serves,omitempty"` // a server, which stays when its runs have ended
	// AcceptsRuns is whether the process starts and resumes runs for other processes.
	// One that executes a single command does not.
	AcceptsRuns bool `json:"acceptsRuns,omitempty"`
}
