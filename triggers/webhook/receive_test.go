package webhook_test

import (
	"encoding/json"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/cloudevents/sdk-go/v2/event"
	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/triggers"
)

// TestT8Data covers clause T8.5: the data of bodies.
func TestT8Data(t *testing.T) {
	for _, c := range []struct{ name, body, media, want string }{
		{"json", ` { "a" : [1, 2.50] } `, "application/json; charset=utf-8", `{"a":[1,2.50]}`},
		{"json of a kind", `"x"`, "application/vnd.api+json", `"x"`},
		{"json without a type", `{"a":1}`, "", `{"a":1}`},
		{"text without a type", `hello`, "", `{"text":"hello"}`},
		{"text", `{"a":1}`, "text/plain", `{"contentType":"text/plain","text":"{\"a\":1}"}`},
		{"xml", `<a/>`, "application/xml", `{"contentType":"application/xml","text":"\u003ca/\u003e"}`},
		{"bytes", "\xff\x00", "application/octet-stream", `{"base64":"/wA=","contentType":"application/octet-stream"}`},
		{"form", "a=1&b=2&b=3&c=%20x", "application/x-www-form-urlencoded", `{"a":"1","b":["2","3"],"c":" x"}`},
		{"nothing", "", "application/json", ``},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := post(c.body)
			if c.media != "" {
				r.Header["Content-Type"] = []string{c.media}
			}
			fires, err := arm(t, open, "").Receive(r)
			if err != nil {
				t.Fatal(err)
			}
			e := fires[0].Event
			if string(e.Data) != c.want || e.Name != "webhook:a" || e.Source != "/webhooks/a" || !e.Time.Equal(noon) || e.ID == "" || fires[0].Key != "" {
				t.Errorf("%+v data %s, want %s", e, e.Data, c.want)
			}
		})
	}
}

