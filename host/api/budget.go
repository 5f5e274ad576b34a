package api

import (
	"cmp"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/sentinel-runtime/sentinel/host/principal"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/triggers"
)

// Limits of the bodies that are in memory at the same time, in bytes. Sixteen
// of the largest fit, and 256 of the largest small ones.
const (
	smallBody      = 64 << 10 // up to here a body is a small one
	maxSmallBodies = 256 * smallBody
	maxBodies      = 16 * maxCommandBody
	maxHookBodies  = 16 * triggers.MaxBody
	maxAnswers     = 128 << 20
)

// A bodyBudget limits the memory that the bodies of requests share. Bytes count
// when they have arrived: a length that is only announced takes nothing from
// others. Small bodies have a pool of their own, so that large ones cannot keep
// them out.
//
// Each owner of bodies has a share of a pool ([owner.share]), and some of it is
// reserved for persons. When the pool is full, the reader that has waited
// longest for its next bytes is displaced, of those that the limit is about:
// who sends slowly cannot keep others out either. A body that has arrived stays
// until its request ends.
//
// # Concurrency
//
// Safe for concurrent use. One goroutine reads a body.
type bodyBudget struct {
	mu           sync.Mutex
	small, large bodyPool
}

// newBodyBudget returns a budget whose large bodies have up to this many bytes.
func newBodyBudget(large int64) *bodyBudget {
	b := &bodyBudget{small: bodyPool{max: maxSmallBodies}, large: bodyPool{max: large}}
	for _, p := range []*bodyPool{&b.small, &b.large} {
		p.owners, p.arriving = map[string]int64{}, map[*body]struct{}{}
	}
	return b
}

// bodyPool is the memory of small or of large bodies.
type bodyPool struct {
	max      int64
	used     int64
	limited  int64            // of used, by agents and viewers together
	owners   map[string]int64 // of used, by key
	arriving map[*body]struct{}
}

// An owner is who the requests are counted for: a principal, or the address of
// a webhook's sender.
type owner struct {
	key  string // as errors name it
	kind principal.Kind
}

// ownerOf returns the owner of a request. A webhook on the port has no
// principal.
func ownerOf(r *http.Request, route *Route) owner {
	if route.Access == AccessHook {
		return owner{key: sourceOf(r.RemoteAddr)}
	}
	return callerOf(r)
}

// callerOf returns the owner of what a request with a principal takes.
func callerOf(r *http.Request) owner {
	p := principal.From(r.Context())
	return owner{key: p.String(), kind: cmp.Or(p.Kind, principal.Person)}
}

// sourceOf returns the address of a client without its port. That of IPv6 is
// the network, since a client has all addresses of it.
func sourceOf(remote string) string {
	at, err := netip.ParseAddrPort(remote)
	if err != nil {
		return remote // of a control socket
	}
	addr := at.Addr().Unmap()
	if addr.Is6() {
		return netip.PrefixFrom(addr.WithZone(""), 64).Masked().String()
	}
	return addr.String()
}

// limited reports whether the owner is an agent or a viewer.
func (o owner) limited() bool { return o.kind == principal.Agent || o.kind == principal.Viewer }

// share returns how much of total one owner may have. The sender of a webhook may be
// a proxy in front of many.
func (o owner) share(total int64) int64 {
	switch {
	case o.limited():
		return total / 4
	case o.kind == principal.Person:
		return reserved(total)
	}
	return total / 2
}

// reserved returns what agents and viewers together may have of total, and each person: a
// quarter is left for others.
func reserved(total int64) int64 { return total - total/4 }

// A body is the body of one request.
type body struct {
	budget *bodyBudget
	pool   *bodyPool
	owner  owner
	stop   func() // ends a read under way; it may be called with the lock held

	size      int64
	markSize  int64
	mark      time.Time // when it had markSize bytes
	displaced bool
}

// progress is how many bytes count as progress: a client that sends one at a
// time is as slow as one that sends none.
const progress = 4 << 10

// errDisplaced ends a request whose body was displaced.
var errDisplaced = &abi.Error{
	Code: abi.Unavailable, Message: "the body arrived too slowly: the server needed its memory for other requests",
	RetryAfterMs: 1000, Hint: "send the request again; a body of up to 64 KB is least affected",
}

