package control

import (
	"encoding/json"
	"time"
)

// Info says who has the store.
type Info struct {
	PID     int       `json:"pid"`
	Version string    `json:"version,omitempty"`
	Started time.Time `json:"started"`
	Runs    []string  `json:"runs"`             // that it carries out, oldest first
	Serves  bool      `json:"serves,omitempty"` // it stays, and takes runs of others in
}

// Command is one command that the owner answers.
type Command struct {
	Name     string          `json:"name"`
	Summary  string          `json:"summary"`
	Input    json.RawMessage `json:"input"`
	Output   json.RawMessage `json:"output,omitempty"`
	ReadOnly bool            `json:"readOnly"`
}
