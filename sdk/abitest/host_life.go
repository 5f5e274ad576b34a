package abitest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// lifeChecks are about the order of calls and the lifetime of instances and texts.
var lifeChecks = []check{
	{"A1.1", "a new instance is initialized and described once before run", with("order", func(j *judge) {
		for range 3 {
			j.gives(Invocation{}, `{}`, `{"initialized":1,"described":1}`)
		}
	})},
	{"A1.2", "concurrent runs do not interfere", with("call", func(j *judge) {
		var wg sync.WaitGroup
		faults := make([]string, 8)
		for i := range faults {
			wg.Add(1)
			go func() {
				defer wg.Done()
				for n := range 20 {
					text := fmt.Sprintf(`"%d.%d"`, i, n)
					result, err := j.guest.Run(j.ctx, Invocation{Input: []byte(text), Clock: epoch, Call: func(_ context.Context, _ string, request []byte) (Reply, error) {
						return Reply{Body: []byte(`{"ok":` + string(request) + `}`)}, nil
					}})
					if err != nil || string(result.Output) != `{"ok":`+text+`}` {
						faults[i] = fmt.Sprintf("run %s gave %s, %s", text, result.Output, errorText(err))
					}
				}
			}()
		}
		wg.Wait()
		for _, fault := range faults {
			if fault != "" {
				j.faultf("%s", fault)
			}
		}
	})},
	{"A1.3", "host calls of validate are denied", func(j *judge) {
		guest, err := j.host.Load(j.ctx, module("hostile/validate_calls"))
		if err != nil {
			j.fatalf("load: %s", errorText(err))
		}
		defer guest.Close()
		answer, err := guest.Validate(j.ctx, []byte(`{"type":"validate_calls","fields":{}}`))
		if err != nil {
			j.fatalf("validate: %s", errorText(err))
		}
		// The guest returns the length of the answer that it has received.
		if list := j.problems(answer); len(list) != 1 || strings.Contains(string(answer), `"message":"0"`) {
			j.faultf("the call was not answered: %s", answer)
		}
	}},
	{"A1.6", "requests and answers may be freed, with any result of the call", with("many", func(j *judge) {
		// Answers that are not freed would need twenty times the memory limit.
		answer := `{"ok":"` + strings.Repeat("x", 200<<10) + `"}`
		j.gives(Invocation{Call: answering(answer), MemoryBytes: 4 << 20}, "400", `true`)
	})},
	{"A6.1", "a call returns the answer of the host, an error is not a trap", with("call", func(j *judge) {
		for _, answer := range []string{`{"ok":null}`, `{"ok":{"text":"héllo ✓ 😀"}}`, `{"error":{"code":"denied","message":"no"}}`} {
			j.gives(Invocation{Call: answering(answer)}, `{"expression":"1"}`, answer)
		}
		got, err := j.raw(Invocation{}, `{"expression":"1"}`)
		m, _ := got.(map[string]any)
		e, _ := m["error"].(map[string]any)
		if err != nil || e["code"] != string(abi.Denied) {
			j.faultf("without a CallFunc: %s, %s, want an answer with code denied", encode(got), errorText(err))
		}
	})},
	{"A6.1", "a request reaches the host as it was written", with("call", func(j *judge) {
		for _, text := range texts()[:len(texts())-1] {
			request := string(encode(map[string]any{"expression": text}))
			var got string
			_, err := j.raw(Invocation{Call: func(_ context.Context, function string, request []byte) (Reply, error) {
				got = function + string(request)
				return Reply{Body: []byte(`{"ok":1}`)}, nil
			}}, request)
			if want := abi.FuncEval + request; err != nil || got != want {
				j.faultf("the host received %q, %s, want %q", got, errorText(err), want)
			}
		}
	})},
	{"A6.11", "the error of a call ends the guest and is returned unchanged", with("call", func(j *judge) {
		_, err := j.guest.Run(j.ctx, Invocation{Input: []byte(`{"expression":"1"}`), Clock: epoch, Call: func(context.Context, string, []byte) (Reply, error) {
			return Reply{}, errParked
		}})
		if !errors.Is(err, errParked) {
			j.faultf("the run ended with %s, want the error of the call", errorText(err))
		}
		j.gives(Invocation{Call: answering(`{"ok":2}`)}, `{"expression":"1"}`, `{"ok":2}`)
	})},
}

// errorChecks are about the errors of guests.
var errorChecks = []check{
	{"A1.4", "plain text is an error with code plugin", with("error", func(j *judge) {
		for _, text := range []string{"plain text", `"a text"`, `{"message":5}`, `{"code":"denied"}`, `[1]`, "{"} {
			j.fault(text, abi.Error{Code: abi.Plugin, Message: text})
		}
	})},
	{"A5.1", "an error object keeps every key", with("error", func(j *judge) {
		j.fault(`{"code":"unavailable","message":"busy ✓","field":"url","retryAfterMs":1500,"permanent":true,"hint":"wait","x_new":1}`,
			abi.Error{Code: abi.Unavailable, Message: "busy ✓", Field: "url", RetryAfterMs: 1500, Permanent: true, Hint: "wait"})
	})},
	{"A5.1", "every code is kept, also one of the plugin, and an invalid one becomes plugin", with("error", func(j *judge) {
		for _, code := range abi.Codes() {
			j.fault(`{"code":"`+string(code)+`","message":"as expected"}`, abi.Error{Code: code, Message: "as expected"})
		}
		j.fault(`{"code":"made_up","message":"as expected"}`, abi.Error{Code: "made_up", Message: "as expected"})
		j.fault(`{"code":"Made up","message":"as expected"}`, abi.Error{Code: abi.Plugin, Message: "as expected"})
		j.fault(`{"message":"as expected"}`, abi.Error{Code: abi.Plugin, Message: "as expected"})
	})},
}

// fault checks which error the guest error returns for a text.
func (j *judge) fault(text string, want abi.Error) {
	_, err := j.raw(Invocation{}, text)
	if e := abi.As(err); e == nil || *e != want {
		j.faultf("the error text %q became %+v, want %+v", text, e, want)
	}
}
