package command

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/sentinel-runtime/sentinel/host/internal/rootfs"
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

// secretPaths are files and folders that hold secrets in a certain folder only.
var secretPaths = []string{"gh/hosts.yml", ".config/gcloud", ".m2/settings.xml"}

// backups are what editors and tools append to the name of a file for its older version.
var backups = []string{"~", ".bak", ".orig", ".swp", ".old", ".save"}

// sharedNames are exceptions: templates and public keys, which are made to be shared.
var sharedNames = []string{".env.example", ".env.sample", ".env.template", ".env.dist", "*.pub"}

// sourceCode are endings of files that are about secrets rather than hold one.
var sourceCode = []string{
	".go", ".rs", ".c", ".h", ".cc", ".cpp", ".hpp", ".py", ".rb", ".php", ".java", ".kt", ".scala", ".swift", ".cs", ".ts", ".tsx", ".js",
	".jsx", ".mjs", ".vue", ".svelte", ".ex", ".exs", ".erl", ".hs", ".ml", ".lua", ".md", ".html", ".css", ".proto", ".zig", ".dart",
}

// FileRules decide which files models, agents and viewers do not read, and which they do not
// write. The zero value goes by the names that are customary. [FileRules.In] adds the host's
// own files.
type FileRules struct {
	// Readable are patterns of files that models may read although they seem to hold secrets,
	// in the syntax of package glob: of a name, or with a slash of a path relative to the
	// workspace. Default none.
	Readable []string
	// Host are the host's own files. Default none.
	Host HostFiles
	// Redact takes the values of secrets out of a text before it is matched against what a
	// caller who must not see them asks for. Default: none are known.
	Redact func([]byte) []byte

	root          string   // of the workspace of [FileRules.In]
	closed, fixed []string // those in the workspace of [FileRules.In]; slash paths in lower case
}

// HostFiles are the files and folders of the host itself, as absolute paths that need not
// exist. Their names say nothing: a folder that is served may have any.
type HostFiles struct {
	Closed []string // state, configuration, keys: neither read nor written
	Caches []string // likewise; a workspace may be in one
	Fixed  []string // definitions, recipes, plugins: not written
}

// All returns all of them.
func (h HostFiles) All() []string { return slices.Concat(h.Closed, h.Caches, h.Fixed) }

// In returns the rules for a workspace, an absolute folder. Files of the host count as theirs
// wherever links lead to them. A workspace in a cache, such as a worktree, is itself none of its
// files; one that is in another of the host's folders, or is one, has nothing else.
func (r FileRules) In(workspace string) FileRules {
	root := rootfs.EvalLinks(workspace)
	relative := func(paths ...string) (list []string) {
		for _, p := range paths {
			if rel, err := filepath.Rel(root, p); err == nil && rel != "." && filepath.IsLocal(rel) {
				list = append(list, strings.Join(plainParts(filepath.ToSlash(rel)), "/"))
			}
		}
		return list
	}
	inside := func(paths []string) (list []string) {
		for _, p := range paths {
			list = append(list, relative(rootfs.EvalLinks(p))...)
		}
		return list
	}
	around := func(paths []string) []string {
		for _, p := range paths {
			if rel, err := filepath.Rel(rootfs.EvalLinks(p), root); err == nil && filepath.IsLocal(rel) {
				return []string{everything}
			}
		}
		return inside(paths)
	}
	r.root = root
	r.closed, r.fixed = append(around(r.Host.Closed), inside(r.Host.Caches)...), around(r.Host.Fixed)
	for _, p := range r.Host.All() { // another link would have the host take other files for its own
		r.fixed = append(r.fixed, relative(rootfs.LinksOf(p)...)...)
	}
	return r
}

// Closed reports whether a path, relative to the workspace, is of the host's own state or in
// the folder of a git repository.
func (r FileRules) Closed(name string) bool {
	return Secluded(name) || inRepository(name) || below(name, r.closed)
}

// OfHost reports whether a file that git would make, change or remove is of the host's own state, configuration or
// definitions, or comes in place of a folder that they are in: git removes the folder then, with files
// that it ignores. name is relative to the workspace.
func (r FileRules) OfHost(name string) bool {
	plain := strings.Join(plainParts(name), "/")
	return slices.ContainsFunc(slices.Concat(r.closed, r.fixed), func(f string) bool {
		return below(name, []string{f}) || strings.HasPrefix(f, plain+"/")
	})
}

// inRepository reports whether a path is in the folder of a git repository, which holds each
// version of each file, also of those with secrets, and the tokens of remotes.
func inRepository(name string) bool {
	return slices.ContainsFunc(plainParts(name), func(p string) bool { return p == ".git" || p == "git~1" })
}

