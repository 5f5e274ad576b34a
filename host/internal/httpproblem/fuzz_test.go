package httpproblem_test

import (
	"testing"

	"github.com/sentinel-runtime/sentinel/host/internal/httpproblem"
)

// Whatever another process answers, the error made of it says something.
func FuzzRead(f *testing.F) {
	f.Add(404, "application/problem+json", []byte(`{"title":"Not Found","status":404,"detail":"no","code":"not_found","hint":"h"}`))
	f.Add(500, "text/plain", []byte("oops"))
	f.Add(0, "application/problem+json; charset=utf-8", []byte(`{"detail":1}`))
	f.Fuzz(func(t *testing.T, status int, contentType string, body []byte) {
		err := httpproblem.Read("it", status, contentType, body)
		if err.Code == "" || err.Message == "" {
			t.Fatalf("%+v", err)
		}
	})
}
