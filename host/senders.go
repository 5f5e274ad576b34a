package host

import (
	"context"
	"net"
	"sync"

	"github.com/sentinel-runtime/sentinel/host/internal/peer"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// senders are the connections that this process has for steps, plugins and commands, by their
// local addresses, with their runs: a request to this process that comes from such an address is
// theirs. The zero value is ready for use.
//
// # Concurrency
//
// Safe for concurrent use.
type senders struct {
	mu   sync.Mutex
	runs map[string]sentinels.RunID // "" for a command that no run calls
}

// connected notes a connection until it is closed.
func (s *senders) connected(ctx context.Context, c net.Conn) net.Conn {
	run := runOf(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.runs == nil {
		s.runs = map[string]sentinels.RunID{}
	}
	address := c.LocalAddr().String()
	s.runs[address] = run
	return &sent{Conn: c, forget: sync.OnceFunc(func() { s.forget(address) })}
}

func (s *senders) forget(address string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.runs, address)
}

// at returns the run with a connection from an address, "" if there is none.
func (s *senders) at(address string) sentinels.RunID {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.runs[address]
}

// has reports whether there is a connection from an address.
func (s *senders) has(address string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.runs[address]
	return ok
}

// sent is a connection of a run.
type sent struct {
	net.Conn
	forget func()
}

// Close closes the connection. Its address is free for another one after that.
func (c *sent) Close() error {
	c.forget()
	return c.Conn.Close()
}

// Sends reports whether this process itself sent a request that came from an address, for a step, a
// plugin or a command: its URL and its body need not be those of the user of the process.
func (h *Host) Sends(remote string) bool { return h.senders.has(remote) }

// SenderChain returns how many runs led to a request of a process below this one, or of a
// plugin of this one, and their sentinels; 0 if no step of an active run sent it. process is
// 0 if it is not below this one, and remote is the address that the request came from.
func (h *Host) SenderChain(process int, remote string) (hops int, path []string) {
	run := h.senderRun(process, remote)
	if run == "" {
		return 0, nil
	}
	return h.rt.Chain(run)
}

// senderRun returns the run whose plugin has a connection from an address, or whose step
// started a process, "" if there is none.
func (h *Host) senderRun(process int, remote string) sentinels.RunID {
	run := h.senders.at(remote)
	if run == "" && process > 0 {
		run = h.shells.RunOf(peer.Ancestors(process))
	}
	return run
}
