package envfile_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/host/internal/envfile"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

func write(t *testing.T, text string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, ".env"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestRead(t *testing.T) {
	dir := write(t, "# comment\n\nexport PORT=8080\nURL=http://localhost:${PORT}/x#y # where\nSINGLE='$PORT #'\nKEY=\"-----BEGIN\nsecond line\"\nEMPTY=\nSPACED = a b\n")
	got, err := envfile.Read(dir, ".env", nil)
	want := map[string]string{"PORT": "8080", "URL": "http://localhost:8080/x#y", "SINGLE": "$PORT #", "KEY": "-----BEGIN\nsecond line", "EMPTY": "", "SPACED": "a b"}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if again, err := envfile.Read("/nowhere", filepath.Join(dir, ".env"), nil); err != nil || len(again) != len(want) {
		t.Errorf("absolute: %v, %v", again, err)
	}
}

// TestDollars: a $ is one, but for ${NAME} of a variable that a line before sets.
func TestDollars(t *testing.T) {
	dir := write(t, "A=one\nB=$HOME/x\nC=\"$HOME/x\"\nD=cost$5\nE=\"p$5q\"\nF=${HOME:-def}\nG='$A ${A}'\nH=\"${A}/$A\"\nI=${LATER}\nLATER=x\nJ=\"\\$A\"\nK=$$(id)\nL=${L}x\nM=\"\\\"${A}\\\"\" N=${M}\n")
	got, err := envfile.Read(dir, ".env", nil)
	want := map[string]string{
		"A": "one", "B": "$HOME/x", "C": "$HOME/x", "D": "cost$5", "E": "p$5q", "F": "${HOME:-def}", "G": "$A ${A}", "H": "one/$A", "I": "${LATER}", "LATER": "x", "J": "$A", "K": "$$(id)", "L": "${L}x", "M": `"one"`, "N": `"one"`,
	}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

// TestMistakes checks that errors say where a mistake is, and nothing that the file contains.
func TestMistakes(t *testing.T) {
	for text, want := range map[string]string{
		"A=1\nB=2\nhunter2 hunter2\nC=3\n": "from line 3 on",
		"A=1\nB=\"hunter2\n\nC=3\n":        "from line 2 on",
		"=hunter2\n":                       "from line 1 on",
		"A=1\nhunter2.x=1\n":               "from line 2 on",
	} {
		_, err := envfile.Read(write(t, text), ".env", nil)
		if abi.CodeOf(err) != abi.BadFields || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	dir := write(t, strings.Repeat("A=1\n", 1<<19))
	if _, err := envfile.Read(dir, ".env", nil); abi.CodeOf(err) != abi.Limit {
		t.Errorf("large: %v", err)
	}
	for _, path := range []string{"gone", ".", "../gone"} {
		if _, err := envfile.Read(dir, path, nil); abi.CodeOf(err) != abi.NotFound {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// TestSteering: variables by which programs execute other code are refused, and no others.
func TestSteering(t *testing.T) {
	for _, name := range []string{
		"HOME", "XDG_CONFIG_HOME", "ZDOTDIR", "GOFLAGS", "GOENV", "MAKEFLAGS", "GNUMAKEFLAGS", "MAKEFILES", "TAR_OPTIONS", "RUSTC_WRAPPER", "CARGO_HOME", "CC", "CXX",
		"EDITOR", "PAGER", "LESSOPEN", "_JAVA_OPTIONS", "MAVEN_OPTS", "CLASSPATH", "npm_config_script_shell", "NPM_CONFIG_USERCONFIG", "YARN_RC_FILENAME", "DOTNET_STARTUP_HOOKS", "PHPRC",
		"LUA_INIT_5_4", "OPENSSL_CONF", "KUBECONFIG", "AWS_CONFIG_FILE", "DOCKER_HOST", "BUNDLE_GEMFILE", "GEM_HOME", "R_PROFILE_USER", "JULIA_LOAD_PATH", "IFS", "CDPATH", "TMPDIR", "SHELL",
		"GOCACHEPROG", "GOAUTH", "JAVA_HOME", "PIP_CONFIG_FILE", "PIP_INDEX_URL", "UV_INDEX_URL", "UV_EXTRA_INDEX_URL", "UV_PYTHON", "CFLAGS", "CGO_CFLAGS", "CGO_LDFLAGS", "PKG_CONFIG", "PKG_CONFIG_PATH",
		"SVN_SSH", "HGRCPATH", "ERL_FLAGS", "ERL_AFLAGS", "ANSIBLE_CONFIG", "VIMINIT", "COREPACK_NPM_REGISTRY",
		"GIT_DIR", "PATH", "BASH_FUNC_x", "NODE_OPTIONS", "LD_PRELOAD",
	} {
		if _, err := envfile.Read(write(t, name+"=x\n"), ".env", nil); abi.CodeOf(err) != abi.Denied {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, name := range []string{"PORT", "DATABASE_URL", "NODE_ENV", "RUST_LOG", "APP_HOME", "AWS_REGION", "DOCKER_BUILDKIT", "GOOGLE_KEY", "R_TOKEN", "ENVIRONMENT", "CCACHE_DIR", "CGO_ENABLED", "UV_PUBLISH_TOKEN", "HGTOKEN", "MYCFLAGS"} {
		if _, err := envfile.Read(write(t, name+"=x\n"), ".env", nil); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestDoubling: the values of a file are bounded with what ${NAME} stands for, before they are made.
func TestDoubling(t *testing.T) {
	doubling := func(lines int, form string) string {
		var b strings.Builder
		fmt.Fprintf(&b, "A=%s\n", strings.Repeat("x", 64))
		for range lines {
			b.WriteString(form)
		}
		return b.String()
	}
	for name, text := range map[string]string{
		"lines":        doubling(60, "A=${A}${A}\n"),
		"one line":     doubling(60, `A="${A}${A}" `),
		"many of one":  "A=" + strings.Repeat("x", 4096) + "\nB=" + strings.Repeat("${A}", 4096) + "\n",
		"many of all":  doubling(20_000, "B=${A}\n"),
		"after quotes": doubling(16_000, "B=${A}\n") + "C='" + strings.Repeat("x", 100_000) + "'\n",
	} {
		_, err := envfile.Read(write(t, text), ".env", nil)
		if abi.CodeOf(err) != abi.Limit || !strings.Contains(err.Error(), "1 MiB together") || !strings.Contains(err.Error(), "from line ") {
			t.Errorf("%s: %v", name, err)
		}
	}
	got, err := envfile.Read(write(t, doubling(12, "A=${A}${A}\n")), ".env", nil)
	if want := 64 << 12; err != nil || len(got["A"]) != want {
		t.Errorf("%d bytes, want %d: %v", len(got["A"]), want, err)
	}
	// A file that has no ${NAME} is never too long for itself.
	if _, err := envfile.Read(write(t, "A='"+strings.Repeat("x", 1<<20-5)+"'\n"), ".env", nil); err != nil {
		t.Error(err)
	}
}

func FuzzRead(f *testing.F) {
	f.Add("A=1\nB=\"x\n\"\n")
	f.Add("A=xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\n" + strings.Repeat(`A="${A}${A}" `, 30))
	f.Fuzz(func(t *testing.T, text string) {
		variables, err := envfile.Read(write(t, text), ".env", nil)
		if err != nil && variables != nil {
			t.Errorf("variables beside %v", err)
		}
		sum := 0
		for _, value := range variables {
			sum += len(value)
		}
		if sum > 1<<20 {
			t.Errorf("%d bytes of values", sum)
		}
	})
}