// TestT8Refused covers clauses T8.7 and T8.8: errors of bad requests do not quote
// their content.
func TestT8Refused(t *testing.T) {
	const event = `"specversion":"1.0","id":"1","source":"/s","type":"t"`
	structured := "Content-Type: application/cloudevents+json"
	batch := "Content-Type: application/cloudevents-batch+json"
	for _, c := range []struct {
		name string
		r    triggers.Request
		want string
	}{
		{"method", triggers.Request{Method: "PUT"}, `method "PUT" is not accepted; want POST`},
		{"broken", post(`{"hunter2":}`, "Content-Type: application/json"), "body: line 1, column 12: not JSON"},
		{"two values", post(`{} {}`, "Content-Type: application/json"), "body: line 1, column 4: text after the JSON value"},
		{"not UTF-8", post("\"\xff\"", "Content-Type: application/json"), "line 1, column 2: text that is not UTF-8"},
		{"duplicate key", post("{\"hunter2\": 1,\n \"hunter2\": 2}", "Content-Type: application/json"), "line 2, column 2: duplicate key"},
		{"duplicate key, no type", post(`{"hunter2":1,"hunter2":2}`), "line 1, column 14: duplicate key"},
		{"lone surrogate", post(`["\ud800"]`, "Content-Type: application/json"), "line 1, column 3: text that is not UTF-8"},
		{"number", post(`[1e999]`, "Content-Type: application/json"), "line 1, column 2: number out of range"},
		{"depth", post(strings.Repeat("[", 65)+strings.Repeat("]", 65), "Content-Type: application/json"), "nested more than 64 deep"},
		{"bad form", post("a=%zz", "Content-Type: application/x-www-form-urlencoded"), "not a valid form"},
		{"media", post("x", "Content-Type: ;"), "invalid content type"},
		{"key", post("x", "Idempotency-Key: "+strings.Repeat("k", 513)), "more than 512"},
		{"two keys", post("x", "Idempotency-Key: a", "Idempotency-Key: b"), "is given 2 times"},
		{"xml event", post("<a/>", "Content-Type: application/cloudevents+xml"), "unsupported CloudEvents format"},
		{"array", post(`[]`, structured), "is not an object"},
		{"missing", post(`{"specversion":"1.0","id":"1","type":"t"}`, structured), "missing attribute source"},
		{"null", post(`{"specversion":"1.0","id":"1","type":"t","source":null}`, structured), "missing attribute source"},
		{"empty", post(`{"specversion":"1.0","id":"","type":"t","source":"/"}`, structured), "id is empty"},
		{"number", post(`{"specversion":"1.0","id":5,"type":"t","source":"/"}`, structured), "id is not a string"},
		{"twice", post(`{`+event+`,"id":"2"}`, structured), "column 56: duplicate key"},
		{"version", post(`{"specversion":"0.3","id":"1","type":"t","source":"/"}`, structured), "invalid attribute specversion: want 1.0"},
		{"time", post(`{`+event+`,"time":"yesterday"}`, structured), "invalid attribute time"},
		{"both", post(`{`+event+`,"data":1,"data_base64":"AA=="}`, structured), "both"},
		{"not base64", post(`{`+event+`,"data_base64":"?"}`, structured), "not valid base64"},
		{"base64 is a number", post(`{`+event+`,"data_base64":5}`, structured), "data_base64 is not a string"},
		{"a list", post(`{`+event+`,"ext":[1]}`, structured), "not a string, number"},
		{"a name", post(`{`+event+`,"hunter2-x":"1"}`, structured), "want a-z and 0-9"},
		{"one of a batch", post(`[{`+event+`},{}]`, batch), "event 1 of the batch: missing attribute specversion"},
		{"not an array", post(`{`+event+`}`, batch), "the batch is not an array"},
		{"empty batch", post(``, batch), "the text ends before the value does"},
		{"large batch", post("["+strings.Repeat("{"+event+"},", 256)+"{}]", batch), "more than 256"},
		{"binary without id", post("", "Ce-Specversion: 1.0", "Ce-Source: /s", "Ce-Type: t"), "missing attribute id"},
		{"binary escape", post("", "Ce-Specversion: 1.0", "Ce-Source: /s", "Ce-Type: t", "Ce-Id: %zz"), "cannot be decoded"},
		{"binary quote", post("", "Ce-Specversion: 1.0", "Ce-Source: /s", "Ce-Type: t", `Ce-Id: "a\"`), "cannot be decoded"},
		{"large", post(strings.Repeat("x", triggers.MaxBody+1)), "more than 1048576"},
	} {
		t.Run(c.name, func(t *testing.T) {
			fires, err := arm(t, open, "").Receive(c.r)
			if err == nil || !strings.Contains(err.Error(), c.want) || len(fires) > 0 {
				t.Fatalf("%v %v, want %q", fires, err, c.want)
			}
			if code := abi.CodeOf(err); code != abi.BadFields && code != abi.Limit {
				t.Errorf("code %q", code)
			}
			if strings.Contains(err.Error(), "hunter2") {
				t.Errorf("the error quotes the body: %v", err)
			}
		})
	}
}

// TestT8Keys covers clause T8.6: the key of a request.
func TestT8Keys(t *testing.T) {
	const body = `{"specversion":"1.0","id":"1","source":"/s","type":"t"}`
	structured := "Content-Type: application/cloudevents+json"
	for _, c := range []struct {
		name, options, want string
		r                   triggers.Request
	}{
		{"key", open, "idempotency-key:k", post("", "X-Github-Delivery: d", "Webhook-Id: w", "Idempotency-Key: k")},
		{"id", open, "webhook-id:w", post("", "X-Github-Delivery: d", "Webhook-Id: w")},
		{"github", open, "x-github-delivery:d", post("", "X-Github-Delivery: d")},
		{"own", `{"insecure":true,"idempotencyHeader":"x-id"}`, "x-id:o", post("", "X-Github-Delivery: d", "X-Id: o")},
		{"own is missing", `{"insecure":true,"idempotencyHeader":"x-id"}`, "", post("", "X-Github-Delivery: d")},
		{"none", open, "", post("")},
		{"event", open, "cloudevent:2:/s1", post(body, structured)},
		{"event and key", open, "idempotency-key:k", post(body, structured, "Idempotency-Key: k")},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := arm(t, c.options, "")
			first, err := a.Receive(c.r)
			if err != nil {
				t.Fatal(err)
			}
			if first[0].Key != c.want {
				t.Errorf("key %q, want %q", first[0].Key, c.want)
			}
			second, err := a.Receive(c.r)
			if err != nil {
				t.Fatal(err)
			}
			if same := first[0].Event.ID == second[0].Event.ID; same != (c.want != "") {
				t.Errorf("ids %q and %q", first[0].Event.ID, second[0].Event.ID)
			}
		})
	}
}

