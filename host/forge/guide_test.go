package forge_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/sentinel-runtime/sentinel/host/config"
	"github.com/sentinel-runtime/sentinel/host/forge"
)

// TestGuide: each line of SERVE.md, S15, is a valid configuration, and its forge is asked as
// the API of the kind that follows from it has to be.
func TestGuide(t *testing.T) {
	page, err := os.ReadFile("../SERVE.md")
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]string{
		"https://github.com": forge.GitHub, "https://github.example.com": forge.GitHub, "https://gitlab.com": forge.GitLab, "https://gitlab.example.com": forge.GitLab,
		"https://gitea.example.com": forge.Gitea, "https://codeberg.org": forge.Forgejo, "http://localhost:3000": forge.Gitea,
	}
	lines := regexp.MustCompile("(?m)^\\| [^|]+ \\| `(\\{\"forge\": .*?\\}\\})` \\|").FindAllStringSubmatch(string(page), -1)
	for _, line := range lines {
		file := filepath.Join(t.TempDir(), "config.json")
		if err := os.WriteFile(file, []byte(line[1]), 0o600); err != nil {
			t.Fatal(err)
		}
		l, err := config.Load(config.Options{File: file, Getenv: func(string) string { return "" }})
		if err != nil {
			t.Errorf("%s: %v", line[1], err)
			continue
		}
		kind, known := kinds[l.Forge.URL]
		if !known || l.Forge.Token != "FORGE_TOKEN" {
			t.Errorf("%s: URL %s, token %s", line[1], l.Forge.URL, l.Forge.Token)
		}
		delete(kinds, l.Forge.URL)
		if _, err := forge.NewClient(forge.ClientOptions{URL: l.Forge.URL, Kind: l.Forge.Kind}); err != nil {
			t.Errorf("%s: %v", line[1], err)
		}
		// A server of that kind in place of the one of the line.
		f := newFake(t, kind)
		at := l.Forge.Kind
		if at == "" && (kind == forge.GitHub || kind == forge.GitLab) {
			at = kind // follows from the host alone
		}
		c, err := forge.NewClient(forge.ClientOptions{URL: f.url, Kind: at, Token: func() (string, error) { return token, nil }})
		if err != nil {
			t.Fatal(err)
		}
		in := forge.Open{Repository: forge.Repository{Owner: "o", Name: "r"}, Head: "work", Base: "main", Title: "a"}
		p, made, err := c.OpenPull(t.Context(), in)
		if err != nil || !made || p.Number == 0 {
			out, _ := json.Marshal(f.asked)
			t.Errorf("%s: %+v, %v; asked %s", line[1], p, err, out)
		}
	}
	if len(kinds) > 0 {
		t.Errorf("%d lines, none for %v", len(lines), kinds)
	}
}
