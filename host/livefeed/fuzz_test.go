package livefeed_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/host/livefeed"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// FuzzClientMessage: every message of a client is either an *abi.Error
// or has only valid topics.
func FuzzClientMessage(f *testing.F) {
	for _, seed := range []string{
		`{"subscribe":["runs","run:0190-a/tree"]}`, `{"unsubscribe":["x"]}`, `{"subscribe":["events:a:**"],"unsubscribe":[]}`,
		`{}`, `[]`, `null`, `{"subscribe":null}`, `{"subscribe":[1]}`, `{"Subscribe":["runs"]}x`, "\xff",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, message []byte) {
		subscribe, unsubscribe, err := livefeed.ParseRequest(message)
		if err != nil {
			if abi.As(err) == nil {
				t.Errorf("%v: want an *abi.Error with a code", err)
			}
			return
		}
		if len(subscribe)+len(unsubscribe) == 0 {
			t.Error("a message that asks for nothing was taken")
		}
		for _, topic := range subscribe {
			if err := livefeed.CheckTopic(topic); err != nil {
				t.Error(err)
			}
		}
	})
}

// FuzzCursor: a valid cursor is formatted as it was parsed, and no text makes a
// feed misbehave.
func FuzzCursor(f *testing.F) {
	for _, seed := range []string{"", "e-0", "e-1", "e-3", "e-18446744073709551615", "0-1", "e-+1", "e-1 ", "-", "é-1"} {
		f.Add(seed)
	}
	ring := livefeed.New(livefeed.Options{Epoch: "e", Entries: 2})
	f.Cleanup(ring.Close)
	numbers(ring, "health", 0, 5)
	f.Fuzz(func(t *testing.T, text string) {
		c, err := livefeed.ParseCursor(text)
		if err == nil && c.String() != text {
			t.Errorf("%q is written %q", text, c)
		}
		s, failed := ring.Subscribe(text, []string{"health"})
		if (failed == nil) != (err == nil || text == "") {
			t.Fatalf("parsed: %v, subscribed: %v", err, failed)
		}
		if failed != nil {
			return
		}
		defer s.Close()
		if got := rest(t, s); len(got) > 3 {
			t.Errorf("%q", got)
		}
	})
}

// FuzzMessage: a message is valid JSON with any topics, kinds and bodies.
func FuzzMessage(f *testing.F) {
	f.Add("runs", "run.start", []byte(`{"a":1}`))
	f.Add("events:\"", "a\x00\xff", []byte(`[]`))
	f.Fuzz(func(t *testing.T, topic, kind string, body []byte) {
		if !json.Valid(body) {
			return
		}
		e := livefeed.Entry{Cursor: livefeed.Cursor{Epoch: "e", Seq: 1}, Topic: topic, Also: []string{kind}, Kind: kind, Time: time.Unix(0, 0)}.WithBody(body)
		if b := livefeed.AppendEntry(nil, e); !json.Valid(b) {
			t.Errorf("%s", b)
		}
	})
}
