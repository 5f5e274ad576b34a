package sdk_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/sdk"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sdk/sdktest"
)

// probe is a plugin whose one step runs f.
func probe(f func(*sdk.Context) (sdk.Value, error)) sdk.Plugin {
	return sdk.Plugin{Name: "probe", Version: "1", Steps: []sdk.Step{{
		Type: "probe", Summary: "Runs a test.", Fields: `{"type":"object","properties":{}}`, Run: f,
	}}}
}

// Each method sends the request of clause A6 of ABI.md and reads the answer.
func TestHostCalls(t *testing.T) {
	for _, tt := range []struct {
		function string
		call     func(c *sdk.Context) (sdk.Value, error)
		request  string
		answer   string
		want     string
	}{
		{"sentinel_command", func(c *sdk.Context) (sdk.Value, error) {
			return c.Command("code/read", sdk.Object(sdk.F("path", sdk.String("a"))))
		}, `{"command":"code/read","params":{"path":"a"}}`, `{"content":"x"}`, `{"content":"x"}`},
		{"sentinel_command", func(c *sdk.Context) (sdk.Value, error) {
			return c.ToolCommand("code/read", sdk.Object(), []string{"code/*"})
		}, `{"by":"model","command":"code/read","params":{},"tools":["code/*"]}`, `1`, `1`},
		{"sentinel_eval", func(c *sdk.Context) (sdk.Value, error) {
			v, truthy, err := c.Eval("$i", sdk.Object(sdk.F("i", sdk.Int(2))))
			return sdk.List(v, sdk.Bool(truthy)), err
		}, `{"expression":"$i","vars":{"i":2}}`, `{"value":2,"truthy":true}`, `[2,true]`},
		{"sentinel_var", func(c *sdk.Context) (sdk.Value, error) {
			v, found, err := c.GetVar("a.b[0]")
			return sdk.List(v, sdk.Bool(found)), err
		}, `{"get":"a.b[0]"}`, `{"value":7,"found":true}`, `[7,true]`},
		{"sentinel_var", func(c *sdk.Context) (sdk.Value, error) {
			return sdk.Null(), c.SetVar("a", sdk.Value{})
		}, `{"set":{"a":null}}`, `{}`, `null`},
		{"sentinel_spawn", func(c *sdk.Context) (sdk.Value, error) {
			run, err := c.SpawnNamed("ci", sdk.Object())
			return sdk.String(run), err
		}, `{"inputs":{},"sentinel":"ci"}`, `{"run":"r1","sentinel":"ci"}`, `"r1"`},
		{"sentinel_wait", func(c *sdk.Context) (sdk.Value, error) {
			return c.WaitEvent("git:*", 50)
		}, `{"event":"git:*","timeoutMs":50}`, `{"timedOut":false,"event":{"type":"git:push"}}`, `{"type":"git:push"}`},
		{"sentinel_wait", func(c *sdk.Context) (sdk.Value, error) {
			d, err := c.Decide("ok?", nil, 0)
			return sdk.List(sdk.Bool(d.Approved), sdk.String(d.By), sdk.String(d.Comment)), err
		}, `{"decision":{"prompt":"ok?"}}`, `{"timedOut":false,"decision":{"verdict":"approve","by":"ann","at":"x","comment":"go"}}`, `[true,"ann","go"]`},
		{"sentinel_http", func(c *sdk.Context) (sdk.Value, error) {
			r, err := c.HTTP(sdk.Request{URL: "https://x", Method: "POST", Body: "b", TimeoutMs: 9})
			return sdk.List(sdk.Int(int64(r.Status)), sdk.String(r.Body), r.Headers), err
		}, `{"body":"b","method":"POST","timeoutMs":9,"url":"https://x"}`, `{"status":404,"headers":{"a":"b"},"body":"no","truncated":false}`, `[404,"no",{"a":"b"}]`},
		{"sentinel_http", func(c *sdk.Context) (sdk.Value, error) {
			r, err := c.HTTP(sdk.Request{URL: "https://x/{{secret.K}}", BodySecrets: true})
			if err != nil {
				return sdk.Null(), err
			}
			b, err := r.Bytes()
			return sdk.Int(int64(len(b))), err
		}, `{"bodySecrets":true,"url":"https://x/{{secret.K}}"}`, `{"status":200,"headers":{},"body":"/wA=","encoding":"base64","truncated":false}`, `2`},
		{"sentinel_file", func(c *sdk.Context) (sdk.Value, error) {
			p, err := c.Folder("data").ReadAt("a/b", 5, 7)
			return sdk.List(sdk.String(string(p.Data)), sdk.Int(p.Size), sdk.Bool(p.Truncated)), err
		}, `{"folder":"data","length":7,"offset":5,"op":"read","path":"a/b"}`, `{"text":"aGk=","encoding":"base64","size":9,"truncated":true}`, `["hi",9,true]`},
		{"sentinel_file", func(c *sdk.Context) (sdk.Value, error) {
			return sdk.Null(), c.Folder("data").Write("a", []byte("ü"))
		}, `{"folder":"data","op":"write","path":"a","text":"ü"}`, `{"size":2}`, `null`},
		{"sentinel_file", func(c *sdk.Context) (sdk.Value, error) {
			return sdk.Null(), c.Folder("data").Write("a", []byte("\xff\x00"))
		}, `{"encoding":"base64","folder":"data","op":"write","path":"a","text":"/wA="}`, `{"size":2}`, `null`},
		{"sentinel_file", func(c *sdk.Context) (sdk.Value, error) {
			l, more, err := c.Folder("data").ListFrom("", 1000)
			return sdk.List(sdk.String(l[0].Name), sdk.Bool(l[0].Dir), sdk.String(l[1].Modified), sdk.Int(l[1].Size), sdk.Bool(more)), err
		}, `{"folder":"data","offset":1000,"op":"list"}`, `{"entries":[{"name":"d","dir":true,"size":0,"modified":"x"},{"name":"f","dir":false,"size":3,"modified":"y"}],"truncated":true}`, `["d",true,"y",3,true]`},
		{"sentinel_file", func(c *sdk.Context) (sdk.Value, error) {
			e, exists, err := c.Folder("data").Stat("a")
			return sdk.List(sdk.String(e.Name), sdk.Int(e.Size), sdk.Bool(exists)), err
		}, `{"folder":"data","op":"stat","path":"a"}`, `{"exists":true,"dir":false,"size":4,"modified":"x"}`, `["a",4,true]`},
		{"sentinel_file", func(c *sdk.Context) (sdk.Value, error) {
			return sdk.Null(), c.Folder("data").Remove("a")
		}, `{"folder":"data","op":"remove","path":"a"}`, `{}`, `null`},
		{"sentinel_now", func(c *sdk.Context) (sdk.Value, error) {
			ms, iso, err := c.Now()
			return sdk.List(sdk.Int(ms), sdk.String(iso)), err
		}, `{}`, `{"unixMs":5,"iso":"1970"}`, `[5,"1970"]`},
		{"sentinel_llm", func(c *sdk.Context) (sdk.Value, error) {
			r, err := c.LLM(sdk.Turn{
				Conversation: "c1", Model: "m", MaxTokens: 5, Tools: []string{}, Temperature: sdk.Float(0.5),
				Append: []sdk.Message{{Role: "tool", Content: "no", ToolCallID: "t1", Name: "x", IsError: true}},
			})
			return sdk.List(sdk.String(r.Text), sdk.Int(int64(len(r.ToolCalls))), r.JSON, r.Usage.Value()), err
		}, `{"append":[{"content":"no","isError":true,"name":"x","role":"tool","toolCallId":"t1"}],"conversation":"c1","maxTokens":5,"model":"m","temperature":0.5,"tools":[]}`,
			`{"conversation":"c1","text":"hi","toolCalls":[{"id":"1","name":"n","arguments":{}}],"finish":"tools","usage":{"inputTokens":1,"outputTokens":2,"costUsd":0.5},"provider":"p","model":"m"}`,
			`["hi",1,{"inputTokens":1,"outputTokens":2,"costUsd":0.5,"calls":1}]`},
		{"sentinel_log", func(c *sdk.Context) (sdk.Value, error) {
			c.Warn("hm")
			return sdk.Null(), nil
		}, `{"level":"warn","message":"hm"}`, `{}`, `null`},
	} {
		t.Run(tt.function, func(t *testing.T) {
			h := sdktest.New(t).OK(tt.function, tt.answer)
			out, fault := sdktest.Run(t, probe(tt.call), "probe", `{}`, h)
			if fault != nil {
				t.Fatal(fault)
			}
			if diff := cmp.Diff([]string{tt.request}, h.Requests(tt.function)); diff != "" {
				t.Errorf("request (-want +got):\n%s", diff)
			}
			if out.String() != tt.want {
				t.Errorf("got %s, want %s", out, tt.want)
			}
		})
	}
}

