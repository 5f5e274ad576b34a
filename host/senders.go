package host

import (
	"context"
	"net"
	"sync"

	"github.com/sentinel-runtime/sentinel/host/internal/peer"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// senders are the runs whose plugins have a connection of this process, by its local
// address: a request to a webhook of this process comes from that address. The zero value is
// ready for use.
//
// # Concurrency
//
// Safe for concurrent use.
type senders struct {
	mu   sync.Mutex
	runs map[string]sentinels.RunID
}

// connected notes a connection until it is closed.
func (s *senders) connected(ctx context.Context, c net.Conn) net.Conn {
	run := runOf(ctx)
	if run == "" {
		return c
	}
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
