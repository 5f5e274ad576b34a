package retry_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/sentinel-runtime/sentinel/runtime/retry"
)

// messages are typical error messages and their classification.
var messages = []struct{ msg, want string }{
	// Timeouts, including those that mention a connection.
	{"ETIMEDOUT", "timeout/general"},
	{"connect ETIMEDOUT 10.0.0.1:443", "timeout/general"},
	{"Error: ESOCKETTIMEDOUT", "timeout/general"},
	{"request to https://api.example.com/v1 failed, reason: connect ETIMEDOUT", "timeout/general"},
	{"dial tcp 10.0.0.1:443: i/o timeout", "timeout/general"},
	{"net/http: TLS handshake timeout", "timeout/general"},
	{"context deadline exceeded", "timeout/general"},
	{"rpc error: code = DeadlineExceeded desc = context deadline exceeded", "timeout/general"},
	{"connection timed out", "timeout/general"},
	{"timeout of 5000ms exceeded", "timeout/general"},
	{"TimeoutError: Navigation took too long", "timeout/general"},
	{"HTTP 408 Request Timeout", "timeout/general"},
	{"Execution timed out after 300s", "timeout/execution"},
	{"script timeout", "timeout/execution"},
	{"command has timed out", "timeout/execution"},
	{"step 3 exceeded its time limit", "timeout/execution"},

	// Rate limits.
	{"429 Too Many Requests", "api/rate"},
	{"Request failed with status code 429", "api/rate"},
	{"Error code: 429 - {'error': {}}", "api/rate"},
	{"Rate limit reached for model x on tokens per min. Please try again in 20s.", "api/rate"},
	{"rate_limit_error: slow down, context length is fine", "api/rate"},
	{"You exceeded your current quota", "api/rate"},
	{"ThrottlingException: Rate exceeded", "api/rate"},
	{"Overloaded", "api/rate"},
	{"RESOURCE_EXHAUSTED", "api/rate"},

	// The network.
	{"connect ECONNREFUSED 127.0.0.1:5432", "api/network"},
	{"read ECONNRESET", "api/network"},
	{"getaddrinfo ENOTFOUND api.example.com", "api/network"},
	{"dial tcp: lookup x on 1.1.1.1:53: no such host", "api/network"},
	{"dial tcp 127.0.0.1:1: connect: connection refused", "api/network"},
	{"socket hang up", "api/network"},
	{"write: broken pipe", "api/network"},
	{"TypeError: fetch failed", "api/network"},
	{"unexpected EOF", "api/network"},
	{"network is unreachable", "api/network"},

	// Servers and other statuses, in a context that identifies them.
	{"HTTP 500", "api/server_error"},
	{"HTTP/1.1 503", "api/server_error"},
	{"502 Bad Gateway", "api/server_error"},
	{"504 Gateway Timeout", "api/server_error"},
	{"status: 599", "api/server_error"},
	{`{"status":500,"path":"/v1"}`, "api/server_error"},
	{"upstream returned 503 for /v1/items", "api/server_error"},
	{"Internal Server Error", "api/server_error"},
	{"Service Unavailable", "api/server_error"},
	{"HTTP 404", "api/http_404"},
	{"GET https://example.com/a/b: 404", "api/http_404"},
	{"404 Not Found", "api/http_404"},
	{"statusCode=422", "api/http_422"},
	{"server responded with a status of 400 (Bad Request)", "api/http_400"},
	{"HTTP error 418", "api/http_418"},

	// Authentication.
	{"HTTP 401", "api/auth"},
	{"403 Forbidden", "api/auth"},
	{"Unauthorized", "api/auth"},
	{"invalid x-api-key", "api/auth"},
	{"Incorrect API key provided", "api/auth"},
	{"authentication_error: no such key", "api/auth"},
	{"git@example.com: Permission denied (publickey).", "api/auth"},
	{"token has expired", "api/auth"},
	{"API error: something odd", "api/general"},

	// Numbers that are not an HTTP status.
	{"line 429: rubbish here", "manual_review/unclassified"},
	{"wrote 500 of 512 items", "manual_review/unclassified"},
	{"error: 404 rows differ", "manual_review/unclassified"},
	{"job 4290 is odd", "manual_review/unclassified"},
	{"exit status 404", "runtime/general"},
	{"process exited with status code 500", "runtime/general"},
	{"port 443 and 599 and 400 and 5000", "manual_review/unclassified"},
	{"HTTP 200 and 42 things", "manual_review/unclassified"},
	{"main.go:503:12: odd", "manual_review/unclassified"},

	// Syntax.
	{"SyntaxError: Unexpected token < in JSON at position 0", "syntax/json"},
	{"unexpected end of JSON input", "syntax/json"},
	{"invalid character 'x' looking for beginning of value", "syntax/json"},
	{"json: syntax error at 3", "syntax/json"},
	{"JSONDecodeError: Expecting value: line 1 column 1 (char 0)", "syntax/json"},
	{"missing ) after argument list", "syntax/bracket"},
	{"unmatched bracket in line 3", "syntax/bracket"},
	{"SyntaxError: Unexpected token '}'", "syntax/bracket"},
	{"SyntaxError: Unexpected identifier", "syntax/token"},
	{"Invalid or unexpected token", "syntax/token"},
	{"syntax error near line 4", "syntax/general"},
	{"IndentationError: expected an indented block", "syntax/general"},

	// Logic, including texts with words of another category.
	{"Cannot read properties of undefined (reading 'timeout')", "logic/undefined"},
	{"ReferenceError: foo is not defined", "logic/undefined"},
	{"undefined is not a function", "logic/undefined"},
	{"Cannot read property 'status' of null", "logic/null"},
	{"panic: runtime error: invalid memory address or nil pointer dereference", "logic/null"},
	{"'NoneType' object has no attribute 'x'", "logic/null"},
	{"TypeError: x.map is wrong", "logic/type"},
	{"x.map is not a function", "logic/type"},
	{"cannot use x (type int) as string", "logic/type"},
	{"AssertionError: 1 != 2", "logic/general"},
	{"index out of range [5] with length 3", "logic/general"},
	{"Maximum call stack size reached", "logic/general"},

	// Files, processes and memory.
	{"ENOENT: no such file or directory, open 'x'", "runtime/file"},
	{"open x: no such file or directory", "runtime/file"},
	{"Cannot find module 'left-pad'", "runtime/file"},
	{"EACCES: permission denied, open '/x'", "runtime/permission"},
	{"open /x: permission denied", "runtime/permission"},
	{"ENOSPC: no space left on device", "runtime/general"},
	{"write x: no space left on device", "runtime/general"},
	{"JavaScript heap out of memory", "runtime/general"},
	{"exit status 1", "runtime/general"},
	{"command failed with exit code 2", "runtime/general"},
	{"signal: SIGKILL", "runtime/general"},
	{"lease expired at 12:00", "runtime/lease"},

	// Context limits of models.
	{"This model's maximum context length is 8192 tokens", "context/tokens"},
	{"context_length_exceeded", "context/tokens"},
	{"prompt is too long: 210000 tokens > 200000 maximum", "context/tokens"},
	{"too many tokens in the request", "context/tokens"},
	{"context too large", "context/general"},

	// Rejected work.
	{"Sentinel rejected the change", "verification/sentinel"},
	{"3 tests failed, 20 passed", "verification/tests"},
	{"tests failed: TestTimeout", "verification/tests"},
	{"lint errors in 4 files", "verification/lint"},
	{"golangci-lint: found 3 issues", "verification/lint"},
	{"verification failed", "verification/general"},
	{"Secrets detected in src/config.js", "security/secrets"},
	{"hardcoded password in main.go", "security/secrets"},
	{"npm audit: 2 high severity vulnerabilities", "security/vuln"},
	{"CVE-2026-12345 in x", "security/vuln"},
	{"security scan failed", "security/general"},

	// No match.
	{"", "manual_review/empty_error"},
	{" \n\t", "manual_review/empty_error"},
	{"something odd happened", "manual_review/unclassified"},
	{"timeoutMs: must be positive", "manual_review/unclassified"},
	{"unknown flag --timeout", "manual_review/unclassified"},
	{"$timeout has no value", "manual_review/unclassified"},
	{"\xff\xfe", "manual_review/unclassified"},
}

