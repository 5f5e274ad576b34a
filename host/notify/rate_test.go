package notify_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sentinel-runtime/sentinel/host/notify"
)

// inbox is a notifier that keeps the messages.
type inbox struct {
	mu   sync.Mutex
	kept []notify.Message
	fail error
}

// fails sets the error of later messages.
func (i *inbox) fails(err error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.fail = err
}

// got returns the messages.
func (i *inbox) got() []notify.Message {
	i.mu.Lock()
	defer i.mu.Unlock()
	return slices.Clone(i.kept)
}

func (*inbox) Names() []string { return []string{"inbox"} }

func (i *inbox) Notify(_ context.Context, _ string, m notify.Message, _ string) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.fail != nil {
		return i.fail
	}
	i.kept = append(i.kept, m)
	return nil
}

// What goes beyond the rate is left out, and one message says how many there were.
func TestRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := &inbox{}
		s := service(t, notify.Options{Notifier: i, Rate: 3})
		defer s.Close()
		send := func(n int) notify.Sent {
			t.Helper()
			sent, err := s.Send(t.Context(), notify.Message{Title: fmt.Sprint("m", n)}, fmt.Sprint("k", n))
			if err != nil || len(sent) != 1 {
				t.Fatal(sent, err)
			}
			return sent[0]
		}
		for n := range 3 {
			if got := send(n); !got.OK {
				t.Errorf("message %d: %+v", n, got)
			}
			time.Sleep(10 * time.Minute)
		}
		for n := range 5 {
			if got := send(3 + n); got.OK || got.To != "inbox" || !strings.Contains(got.Error, "notify.rate is 3") {
				t.Errorf("message %d: %+v", 3+n, got)
			}
		}
		if got := send(1); !got.OK || len(i.got()) != 3 {
			t.Errorf("a repetition: %+v, %d messages", got, len(i.got()))
		}
		i.fails(errors.New("down"))
		time.Sleep(30*time.Minute + time.Second) // the first one is an hour old
		synctest.Wait()
		i.fails(nil)
		if len(i.got()) != 3 {
			t.Fatalf("%+v", i.got())
		}
		time.Sleep(time.Minute) // the summary is sent again
		synctest.Wait()
		if len(i.got()) != 4 || i.got()[3].Title != "5 messages were left out" || !strings.Contains(i.got()[3].Text, "than the 3 in an hour") || !strings.HasSuffix(i.got()[3].Text, "\n\nsentinel inbox\nsentinel list") {
			t.Fatalf("%+v", i.got())
		}
		time.Sleep(2 * time.Hour)
		if got := send(9); !got.OK || len(i.got()) != 5 {
			t.Errorf("%+v, %d messages", got, len(i.got()))
		}
	})
}

// What an agent sends leaves the rate of others as it is.
func TestRateOfOwners(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := &inbox{}
		s := service(t, notify.Options{Notifier: i, Rate: 2})
		defer s.Close()
		send := func(owner, title string) bool {
			t.Helper()
			sent, err := s.Send(t.Context(), notify.Message{Title: title, By: owner, Owner: owner}, "")
			if err != nil || len(sent) != 1 {
				t.Fatal(sent, err)
			}
			return sent[0].OK
		}
		for n := range 6 {
			if ok := send("agent:ci", "noise"); ok != (n < 2) {
				t.Errorf("message %d of the agent: sent %t", n, ok)
			}
		}
		for _, owner := range []string{"", "agent:other"} {
			if !send(owner, "failed") {
				t.Errorf("the message of %q is left out", owner)
			}
		}
		time.Sleep(time.Hour + time.Second)
		synctest.Wait()
		var titles []string
		for _, m := range i.got() {
			titles = append(titles, m.Title)
		}
		want := []string{"agent:ci: noise", "agent:ci: noise", "failed", "agent:other: failed", "4 messages of agent:ci were left out"}
		if !slices.Equal(titles, want) {
			t.Errorf("%q, want %q", titles, want)
		}
	})
}
