package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/host/api"
	"github.com/sentinel-runtime/sentinel/host/command"
)

// A desk is a server with one place, and a command that executes until the test lets it end.
type desk struct {
	*site
	addr   string
	reg    *registry
	began  chan string // name of who calls code/slow
	finish chan struct{}
}

func newDesk(t *testing.T) *desk {
	d := &desk{began: make(chan string, 100), finish: make(chan struct{})}
	large := json.RawMessage(`"` + strings.Repeat("x", 15<<20) + `"`)
	d.reg = commands(t, map[string]any{
		"code/slow": reply(func(ctx context.Context, call *command.Call) (json.RawMessage, error) {
			d.began <- call.As
			select {
			case <-d.finish:
			case <-ctx.Done():
			}
			return json.RawMessage(`{}`), ctx.Err()
		}),
		"code/wait~": reply(func(ctx context.Context, call *command.Call) (json.RawMessage, error) {
			d.began <- call.As
			<-ctx.Done()
			return nil, ctx.Err()
		}),
		"code/work~": reply(func(ctx context.Context, call *command.Call) (json.RawMessage, error) {
			d.began <- call.As
			done, err := call.Work(ctx)
			defer done()
			return json.RawMessage(`{}`), err
		}),
		"code/read?":  `{}`,
		"code/large?": reply(func(context.Context, *command.Call) (json.RawMessage, error) { return large, nil }),
	})
	d.site = open(t, api.Options{Tokens: kindTokens{}, Hooks: hooksFunc(takeHooks), Commands: d.reg, Feed: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		d.began <- "feed"
		<-r.Context().Done()
	})})
	d.api.SetPlaces(1)
	d.addr = d.Listener.Addr().String()
	return d
}

// call sends a call of a command on a new connection, and returns without its answer.
func (d *desk) call(t *testing.T, token, name string) net.Conn {
	t.Helper()
	return ask(t, d.addr, "POST", "/v1/commands/"+name, token)
}

// hold has an agent take the place.
func (d *desk) hold(t *testing.T) net.Conn {
	t.Helper()
	c := d.call(t, "agent-holder", "code/slow")
	if got := <-d.began; got != "holder" {
		t.Fatal(got)
	}
	return c
}

// waits waits until so many requests of an agent or viewer wait for the place.
func (d *desk) waits(t *testing.T, owner string, n int) {
	t.Helper()
	until(t, func() bool { return d.api.Waiting(owner) == n })
}

// TestPlacesAreTakenInTurn: requests of agents and viewers are executed in places, each of their owners in turn, whatever
// number of requests one has; those of others need none (G17).
func TestPlacesAreTakenInTurn(t *testing.T) {
	d := newDesk(t)
	holder := d.hold(t)
	for i := range 3 {
		d.call(t, "agent-many", "code/slow")
		d.waits(t, "agent many", i+1)
	}
	d.call(t, "agent-one", "code/slow")
	d.waits(t, "agent one", 1)
	viewer := ask(t, d.addr, "GET", "/openapi.json", "viewer-wall") // no command
	d.waits(t, "viewer wall", 1)
	for _, token := range []string{"person-ann", "person-bob"} {
		if got := d.as(token, "POST", "/v1/commands/code/read", "{}"); got.status != http.StatusOK {
			t.Errorf("%s: %d %s", token, got.status, got.body)
		}
		if got := d.as(token, "GET", "/v1/commands", ""); got.status != http.StatusOK {
			t.Errorf("%s: %d %s", token, got.status, got.body)
		}
	}
	for method, path := range map[string]string{"GET": "/health", "POST": "/v1/hooks/push"} {
		if got := d.do(method, path, "", "Authorization:"); got.status/100 != 2 {
			t.Errorf("%s: %d %s", path, got.status, got.body)
		}
	}
	var order []string
	for range 4 {
		d.finish <- struct{}{}
		order = append(order, <-d.began)
	}
	if want := []string{"many", "one", "many", "many"}; !slices.Equal(order, want) {
		t.Errorf("the order is %q, want %q", order, want)
	}
	d.finish <- struct{}{}
	for _, c := range []net.Conn{holder, viewer} {
		if status, text := answered(t, c); status != http.StatusOK {
			t.Errorf("%d %.200s", status, text)
		}
	}
}

// TestWaitsHoldNoPlace: what waits for something else than the processor holds no place: calls that say so, the live feed,
// bodies that arrive and answers that are not taken.
func TestWaitsHoldNoPlace(t *testing.T) {
	d := newDesk(t)
	d.call(t, "agent-a", "code/wait")
	<-d.began
	ask(t, d.addr, "GET", "/ws", "viewer-a")
	<-d.began
	announce(t, d.addr, "/v1/commands/code/read", "agent-b", 100)
	announce(t, d.addr, "/v1/runs/r1/retry", "agent-b", 100)
	unread := d.call(t, "viewer-c", "code/large")
	if _, err := io.ReadFull(unread, make([]byte, 12)); err != nil { // it is being sent
		t.Fatal(err)
	}
	d.hold(t) // the place is free
	d.call(t, "agent-a", "code/wait")
	<-d.began // also while it is not
	ask(t, d.addr, "GET", "/ws", "agent-a")
	<-d.began
	works := d.call(t, "agent-d", "code/work") // waits for the place only for its work
	<-d.began
	d.waits(t, "agent d", 1)
	d.finish <- struct{}{}
	if status, text := answered(t, works); status != http.StatusOK {
		t.Errorf("%d %.200s", status, text)
	}
	if got := d.as("agent-b", "POST", "/v1/commands/code/read", "{}"); got.status != http.StatusOK {
		t.Errorf("%d %s", got.status, got.body)
	}
}

