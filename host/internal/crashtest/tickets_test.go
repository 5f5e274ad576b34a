//go:build linux

package crashtest_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// A entry is one line of the outside log: what a worker asked, and what it learnt.
type entry struct {
	kind   string // claim, done, failed, released
	ticket string
	token  uint64
	worker int
	sent   time.Time
	known  time.Time // when the answer came
	status int       // 0: the server died before the answer
}

// A market is a server with tickets that is killed again and again, and its workers.
type market struct {
	t    *testing.T
	url  string
	dir  string
	port string

	stalled sync.WaitGroup

	mu     sync.Mutex
	log    []entry
	stalls int
}

// TestTickets: "ten workers on 1,000 tickets with random kills and clock jumps: every
// ticket ends once, no lease is held twice, checked from an outside log". The jumps are
// in TestClockJumps of host/ticket, since the clock of a process cannot be set here.
func TestTickets(t *testing.T) {
	tickets, kills := 120, 8
	if testing.Short() {
		tickets, kills = 24, 3
	}
	if n, err := strconv.Atoi(os.Getenv("SENTINEL_TICKETS")); err == nil {
		tickets, kills = n, max(n/20, 3)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(l.Addr().String())
	_ = l.Close()
	m := &market{t: t, url: "http://127.0.0.1:" + port, port: port, dir: t.TempDir()}
	server := m.serve()
	for n := range tickets {
		if status := m.ask("POST", "/tickets", map[string]any{"id": fmt.Sprintf("t-%d", n), "title": "work", "priority": n % 3}, nil); status != 201 {
			t.Fatalf("create: %d", status)
		}
	}
	stop := make(chan struct{})
	var workers sync.WaitGroup
	for n := range 10 {
		workers.Go(func() { m.work(n, stop) })
	}
	made := 0
	deadline := time.Now().Add(5*time.Minute + time.Duration(tickets)*time.Second)
	for next := time.Now(); ; {
		if made < kills && time.Now().After(next) {
			_ = server.Process.Kill()
			_ = server.Wait()
			made++
			server = m.serve()
			next = time.Now().Add(time.Duration(200+rand.IntN(1200)) * time.Millisecond)
		}
		var stats struct{ States map[string]int }
		if m.ask("GET", "/tickets/stats", nil, &stats) == 200 && made == kills {
			if stats.States["done"] == tickets {
				break
			}
			m.release()
		}
		if time.Now().After(deadline) {
			t.Fatalf("the tickets do not end: %v", stats.States)
		}
		time.Sleep(50 * time.Millisecond)
	}
	close(stop)
	workers.Wait()
	m.stalled.Wait()
	m.judge(tickets)
	_ = server.Process.Signal(os.Interrupt)
	_ = server.Wait()
	t.Logf("%d tickets, %d kills, %d lines in the log", tickets, made, len(m.log))
}

// serve starts a server process and waits until it answers.
func (m *market) serve() *exec.Cmd {
	m.t.Helper()
	text, err := json.Marshal(order{CLI: []string{"serve", "--no-auth", "--listen", "127.0.0.1:" + m.port}})
	if err != nil {
		m.t.Fatal(err)
	}
	cmd := exec.Command("/proc/self/exe")
	cmd.Dir = m.dir
	cmd.Env = []string{orderVar + "=" + string(text), "PATH=" + os.Getenv("PATH"), "GOGC=" + os.Getenv("GOGC"), "SENTINEL_TRUST_ROOTS=/", "HOME=" + m.dir, "SENTINEL_TICKETS_UNVERIFIED=true", "SENTINEL_TICKETS_LEASE=2s"}
	var errors bytes.Buffer
	cmd.Stderr = &errors
	if err := cmd.Start(); err != nil {
		m.t.Fatal(err)
	}
	m.t.Cleanup(func() { _ = cmd.Process.Kill() })
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		if m.ask("GET", "/ready", nil, nil) == 200 {
			return cmd
		}
		if time.Now().After(deadline) {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
			m.t.Fatalf("the server does not start: %s", errors.String())
		}
	}
}

var marketClient = &http.Client{Timeout: 20 * time.Second}

