package command

import (
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
)

// A tool is a program or service that obeys files of a project, with those files. Names are in
// lower case.
type tool struct {
	name     string
	source   string   // page that says so
	folders  []string // all that is below
	files    []string // in any folder
	suffixes []string // of files
}

// obeys reports whether the tool obeys a file, by the parts of its path.
func (t tool) obeys(parts []string) bool {
	last := parts[len(parts)-1]
	return slices.ContainsFunc(parts, func(p string) bool { return slices.Contains(t.folders, p) }) || slices.Contains(t.files, last) ||
		slices.ContainsFunc(t.suffixes, func(suffix string) bool { return strings.HasSuffix(last, suffix) })
}

// steered are tools that execute or obey files without being started for them: when a folder
// is opened or entered, with a commit or push, or at the start of any of their commands. A CI
// service executes the files of a branch as soon as the branch is pushed, often with secrets.
var steered = []tool{
	{name: "this program", source: "sentinels/FORMAT.md", folders: []string{".sentinel", ".continuum"}},
	// Version control.
	{name: "git", source: "https://git-scm.com/docs/git-config", folders: []string{".git", "git~1"}, files: []string{".gitconfig", ".gitattributes", ".gitmodules"}},
	{name: "husky", source: "https://typicode.github.io/husky/how-to.html", folders: []string{".husky", ".githooks"}},
	{name: "pre-commit", source: "https://pre-commit.com/#adding-pre-commit-plugins-to-your-project", files: []string{".pre-commit-config.yaml", ".pre-commit-config.yml"}},
	{name: "lefthook", source: "https://lefthook.dev/configuration/", files: []string{".lefthook.yml", "lefthook.yml", ".lefthook.yaml", "lefthook.yaml", "lefthook.toml", "lefthook.json", "lefthook-local.yml"}},
	{name: "overcommit", source: "https://github.com/sds/overcommit#configuration", folders: []string{".git-hooks"}, files: []string{".overcommit.yml", ".local-overcommit.yml"}},
	{name: "mercurial", source: "https://www.mercurial-scm.org/help/topics/config", folders: []string{".hg"}, files: []string{".hgrc", ".hgsub"}},
	{name: "jujutsu", source: "https://docs.jj-vcs.dev/latest/config/", folders: []string{".jj"}},
	{name: "subversion", source: "https://svnbook.red-bean.com/en/1.8/svn.advanced.confarea.html", folders: []string{".svn", ".subversion"}},
	{name: "darcs", source: "https://darcs.net/Using/Configuration", folders: []string{"_darcs"}},
	{name: "breezy", source: "https://www.breezy-vcs.org/doc/en/user-reference/configuration-help.html", folders: []string{".bzr"}},
	{name: "pijul", source: "https://docs.rs/crate/pijul/1.0.0-beta.22/source/src/commands/hooks.rs", folders: []string{".pijul"}, files: []string{"pijul.toml"}},
	// Editors, and what opens a folder in one.
	{name: "visual studio code", source: "https://code.visualstudio.com/docs/editor/workspace-trust", folders: []string{".vscode"}, suffixes: []string{".code-workspace"}},
	{name: "jetbrains", source: "https://www.jetbrains.com/help/idea/project-security.html", folders: []string{".idea", ".run", ".fleet"}},
	{name: "zed", source: "https://zed.dev/docs/configuring-zed", folders: []string{".zed"}},
	{name: "vim", source: "https://vimhelp.org/options.txt.html#%27exrc%27", folders: []string{".vim"}, files: []string{".vimrc", ".exrc", "_vimrc", "_exrc", ".gvimrc"}},
	{name: "neovim", source: "https://neovim.io/doc/user/options.html#'exrc'", folders: []string{".nvim"}, files: []string{".nvimrc", ".nvim.lua", ".lazy.lua"}},
	{name: "emacs", source: "https://www.gnu.org/software/emacs/manual/html_node/emacs/Directory-Variables.html", folders: []string{".emacs.d"}, files: []string{".emacs", ".dir-locals.el", ".dir-locals-2.el"}},
	{name: "dev containers", source: "https://containers.dev/implementors/spec/", folders: []string{".devcontainer"}, files: []string{".devcontainer.json"}},
	{name: "gitpod", source: "https://www.gitpod.io/docs/references/gitpod-yml", files: []string{".gitpod.yml", ".gitpod.dockerfile"}},
	{name: "replit", source: "https://docs.replit.com/replit-app/configuration", files: []string{".replit", "replit.nix"}},
	{name: "codesandbox", source: "https://codesandbox.io/docs/learn/repositories/task", folders: []string{".codesandbox"}},
	{name: "stackblitz", source: "https://developer.stackblitz.com/platform/webcontainers/project-config", files: []string{".stackblitzrc"}},
	{name: "visual studio", source: "https://learn.microsoft.com/en-us/visualstudio/ide/customize-build-and-debug-tasks-in-visual-studio", folders: []string{".vs"}},
	{name: "theia", source: "https://theia-ide.org/docs/user_getting_started/", folders: []string{".theia"}},
	{name: "helix", source: "https://docs.helix-editor.com/configuration.html", folders: []string{".helix"}},
	{name: "sublime text", source: "https://www.sublimetext.com/docs/projects.html", suffixes: []string{".sublime-project"}},
	{name: "idx", source: "https://firebase.google.com/docs/studio/customize-workspace", folders: []string{".idx"}},
	// Shells, debuggers and what they load by themselves.
	{name: "bash", source: "https://www.gnu.org/software/bash/manual/html_node/Bash-Startup-Files.html", files: []string{".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases", ".bash_completion", ".profile", ".inputrc"}},
	{name: "zsh", source: "https://zsh.sourceforge.io/Doc/Release/Files.html", files: []string{".zshrc", ".zshenv", ".zprofile", ".zlogin", ".zlogout"}},
	{name: "csh and ksh", source: "https://man7.org/linux/man-pages/man1/ksh.1.html", files: []string{".cshrc", ".tcshrc", ".login", ".kshrc"}},
	{name: "x11", source: "https://www.x.org/releases/current/doc/man/man1/xinit.1.xhtml", files: []string{".xprofile", ".xinitrc", ".xsession", ".xsessionrc"}},
	{name: "systemd and dbus", source: "https://www.freedesktop.org/software/systemd/man/latest/systemd.unit.html", folders: []string{".local", ".config"}},
	{name: "direnv", source: "https://direnv.net/man/direnv.1.html", files: []string{".envrc", ".env"}},
	{name: "dotenv and direnv's dotenv_if_exists", source: "https://github.com/bkeepers/dotenv#customizing-rails", files: []string{
		".env.local", ".env.development", ".env.development.local", ".env.test", ".env.test.local", ".env.staging", ".env.production", ".env.production.local",
	}},
	{name: "autoenv", source: "https://github.com/hyperupcall/autoenv", files: []string{".autoenv.zsh", ".autoenv"}},
	{name: "r", source: "https://stat.ethz.ch/R-manual/R-devel/library/base/html/Startup.html", files: []string{".rprofile", ".renviron"}},
	{name: "iex", source: "https://hexdocs.pm/iex/IEx.html", files: []string{".iex.exs"}},
	{name: "ghci", source: "https://downloads.haskell.org/ghc/latest/docs/users_guide/ghci.html", files: []string{".ghci"}},
	{name: "irb and pry", source: "https://docs.ruby-lang.org/en/master/IRB.html", files: []string{".irbrc", ".pryrc"}},
	{name: "rspec", source: "https://rspec.info/documentation/3.13/rspec-core/", files: []string{".rspec", ".rspec-local"}},
	{name: "asdf and mise", source: "https://mise.jdx.dev/configuration.html", folders: []string{".mise", "mise", ".mise-tasks", "mise-tasks"}, files: []string{".tool-versions", ".mise.toml", "mise.toml", ".mise.local.toml", "mise.local.toml", ".rtx.toml"}},
	{name: "gdb", source: "https://sourceware.org/gdb/current/onlinedocs/gdb.html/Init-File-in-the-Current-Directory.html", files: []string{".gdbinit", ".gdbearlyinit"}},
	{name: "lldb", source: "https://lldb.llvm.org/man/lldb.html#configuration-files", files: []string{".lldbinit"}},
	{name: "pdb", source: "https://docs.python.org/3/library/pdb.html#debugger-commands", files: []string{".pdbrc"}},
	{name: "perl debugger", source: "https://perldoc.perl.org/perldebug#Debugger-Customization", files: []string{".perldb"}},
	{name: "ocaml", source: "https://ocaml.org/manual/toplevel.html", files: []string{".ocamlinit"}},
	{name: "octave", source: "https://docs.octave.org/latest/Startup-Files.html", files: []string{".octaverc"}},
	// Older versions execute those of the current folder.
	{name: "ipython", source: "https://nvd.nist.gov/vuln/detail/CVE-2022-21699", files: []string{"ipython_config.py", "ipython_kernel_config.py"}},
	{name: "jupyter", source: "https://nvd.nist.gov/vuln/detail/CVE-2022-39286", files: []string{"jupyter_config.py", "jupyter_notebook_config.py", "jupyter_server_config.py", "jupyter_lab_config.py"}},
	{name: "ansible", source: "https://docs.ansible.com/ansible/latest/reference_appendices/config.html", files: []string{"ansible.cfg"}},
	{name: "latexmk", source: "https://manpages.ubuntu.com/manpages/jammy/man1/latexmk.1.html", files: []string{"latexmkrc", ".latexmkrc"}},
	{name: "curl and wget", source: "https://curl.se/docs/manpage.html#-K", files: []string{".curlrc", ".wgetrc", ".netrc"}},
	// Package managers and build tools, besides what a build executes: see buildTools.
	{name: "npm", source: "https://docs.npmjs.com/cli/configuring-npm/npmrc", files: []string{".npmrc", ".yarnrc", ".yarnrc.yml", ".pnpmfile.cjs", ".pnpmfile.mjs"}},
	{name: "pip", source: "https://packaging.python.org/en/latest/specifications/pypirc/", files: []string{".pypirc", ".pip.conf", "pip.conf"}},
	{name: "cargo", source: "https://doc.rust-lang.org/cargo/reference/config.html", folders: []string{".cargo"}},
	{name: "bundler", source: "https://bundler.io/man/bundle-config.1.html", folders: []string{".bundle"}},
	{name: "maven", source: "https://maven.apache.org/configure.html", folders: []string{".mvn"}},
	{name: "gradle", source: "https://docs.gradle.org/current/userguide/init_scripts.html", folders: []string{".gradle"}, files: []string{"init.gradle", "init.gradle.kts"}},
	{name: "bazel", source: "https://bazel.build/run/bazelrc", files: []string{".bazelrc", ".bazelversion", ".bazeliskrc"}},
	{name: "nix and devbox", source: "https://nix.dev/manual/nix/latest/command-ref/new-cli/nix3-flake", files: []string{"flake.nix", "shell.nix", "default.nix", "devbox.json", "devenv.nix", "devenv.yaml"}},
	{name: "goreleaser", source: "https://goreleaser.com/customization/", files: []string{".goreleaser.yml", ".goreleaser.yaml", "goreleaser.yml", "goreleaser.yaml"}},
	// Credentials of tools, which name programs too.
	{name: "ssh", source: "https://man.openbsd.org/ssh_config", folders: []string{".ssh"}},
	{name: "gnupg", source: "https://www.gnupg.org/documentation/manuals/gnupg/GPG-Configuration.html", folders: []string{".gnupg"}},
	{name: "aws", source: "https://docs.aws.amazon.com/cli/latest/userguide/cli-configure-sourcing-external.html", folders: []string{".aws"}},
	{name: "kubectl", source: "https://kubernetes.io/docs/reference/access-authn-authz/authentication/#client-go-credential-plugins", folders: []string{".kube"}},
	{name: "docker", source: "https://docs.docker.com/reference/cli/docker/login/#credential-helpers", folders: []string{".docker"}},
	// Forges and CI services.
	{name: "github", source: "https://docs.github.com/en/actions/writing-workflows/about-workflows", folders: []string{".github"}, files: []string{"codeowners"}},
	{name: "gitlab", source: "https://docs.gitlab.com/ci/yaml/", folders: []string{".gitlab"}, files: []string{".gitlab-ci.yml"}},
	{name: "gitea and forgejo", source: "https://docs.gitea.com/usage/actions/overview", folders: []string{".gitea", ".forgejo"}},
	{name: "circleci", source: "https://circleci.com/docs/configuration-reference/", folders: []string{".circleci"}},
	{name: "buildkite", source: "https://buildkite.com/docs/pipelines/configure/defining-steps", folders: []string{".buildkite"}},
	{name: "woodpecker", source: "https://woodpecker-ci.org/docs/usage/workflow-syntax", folders: []string{".woodpecker"}, files: []string{".woodpecker.yml", ".woodpecker.yaml"}},
	{name: "drone", source: "https://docs.drone.io/pipeline/overview/", folders: []string{".drone"}, files: []string{".drone.yml", ".drone.yaml", ".drone.star", ".drone.jsonnet"}},
	{name: "semaphore", source: "https://docs.semaphoreci.com/reference/pipeline-yaml", folders: []string{".semaphore"}},
	{name: "teamcity", source: "https://www.jetbrains.com/help/teamcity/kotlin-dsl.html", folders: []string{".teamcity"}},
	{name: "azure pipelines", source: "https://learn.microsoft.com/en-us/azure/devops/pipelines/yaml-schema/", folders: []string{".azure-pipelines"}, files: []string{"azure-pipelines.yml", "azure-pipelines.yaml"}},
	{name: "tekton", source: "https://pipelinesascode.com/docs/guide/authoringprs/", folders: []string{".tekton"}},
	{name: "sourcehut", source: "https://man.sr.ht/builds.sr.ht/manifest.md", folders: []string{".builds"}, files: []string{".build.yml"}},
	{name: "jenkins", source: "https://www.jenkins.io/doc/book/pipeline/jenkinsfile/", files: []string{"jenkinsfile"}},
	{name: "travis", source: "https://docs.travis-ci.com/user/customizing-the-build/", files: []string{".travis.yml"}},
	{name: "bitbucket", source: "https://support.atlassian.com/bitbucket-cloud/docs/bitbucket-pipelines-configuration-reference/", files: []string{"bitbucket-pipelines.yml"}},
	{name: "appveyor", source: "https://www.appveyor.com/docs/appveyor-yml/", files: []string{"appveyor.yml", ".appveyor.yml"}},
	{name: "cirrus", source: "https://cirrus-ci.org/guide/writing-tasks/", files: []string{".cirrus.yml", ".cirrus.star"}},
	{name: "codebuild", source: "https://docs.aws.amazon.com/codebuild/latest/userguide/build-spec-ref.html", files: []string{"buildspec.yml", "buildspec.yaml"}},
	{name: "cloud build", source: "https://cloud.google.com/build/docs/build-config-file-schema", files: []string{"cloudbuild.yaml", "cloudbuild.yml", "cloudbuild.json"}},
	{name: "netlify", source: "https://docs.netlify.com/build/configure-builds/file-based-configuration/", files: []string{"netlify.toml"}},
	{name: "vercel", source: "https://vercel.com/docs/project-configuration", files: []string{"vercel.json"}},
	{name: "render", source: "https://render.com/docs/blueprint-spec", files: []string{"render.yaml"}},
	{name: "amplify", source: "https://docs.aws.amazon.com/amplify/latest/userguide/yml-specification-syntax.html", files: []string{"amplify.yml"}},
	{name: "read the docs", source: "https://docs.readthedocs.com/platform/stable/config-file/v2.html", files: []string{".readthedocs.yaml", ".readthedocs.yml", "readthedocs.yml", "readthedocs.yaml"}},
	{name: "codefresh", source: "https://codefresh.io/docs/docs/pipelines/what-is-the-codefresh-yaml/", files: []string{"codefresh.yml"}},
	{name: "vela", source: "https://go-vela.github.io/docs/reference/yaml/", files: []string{".vela.yml", ".vela.yaml"}},
	{name: "onedev", source: "https://docs.onedev.io/concepts", files: []string{".onedev-buildspec.yml"}},
	{name: "renovate", source: "https://docs.renovatebot.com/configuration-options/", files: []string{"renovate.json", "renovate.json5", ".renovaterc", ".renovaterc.json", ".renovaterc.json5"}},
	{name: "coderabbit", source: "https://docs.coderabbit.ai/reference/configuration", files: []string{".coderabbit.yaml"}},
	{name: "wercker", source: "https://docs.oracle.com/en-us/iaas/wercker/", files: []string{"wercker.yml"}},
	{name: "bitrise", source: "https://docs.bitrise.io/en/bitrise-ci/references/configuration-yaml-reference.html", files: []string{"bitrise.yml"}},
	{name: "codemagic", source: "https://docs.codemagic.io/yaml-basic-configuration/yaml-getting-started/", files: []string{"codemagic.yaml"}},
	{name: "screwdriver", source: "https://docs.screwdriver.cd/user-guide/configuration/", files: []string{"screwdriver.yaml"}},
	{name: "zuul", source: "https://zuul-ci.org/docs/zuul/latest/project-config.html", folders: []string{".zuul.d", "zuul.d"}, files: []string{".zuul.yaml", "zuul.yaml"}},
	// Coding agents: their instructions, and what they start.
	{name: "mcp", source: "https://modelcontextprotocol.io/docs/develop/connect-local-servers", files: []string{".mcp.json", "mcp.json"}},
	{name: "claude code", source: "https://code.claude.com/docs/en/settings", folders: []string{".claude"}, files: []string{"claude.md", "claude.local.md"}},
	{name: "cursor", source: "https://cursor.com/docs/context/rules", folders: []string{".cursor"}, files: []string{".cursorrules"}},
	{name: "codex and others", source: "https://agents.md", folders: []string{".codex", ".agents"}, files: []string{"agents.md", "agents.override.md", "agent.md"}},
	{name: "gemini cli", source: "https://geminicli.com/docs/cli/gemini-md/", folders: []string{".gemini"}, files: []string{"gemini.md"}},
	{name: "qwen code", source: "https://qwenlm.github.io/qwen-code-docs/", folders: []string{".qwen"}, files: []string{"qwen.md"}},
	{name: "aider", source: "https://aider.chat/docs/config/aider_conf.html", folders: []string{".aider"}, files: []string{".aider.conf.yml"}},
	{name: "windsurf", source: "https://docs.windsurf.com/windsurf/cascade/memories", folders: []string{".windsurf"}, files: []string{".windsurfrules"}},
	{name: "cline", source: "https://docs.cline.bot/features/cline-rules", folders: []string{".clinerules"}, files: []string{".clinerules"}},
	{name: "roo code", source: "https://docs.roocode.com/features/custom-instructions", folders: []string{".roo"}, files: []string{".roorules", ".roomodes"}},
	{name: "continue", source: "https://docs.continue.dev/customize/rules", folders: []string{".continue"}},
	{name: "kiro", source: "https://kiro.dev/docs/steering/", folders: []string{".kiro"}},
	{name: "junie", source: "https://www.jetbrains.com/help/junie/customize-guidelines.html", folders: []string{".junie"}},
	{name: "augment", source: "https://docs.augmentcode.com/setup-augment/guidelines", folders: []string{".augment"}},
	{name: "amazon q", source: "https://docs.aws.amazon.com/amazonq/latest/qdeveloper-ug/context-project-rules.html", folders: []string{".amazonq"}},
	{name: "opencode", source: "https://opencode.ai/docs/config/", folders: []string{".opencode"}, files: []string{"opencode.json", "opencode.jsonc"}},
	{name: "trae", source: "https://docs.trae.ai/ide/rules", folders: []string{".trae"}},
	{name: "goose", source: "https://block.github.io/goose/docs/guides/context-engineering/using-goosehints", files: []string{".goosehints"}},
	{name: "zed agent", source: "https://zed.dev/docs/ai/rules", files: []string{".rules"}},
	{name: "crush", source: "https://github.com/charmbracelet/crush#configuration", files: []string{"crush.md", ".crush.json", "crush.json"}},
	{name: "openhands", source: "https://docs.openhands.dev/usage/prompting/repository", folders: []string{".openhands"}},
	{name: "kilo code", source: "https://kilocode.ai/docs/advanced-usage/custom-instructions", folders: []string{".kilocode"}, files: []string{".kilocoderules"}},
	{name: "warp", source: "https://docs.warp.dev/knowledge-and-collaboration/rules", files: []string{"warp.md"}},
}

