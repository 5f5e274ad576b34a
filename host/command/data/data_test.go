package data_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/host/command/data"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// shown are two definitions as a host would show them.
type shown struct{}

func (shown) Definitions(context.Context) ([]sentinels.Document, error) {
	return []sentinels.Document{
		{Collection: "sentinels", ID: "ship-it", Revision: 1, Data: json.RawMessage(`{"uniqueId":"ship-it","name":"ship-it","tags":["a"]}`)},
		{Collection: "sentinels", ID: "build-fix", Revision: 3, Data: json.RawMessage(`{"uniqueId":"build-fix","name":"Build fix","tags":["a"]}`)},
	}, nil
}

func (s shown) Definition(ctx context.Context, id string) (sentinels.Document, error) {
	docs, _ := s.Definitions(ctx)
	for _, d := range docs {
		if d.ID == id {
			return d, nil
		}
	}
	return sentinels.Document{}, abi.New(abi.NotFound, "no such sentinel")
}

type bench struct {
	*testing.T
	registry *command.Registry
	records  memory
}

func open(t *testing.T) bench {
	t.Helper()
	r, err := command.NewRegistry(data.Commands(data.Options{
		Definitions: shown{},
		Owned:       map[string]string{"ticket": "use the ticket commands"},
	})...)
	if err != nil {
		t.Fatal(err)
	}
	return bench{t, r, memory{}}
}

type answer struct {
	Document sentinels.Document
	Created  bool
	Deleted  bool
	Items    []sentinels.Document
	Next     string
}

func (b bench) try(key, name, params string) (answer, error) {
	var a answer
	text, err := b.registry.Call(b.Context(), &command.Call{
		Command: name, Params: json.RawMessage(params), By: command.ByStep, Key: key, Records: b.records,
	})
	if err == nil {
		err = json.Unmarshal(text, &a)
	}
	return a, err
}

func (b bench) must(key, name, params string) answer {
	b.Helper()
	a, err := b.try(key, name, params)
	if err != nil {
		b.Fatalf("%s %s: %v", name, params, err)
	}
	return a
}

func (b bench) fails(code abi.Code, name, params string) *abi.Error {
	b.Helper()
	a, err := b.try("other", name, params)
	if abi.CodeOf(err) != code {
		b.Fatalf("%s %s = %+v, %v; want an error %s", name, params, a, err, code)
	}
	return abi.As(err)
}

func TestLifeOfADocument(t *testing.T) {
	b := open(t)
	made := b.must("k1", "data/create", `{"collection":"notes","data":{"title":"one","n":{"a":1,"b":2}}}`)
	if !made.Created || made.Document.Revision != 1 {
		t.Fatalf("created %+v", made)
	}
	id := made.Document.ID
	changed := b.must("k2", "data/update", fmt.Sprintf(`{"collection":"notes","id":%q,"data":{"n":{"b":null,"c":12345678901234567890},"done":true}}`, id))
	if got, want := string(changed.Document.Data), `{"done":true,"n":{"a":1,"c":12345678901234567890},"title":"one"}`; got != want {
		t.Errorf("merged %s, want %s", got, want)
	}
	same := b.must("k3", "data/update", fmt.Sprintf(`{"collection":"notes","id":%q,"data":{"done":true}}`, id))
	if same.Document.Revision != 2 {
		t.Errorf("an update that changes nothing made revision %d", same.Document.Revision)
	}
	b.must("k4", "data/update", fmt.Sprintf(`{"collection":"notes","id":%q,"data":{"x":1},"replace":true,"revision":2}`, id))
	read := b.must("", "data/read", fmt.Sprintf(`{"collection":"notes","id":%q}`, id))
	if read.Document.Revision != 3 || string(read.Document.Data) != `{"x":1}` {
		t.Errorf("read %+v", read.Document)
	}
	b.fails(abi.Conflict, "data/delete", fmt.Sprintf(`{"collection":"notes","id":%q,"revision":2}`, id))
	if gone := b.must("k5", "data/delete", fmt.Sprintf(`{"collection":"notes","id":%q,"revision":3}`, id)); !gone.Deleted {
		t.Error("not deleted")
	}
	if again := b.must("k6", "data/delete", fmt.Sprintf(`{"collection":"notes","id":%q}`, id)); again.Deleted {
		t.Error("deleted twice")
	}
	if len(b.records) != 0 {
		t.Errorf("left behind: %v", b.records)
	}
}