// ask makes a request; the status is 0 if there was no answer.
func (m *market) ask(method, path string, body, result any) int {
	text, err := json.Marshal(body)
	if err != nil {
		m.t.Error(err)
		return 0
	}
	req, err := http.NewRequest(method, m.url+path, bytes.NewReader(text))
	if err != nil {
		m.t.Error(err)
		return 0
	}
	if body == nil {
		req.Body, req.ContentLength = http.NoBody, 0
	}
	res, err := marketClient.Do(req)
	if err != nil {
		return 0
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err != nil {
		return 0
	}
	if result != nil && res.StatusCode/100 == 2 {
		if err := json.Unmarshal(answer, result); err != nil {
			m.t.Errorf("%s %s: %s: %v", method, path, answer, err)
		}
	}
	return res.StatusCode
}

func (m *market) note(d entry) {
	d.known = time.Now()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.log = append(m.log, d)
}

// work claims tickets and ends them, gives some back, lets some fail, and forgets some,
// as a worker that was killed does.
func (m *market) work(n int, stop <-chan struct{}) {
	for {
		select {
		case <-stop:
			return
		default:
		}
		var t *struct {
			ID    string `json:"id"`
			Lease struct {
				Token uint64 `json:"token"`
			} `json:"lease"`
		}
		d := entry{kind: "claim", worker: n, sent: time.Now()}
		d.status = m.ask("POST", "/tickets/claim", map[string]any{"agent_id": fmt.Sprintf("w%d", n), "lease_ms": 1000 + rand.IntN(1000)}, &t)
		if d.status != 200 || t == nil {
			time.Sleep(20 * time.Millisecond)
			continue
		}
		d.ticket, d.token = t.ID, t.Lease.Token
		m.note(d)
		time.Sleep(time.Duration(rand.IntN(30)) * time.Millisecond)
		if t.Lease.Token > 1 {
			time.Sleep(200 * time.Millisecond) // long enough for the worker that had it before to come back
		}
		end := func(kind, path string, body map[string]any) {
			d := entry{kind: kind, ticket: t.ID, token: t.Lease.Token, worker: n, sent: time.Now()}
			body["token"] = t.Lease.Token
			d.status = m.ask("POST", "/tickets/"+t.ID+path, body, nil)
			m.note(d)
		}
		switch p := rand.IntN(100); {
		case p < 2: // killed: it says nothing
		case p < 5 || t.Lease.Token == 1 && m.stall(): // stopped, until another has the ticket
			m.stalled.Go(func() {
				if m.superseded(t.ID, t.Lease.Token) {
					end("done", "/complete", map[string]any{})
				}
			})
		case p < 8:
			end("failed", "/fail", map[string]any{"error": "429 too many requests"})
		case p < 14:
			end("released", "/release", map[string]any{"reason": "not mine"})
		default:
			m.ask("POST", "/tickets/"+t.ID+"/heartbeat", map[string]any{"token": t.Lease.Token}, nil)
			end("done", "/complete", map[string]any{})
		}
	}
}

// stall reports true for the first few calls, so that some workers are always stopped.
func (m *market) stall() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stalls++
	return m.stalls <= 3
}

// superseded waits until another worker has claimed the ticket.
func (m *market) superseded(id string, token uint64) bool {
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		var t struct {
			Lease *struct{ Token uint64 } `json:"lease"`
		}
		if m.ask("GET", "/tickets/"+id, nil, &t) == 200 && t.Lease != nil && t.Lease.Token > token {
			return true
		}
	}
	return false
}

// release puts tickets back whose retries were used up.
func (m *market) release() {
	var held struct{ Tickets []struct{ ID string } }
	if m.ask("GET", "/tickets?state=on_hold&limit=200", nil, &held) == 200 {
		for _, t := range held.Tickets {
			m.ask("POST", "/tickets/"+t.ID+"/requeue", map[string]any{}, nil)
		}
	}
}

// judge checks the log of the workers against what the server has.
func (m *market) judge(tickets int) {
	claims := map[string][]entry{} // by ticket
	done := map[string]int{}
	unknown := map[string]int{}
	for _, d := range m.log {
		switch {
		case d.kind == "claim":
			claims[d.ticket] = append(claims[d.ticket], d)
		case d.kind == "done" && d.status == 200:
			done[d.ticket]++
		case d.kind == "done" && d.status == 0:
			unknown[d.ticket]++
		case d.kind == "done" && d.status != 409:
			m.t.Errorf("complete of %s: status %d", d.ticket, d.status)
		}
	}
	for id, list := range claims {
		seen := map[uint64]int{}
		for _, d := range list {
			if other, ok := seen[d.token]; ok {
				m.t.Errorf("claim %d of ticket %s was given to workers %d and %d", d.token, id, other, d.worker)
			}
			seen[d.token] = d.worker
		}
		// What was sent after a worker knew of a newer claim must not be taken.
		for _, d := range m.log {
			if d.ticket != id || d.kind == "claim" || d.status != 200 {
				continue
			}
			for _, newer := range list {
				if newer.token > d.token && newer.known.Before(d.sent) {
					m.t.Errorf("ticket %s: %s with claim %d was taken after claim %d", id, d.kind, d.token, newer.token)
				}
			}
		}
	}
	for n := range tickets {
		id := fmt.Sprintf("t-%d", n)
		var activity struct {
			Activities []struct{ Message string }
		}
		if status := m.ask("GET", "/tickets/"+id+"/activity?category=ticket_state_changed&limit=200", nil, &activity); status != 200 {
			m.t.Fatalf("activity of %s: %d", id, status)
		}
		ends := 0
		for _, a := range activity.Activities {
			if strings.HasSuffix(a.Message, " to done") {
				ends++
			}
		}
		if ends != 1 || done[id] > 1 || done[id]+unknown[id] == 0 {
			m.t.Errorf("ticket %s: ended %d times; workers know of %d ends and %d without an answer", id, ends, done[id], unknown[id])
		}
	}
}
