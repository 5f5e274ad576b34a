package command

import (
	"bytes"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// secretFolders hold credentials of tools.
var secretFolders = []string{".ssh", ".aws", ".azure", ".gcloud", ".gnupg", ".kube", ".docker", ".password-store"}

// secretNames are names and patterns of files that hold secrets by custom.
var secretNames = []string{
	".env", ".env.*", "*.env", ".envrc", "*.pem", "*.key", "*.p12", "*.pfx", "*.p8", "*.jks", "*.keystore", "*.kdbx", "*.ppk", "*.asc", "*.gpg",
	"id_rsa*", "id_dsa*", "id_ecdsa*", "id_ed25519*", ".netrc", "_netrc", ".pgpass", ".my.cnf", ".npmrc", ".yarnrc", ".yarnrc.yml", ".pypirc",
	".git-credentials", ".gitconfig", ".htpasswd", ".dockercfg", ".dockerconfigjson", ".vault-token", ".s3cfg", ".boto", ".terraformrc",
	"credentials", "credentials.*", "*.credentials", "secret.*", "secrets.*", "*.secret", "*.secrets", "service-account*.json",
	"service_account*.json", "client_secret*.json", "*.tfstate", "*.tfstate.*", "*.tfvars", "*.ovpn", "kubeconfig", "*.kubeconfig",
	".bash_history", ".zsh_history", ".python_history", "*.keytab", "wallet.dat", "token", "token.*", "tokens.json", "auth.json",
}

// sharedNames are exceptions: templates and public keys, which are made to be shared.
var sharedNames = []string{".env.example", ".env.sample", ".env.template", ".env.dist", "*.pub"}

// sourceCode are endings of files that are about secrets rather than hold one.
var sourceCode = []string{
	".go", ".rs", ".c", ".h", ".cc", ".cpp", ".hpp", ".py", ".rb", ".php", ".java", ".kt", ".scala", ".swift", ".cs", ".ts", ".tsx", ".js",
	".jsx", ".mjs", ".vue", ".svelte", ".ex", ".exs", ".erl", ".hs", ".ml", ".lua", ".md", ".html", ".css", ".proto", ".zig", ".dart",
}

// SecretFiles decides which files models do not read because they hold secrets.
// The zero value goes by the names that are customary.
type SecretFiles struct {
	// Readable are patterns of files that models read all the same, in the form of
	// [path.Match]: of a name, or with a slash of a path relative to the workspace.
	// Default none.
	Readable []string
}

// Match reports whether a path, relative to a workspace, names a file that holds
// secrets. Names are compared as the most careless file system would, like
// those of [Steering].
func (s SecretFiles) Match(name string) bool {
	if s.readable(name) {
		return false
	}
	parts := plainParts(name)
	base := parts[len(parts)-1]
	for i, p := range parts {
		if slices.Contains(secretFolders, p) || p == ".git" && i+2 == len(parts) && base == "config" { // remotes have tokens
			return true
		}
	}
	if matchesAny(sharedNames, base) || slices.Contains(sourceCode, path.Ext(base)) {
		return false
	}
	return matchesAny(secretNames, base)
}

// MatchContent reports whether a file holds secrets by its name, or because a
// private key is in it. A line that only mentions one goes on behind the dashes.
func (s SecretFiles) MatchContent(name string, data []byte) bool {
	if s.Match(name) {
		return true
	}
	key := bytes.Contains(data, []byte("PRIVATE KEY-----\n")) || bytes.Contains(data, []byte("PRIVATE KEY-----\r\n"))
	return key && !s.readable(name)
}

// readable reports whether the operator lets models read a file.
func (s SecretFiles) readable(name string) bool {
	parts := plainParts(name)
	return slices.ContainsFunc(s.Readable, func(pattern string) bool {
		subject := parts[len(parts)-1]
		if strings.Contains(pattern, "/") {
			subject = strings.Join(parts, "/")
		}
		ok, _ := path.Match(strings.ToLower(pattern), subject) // a bad pattern allows nothing
		return ok
	})
}

// Refuse is the error for a model that asks for such a file.
func (s SecretFiles) Refuse(name string) *abi.Error {
	return &abi.Error{
		Code: abi.Denied, Field: "path", Permanent: true,
		Message: fmt.Sprintf("read %q: models do not read files that hold secrets", name),
		Hint:    fmt.Sprintf("a command step or a person can; to let models, add %q to models.secretFiles in the user's configuration", path.Base(path.Clean(name))),
	}
}

func matchesAny(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		ok, _ := path.Match(p, name) // the patterns are constants, tested to be valid
		return ok
	})
}
