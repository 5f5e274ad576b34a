package command

import (
	"path"
	"slices"
	"strings"
	"unicode"
)

// steeringFolders hold what git, CI services, editors, agents and this program obey. A CI
// service executes the files of a branch as soon as the branch is pushed, often with secrets.
var steeringFolders = []string{
	".git", ".sentinel", ".continuum", ".husky", ".githooks", ".vscode", ".idea", ".zed", ".devcontainer",
	".github", ".gitlab", ".circleci", ".gitea", ".forgejo", ".buildkite", ".woodpecker", ".semaphore", ".teamcity", ".azure-pipelines", ".builds", ".drone",
	".claude", ".cursor", ".codex", ".gemini", ".aider", ".windsurf", ".roo", ".continue", ".kiro", ".junie", ".augment", ".amazonq", ".opencode", ".trae",
	".ssh", ".aws", ".kube", ".docker", ".gnupg", ".cargo", ".config",
}

// steeringFiles are the same as single files.
var steeringFiles = []string{
	".git", ".gitconfig", ".gitattributes", ".gitmodules", ".npmrc", ".yarnrc", ".yarnrc.yml", ".pnpmfile.cjs", ".envrc", ".env",
	".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases", ".profile", ".zshrc", ".zshenv", ".zprofile", ".zlogin",
	".inputrc", ".vimrc", ".exrc", ".nvimrc", ".mcp.json", "mcp.json", ".netrc", ".pypirc", ".pip.conf", ".curlrc", ".wgetrc",
	".tool-versions", ".mise.toml", ".pre-commit-config.yaml", ".lefthook.yml", "lefthook.yml", ".goreleaser.yml",
	"codeowners", // whose approval a forge asks for
	".gitlab-ci.yml", "jenkinsfile", ".travis.yml", "azure-pipelines.yml", "azure-pipelines.yaml", "bitbucket-pipelines.yml", ".drone.yml", ".drone.yaml",
	".woodpecker.yml", ".woodpecker.yaml", "appveyor.yml", ".appveyor.yml", ".cirrus.yml", ".cirrus.star", "buildspec.yml", "buildspec.yaml", "cloudbuild.yaml",
	"cloudbuild.json", ".build.yml", "wercker.yml", "bitrise.yml", "codemagic.yaml", "screwdriver.yaml", ".zuul.yaml", "zuul.yaml",
	".cursorrules", ".windsurfrules", ".aider.conf.yml", ".clinerules", ".roorules", ".roomodes", ".goosehints", ".rules", "opencode.json", "opencode.jsonc",
	"claude.md", "claude.local.md", "agents.md", "agents.override.md", "agent.md", "gemini.md", "qwen.md", "crush.md", "warp.md",
}

// A buildTool is a program that a command of this host starts in a project, with
// the files of the project that say what the program runs.
type buildTool struct {
	name     string
	folders  []string // all that is below
	files    []string // in any folder
	suffixes []string
}

// buildTools are the programs that code/verify starts. Source code is not listed:
// tests, build scripts and macros of a project run whatever they are written to do.
// go is there without files: neither "go build" nor "go vet" runs code of the
// project, and code/verify keeps go.mod and go.work from choosing the toolchain.
var buildTools = []buildTool{
	{name: "go"},
	{name: "make", files: []string{"makefile", "gnumakefile"}, suffixes: []string{".mk"}},
	{name: "npm", folders: []string{"node_modules"}, files: []string{"package.json"}}, // and .npmrc, above
	{name: "pnpm", files: []string{"package.json5", "package.yaml", "pnpm-workspace.yaml"}},
	{name: "yarn", folders: []string{".yarn"}, files: []string{".pnp.cjs", ".pnp.js", ".pnp.loader.mjs"}},
	{name: "bun", files: []string{"bunfig.toml"}},
	{name: "cargo", files: []string{"cargo.toml", "build.rs", "rust-toolchain", "rust-toolchain.toml"}}, // and .cargo, above
	{
		// What the interpreter imports by itself, and what its checkers and test runners
		// load as plugins.
		name: "python3", folders: []string{".venv", "venv", "site-packages", ".tox", ".nox"}, suffixes: []string{".pth"},
		files: []string{
			"pyvenv.cfg", ".python-version", "sitecustomize.py", "usercustomize.py", "conftest.py", "pyproject.toml", "setup.py", "setup.cfg", "tox.ini", "noxfile.py",
			"pytest.ini", ".pytest.ini", "pytest.toml", ".pytest.toml", ".coveragerc", "mypy.ini", ".mypy.ini", "pyrightconfig.json", "ruff.toml", ".ruff.toml",
			".flake8", ".pylintrc", "pylintrc",
		},
	},
}

// Steering reports whether a path, relative to a workspace, names a file that
// configures tools instead of being worked on: what git, shells, editors, package
// managers, coding agents or this program execute or obey. A model may not write
// such a file, not even one that does not exist yet. Case does not count, nor do
// the trailing dots and spaces and the invisible characters that some file
// systems drop.
//
// It looks at the name alone: resolve links first.
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

// SteersBuild reports whether a path, relative to a workspace, names a file that
// says what building or testing the project runs, such as a Makefile or a
// package.json. A model may write one only if its step's tools name a command that
// executes code (see [Call]): any other model could run code through the next
// build, without a grant for it. Names are compared as by [Steering].
func SteersBuild(name string) bool {
	parts := plainParts(name)
	last := parts[len(parts)-1]
	return slices.ContainsFunc(buildTools, func(t buildTool) bool {
		return slices.Contains(t.files, last) ||
			slices.ContainsFunc(t.suffixes, func(suffix string) bool { return strings.HasSuffix(last, suffix) }) ||
			slices.ContainsFunc(parts, func(p string) bool { return slices.Contains(t.folders, p) })
	})
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

// Secluded reports whether a path, relative to a workspace, lies in the state folder of a
// .sentinel folder, be it of this host or of another project.
func Secluded(name string) bool {
	parts := plainParts(name)
	for i, p := range parts {
		if p == ".sentinel" && i+1 < len(parts) && parts[i+1] == "state" {
			return true
		}
	}
	return false
}