// open returns an empty body. Its reader calls release.
func (b *bodyBudget) open(o owner, stop func()) *body {
	return &body{budget: b, pool: &b.small, owner: o, stop: stop}
}

// read reads a body to its end; announced is its length, negative if unknown.
func (b *body) read(in io.Reader, announced int64) ([]byte, error) {
	room := int64(512)
	if announced >= 0 {
		room = min(announced+1, progress) // one more to see the end
	}
	text := make([]byte, 0, room)
	for {
		n, err := in.Read(text[len(text):cap(text)])
		text = text[:len(text)+n]
		if full := b.charge(int64(n), err == io.EOF); full != nil {
			return nil, full
		}
		if err == io.EOF {
			return text, nil
		}
		if err != nil {
			return nil, err
		}
		if len(text) == cap(text) {
			room := 2 * int64(cap(text))
			if announced >= int64(cap(text)) {
				room = min(room, announced+1)
			}
			text = append(make([]byte, 0, room), text...)
		}
	}
}

// charge counts n bytes that have arrived. At the end of a body it can no longer be displaced.
func (b *body) charge(n int64, end bool) error {
	b.budget.mu.Lock()
	defer b.budget.mu.Unlock()
	if b.displaced {
		return errDisplaced
	}
	if b.pool == &b.budget.small && b.size+n > smallBody {
		size := b.size
		b.leave()
		b.pool, n = &b.budget.large, size+n
	}
	switch {
	case end:
		delete(b.pool.arriving, b)
	case n > 0:
		if b.mark.IsZero() || b.size+n-b.markSize >= progress {
			b.mark, b.markSize = time.Now(), b.size+n
		}
		b.pool.arriving[b] = struct{}{} // it may be the slowest itself
	}
	if err := b.pool.makeRoom(b, n); err != nil {
		b.leave()
		return err
	}
	b.add(n)
	return nil
}

// add counts bytes; the lock is held.
func (b *body) add(n int64) {
	if n == 0 {
		return
	}
	p := b.pool
	b.size, p.used = b.size+n, p.used+n
	if b.owner.limited() {
		p.limited += n
	}
	if p.owners[b.owner.key] += n; p.owners[b.owner.key] == 0 {
		delete(p.owners, b.owner.key)
	}
}

// leave removes a body from its pool; the lock is held.
func (b *body) leave() {
	b.add(-b.size)
	delete(b.pool.arriving, b)
}

// release ends a body, whose bytes the caller no longer refers to.
func (b *body) release() {
	b.budget.mu.Lock()
	defer b.budget.mu.Unlock()
	b.leave()
	b.displaced = true // what comes later, for a client that has gone, is not counted for ever
}

// makeRoom displaces readers until there is room for n more bytes of b; the
// lock is held.
func (p *bodyPool) makeRoom(b *body, n int64) error {
	for {
		of, over := p.over(b.owner, n)
		if over == nil {
			return nil
		}
		var slowest *body
		for other := range p.arriving {
			if of(other.owner) && (slowest == nil || other.mark.Before(slowest.mark)) {
				slowest = other
			}
		}
		switch slowest {
		case nil:
			return over
		case b:
			if len(p.arriving) == 1 || b.size == 0 { // it is not slow: the others are executing
				return over
			}
			return errDisplaced
		}
		slowest.leave()
		slowest.displaced = true
		slowest.stop()
	}
}

// over returns whose bodies the limit is about that n more bytes exceed, and its
// error; nil if there is room.
func (p *bodyPool) over(o owner, n int64) (of func(owner) bool, over error) {
	switch share := o.share(p.max); {
	case p.owners[o.key]+n > share:
		return func(other owner) bool { return other == o }, tooMany(fmt.Sprintf("those of %s may have %d MB in memory", o.key, share>>20))
	case o.limited() && p.limited+n > reserved(p.max):
		return owner.limited, tooMany(fmt.Sprintf("those of agents and viewers may have %d MB in memory", reserved(p.max)>>20))
	case p.used+n > p.max:
		// A person's request does not end for one of an agent.
		return func(other owner) bool { return !o.limited() || other.limited() }, tooMany(fmt.Sprintf("they may have %d MB in memory", p.max>>20))
	}
	return nil, nil
}

func tooMany(limit string) error {
	return &abi.Error{Code: abi.Unavailable, Message: "too many large requests at once: " + limit, RetryAfterMs: 1000, Hint: "send it again when others have ended"}
}