// A repeated attempt has the key of the first one.
func TestCreateAgain(t *testing.T) {
	for _, id := range []string{"", `"id":"chosen",`} {
		b := open(t)
		params := `{"collection":"notes",` + id + `"data":{"a":1}}`
		first := b.must("k", "data/create", params)
		second := b.must("k", "data/create", params)
		if second.Created || !cmp.Equal(first.Document, second.Document) {
			t.Errorf("id %q: second attempt gave %+v, first %+v", id, second, first)
		}
		third := b.must("k", "data/create", `{"collection":"notes",`+id+`"data":{"a":2}}`)
		if third.Document.ID != first.Document.ID || string(third.Document.Data) != `{"a":2}` || third.Document.Revision != 2 {
			t.Errorf("id %q: third attempt gave %+v", id, third)
		}
		other, err := b.try("another call", "data/create", params)
		if id != "" && abi.CodeOf(err) != abi.Conflict {
			t.Errorf("another call took the same id: %+v, %v", other, err)
		}
		if id == "" && (err != nil || other.Document.ID == first.Document.ID) {
			t.Errorf("another call gave %+v, %v", other, err)
		}
	}
}

// Who created a document is forgotten with it.
func TestCreateAfterDelete(t *testing.T) {
	b := open(t)
	params := `{"collection":"locks","id":"build","data":{}}`
	b.must("k1", "data/create", params)
	b.must("k2", "data/delete", `{"collection":"locks","id":"build"}`)
	if taken := b.must("k3", "data/create", params); !taken.Created {
		t.Errorf("the lock was free: %+v", taken)
	}
	if a, err := b.try("k1", "data/create", params); abi.CodeOf(err) != abi.Conflict {
		t.Errorf("the first call came again and got %+v, %v", a, err)
	}
	if a, err := b.try("", "data/create", params); abi.CodeOf(err) != abi.Conflict {
		t.Errorf("a person got %+v, %v", a, err)
	}
}

func TestCreateWithoutKey(t *testing.T) {
	b := open(t)
	params := `{"collection":"notes","data":{}}`
	if one, two := b.must("", "data/create", params), b.must("", "data/create", params); one.Document.ID == two.Document.ID {
		t.Errorf("two calls of a person share the id %q", one.Document.ID)
	}
}

func TestRefusals(t *testing.T) {
	b := open(t)
	b.must("k", "data/create", `{"collection":"notes","id":"n","data":{"a":1}}`)
	b.must("k", "data/update", `{"collection":"notes","id":"n","data":{"a":2}}`)
	big := strings.Repeat("x", 1<<20)
	tests := []struct {
		name, command, params string
		code                  abi.Code
		field                 string
	}{
		{"stale", "data/update", `{"collection":"notes","id":"n","data":{},"revision":1}`, abi.Conflict, "revision"},
		{"missing", "data/update", `{"collection":"notes","id":"m","data":{}}`, abi.NotFound, ""},
		{"not there", "data/read", `{"collection":"notes","id":"m"}`, abi.NotFound, ""},
		{"neither", "data/read", `{"collection":"notes"}`, abi.BadFields, "id"},
		{"both", "data/read", `{"collection":"notes","id":"n","filter":{"a":2}}`, abi.BadFields, "id"},
		{"no match", "data/read", `{"collection":"notes","filter":{"a":3}}`, abi.NotFound, ""},
		{"no object", "data/create", `{"collection":"notes","data":[1]}`, abi.BadFields, "data"},
		{"up", "data/create", `{"collection":"..","data":{}}`, abi.BadFields, "collection"},
		{"slash", "data/create", `{"collection":"a/b","data":{}}`, abi.BadFields, "collection"},
		{"ours", "data/list", `{"collection":"data.created"}`, abi.BadFields, "collection"},
		{"id up", "data/read", `{"collection":"a","id":"../x"}`, abi.BadFields, "id"},
		{"id dot", "data/create", `{"collection":"a","id":".x","data":{}}`, abi.BadFields, "id"},
		{"id zero", "data/delete", `{"collection":"a","id":"x\u0000y"}`, abi.BadFields, "id"},
		{"id long", "data/delete", `{"collection":"a","id":"` + strings.Repeat("x", 129) + `"}`, abi.BadFields, "id"},
		{"after", "data/list", `{"collection":"a","after":"/"}`, abi.BadFields, "id"},
		{"large", "data/create", `{"collection":"a","data":{"x":"` + big + `"}}`, abi.Limit, "data"},
		{"grown", "data/update", `{"collection":"notes","id":"n","data":{"x":"` + big + `"}}`, abi.Limit, "data"},
		{"sentinels", "data/create", `{"collection":"sentinels","data":{}}`, abi.Denied, "collection"},
		{"delete sentinel", "data/delete", `{"collection":"sentinels","id":"ship-it"}`, abi.Denied, "collection"},
		{"owned", "data/update", `{"collection":"ticket","id":"t","data":{}}`, abi.Denied, "collection"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := b
			b.T = t
			if err := b.fails(tt.code, tt.command, tt.params); err.Field != tt.field {
				t.Errorf("field %q, want %q: %v", err.Field, tt.field, err)
			}
		})
	}
	if len(b.records) != 2 {
		t.Errorf("a refused call wrote: %v", b.records)
	}
}