// TestT8Names covers clause T8.4: the name of the event.
func TestT8Names(t *testing.T) {
	named := `{"insecure":true,"event":"github","eventHeader":"X-GitHub-Event"}`
	cloud := `{"specversion":"1.0","id":"1","source":"/s","type":"com.example.done"}`
	for _, c := range []struct {
		options, want string
		r             triggers.Request
	}{
		{named, "github:push", post("{}", "X-Github-Event: push")},
		{named, "github", post("{}")},
		{`{"insecure":true,"eventHeader":"X-GitHub-Event"}`, "webhook:a:push", post("{}", "X-Github-Event: push")},
		{open, "com.example.done", post(cloud, "Content-Type: application/cloudevents+json")},
		{named, "github", post(cloud, "Content-Type: application/cloudevents+json")},
	} {
		fires, err := arm(t, c.options, "").Receive(c.r)
		if err != nil || fires[0].Event.Name != c.want {
			t.Errorf("%s: %+v %v, want %q", c.options, fires, err, c.want)
		}
	}
	for _, bad := range []string{"a:b", "*", "a b"} {
		if _, err := arm(t, named, "").Receive(post("{}", "X-Github-Event: "+bad)); err == nil {
			t.Errorf("header value %q was accepted", bad)
		}
	}
}

// TestT8Query checks that a query is data only without a signature.
func TestT8Query(t *testing.T) {
	q := url.Values{"a": {"1"}, "b": {"2", "3"}}
	fires, err := arm(t, `{"insecure":true,"methods":["GET"]}`, "").Receive(triggers.Request{Method: "GET", Query: q})
	if err != nil || string(fires[0].Event.Data) != `{"a":"1","b":["2","3"]}` {
		t.Errorf("%+v %v", fires, err)
	}
	r := post("", "X-Hub-Signature-256: "+strings.Repeat("0", 64))
	r.Query = q
	if _, err := arm(t, byHMAC, secret).Receive(r); abi.CodeOf(err) != abi.Denied {
		t.Error(err)
	}
}

