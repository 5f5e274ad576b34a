package chat_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/host/command/chat"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

type answer struct {
	ID, Room, Next, Text string
	SentAt               time.Time
	Messages             []chat.Message
}

type bench struct {
	*testing.T
	registry *command.Registry
	records  memory
}

func open(t *testing.T) bench {
	t.Helper()
	r, err := command.NewRegistry(chat.Commands(chat.Options{})...)
	if err != nil {
		t.Fatal(err)
	}
	return bench{t, r, memory{}}
}

func (b bench) try(c command.Call) (a answer, err error) {
	c.Records = b.records
	c.Command = "collaboration/chat/" + c.Command
	text, err := b.registry.Call(b.Context(), &c)
	if err == nil {
		err = json.Unmarshal(text, &a)
	}
	return a, err
}

func (b bench) send(key, params string) answer {
	b.Helper()
	a, err := b.try(command.Call{Command: "send", Params: json.RawMessage(params), Key: key, By: command.ByStep, Sentinel: "review"})
	if err != nil {
		b.Fatal(err)
	}
	return a
}

func (b bench) history(params string) answer {
	b.Helper()
	a, err := b.try(command.Call{Command: "history", Params: json.RawMessage(params), By: command.ByUser})
	if err != nil {
		b.Fatal(err)
	}
	return a
}

func TestMessageForms(t *testing.T) {
	b := open(t)
	tests := []struct{ message, text, data string }{
		{`"hello"`, "hello", ""},
		{`{"text":"looks good","usage":{"calls":1}}`, "looks good", ""}, // what an llm step leaves
		{`{"a":1}`, `{"a":1}`, `{"a":1}`},
		{`{"text":7}`, `{"text":7}`, `{"text":7}`},
		{`[1,2]`, `[1,2]`, `[1,2]`},
		{`12345678901234567890`, "12345678901234567890", "12345678901234567890"},
		{`false`, "false", "false"},
	}
	for i, tt := range tests {
		room := fmt.Sprintf("r%d", i)
		got := b.send("", fmt.Sprintf(`{"room":%q,"message":%s}`, room, tt.message))
		if got.Room != room || got.ID != room+".000000000001" || got.SentAt.IsZero() {
			t.Errorf("send %s = %+v", tt.message, got)
		}
		m := b.history(fmt.Sprintf(`{"room":%q}`, room)).Messages[0]
		if m.Text != tt.text || string(m.Data) != tt.data || m.From != "step of review" || m.Sentinel != "review" {
			t.Errorf("message %s was kept as %+v", tt.message, m)
		}
	}
}

func TestOrderAndPages(t *testing.T) {
	b := open(t)
	for i := range 12 {
		b.send("", fmt.Sprintf(`{"room":"general","message":"m%d","from":"ann"}`, i))
		b.send("", fmt.Sprintf(`{"room":"general.2","message":"other %d"}`, i))
	}
	var texts []string
	before := ""
	for pages := 0; pages == 0 || before != ""; pages++ {
		a := b.history(fmt.Sprintf(`{"room":"general","limit":5,"before":%q}`, before))
		var page []string
		for _, m := range a.Messages {
			page = append(page, m.Text)
		}
		texts = append(page, texts...)
		if before = a.Next; pages > 3 {
			t.Fatal("pages without end")
		}
	}
	want := strings.Fields("m0 m1 m2 m3 m4 m5 m6 m7 m8 m9 m10 m11")
	if diff := cmp.Diff(want, texts); diff != "" {
		t.Error(diff)
	}
	if got := b.history(`{"room":"general","limit":2}`).Text; got != "step of review/ann: m10\nstep of review/ann: m11\n" {
		t.Errorf("text %q", got)
	}
	if a := b.history(`{"room":"empty"}`); len(a.Messages) != 0 || a.Next != "" {
		t.Errorf("empty room: %+v", a)
	}
	recent, err := chat.History(t.Context(), b.records, "general", 1)
	if err != nil || len(recent) != 1 || recent[0].Text != "m11" {
		t.Errorf("History = %+v, %v", recent, err)
	}
}