// TestNothingIsExecutedForClientsThatHaveGone: a request that is cancelled while it waits for a place is not executed.
func TestNothingIsExecutedForClientsThatHaveGone(t *testing.T) {
	d := newDesk(t)
	d.hold(t)
	for range 20 {
		c := d.call(t, "agent-many", "code/read")
		d.waits(t, "agent many", 1)
		c.Close()
		d.waits(t, "agent many", 0)
	}
	d.finish <- struct{}{}
	if got := d.as("agent-one", "POST", "/v1/commands/code/read", "{}"); got.status != http.StatusOK {
		t.Errorf("%d %s", got.status, got.body)
	}
	if calls := d.reg.made(); len(calls) != 2 {
		t.Errorf("%d calls are made, want that of the holder and the last", len(calls))
	}
}

// countedList counts how often the list of commands is asked for.
type countedList struct {
	*registry
	lists int
}

func (c *countedList) List() []command.Command {
	c.lists++
	return c.registry.List()
}

// TestLargeAnswersAreMadeOnce: the document and the list of commands are made once for each version of the registry and
// each schema of definitions, also for requests that have them already.
func TestLargeAnswersAreMadeOnce(t *testing.T) {
	reg := &countedList{registry: commands(t, map[string]any{"code/read?": `{}`})}
	schema := json.RawMessage(`{"type":"object"}`)
	s := open(t, api.Options{Commands: reg, Schema: func() json.RawMessage { return bytes.Clone(schema) }})
	made := func(want int) (tag string) {
		t.Helper()
		for range 3 {
			got := s.do("GET", "/openapi.json", "")
			tag = got.header.Get("ETag")
			if again := s.do("GET", "/openapi.json", "", "If-None-Match: "+tag); got.status != 200 || again.status != http.StatusNotModified {
				t.Fatal(got.status, again.status)
			}
			if got := s.do("GET", "/v1/commands", ""); got.status != 200 {
				t.Fatal(got.status)
			}
		}
		if reg.lists != want {
			t.Errorf("the commands were listed %d times, want %d", reg.lists, want)
		}
		return tag
	}
	first := made(2)
	if err := reg.Add(command.NewDynamic("code/more", "More.", nil, nil, command.Options{Effect: command.Reads}, noResult)); err != nil {
		t.Fatal(err)
	}
	second := made(4)
	schema = json.RawMessage(`{"type":"object","title":"other"}`)
	third := made(5)
	if first == second || second == third {
		t.Error("tags:", first, second, third)
	}
	for _, path := range []string{"/openapi.json", "/v1/commands"} {
		if got := s.do("GET", path, ""); !strings.Contains(got.body, "code/more") {
			t.Errorf("%s does not have the new command", path)
		}
	}
}

func noResult(context.Context, *command.Call) (json.RawMessage, error) { return nil, nil }

// TestBodiesAreReadInPlaces: what has arrived of the body of an agent's request, of a viewer's or of a webhook is read in
// its place or turn; the wait for the rest has none (G17).
func TestBodiesAreReadInPlaces(t *testing.T) {
	d := newDesk(t)
	chunked := strings.Repeat("1\r\n \r\n", 100)
	send := func(c net.Conn, text string) {
		t.Helper()
		if _, err := io.WriteString(c, text); err != nil {
			t.Fatal(err)
		}
	}
	begin := func(path, token string) net.Conn {
		c := dialAs(t, d.addr, "")
		send(c, "POST "+path+" HTTP/1.1\r\nHost: "+d.addr+"\r\nAuthorization: Bearer "+token+
			"\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"+chunked)
		return c
	}
	unread := func(who string) {
		t.Helper()
		if n := d.api.BodyBytes(); n != 0 {
			t.Errorf("%s: %d bytes were read without a place", who, n)
		}
	}
	half := begin("/v1/commands/code/read", "agent-half")
	until(t, func() bool { return d.api.BodyBytes() == 100 })
	holder := d.hold(t) // while a body waits for the client
	send(half, chunked)
	d.waits(t, "agent half", 1)
	if n := d.api.BodyBytes(); n != 100 {
		t.Errorf("%d bytes were read, want 100: the others arrived without a place", n)
	}
	d.finish <- struct{}{}
	answered(t, holder)
	send(half, "2\r\n{}\r\n0\r\n\r\n")
	if status, text := answered(t, half); status != http.StatusOK {
		t.Errorf("%d %.200s", status, text)
	}
	unread("before")

	d.hold(t)
	whole := begin("/v1/commands/code/read", "agent-whole")
	d.waits(t, "agent whole", 1)
	unread("agent")
	d.finish <- struct{}{}
	until(t, func() bool { return d.api.BodyBytes() == 100 })
	whole.Close()
	until(t, func() bool { return d.api.BodyBytes() == 0 })

	done := d.api.HoldHooks()
	hook := begin("/v1/hooks/push", "none")
	until(t, func() bool { return d.api.HooksWait() == 1 })
	unread("webhook")
	done()
	send(hook, "0\r\n\r\n")
	if status, text := answered(t, hook); status != http.StatusNoContent {
		t.Errorf("%d %.200s", status, text)
	}
}