// buildTools are the programs that code/verify starts. Source code is not listed:
// tests, build scripts and macros of a project run whatever they are written to do.
// go is there without files: neither "go build" nor "go vet" runs code of the
// project, and code/verify keeps go.mod and go.work from choosing the toolchain.
var buildTools = []tool{
	{name: "go"},
	{name: "make", files: []string{"makefile", "gnumakefile"}, suffixes: []string{".mk"}},
	{
		// And .npmrc, above. The configurations are programs that scripts, hooks and editors load.
		name: "npm", folders: []string{"node_modules"}, files: []string{
			"package.json", "eslint.config.js", "eslint.config.mjs", "eslint.config.cjs", "eslint.config.ts", ".eslintrc.js", ".eslintrc.cjs", ".prettierrc.js", ".prettierrc.cjs",
			".prettierrc.mjs", "prettier.config.js", "prettier.config.cjs", "prettier.config.mjs", ".lintstagedrc.js", ".lintstagedrc.cjs", ".lintstagedrc.mjs", "lint-staged.config.js",
		},
	},
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
	return slices.ContainsFunc(steered, func(t tool) bool { return t.obeys(parts) })
}

// MakesRepository reports whether a file in the folder root is in a git directory, or makes a
// folder one: git takes any folder with HEAD, objects and refs for a repository, also without the
// name .git, and obeys the settings in it. name is the path of the file with links resolved.
func MakesRepository(root, name string) bool {
	plain := plainParts(name)
	dir := root
	for i, part := range strings.Split(path.Clean(strings.ReplaceAll(name, `\`, "/")), "/") {
		has := func(child string) bool {
			_, err := os.Lstat(filepath.Join(dir, child))
			return err == nil || plain[i] == strings.ToLower(child)
		}
		if has("HEAD") && (has("objects") && has("refs") || has("commondir")) {
			return true
		}
		dir = filepath.Join(dir, part)
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
	return slices.ContainsFunc(buildTools, func(t tool) bool { return t.obeys(parts) })
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
