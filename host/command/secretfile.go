package command

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels/glob"
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
	// Readable are patterns of files that models may read nevertheless, in the syntax of
	// package glob: of a name, or with a slash of a path relative to the workspace.
	// Default none.
	Readable []string
}

// Fingerprint identifies what decides: it differs if Readable does, or the lists of this
// version of the program.
func (s SecretFiles) Fingerprint() string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %q %q %q", s.Readable, secretFolders, secretNames, sharedNames, sourceCode))
	return hex.EncodeToString(sum[:])
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
	if sharedSet().has(base) || slices.Contains(sourceCode, path.Ext(base)) {
		return false
	}
	return secretSet().has(base)
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
		p, err := glob.Parse(strings.ToLower(pattern))
		return err == nil && p.Match(subject) // an invalid pattern allows nothing
	})
}

// MayRead returns an error if a model must not read a file: one of the state folder of
// the host, or one that holds secrets. name is the path with its links resolved, data what
// is known of its content.
func (s SecretFiles) MayRead(name string, data []byte) error {
	switch {
	case Secluded(name):
		return &abi.Error{Code: abi.Denied, Field: "path", Permanent: true, Message: fmt.Sprintf("read %q: models do not read the state of the host", name)}
	case s.MatchContent(name, data):
		return s.Refuse(name)
	}
	return nil
}

// Refuse is the error for a model that asks for such a file.
func (s SecretFiles) Refuse(name string) *abi.Error {
	return &abi.Error{
		Code: abi.Denied, Field: "path", Permanent: true,
		Message: fmt.Sprintf("read %q: models do not read files that hold secrets", name),
		Hint:    fmt.Sprintf("a command step or a person can; to let models, add %q to models.secretFiles in the user's configuration", path.Base(path.Clean(name))),
	}
}

// A nameSet is a set of names and patterns of names.
type nameSet struct {
	names    map[string]bool
	patterns []glob.Pattern
}

// newNameSet panics if a pattern is invalid.
func newNameSet(patterns []string) nameSet {
	set := nameSet{names: map[string]bool{}}
	for _, text := range patterns {
		p, err := glob.Parse(text)
		if err != nil {
			panic(err)
		}
		if name, ok := p.Literal(); ok {
			set.names[name] = true
		} else {
			set.patterns = append(set.patterns, p)
		}
	}
	return set
}

func (s nameSet) has(name string) bool {
	return s.names[name] || slices.ContainsFunc(s.patterns, func(p glob.Pattern) bool { return p.Match(name) })
}

// The sets are built when a model first asks for a file.
var (
	secretSet = sync.OnceValue(func() nameSet { return newNameSet(secretNames) })
	sharedSet = sync.OnceValue(func() nameSet { return newNameSet(sharedNames) })
)