func TestClassifyMessage(t *testing.T) {
	for _, c := range messages {
		t.Run(c.msg, func(t *testing.T) {
			got := retry.ClassifyMessage(c.msg)
			if s := name(got); s != c.want {
				t.Errorf("%q: %s, want %s", c.msg, s, c.want)
			}
			if got.Permanent {
				t.Error("a message made the error permanent")
			}
			if again := retry.ClassifyMessage(strings.ToUpper(c.msg)); utf8.ValidString(c.msg) && again != got {
				t.Errorf("in capitals: %s", name(again))
			}
		})
	}
}

func TestConfidence(t *testing.T) {
	for msg, want := range map[string]float64{
		"": 0, "odd": .3, "ETIMEDOUT": .8, "socket hang up": .8, "HTTP 500": .9, "HTTP 404": .9,
	} {
		if got := retry.ClassifyMessage(msg).Confidence; got != want {
			t.Errorf("%q: confidence %v, want %v", msg, got, want)
		}
	}
}

func TestLongMessage(t *testing.T) {
	long := strings.Repeat("odd text ", 100_000)
	for _, msg := range []string{"ETIMEDOUT " + long, long + " ETIMEDOUT"} {
		if got := name(retry.ClassifyMessage(msg)); got != "timeout/general" {
			t.Errorf("got %s", got)
		}
	}
}

func FuzzClassifyMessage(f *testing.F) {
	for _, c := range messages {
		f.Add(c.msg)
	}
	known := map[retry.Category]bool{}
	for _, c := range categories {
		known[c] = true
	}
	f.Fuzz(func(t *testing.T, msg string) {
		c := retry.ClassifyMessage(msg)
		if !known[c.Category] || c.Subcategory == "" || c.Confidence < 0 || c.Confidence > .9 || c.Permanent {
			t.Errorf("%q: %+v", msg, c)
		}
		if (c.Confidence == 0) != (strings.TrimSpace(msg) == "") {
			t.Errorf("%q: confidence %v", msg, c.Confidence)
		}
	})
}

func name(c retry.Classification) string { return fmt.Sprintf("%s/%s", c.Category, c.Subcategory) }
