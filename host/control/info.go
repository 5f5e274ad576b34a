package control

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/sentinel-runtime/sentinel/host/internal/httpproblem"
)

// OwnerPath is the path of [Info] on the control socket.
const OwnerPath = "/v1/owner"

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

// Describe returns the handler of GET [OwnerPath].
func Describe(info func() Info) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		text, err := json.Marshal(info())
		if err != nil {
			httpproblem.Write(w, err)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(append(text, '\n')) // fails only if the client has disconnected
	})
}