// TestT8CloudEvents covers clause T8.7: it reads what the CloudEvents SDK writes,
// in the three modes.
func TestT8CloudEvents(t *testing.T) {
	at := time.Date(2026, 4, 5, 6, 7, 8, 900, time.UTC)
	for name, c := range map[string]struct {
		media string
		data  any
		want  string
	}{
		"json":  {"application/json", map[string]any{"a": 1}, `{"a":1}`},
		"text":  {"text/plain", "hé", `{"contentType":"text/plain","text":"hé"}`},
		"bytes": {"application/octet-stream", []byte{0xff, 0}, `{"base64":"/wA=","contentType":"application/octet-stream"}`},
	} {
		t.Run(name, func(t *testing.T) {
			e := event.New()
			e.SetID("id 1")
			e.SetSource("/some/source?x=ü")
			e.SetType("com.example.done")
			e.SetSubject("it")
			e.SetTime(at)
			e.SetExtension("traceparent", "00-1")
			e.SetExtension("size", 5)
			if err := e.SetData(c.media, c.data); err != nil {
				t.Fatal(err)
			}
			if err := e.Validate(); err != nil {
				t.Fatal(err)
			}
			structured, err := json.Marshal(e)
			if err != nil {
				t.Fatal(err)
			}
			for mode, r := range map[string]triggers.Request{
				"structured": post(string(structured), "Content-Type: application/cloudevents+json; charset=UTF-8"),
				"batch":      post("["+string(structured)+"]", "Content-Type: application/cloudevents-batch+json"),
				"binary": post(string(e.Data()), "Content-Type: "+c.media, "Ce-Specversion: 1.0", "Ce-Id: id%201", "Ce-Source: "+strings.ReplaceAll(e.Source(), "ü", "%C3%BC"),
					`Ce-Type: "com.example.do\ne"`, "Ce-Time: "+at.Format(time.RFC3339Nano), "Ce-Subject: it", "Ce-Traceparent: 00-1"),
			} {
				t.Run(mode, func(t *testing.T) {
					fires, err := arm(t, open, "").Receive(r)
					if err != nil || len(fires) != 1 {
						t.Fatalf("%v %v", fires, err)
					}
					got := fires[0].Event
					if got.ID != e.ID() || got.Name != e.Type() || got.Subject != "it" || !got.Time.Equal(at) || string(got.Data) != c.want {
						t.Errorf("%+v data %s, want %s", got, got.Data, c.want)
					}
					source, err := url.PathUnescape(got.Source)
					want, werr := url.PathUnescape(e.Source())
					if err != nil || werr != nil || source != want {
						t.Errorf("source %q, want %q", got.Source, e.Source())
					}
				})
			}
		})
	}
}

// TestT8Batch checks that a batch keeps its order and each event has its own key.
func TestT8Batch(t *testing.T) {
	const a, b = `{"specversion":"1.0","id":"1","source":"/s","type":"x","data":1}`, `{"data":{"z":2},"type":"y","source":"/s","id":"2","specversion":"1.0"}`
	fires, err := arm(t, open, "").Receive(post("["+a+","+b+","+a+"]", "Content-Type: application/cloudevents-batch+json", "Idempotency-Key: k"))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range fires {
		got = append(got, f.Key+" "+f.Event.Name+" "+string(f.Event.Data))
	}
	want := []string{`cloudevent:2:/s1 x 1`, `cloudevent:2:/s2 y {"z":2}`, `cloudevent:2:/s1 x 1`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// FuzzReceive checks that Receive returns for any request, and that its firings
// have an event with id, name, source and valid JSON data.
func FuzzReceive(f *testing.F) {
	f.Add([]byte(`{"specversion":"1.0","id":"1","source":"/s","type":"t","data_base64":5}`), "application/cloudevents+json", "1.0", "a")
	f.Add([]byte(`[{"specversion":"1.0","id":"1","source":"/s","type":"t","data":"x","datacontenttype":"text/plain"}]`), "application/cloudevents-batch+json", "", "")
	f.Add([]byte("a=1&b=%20"), "application/x-www-form-urlencoded", "", "x:y")
	f.Add([]byte("\xff"), "", "1.0", `"a\"`)
	f.Fuzz(func(t *testing.T, body []byte, media, version, id string) {
		r := triggers.Request{Method: "POST", Header: map[string][]string{"Content-Type": {media}, "Idempotency-Key": {id}, "X-Event": {id}}, Body: body}
		if version != "" {
			r.Header["Ce-Specversion"], r.Header["Ce-Id"], r.Header["Ce-Type"], r.Header["Ce-Source"] = []string{version}, []string{id}, []string{media}, []string{id}
		}
		fires, err := arm(t, `{"insecure":true,"eventHeader":"X-Event"}`, "").Receive(r)
		if err != nil {
			if code := abi.CodeOf(err); code != abi.BadFields && code != abi.Limit || len(fires) > 0 {
				t.Fatalf("%v %v", fires, err)
			}
			return
		}
		for _, f := range fires {
			if e := f.Event; e == nil || e.ID == "" || e.Name == "" || e.Source == "" || e.Data != nil && !json.Valid(e.Data) {
				t.Fatalf("%+v", e)
			}
			if _, err := json.Marshal(f.Event); err != nil {
				t.Fatal(err)
			}
		}
	})
}
