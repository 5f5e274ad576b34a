package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/host/client"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

func TestMain(m *testing.M) {
	runtime.ServeChild()
	os.Exit(m.Run())
}

// limit ends a test that hangs.
const limit = time.Minute

const key = "the-owner's-key"

// fulfil waits for the money of each larger order, and sends it then.
//
//go:embed fulfil.json
var fulfil string

// A life is the program from its start to its end.
type life struct {
	*testing.T
	http   *httptest.Server
	client *client.Client
	ctx    context.Context
	stop   context.CancelFunc
	ended  chan error
}

func begin(t *testing.T, dir string) *life {
	t.Helper()
	s, err := open(t.Context(), dir, map[string]string{key: "the owner"})
	if err != nil {
		t.Fatal(err)
	}
	l := &life{T: t, http: httptest.NewServer(s.handler()), ended: make(chan error, 1)}
	var cancel, stop context.CancelFunc
	l.ctx, cancel = context.WithTimeout(context.Background(), limit)
	life, stop := context.WithCancel(context.Background())
	l.stop = stop
	go func() { l.ended <- s.serve(life) }()
	l.client = l.as(key)
	t.Cleanup(func() { l.end(); cancel() })
	return l
}

// as is another program with a key.
func (l *life) as(key string) *client.Client {
	l.Helper()
	c, err := client.New(client.Options{URL: l.http.URL + "/sentinel", Token: key})
	if err != nil {
		l.Fatal(err)
	}
	return c
}

// end stops the program as SIGTERM does.
func (l *life) end() {
	l.Helper()
	if l.stop == nil {
		return
	}
	l.stop()
	l.stop = nil
	if err := <-l.ended; err != nil {
		l.Errorf("the end: %v", err)
	}
	l.client.Close()
	l.http.Close()
}

// buy places an order as anybody can.
func (l *life) buy(what string, cents int) order {
	l.Helper()
	res, err := l.http.Client().Post(l.http.URL+"/orders", "application/json", strings.NewReader(fmt.Sprintf(`{"what":%q,"cents":%d}`, what, cents)))
	if err != nil {
		l.Fatal(err)
	}
	defer res.Body.Close()
	var o order
	if err := json.NewDecoder(res.Body).Decode(&o); err != nil || res.StatusCode != http.StatusOK {
		l.Fatalf("order: status %d, %v", res.StatusCode, err)
	}
	return o
}

// runs are those of the sentinel, the oldest first.
func (l *life) runs() []client.Run {
	l.Helper()
	var all []client.Run
	for r, err := range l.client.Runs(l.ctx, client.RunFilter{Sentinel: "fulfil"}) {
		if err != nil {
			l.Fatal(err)
		}
		all = append([]client.Run{r}, all...)
	}
	return all
}

// waiting returns the runs once there are n of them and each is in its wait, or
// over.
func (l *life) waiting(n int) []client.Run {
	l.Helper()
	for {
		runs, open := l.runs(), 0
		for _, r := range runs {
			trace, err := l.client.Trace(l.ctx, r.ID, "")
			if err != nil {
				l.Fatal(err)
			}
			if strings.Contains(string(trace), "sentinel_wait") || r.Status.Final() {
				open++
			}
		}
		if open == n {
			return runs
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-l.ctx.Done():
			l.Fatalf("%d runs wait, want %d", open, n)
		}
	}
}

// pay has the money of an order come in and follows its run to the end.
func (l *life) pay(o order, run sentinels.RunID) {
	l.Helper()
	followed := make(chan error, 1)
	go func() {
		r, err := l.client.Follow(l.ctx, run, func(client.Message) error { return nil })
		if err == nil && r.Status != sentinels.StatusCompleted {
			err = fmt.Errorf("%s: %v", r.Status, r.Error)
		}
		followed <- err
	}()
	if _, err := l.client.Emit(l.ctx, fmt.Sprint("payment-", o.Number), fmt.Sprint("paid:", o.Number), nil); err != nil {
		l.Fatal(err)
	}
	if err := <-followed; err != nil {
		l.Fatal(err)
	}
	// A client that came too late to see it live finds it in the logs, once the last
	// line is there: the end of a run is reported before its log is written.
	for last := ""; !strings.Contains(last, "run.end"); {
		for line, err := range l.client.Logs(l.ctx, run, 0) {
			if err != nil {
				l.Fatalf("logs of run %s: %v; the last that it told is %q", run, err, last)
			}
			last = string(line)
		}
	}
}

// TestService is the life of the shop over one restart.
func TestService(t *testing.T) {
	dir := t.TempDir()
	l := begin(t, dir)
	l.buy("a pin", 50)
	chair := l.buy("a chair", 9000)
	if _, err := l.client.Create(l.ctx, json.RawMessage(fulfil)); err != nil {
		t.Fatal(err)
	}
	lamp := l.buy("a lamp", 4000)
	runs := l.waiting(2)
	l.pay(chair, runs[0].ID)
	l.end()

	l = begin(t, dir)
	table := l.buy("a table", 20000)
	again := l.waiting(3)
	if again[1].ID != runs[1].ID || again[1].Status.Final() {
		t.Errorf("the lamp's run did not go on: %+v, was %+v", again[1], runs[1])
	}
	l.pay(table, again[2].ID)
	l.pay(lamp, runs[1].ID)

	var sent struct{ Items []struct{ Data parcel } }
	if err := l.client.Call(l.ctx, "data/list", map[string]string{"collection": parcels}, &sent); err != nil {
		t.Fatal(err)
	}
	var got []parcel
	for _, p := range sent.Items {
		got = append(got, p.Data)
	}
	want := []parcel{{2, "a chair", "fulfil"}, {3, "a lamp", "fulfil"}, {4, "a table", "fulfil"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("parcels (-want +got):\n%s", diff)
	}
}

// TestStrangers get orders in and nothing else.
func TestStrangers(t *testing.T) {
	l := begin(t, t.TempDir())
	for _, wrong := range []string{"", "someone-else's-key"} {
		if _, err := l.as(wrong).Sentinels(l.ctx); abi.CodeOf(err) != abi.Denied {
			t.Errorf("with the key %q: %v, want denied", wrong, err)
		}
	}
	err := l.client.Call(l.ctx, "shop/ship", ship{Order: 7}, nil)
	if e := abi.As(err); abi.CodeOf(err) != abi.NotFound || e.Field != "order" {
		t.Errorf("a parcel without an order: %v, want not_found of the field order", err)
	}
	bad := strings.Replace(fulfil, `"minimumCents": 1000`, `"minimumCents": -1`, 1)
	if _, err := l.client.Create(l.ctx, json.RawMessage(bad)); err == nil || !strings.Contains(err.Error(), "less than nothing") {
		t.Errorf("a trigger with a mistake: %v", err)
	}
}
