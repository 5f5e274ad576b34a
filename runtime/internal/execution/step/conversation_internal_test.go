package step

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/runtime/external"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

func said(role string, texts ...string) (list []sentinels.Message) {
	for _, text := range texts {
		list = append(list, sentinels.Message{Role: role, Content: text})
	}
	return list
}

// TestReplacedMessages checks which messages a turn has that replaces some, that the
// conversation stays as it was until the model has answered, and for good if the turn is made
// aside.
func TestReplacedMessages(t *testing.T) {
	for name, tt := range map[string]struct {
		replace []replacement
		want    string // texts; empty for the error bad_fields
		field   string
	}{
		"none":           {nil, "a b c d new", ""},
		"one":            {[]replacement{{1, 2, said("tool", "mark")}}, "a mark c d new", ""},
		"several":        {[]replacement{{0, 2, said("user", "x", "y")}, {2, 2, said("user", "z")}, {3, 4, nil}}, "x y z c new", ""},
		"all":            {[]replacement{{0, 4, nil}}, "new", ""},
		"not in order":   {[]replacement{{2, 3, nil}, {1, 2, nil}}, "", "replace[1]"},
		"overlap":        {[]replacement{{0, 3, nil}, {2, 4, nil}}, "", "replace[1]"},
		"backwards":      {[]replacement{{2, 1, nil}}, "", "replace[0]"},
		"negative":       {[]replacement{{-1, 1, nil}}, "", "replace[0]"},
		"behind the end": {[]replacement{{0, 5, nil}}, "", "replace[0]"},
	} {
		t.Run(name, func(t *testing.T) {
			a := &attempt{conversations: map[string]*conversation{"c1": {id: "c1", messages: said("user", "a", "b", "c", "d")}}}
			req := llmRequest{Conversation: "c1", Append: said("user", "new"), Replace: tt.replace}
			next, e := a.extendConversation(&call{seq: 2}, req, "")
			if tt.want == "" {
				if e == nil || e.Code != abi.BadFields || e.Field != tt.field {
					t.Fatalf("%+v", e)
				}
				return
			}
			if e != nil {
				t.Fatal(e)
			}
			text := func(c *conversation) string {
				var list []string
				for _, m := range c.messages {
					list = append(list, m.Content)
				}
				return strings.Join(list, " ")
			}
			if diff := cmp.Diff(tt.want, text(next)); diff != "" || text(a.conversations["c1"]) != "a b c d" {
				t.Errorf("%s; before the answer the conversation is %q", diff, text(a.conversations["c1"]))
			}
			req.Aside = true
			a.answered(next, req, sentinels.Reply{Text: "aside"}, nil)
			if got := text(a.conversations["c1"]); got != "a b c d" {
				t.Errorf("after a turn aside it is %q", got)
			}
			req.Aside = false
			a.answered(next, req, sentinels.Reply{Text: "reply"}, nil)
			if got := text(a.conversations["c1"]); got != tt.want+" reply" {
				t.Errorf("after the turn it is %q", got)
			}
		})
	}
}

// TestFitContext checks that the context of a first turn is cut to what the window has room
// for, with a mark, and only where that is known.
func TestFitContext(t *testing.T) {
	full := "# Variables\n" + strings.Repeat("word ", 4000) + strings.Repeat("日本語", 2000)
	tokens := func(text string) int64 { return int64(len(text)/4 + 100) } // 100 are the rest of the turn
	for name, tt := range map[string]struct {
		window int64
		choose bool // the model is chosen by its window
		least  int
		most   int
	}{
		"fits":              {100_000, false, len(full), len(full)},
		"unknown":           {0, false, len(full), len(full)},
		"too large":         {5000, false, 15_000, 19_600},
		"no candidate":      {5000, true, 9000, 19_600},
		"nothing would fit": {50, false, len(contextCut), len(contextCut)},
	} {
		t.Run(name, func(t *testing.T) {
			quotes := 0
			q, got, err := fitContext(full, func(added string) (external.ModelQuote, error) {
				quotes++
				over := max(tokens(added)-tt.window, 0)
				if tt.window == 0 {
					over = 0
				}
				if tt.choose && over > 0 {
					return external.ModelQuote{}, &abi.Error{Code: abi.Limit, Field: "append"}
				}
				return external.ModelQuote{Model: "m", Excess: over}, nil
			})
			if err != nil || q.Model != "m" || len(got) < tt.least || len(got) > tt.most || quotes > 6 {
				t.Errorf("%d bytes, %d quotes, %+v %v", len(got), quotes, q, err)
			}
			if got != full && (!strings.HasSuffix(got, contextCut) || !strings.HasPrefix(full, strings.TrimSuffix(got, contextCut)) || strings.Count(got, contextCut) != 1) {
				t.Errorf("%q", got)
			}
		})
	}
	refused := abi.New(abi.Denied, "no credit")
	if _, _, err := fitContext(full, func(string) (external.ModelQuote, error) { return external.ModelQuote{}, refused }); err != error(refused) {
		t.Errorf("%v", err)
	}
}

// TestLeaveOutArguments checks that only as many arguments are left out as a reply is too
// large, the largest first, and that such a call cannot be made.
func TestLeaveOutArguments(t *testing.T) {
	arguments := func(n int) json.RawMessage {
		text, _ := json.Marshal(map[string]string{"path": "a.txt", "content": strings.Repeat("é", n/2)})
		return text
	}
	r := sentinels.Reply{Text: "I write", ToolCalls: []sentinels.ToolCall{
		{ID: "1", Name: "code/write", Arguments: arguments(40_000)}, {ID: "2", Name: "code/write", Arguments: arguments(300_000)}, {ID: "3", Name: "code/read", Arguments: arguments(20)},
	}}
	LeaveOutArguments(&r, 200_000)
	if r.ToolCalls[0].Size != 0 || r.ToolCalls[2].Size != 0 || r.ToolCalls[1].Size != len(arguments(300_000)) {
		t.Errorf("sizes %d, %d, %d", r.ToolCalls[0].Size, r.ToolCalls[1].Size, r.ToolCalls[2].Size)
	}
	var text string
	if err := json.Unmarshal(r.ToolCalls[1].Arguments, &text); err != nil || !strings.HasPrefix(text, "left out: the arguments have 300") || len(text) > 500 {
		t.Errorf("%v, %q", err, text)
	}
	whole := sentinels.Reply{Text: strings.Repeat("x", 300_000)}
	LeaveOutArguments(&whole, 200_000)
	if len(whole.Text) != 300_000 {
		t.Error("a text was cut")
	}
}
