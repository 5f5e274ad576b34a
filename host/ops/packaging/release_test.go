package packaging_test

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/bmatcuk/doublestar/v4"
	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
)

// goreleaser is .goreleaser.yaml. A key that is not here is an error, so that a misspelled one is not
// taken for one that is absent.
type goreleaser struct {
	Version     int
	ProjectName string `yaml:"project_name"`
	Before      struct{ Hooks []string }
	Builds      []struct {
		Main, Binary string
		Env          []string
		Flags        []string
		Ldflags      []string
		Goos, Goarch []string
		ModTimestamp string `yaml:"mod_timestamp"`
	}
	Archives []struct {
		Formats      []string
		NameTemplate string `yaml:"name_template"`
		Files        []struct {
			Src  string
			Info struct{ Mtime string }
		}
	}
	Nfpms []struct {
		PackageName      string `yaml:"package_name"`
		FileNameTemplate string `yaml:"file_name_template"`
		Formats          []string
		Vendor           string
		Homepage         string
		Maintainer       string
		Description      string
		License          string
		Section, Mtime   string
		Recommends       []string
		Contents         []struct{ Src, Dst, Packager string }
	}
	Checksum struct {
		NameTemplate string `yaml:"name_template"`
	}
	Sboms []struct{ Artifacts string }
	Signs []struct {
		Cmd, Artifacts, Signature string
		Args                      []string
	}
	Changelog struct{ Disable bool }
	Release   struct{ Draft bool }
}

func releaseConfig(t *testing.T) goreleaser {
	t.Helper()
	var config goreleaser
	d := yaml.NewDecoder(bytes.NewReader(repositoryFile(t, ".goreleaser.yaml")))
	d.KnownFields(true)
	if err := d.Decode(&config); err != nil {
		t.Fatal(err)
	}
	if len(config.Builds) != 1 || len(config.Archives) != 1 || len(config.Nfpms) != 1 || len(config.Before.Hooks) != 1 ||
		len(config.Signs) != 1 {
		t.Fatalf("want one build, kind of archive, kind of package, hook and signature: %+v", config)
	}
	return config
}

func repositoryFile(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestReleaseFiles writes the documents of a release as its hook does, and compares what archives and
// packages have with the folders in which man, the shells and Debian's and Fedora's tools look.
func TestReleaseFiles(t *testing.T) {
	skipOtherBuildFlags(t)
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("bash is not on this machine")
	}
	config := releaseConfig(t)
	script, folder, _ := strings.Cut(config.Before.Hooks[0], " ")
	documents := t.TempDir()
	hook := exec.Command(bash, script, documents)
	hook.Dir = root
	if text, err := hook.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", script, err, text)
	}
	var sources []string // as the configuration names them
	err = filepath.WalkDir(documents, func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		rel, err := filepath.Rel(documents, file)
		sources = append(sources, path.Join(folder, filepath.ToSlash(rel)))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if entry.Type().IsRegular() {
			sources = append(sources, entry.Name())
		}
	}
	named := func(pattern string) (found []string) {
		for _, source := range sources {
			if ok, err := doublestar.Match(pattern, source); err != nil {
				t.Fatalf("%s: %v", pattern, err)
			} else if ok {
				found = append(found, source)
			}
		}
		if len(found) == 0 {
			t.Errorf("no file of the repository or of %s is %s", script, pattern)
		}
		return found
	}

	installed := map[string]string{
		folder + "/completions/sentinel.bash": "/usr/share/bash-completion/completions/sentinel",
		folder + "/completions/sentinel.fish": "/usr/share/fish/vendor_completions.d/sentinel.fish",
		"LICENSE":                             "/usr/share/doc/sentinel/LICENSE",
	}
	for _, source := range sources {
		if page, ok := strings.CutPrefix(source, folder+"/man1/"); ok {
			installed[source] = "/usr/share/man/man1/" + page
		}
	}
	if page := folder + "/man1/sentinel-run.1.gz"; installed[page] == "" {
		t.Errorf("%s does not write %s", script, page)
	}
	functions := map[string]string{"deb": "/usr/share/zsh/vendor-completions/_sentinel", "rpm": "/usr/share/zsh/site-functions/_sentinel"}
	packages := config.Nfpms[0]
	if formats := slices.Sorted(maps.Keys(functions)); !slices.Equal(packages.Formats, formats) {
		t.Errorf("the packages are %q, want %q", packages.Formats, formats)
	}
	for format, zsh := range functions {
		want := maps.Clone(installed)
		want[folder+"/completions/_sentinel"] = zsh
		got := map[string]string{}
		for _, content := range packages.Contents {
			if content.Packager != "" && content.Packager != format {
				continue
			}
			for _, source := range named(content.Src) {
				got[source] = content.Dst
				if strings.HasSuffix(content.Dst, "/") {
					got[source] += path.Base(source)
				}
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("files of the %s (-want +got):\n%s", format, diff)
		}
	}

	archived := map[string]bool{}
	for _, file := range config.Archives[0].Files {
		for _, source := range named(file.Src) {
			archived[source] = true
		}
	}
	for source := range installed {
		if !archived[source] {
			t.Errorf("%s is not in the archive", source)
		}
	}
}