func TestErrorsKeepWhatTheHostSaid(t *testing.T) {
	h := sdktest.New(t).Fail("sentinel_command", &sdk.Error{
		Code: sdk.CodeUnavailable, Message: "rate limit", RetryAfterMs: 1500, Hint: "wait", Field: "params.x",
	})
	_, fault := sdktest.Run(t, probe(func(c *sdk.Context) (sdk.Value, error) {
		_, err := c.Command("x", sdk.Value{})
		return sdk.Value{}, sdk.Permanent(sdk.Wrap("probe", err))
	}), "probe", `{}`, h)
	want := &sdk.Error{Code: sdk.CodeUnavailable, Message: "probe: rate limit", RetryAfterMs: 1500, Hint: "wait", Field: "params.x", Permanent: true}
	if diff := cmp.Diff(want, fault); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestErrorHelpers(t *testing.T) {
	if sdk.Permanent(nil) != nil || sdk.RetryAfter(nil, 1) != nil || sdk.Wrap("x", nil) != nil || sdk.AsError(nil) != nil {
		t.Error("nil did not stay nil")
	}
	plain := errors.New("plain")
	if e := sdk.AsError(plain); e.Code != sdk.CodePlugin || e.Message != "plain" {
		t.Errorf("%+v", e)
	}
	if e := sdk.AsError(sdk.RetryAfter(plain, 7)); e.RetryAfterMs != 7 {
		t.Errorf("%+v", e)
	}
	for code, want := range map[string]sdk.Code{"weird": "weird", "Weird": sdk.CodePlugin, "": sdk.CodePlugin} {
		odd, _ := sdk.Parse(`{"code":"` + code + `","message":"m"}`)
		if e := sdk.ErrorFrom(odd); e.Code != want {
			t.Errorf("code %q became %q, clause A5.1 says %q", code, e.Code, want)
		}
	}
	if sdk.ErrorFrom(sdk.Null()) != nil {
		t.Error("null is an error object")
	}
}

func TestRunRefuses(t *testing.T) {
	p := probe(func(*sdk.Context) (sdk.Value, error) { return sdk.Value{}, nil })
	for input, want := range map[string]abi.Code{
		`{`:                                 abi.Internal,
		`{"abi":2,"step":{"type":"probe"}}`: abi.Internal,
		`{"abi":1,"step":{"type":"other"}}`: abi.BadFields,
	} {
		if _, fault := p.Run(input, nil); fault == nil || fault.Code != want {
			t.Errorf("%s: %v, want code %s", input, fault, want)
		}
	}
	if out, fault := p.Run(`{"abi":1,"step":{"type":"probe"}}`, nil); fault != nil || out != `{"output":null}` {
		t.Errorf("no output: %s %v", out, fault)
	}
}

func TestBadAnswers(t *testing.T) {
	p := probe(func(c *sdk.Context) (sdk.Value, error) { return c.Command("x", sdk.Value{}) })
	for _, answer := range []string{``, `{`, `{}`, `{"error":null}`, `[]`} {
		_, fault := p.Run(`{"abi":1,"step":{"type":"probe"}}`, func(string, string) string { return answer })
		if fault == nil || fault.Code != abi.Internal || !strings.HasPrefix(fault.Message, "sentinel_command: answer") {
			t.Errorf("answer %q: %v", answer, fault)
		}
	}
}

func TestPanicIsAnError(t *testing.T) {
	for want, f := range map[string]func(){
		`step "probe": panic: boom`: func() { panic("boom") },
		`step "probe": panic: runtime error: index out of range [0] with length 0`: func() { _ = []int{}[len("")] },
	} {
		_, fault := probe(func(*sdk.Context) (sdk.Value, error) { f(); return sdk.Value{}, nil }).Run(`{"abi":1,"step":{"type":"probe"}}`, nil)
		if fault == nil || fault.Code != abi.Trap || fault.Message != want || !fault.Permanent {
			t.Errorf("got %+v, want %q", fault, want)
		}
	}
}

func TestInput(t *testing.T) {
	h := sdktest.New(t).State(`{"i":4}`).Retry(3, sdk.Fail(sdk.CodeTimeout, "slow"), "network")
	out, fault := sdktest.Run(t, probe(func(c *sdk.Context) (sdk.Value, error) {
		return sdk.List(sdk.Int(int64(c.Attempt)), c.State.Get("i"), sdk.Int(c.Retry.Attempts), sdk.String(c.Retry.Error.Message),
			sdk.String(c.Retry.Category), sdk.String(c.Run.Key), c.Field("a")), nil
	}), "probe", `{"a":[1]}`, h)
	if want := `[3,4,2,"slow","network","key",[1]]`; fault != nil || out.String() != want {
		t.Errorf("got %s %v, want %s", out, fault, want)
	}
}

func TestFieldAccess(t *testing.T) {
	p := probe(func(c *sdk.Context) (sdk.Value, error) {
		s, err := c.StringField("s")
		if err != nil {
			return sdk.Value{}, err
		}
		n, err := c.IntField("n", 1, 9)
		if err != nil {
			return sdk.Value{}, err
		}
		b, err := c.BoolField("b", true)
		if err != nil {
			return sdk.Value{}, err
		}
		l, given, err := c.StringsField("l")
		return sdk.List(sdk.String(s), sdk.Int(n), sdk.Bool(b), sdk.Strings(l), sdk.Bool(given)), err
	})
	for fields, want := range map[string]string{
		`{}`:                                  `["",9,true,false]`,
		`{"s":"x","n":2,"b":false,"l":["a"]}`: `["x",2,false,["a"],true]`,
		`{"s":{"text":"y","u":1},"n":"3","l":[]}`: `["y",3,true,[],true]`,
		`{"s":5}`:     `["5",9,true,false]`,
		`{"s":[1]}`:   `s: want a text, got a list`,
		`{"n":0}`:     `n: want at least 1, got 0`,
		`{"n":"x"}`:   `n: want a whole number, got "x"`,
		`{"n":1.5}`:   `n: want a whole number, got 1.5`,
		`{"b":"yes"}`: `b: want true or false, got "yes"`,
		`{"l":[1]}`:   `l: want a list of texts, got [1]`,
	} {
		out, fault := sdktest.Run(t, p, "probe", fields, sdktest.New(t))
		got := out.String()
		if fault != nil {
			got = fault.Message
			if fault.Code != sdk.CodeBadFields || !fault.Permanent || fault.Field != want[:1] {
				t.Errorf("%s: %+v", fields, fault)
			}
		}
		if got != want {
			t.Errorf("%s: got %s, want %s", fields, got, want)
		}
	}
}