// everything is the path of a workspace itself among the folders of [FileRules].
const everything = "."

// below reports whether a path is one of the folders or in it.
func below(name string, folders []string) bool {
	if len(folders) == 0 {
		return false
	}
	plain := strings.Join(plainParts(name), "/")
	return slices.ContainsFunc(folders, func(f string) bool { return f == everything || plain == f || strings.HasPrefix(plain, f+"/") })
}

// MayWrite returns an error if a model must not write a file: one that steers tools, or one of
// the host. name is the path with its links resolved.
func (r FileRules) MayWrite(name string) error {
	if Steering(name) || r.Closed(name) || below(name, r.fixed) || r.root != "" && MakesRepository(r.root, name) {
		return &abi.Error{
			Code: abi.Denied, Field: "path", Permanent: true,
			Message: fmt.Sprintf("write %q: models may not write files that steer tools", name),
			Hint:    "a command step or a user can",
		}
	}
	return nil
}

// Fingerprint identifies what decides: it differs if Readable does, the host's files in
// the workspace, or the lists of this version of the program.
func (r FileRules) Fingerprint() string {
	lists := [][]string{r.closed, r.Readable, secretFolders, secretPaths, backups, secretNames, sharedNames, sourceCode}
	sum := sha256.Sum256(fmt.Appendf(nil, "%q", lists))
	return hex.EncodeToString(sum[:])
}

// Match reports whether a path, relative to a workspace, names a file that holds
// secrets, or one of the host's own state or of a git repository. Names are compared as the most careless file system would, like
// those of [Steering].
func (r FileRules) Match(name string) bool {
	switch {
	case inRepository(name) || below(name, r.closed):
		return true
	case r.readable(name):
		return false
	}
	parts := plainParts(name)
	base := parts[len(parts)-1]
	for _, suffix := range backups {
		base = strings.TrimSuffix(base, suffix)
	}
	whole := "/" + strings.Join(append(parts[:len(parts)-1:len(parts)-1], base), "/") + "/"
	if slices.ContainsFunc(secretPaths, func(p string) bool { return strings.Contains(whole, "/"+p+"/") }) {
		return true
	}
	if slices.ContainsFunc(parts, func(p string) bool { return slices.Contains(secretFolders, p) }) {
		return true
	}
	if sharedSet().has(base) || slices.Contains(sourceCode, path.Ext(base)) {
		return false
	}
	return secretSet().has(base)
}

// MatchContent reports whether a file holds secrets by its name, or because a
// private key is in it. A line that only mentions one goes on behind the dashes.
func (r FileRules) MatchContent(name string, data []byte) bool {
	if r.Match(name) {
		return true
	}
	ends := []string{"\n", "\r\n"}
	if !slices.Contains(sourceCode, strings.ToLower(path.Ext(name))) {
		ends = append(ends, `\n`) // as JSON has it; source code has such texts in tests
	}
	key := slices.ContainsFunc(ends, func(end string) bool {
		return bytes.Contains(data, []byte("PRIVATE KEY-----"+end)) || bytes.Contains(data, []byte("PRIVATE KEY BLOCK-----"+end))
	})
	return key && !r.readable(name)
}

// readable reports whether the operator lets models read a file.
func (r FileRules) readable(name string) bool {
	parts := plainParts(name)
	return slices.ContainsFunc(r.Readable, func(pattern string) bool {
		subject := parts[len(parts)-1]
		if strings.Contains(pattern, "/") {
			subject = strings.Join(parts, "/")
		}
		p, err := glob.Parse(strings.ToLower(pattern))
		return err == nil && p.Match(subject) // an invalid pattern allows nothing
	})
}

// MayRead returns an error if a model must not read a file: one of the state folder of
// the host or of a git repository, or one that holds secrets. name is the path with its links resolved, data what
// is known of its content.
func (r FileRules) MayRead(name string, data []byte) error {
	switch {
	case inRepository(name):
		return &abi.Error{
			Code: abi.Denied, Field: "path", Permanent: true,
			Message: fmt.Sprintf("read %q: models do not read the folder of a git repository", name),
			Hint:    "code/diff and code/git show what commits changed",
		}
	case r.Closed(name):
		return &abi.Error{Code: abi.Denied, Field: "path", Permanent: true, Message: fmt.Sprintf("read %q: models do not read the state of the host", name)}
	case r.MatchContent(name, data):
		return r.Refuse(name)
	}
	return nil
}

// Refuse is the error for a model that asks for such a file.
func (r FileRules) Refuse(name string) *abi.Error {
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