// TestReleaseVersion: the linker ignores a variable that does not exist, and the program would then
// not know its version.
func TestReleaseVersion(t *testing.T) {
	build := releaseConfig(t).Builds[0]
	if build.Binary != "sentinel" || !slices.Contains(build.Env, "CGO_ENABLED=0") {
		t.Errorf("the build makes %q with %q", build.Binary, build.Env)
	}
	if name, _ := declared(t, build.Main); name != "main" {
		t.Errorf("%s is package %q", build.Main, name)
	}
	const module = "github.com/sentinel-runtime/sentinel/"
	for _, file := range []string{".goreleaser.yaml", "Makefile", "Containerfile", ".ci/documents"} {
		flags := regexp.MustCompile(`-X ([^\s=]+)\.(\w+)=(\S+)`).FindAllStringSubmatch(string(repositoryFile(t, file)), -1)
		if len(flags) != 1 {
			t.Errorf("%s sets %q, want one variable", file, flags)
		}
		for _, flag := range flags {
			folder, ok := strings.CutPrefix(flag[1], module)
			if !ok {
				t.Errorf("%s: %s is not of this module", file, flag[1])
				continue
			}
			if _, variables := declared(t, folder); !slices.Contains(variables, flag[2]) {
				t.Errorf("%s: %s has no string variable %s: %q", file, folder, flag[2], variables)
			}
		}
	}
}

// declared returns the name of the package in a folder of the repository, and its variables that the linker
// can set: those of type string without a value.
func declared(t *testing.T, folder string) (name string, variables []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, folder, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		name = parsed.Name.Name
		for _, decl := range parsed.Decls {
			group, ok := decl.(*ast.GenDecl)
			if !ok || group.Tok != token.VAR {
				continue
			}
			for _, spec := range group.Specs {
				value := spec.(*ast.ValueSpec)
				if kind, ok := value.Type.(*ast.Ident); ok && kind.Name == "string" && value.Values == nil {
					for _, variable := range value.Names {
						variables = append(variables, variable.Name)
					}
				}
			}
		}
	}
	return name, variables
}

// TestReleaseTimes: a release that is built again from its commit has the same archives and packages, so
// no file in them has the time of the checkout or of the build.
func TestReleaseTimes(t *testing.T) {
	config := releaseConfig(t)
	times := map[string]string{"packages": config.Nfpms[0].Mtime}
	for _, file := range config.Archives[0].Files {
		times[file.Src] = file.Info.Mtime
	}
	for what, mtime := range times {
		if mtime != "{{ .CommitDate }}" {
			t.Errorf("the time of %s is %q", what, mtime)
		}
	}
	if mtime := config.Builds[0].ModTimestamp; mtime != "{{ .CommitTimestamp }}" {
		t.Errorf("the time of the program is %q", mtime)
	}
}

// TestReleaseNames: what the pages call the files of a release and its image is what they are called.
func TestReleaseNames(t *testing.T) {
	config := releaseConfig(t)
	_, install, _ := strings.Cut(string(repositoryFile(t, "README.md")), "\n## Install\n")
	install, _, _ = strings.Cut(install, "\n## ")
	build, archive := config.Builds[0], config.Archives[0]
	if len(build.Goos) != 1 || len(build.Goarch) != 1 || len(archive.Formats) != 1 {
		t.Fatalf("the release is for %q on %q, as %q; README names one archive", build.Goos, build.Goarch, archive.Formats)
	}
	name := strings.NewReplacer("{{ .ProjectName }}", config.ProjectName, "{{ .Version }}", "VERSION", "{{ .Os }}", build.Goos[0],
		"{{ .Arch }}", build.Goarch[0]).Replace(archive.NameTemplate) + "." + archive.Formats[0]
	wanted := append([]string{"`" + name + "`"}, config.Nfpms[0].Formats...)

	var workflow struct {
		Jobs map[string]struct {
			Steps []struct {
				Uses string
				With map[string]any
			}
		}
	}
	const release = ".github/workflows/release.yml"
	if err := yaml.Unmarshal(repositoryFile(t, release), &workflow); err != nil {
		t.Fatal(err)
	}
	images := 0
	for _, step := range workflow.Jobs["release"].Steps {
		if !strings.HasPrefix(step.Uses, "docker/build-push-action@") {
			continue
		}
		images++
		image, _, _ := strings.Cut(step.With["tags"].(string), ":")
		wanted = append(wanted, "`"+image+"`")
		if file := step.With["file"]; file != "Containerfile" {
			t.Errorf("the image is built from %v", file)
		}
		argument, _, _ := strings.Cut(step.With["build-args"].(string), "=")
		if !slices.ContainsFunc(all(containerfile(t), "ARG"), func(arg string) bool { return strings.HasPrefix(arg, argument+"=") }) {
			t.Errorf("the Containerfile has no argument %s", argument)
		}
	}
	if images != 1 {
		t.Errorf("%s builds %d images", release, images)
	}
	for _, want := range wanted {
		if !strings.Contains(install, want) {
			t.Errorf("the section Install of README does not name %s", want)
		}
	}

	sums := config.Checksum.NameTemplate
	bundle := strings.ReplaceAll(config.Signs[0].Signature, "${artifact}", sums)
	security := string(repositoryFile(t, "SECURITY.md"))
	for _, want := range []string{
		"--bundle " + bundle + " " + sums + " ",
		"--check --ignore-missing " + sums + "\n",
		"/sentinel/" + release + "@refs/tags/v",
	} {
		if !strings.Contains(security, want) {
			t.Errorf("the section \"Verify a release\" of SECURITY does not have %q", want)
		}
	}
}