func TestSentinelsCollection(t *testing.T) {
	b := open(t)
	got := b.must("", "data/read", `{"collection":"sentinels","filter":{"uniqueId":"build-fix"}}`)
	if got.Document.ID != "build-fix" || got.Document.Revision != 3 {
		t.Errorf("read %+v", got.Document)
	}
	if got := b.must("", "data/read", `{"collection":"sentinels","id":"ship-it"}`); got.Document.ID != "ship-it" {
		t.Errorf("read %+v", got.Document)
	}
	if err := b.fails(abi.Conflict, "data/read", `{"collection":"sentinels","filter":{"tags":["a"]}}`); !strings.Contains(err.Message, `"build-fix" and "ship-it"`) {
		t.Errorf("message %q", err.Message)
	}
	page := b.must("", "data/list", `{"collection":"sentinels","limit":1}`)
	if len(page.Items) != 1 || page.Items[0].ID != "build-fix" || page.Next != "build-fix" {
		t.Errorf("first page %+v", page)
	}
	page = b.must("", "data/list", `{"collection":"sentinels","limit":1,"after":"build-fix"}`)
	if len(page.Items) != 1 || page.Items[0].ID != "ship-it" || page.Next != "" {
		t.Errorf("second page %+v", page)
	}
}

func TestListPages(t *testing.T) {
	for _, reverse := range []bool{false, true} {
		b := open(t)
		for i := range 7 {
			b.must("", "data/create", fmt.Sprintf(`{"collection":"n","id":"d%d","data":{"even":%t}}`, i, i%2 == 0))
		}
		var ids []string
		after := ""
		for pages := 0; pages == 0 || after != ""; pages++ {
			page := b.must("", "data/list", fmt.Sprintf(`{"collection":"n","limit":2,"filter":{"even":true},"after":%q,"reverse":%t}`, after, reverse))
			for _, d := range page.Items {
				ids = append(ids, d.ID)
			}
			after = page.Next
			if pages > 5 {
				t.Fatal("pages without end")
			}
		}
		want := []string{"d0", "d2", "d4", "d6"}
		if reverse {
			want = []string{"d6", "d4", "d2", "d0"}
		}
		if diff := cmp.Diff(want, ids); diff != "" {
			t.Errorf("reverse %t: %s", reverse, diff)
		}
	}
}

// A page ends at 4 MiB, and the next one begins behind it.
func TestListBytes(t *testing.T) {
	b := open(t)
	text := strings.Repeat("x", 1<<20-100)
	for i := range 6 {
		b.must("", "data/create", fmt.Sprintf(`{"collection":"n","id":"d%d","data":{"x":%q}}`, i, text))
	}
	first := b.must("", "data/list", `{"collection":"n"}`)
	if len(first.Items) != 4 || first.Next != "d3" {
		t.Fatalf("first page has %d items, next %q", len(first.Items), first.Next)
	}
	second := b.must("", "data/list", `{"collection":"n","after":"d3"}`)
	if len(second.Items) != 2 || second.Next != "" {
		t.Errorf("second page has %d items, next %q", len(second.Items), second.Next)
	}
}

func TestEmptyListIsAList(t *testing.T) {
	b := open(t)
	text, err := b.registry.Call(t.Context(), &command.Call{Command: "data/list", Params: json.RawMessage(`{"collection":"none"}`), Records: b.records})
	if err != nil || string(text) != `{"items":[]}` {
		t.Errorf("%s, %v", text, err)
	}
}

// The zero Options work: there are no definitions then.
func TestZeroOptions(t *testing.T) {
	r, err := command.NewRegistry(data.Commands(data.Options{})...)
	if err != nil {
		t.Fatal(err)
	}
	b := bench{t, r, memory{}}
	b.fails(abi.NotFound, "data/read", `{"collection":"sentinels","id":"x"}`)
	if page := b.must("", "data/list", `{"collection":"sentinels"}`); len(page.Items) != 0 {
		t.Errorf("listed %v", page.Items)
	}
	if _, err := r.Call(t.Context(), &command.Call{Command: "data/list", Params: json.RawMessage(`{"collection":"n"}`)}); abi.CodeOf(err) != abi.Internal {
		t.Errorf("without records: %v", err)
	}
}
