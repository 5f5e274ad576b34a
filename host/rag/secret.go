package rag

import (
	"bytes"
	"path"
	"slices"
	"strings"
	"unicode"
)

// hiddenFolders are never shown, whoever asks: version control keeps remotes
// with tokens, and our own state is not for models.
var hiddenFolders = []string{
	".git", ".hg", ".svn", ".sentinel", ".continuum", ".ssh", ".aws", ".azure", ".gcloud", ".gnupg", ".kube", ".docker", ".password-store",
}

// dullFolders are passed over in lists and searches, but a file in one can be
// named: they hold what others wrote or what machines made.
var dullFolders = []string{
	"node_modules", "vendor", "__pycache__", ".venv", "venv", ".tox", ".cache", ".mypy_cache", ".pytest_cache", ".gradle", ".terraform",
	".next", ".nuxt", ".idea", ".vscode",
}

// secretFiles are names and patterns of files that hold secrets by custom.
var secretFiles = []string{
	".env", ".env.*", "*.env", ".envrc", "*.pem", "*.key", "*.p12", "*.pfx", "*.p8", "*.jks", "*.keystore", "*.kdbx", "*.ppk", "*.asc", "*.gpg",
	"id_rsa*", "id_dsa*", "id_ecdsa*", "id_ed25519*", ".netrc", "_netrc", ".pgpass", ".my.cnf", ".npmrc", ".yarnrc", ".yarnrc.yml", ".pypirc",
	".git-credentials", ".gitconfig", ".htpasswd", ".dockercfg", ".dockerconfigjson", ".vault-token", ".s3cfg", ".boto", ".terraformrc",
	"credentials", "credentials.*", "*.credentials", "secret.*", "secrets.*", "*.secret", "*.secrets", "service-account*.json",
	"service_account*.json", "client_secret*.json", "*.tfstate", "*.tfstate.*", "*.tfvars", "*.ovpn", "kubeconfig", "*.kubeconfig",
	".bash_history", ".zsh_history", ".python_history", "*.keytab", "wallet.dat", "token", "token.*", "tokens.json", "auth.json",
}

// harmless are exceptions: templates that are made to be shared, and source
// code that is merely about secrets.
var harmless = []string{".env.example", ".env.sample", ".env.template", ".env.dist", "*.pub"}

var sourceCode = []string{
	".go", ".rs", ".c", ".h", ".cc", ".cpp", ".hpp", ".py", ".rb", ".php", ".java", ".kt", ".scala", ".swift", ".cs", ".ts", ".tsx", ".js",
	".jsx", ".mjs", ".vue", ".svelte", ".ex", ".exs", ".erl", ".hs", ".ml", ".lua", ".md", ".html", ".css", ".proto", ".zig", ".dart",
}

// secret reports whether a path must not be part of any context, by its name.
func secret(name string) bool {
	parts := strings.Split(strings.ReplaceAll(name, `\`, "/"), "/")
	for i, p := range parts {
		p = plain(p)
		if slices.Contains(hiddenFolders, p) {
			return true
		}
		if i == len(parts)-1 && secretFile(p) {
			return true
		}
	}
	return false
}

func secretFile(base string) bool {
	if anyMatch(harmless, base) {
		return false
	}
	if slices.Contains(sourceCode, path.Ext(base)) {
		return false
	}
	return anyMatch(secretFiles, base)
}

func anyMatch(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		ok, _ := path.Match(p, name) // the patterns are constants, tested to be valid
		return ok
	})
}

// plain is a name as the laxest file system takes it: without case, invisible
// characters, trailing dots and spaces, and alternate streams.
func plain(name string) string {
	name = strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Cf, r) {
			return -1
		}
		return r
	}, strings.ToLower(name))
	name, _, _ = strings.Cut(name, ":")
	return strings.TrimRight(name, ". ")
}

// holdsKey reports whether a file holds a private key, whatever it is called.
// A line that merely mentions one goes on behind the dashes.
func holdsKey(data []byte) bool {
	return bytes.Contains(data, []byte("PRIVATE KEY-----\n")) || bytes.Contains(data, []byte("PRIVATE KEY-----\r\n"))
}
