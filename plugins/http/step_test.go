package http_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/plugins/http"
	"github.com/sentinel-runtime/sentinel/sdk/sdktest"
)

// TestRequest: the host gets the fields as they are, and another status than an expected one is an
// error with its code, unless allowFailure is set.
func TestRequest(t *testing.T) {
	const failed = `{"status":503,"success":false,"problem":"GET http://a/: status 503 Service Unavailable","retryAfterMs":2000}`
	for name, tt := range map[string]struct {
		fields, result  string
		request, output string
		message, code   string
	}{
		"success": {`{"url":"http://a/","json":null,"method":"POST"}`, `{"status":200,"success":true}`,
			`{"command":"http/request","params":{"json":null,"method":"POST","url":"http://a/"}}`, `{"status":200,"success":true}`, "", ""},
		"failure": {`{"url":"http://a/","allowFailure":false}`, failed,
			`{"command":"http/request","params":{"url":"http://a/"}}`, "", "GET http://a/: status 503 Service Unavailable", "http_503"},
		"allowed failure": {`{"url":"http://a/","allowFailure":true}`, failed,
			`{"command":"http/request","params":{"url":"http://a/"}}`, failed, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			h := sdktest.New(t).OK("sentinel_command", tt.result)
			out, fault := sdktest.Run(t, sdktest.Only(http.Step()), "http", tt.fields, h)
			if diff := cmp.Diff([]string{tt.request}, h.Requests("sentinel_command")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			switch {
			case tt.message == "" && (fault != nil || out.String() != tt.output):
				t.Errorf("%s, %v", out, fault)
			case tt.message != "" && (fault == nil || fault.Message != tt.message || string(fault.Code) != tt.code || fault.RetryAfterMs != 2000):
				t.Errorf("%s, %+v", out, fault)
			}
		})
	}
}

// TestBodies: there is one body at most, and none of a GET.
func TestBodies(t *testing.T) {
	for fields, field := range map[string]string{
		`{"url":"http://a/","json":{}}`:                                 "json",
		`{"url":"http://a/","method":"HEAD","body":"x"}`:                "body",
		`{"url":"http://a/","method":"POST","json":1,"form":{"a":1}}`:   "form",
		`{"url":"http://a/","method":"POST","json":null,"body":"null"}`: "body",
	} {
		if _, fault := sdktest.Run(t, sdktest.Only(http.Step()), "http", fields, sdktest.New(t)); fault == nil || fault.Field != field {
			t.Errorf("%s: %+v, want a problem of %s", fields, fault, field)
		}
	}
}
