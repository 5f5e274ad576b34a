package sentinels_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/sentinels"
)

func TestOrigin(t *testing.T) {
	for address, want := range map[string]string{
		"https://api.example.com": "https://api.example.com", "https://api.example.com:8443/a/$b?c=$d": "https://api.example.com:8443",
		"http://h?x": "http://h", "http://h#x": "http://h", "https://$host/": "", "https://api.$domain/": "", "$url": "", "$base/users": "",
		"https://api.example.com$path": "", "https://api.example.com:$port/": "", "$scheme://h/": "", "/path": "", "": "", "https:///x": "",
		`https://good.example\@evil.example/`: "", "https://${host}/": "", "https://a$$b/": "",
	} {
		if got := sentinels.Origin(address); got != want {
			t.Errorf("Origin(%q) = %q, want %q", address, got, want)
		}
	}
}

// TestRequestSecrets: a request names secrets in its headers and its authorization; a secret in its
// body, in its query, or of another type's fields is none of a request.
func TestRequestSecrets(t *testing.T) {
	const src = `{"name": "a", "steps": [
    {"type": "http", "url": "https://a.example/$id", "headers": {"X": {"secret": "ONE"}, "Y": {"secret": "$name"}, "Z": "z"}, "auth": {"bearer": {"secret": "TWO"}}},
    {"type": "http", "url": "$url", "auth": {"basic": {"username": "u", "password": {"secret": "THREE"}}}, "json": {"secret": "NO"}, "query": {"q": {"secret": "NO"}}},
    {"type": "command", "command": "http/request", "params": {"url": "https://b.example", "headers": {"X": {"secret": "FOUR"}}}},
    {"type": "command", "command": "notify/send", "params": {"headers": {"X": {"secret": "NO"}}}},
    {"type": "own", "url": "https://c.example", "headers": {"X": {"secret": "NO"}}}]}`
	d, _ := sentinels.Decode([]byte(src), sentinels.DecodeOptions{})
	var uses, origins []string
	d.EachSecret(nil, func(path, name string) { uses = append(uses, path+" "+name) })
	for i := range d.Steps {
		origins = append(origins, d.Steps[i].Origin())
	}
	want := []string{"steps[0].headers.X ONE", "steps[0].auth.bearer TWO", "steps[1].auth.basic.password THREE", "steps[2].params.headers.X FOUR"}
	if diff := cmp.Diff(want, uses); diff != "" {
		t.Errorf("uses (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"https://a.example", "", "https://b.example", "", ""}, origins); diff != "" {
		t.Errorf("origins (-want +got):\n%s", diff)
	}
	if got := fmt.Sprint(d.Steps[0].Secrets()); got != "[ONE TWO]" {
		t.Errorf("secrets of the first step: %s", got)
	}
	if commands := sentinels.CommandsIn(d, types(t)); !slices.Contains(commands, "http/request") {
		t.Errorf("commands %v", commands)
	}
}
