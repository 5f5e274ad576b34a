package command_test

import (
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/sentinels/glob"
)

func TestSecretFiles(t *testing.T) {
	var s command.FileRules
	for _, name := range []string{
		".env", "a/.env.local", "A/.ENV", ".env.", ".env ", ".en\u200bv", ".env:stream", `a\.env`, "prod.env", ".envrc",
		"server.key", "x.PEM", "certs/tls.p12", "id_rsa", "id_rsa.old", "id_ed25519_work", ".ssh/config", ".ssh/known_hosts", ".aws/credentials", ".kube/config",
		".git/config", "sub/.git/config", ".git", ".git/HEAD", "sub/.GIT/objects/ab", "git~1/x", ".netrc", ".npmrc", ".pypirc", ".git-credentials", "secrets.yaml", "credentials.json", "service-account-prod.json",
		"terraform.tfstate", "terraform.tfstate.backup", "prod.tfvars", "token", "a/../.env",
		".env~", ".netrc~", "server.key.bak", "secrets.yaml.orig", "id_rsa.save", ".a.pem.swp", ".config/gh/hosts.yml", ".config/gcloud/application_default_credentials.json", ".m2/settings.xml", ".M2/settings.xml~",
	} {
		if !s.Match(name) {
			t.Errorf("%q may be read", name)
		}
	}
	for _, name := range []string{
		"env.go", ".env.example", ".env.sample", "id_rsa.pub", "secrets.go", "token.go", "keys.md", ".gitignore", ".github/workflows/ci.yml", "environment.ts",
		"a.keyboard", "sub/git/HEAD", "hosts.yml", "settings.xml", "main.go~", "a.txt.bak", "config", "monkey", "tokenizer.json", ".",
	} {
		if s.Match(name) {
			t.Errorf("%q is refused", name)
		}
	}
}

func TestSecretFilesThatMayBeRead(t *testing.T) {
	s := command.FileRules{Readable: []string{".env.test", "Certs/*.pem", "[", "*.tfvars"}}
	for name, want := range map[string]bool{
		".env.test": false, "a/.ENV.test": false, "certs/a.pem": false, "x.tfvars": false, // readable
		".env": true, "a.pem": true, "other/certs/a.pem": true, "certs/sub/a.pem": true,
	} {
		if got := s.Match(name); got != want {
			t.Errorf("%q: %t, want %t", name, got, want)
		}
	}
	const key = "-----BEGIN RSA PRIVATE KEY-----\nabc\n"
	for name, want := range map[string]bool{"notes.txt": true, "main.go": true, "certs/a.pem": false} {
		if got := s.MatchContent(name, []byte(key)); got != want {
			t.Errorf("a key in %q: %t, want %t", name, got, want)
		}
	}
	for name, text := range map[string]string{
		"proj-1234.json": `{"private_key":"-----BEGIN PRIVATE KEY-----\nMIIEv"}`, "pgp.txt": "-----BEGIN PGP PRIVATE KEY BLOCK-----\n\nlQ\n", "dos.txt": "-----BEGIN PRIVATE KEY-----\r\nMIIEv\r\n",
	} {
		if !s.MatchContent(name, []byte(text)) {
			t.Errorf("%s may be read", name)
		}
	}
	if s.MatchContent("key_test.go", []byte(`const key = "-----BEGIN PRIVATE KEY-----\nMIIEv"`)) {
		t.Error("source code with the text of a key is refused")
	}
	if s.MatchContent("main.go", []byte("grep \"PRIVATE KEY-----\" x")) {
		t.Error("a line that mentions a key is one")
	}
	e := s.Refuse("a/.env")
	if _, err := glob.Parse(".env"); err != nil || !strings.Contains(e.Hint, `".env" to models.secretFiles`) || !strings.Contains(e.Message, `"a/.env"`) {
		t.Errorf("%+v", e)
	}
}
