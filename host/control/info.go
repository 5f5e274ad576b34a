package control

import (
	"encoding/json"
	"time"
)

// Info describes the owner of a store.
type Info struct {
	PID     int       `json:"pid"`
	Version string    `json:"version,omitempty"`
	Started time.Time `json:"started"`
	Runs    []string  `json:"runs"`             // active runs of the process, oldest first
	Serves  bool      `json:"serves,omitempty"` // a server: it stays, and accepts runs from other processes
}

// Command describes a command that [Client.Call] can execute.
type Command struct {
	Name     string          `json:"name"`
	Summary  string          `json:"summary"`
	Input    json.RawMessage `json:"input"`
	Output   json.RawMessage `json:"output,omitempty"`
	ReadOnly bool            `json:"readOnly"`
}