// A repeated attempt does not post twice.
func TestSendAgain(t *testing.T) {
	b := open(t)
	first := b.send("k", `{"room":"general","message":"one"}`)
	between := b.send("other", `{"room":"general","message":"two"}`)
	if again := b.send("k", `{"room":"general","message":"one"}`); !cmp.Equal(again, first) {
		t.Errorf("second attempt %+v, first %+v", again, first)
	}
	if a := b.history(`{"room":"general"}`); a.Text != "step of review: one\nstep of review: two\n" || a.Messages[0].Edited {
		t.Errorf("history %q", a.Text)
	}
	if again := b.send("k", `{"room":"general","message":"better"}`); again.ID != first.ID {
		t.Errorf("third attempt %+v", again)
	}
	if a := b.history(`{"room":"general"}`); a.Text != "step of review: better\nstep of review: two\n" || !a.Messages[0].Edited {
		t.Errorf("history %q", a.Text)
	}
	if there := b.send("k", `{"room":"elsewhere","message":"one"}`); there.ID != "elsewhere.000000000001" {
		t.Errorf("another room: %+v", there)
	}
	if between.ID != "general.000000000002" {
		t.Errorf("second message is %q", between.ID)
	}
}

func TestDefaultSpeaker(t *testing.T) {
	b := open(t)
	if _, err := b.try(command.Call{Command: "send", Params: json.RawMessage(`{"room":"r","message":"hi"}`), By: command.ByUser}); err != nil {
		t.Fatal(err)
	}
	if m := b.history(`{"room":"r"}`).Messages[0]; m.From != "user" || m.Sentinel != "" {
		t.Errorf("message %+v", m)
	}
}

func TestRefusals(t *testing.T) {
	b := open(t)
	tests := []struct {
		name, command, params string
		code                  abi.Code
		field                 string
	}{
		{"no message", "send", `{"room":"r"}`, abi.BadFields, "message"},
		{"null", "send", `{"room":"r","message":null}`, abi.BadFields, "message"},
		{"empty", "send", `{"room":"r","message":""}`, abi.BadFields, "message"},
		{"empty text", "send", `{"room":"r","message":{"text":""}}`, abi.BadFields, "message"},
		{"long", "send", `{"room":"r","message":"` + strings.Repeat("x", 256<<10+1) + `"}`, abi.Limit, "message"},
		{"long name", "send", `{"room":"r","message":"x","from":"` + strings.Repeat("x", 129) + `"}`, abi.BadFields, "from"},
		{"room up", "send", `{"room":"../r","message":"x"}`, abi.BadFields, "room"},
		{"room empty", "history", `{"room":""}`, abi.BadFields, "room"},
		{"cursor", "history", `{"room":"r","before":"general.000000000001"}`, abi.BadFields, "before"},
		{"cursor zero", "history", `{"room":"r","before":"r.000000000000"}`, abi.BadFields, "before"},
		{"limit", "history", `{"room":"r","limit":501}`, abi.BadFields, "limit"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a, err := b.try(command.Call{Command: tt.command, Params: json.RawMessage(tt.params), By: command.ByModel})
			if e := abi.As(err); e == nil || e.Code != tt.code || e.Field != tt.field {
				t.Errorf("%s %.60s = %+v, %v", tt.command, tt.params, a, err)
			}
		})
	}
	if len(b.records) != 0 {
		t.Errorf("a refused call wrote %v", b.records)
	}
}

func FuzzSend(f *testing.F) {
	for _, s := range []string{`"x"`, `{"text":"x"}`, `{"a":[null]}`, `1e99`, `"\ud800"`} {
		f.Add("general", s)
	}
	r, err := command.NewRegistry(chat.Commands(chat.Options{})...)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, room, message string) {
		if !json.Valid([]byte(message)) {
			return
		}
		name, _ := json.Marshal(room)
		b := bench{t, r, memory{}}
		a, err := b.try(command.Call{Command: "send", Params: json.RawMessage(`{"room":` + string(name) + `,"message":` + message + `}`)})
		if err != nil {
			return
		}
		h := b.history(`{"room":` + string(name) + `}`)
		if len(h.Messages) != 1 || h.Messages[0].ID != a.ID || h.Messages[0].Text == "" {
			t.Errorf("sent %q to %q, read %+v", message, room, h)
		}
	})
}

// TestMessagesAreAnnounced: sentinels react to messages by their event, which
// carries as much of a long one as an event should.
func TestMessagesAreAnnounced(t *testing.T) {
	b := open(t)
	first := b.send("k", `{"room":"general","message":"hello"}`)
	long := b.send("", `{"room":"general","message":"`+strings.Repeat("é", 10_000)+`"}`)
	for id, want := range map[string]chat.Posted{
		first.ID: {ID: first.ID, Room: "general", From: "step of review", Text: "hello"},
		long.ID:  {ID: long.ID, Room: "general", From: "step of review", Text: strings.Repeat("é", 8192), Truncated: true},
	} {
		var got chat.Posted
		if err := json.Unmarshal(b.records[[2]string{"events", "chat-" + id}].Data, &got); err != nil {
			t.Fatalf("message %s: %v", id, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	}
}
