package command

import (
	"path"
	"slices"
	"strings"
	"unicode"
)

// steeringFolders hold what git, editors, agents and this program obey.
var steeringFolders = []string{
	".git", ".sentinel", ".continuum", ".github", ".gitlab", ".circleci", ".husky", ".githooks", ".vscode", ".idea", ".claude",
	".cursor", ".codex", ".gemini", ".aider", ".devcontainer", ".ssh", ".aws", ".kube", ".docker", ".gnupg", ".cargo", ".config",
}

// steeringFiles are the same as single files.
var steeringFiles = []string{
	".git", ".gitconfig", ".gitattributes", ".gitmodules", ".npmrc", ".yarnrc", ".yarnrc.yml", ".pnpmfile.cjs", ".envrc", ".env",
	".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases", ".profile", ".zshrc", ".zshenv", ".zprofile", ".zlogin",
	".inputrc", ".vimrc", ".exrc", ".nvimrc", ".mcp.json", "mcp.json", ".netrc", ".pypirc", ".pip.conf", ".curlrc", ".wgetrc",
	".tool-versions", ".mise.toml", ".pre-commit-config.yaml", ".lefthook.yml", "lefthook.yml", ".gitlab-ci.yml", ".cursorrules",
	".windsurfrules", ".aider.conf.yml", "claude.md", "agents.md", "gemini.md", ".clinerules", ".goreleaser.yml",
}

// Steering reports whether a path, relative to a workspace, names a file that
// steers tools rather than being worked on: what git, shells, editors, package
// managers, coding agents or this program run or obey. A model may not write
// such a file, also when it does not exist yet. Case does not count, nor do
// the trailing dots and spaces and the invisible characters that some file
// systems drop.
//
// It looks at the name alone; whoever opens the file must resolve links first.
func Steering(name string) bool {
	parts := plainParts(name)
	for i, p := range parts {
		if slices.Contains(steeringFolders, p) || p == "git~1" {
			return true
		}
		if i == len(parts)-1 && slices.Contains(steeringFiles, p) {
			return true
		}
	}
	return false
}

// plainParts splits a path into its parts as the most careless file system
// would read them.
func plainParts(name string) []string {
	clean := path.Clean(strings.ReplaceAll(name, `\`, "/"))
	parts := strings.Split(strings.ToLower(clean), "/")
	for i, p := range parts {
		p = strings.TrimRight(strings.Map(visible, p), ". ")
		// What follows a colon is an alternate data stream of the same file.
		parts[i], _, _ = strings.Cut(p, ":")
	}
	return parts
}

// visible drops format characters, which HFS+ ignores in names.
func visible(r rune) rune {
	if unicode.Is(unicode.Cf, r) {
		return -1
	}
	return r
}

// Secluded reports whether a path, relative to a workspace, lies in the state
// folder of this program, which holds tokens and the store: models neither
// read nor write there.
func Secluded(name string) bool {
	parts := plainParts(name)
	for i, p := range parts {
		if p == ".sentinel" && i+1 < len(parts) && parts[i+1] == "state" {
			return true
		}
	}
	return false
}
