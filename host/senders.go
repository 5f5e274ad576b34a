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
	sent map[string]*sent // by local address
}

// connected notes a connection until it is closed.
func (s *senders) connected(ctx context.Context, c net.Conn) net.Conn {
	out := &sent{Conn: c, of: s, run: runOf(ctx), address: c.LocalAddr().String()}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sent == nil {
		s.sent = map[string]*sent{}
	}
	s.sent[out.address] = out
	return out
}

// at returns the connection from an address, nil if there is none.
func (s *senders) at(address string) *sent {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sent[address]
}

// sent is a connection of a run.
type sent struct {
	net.Conn
	of      *senders
	run     sentinels.RunID // "" for a command that no run calls
	address string
}

// Close closes the connection and then forgets it: a request that it sent is looked at meanwhile. By
// then its address may be that of another one.
func (c *sent) Close() error {
	err := c.Conn.Close()
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	if c.of.sent[c.address] == c {
		delete(c.of.sent, c.address)
	}
	return err
}

// Sends reports whether this process itself sent a request that came from an address, for a step, a
// plugin or a command: its URL and its body need not be those of the user of the process.
func (h *Host) Sends(remote string) bool { return h.senders.at(remote) != nil }

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
	var run sentinels.RunID
	if c := h.senders.at(remote); c != nil {
		run = c.run
	}
	if run == "" && process > 0 {
		run = h.shells.RunOf(peer.Ancestors(process))
	}
	return run
}
