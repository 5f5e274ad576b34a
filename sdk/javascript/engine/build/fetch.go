package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/sentinel-runtime/sentinel/sdk/javascript"
)

// The source: Debian's copy of the release, with the digest in its signed index.
// Licence: MIT.
const (
	release = "trixie"
	version = "2025.04.26"
	debian  = version + "-1"
	tarball = "quickjs_" + version + ".orig.tar.xz"
	digest  = "ec81da5b3249ed648dbc7df4a1654988910e66a118d9b71cb63534216efcfbbe"
	keyring = "/usr/share/keyrings/debian-archive-keyring.gpg"
)

// errNoSource is returned if the source package cannot be downloaded.
var errNoSource = errors.New("the source package cannot be had")

// fetch returns the folder with the unpacked source.
func fetch() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, "sentinel", "quickjs")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	archive := filepath.Join(dir, tarball)
	packed, err := os.ReadFile(archive)
	if os.IsNotExist(err) {
		if err := download(dir); err != nil {
			err = fmt.Errorf("%w: %w", errNoSource, err)
			return "", err
		}
		packed, err = os.ReadFile(archive)
	}
	if err != nil {
		return "", err
	}
	if got := javascript.Digest(packed); got != "sha256:"+digest {
		return "", fmt.Errorf("fetch %q: digest %s, want sha256:%s; delete it to fetch it again", archive, got, digest)
	}
	// Unpacked again each time, because existing files have not been verified.
	source := filepath.Join(dir, "source")
	if err := os.RemoveAll(source); err != nil {
		return "", err
	}
	if err := os.Mkdir(source, 0o700); err != nil {
		return "", err
	}
	return source, start(dir, "tar", "-xJf", archive, "-C", source, "--strip-components=1")
}

// download downloads the source package with apt-get, with separate package lists, so that
// those of the machine do not change. It uses the mirror of the machine.
func download(dir string) error {
	mirror, err := mirrorOf()
	if err != nil {
		return err
	}
	lists := filepath.Join(dir, "lists")
	if err := os.MkdirAll(filepath.Join(lists, "partial"), 0o700); err != nil {
		return err
	}
	list := filepath.Join(dir, "sources.list")
	line := fmt.Sprintf("deb-src [signed-by=%s] %s %s main\n", keyring, mirror, release)
	if err := os.WriteFile(list, []byte(line), 0o600); err != nil {
		return err
	}
	options := []string{
		"-o", "Dir::Etc::sourcelist=" + list, "-o", "Dir::Etc::sourceparts=-", "-o", "Dir::State::lists=" + lists,
		"-o", "Dir::Cache=" + filepath.Join(dir, "cache"), "-o", "APT::Sandbox::User=",
	}
	if err := start(dir, "apt-get", append(options, "update")...); err != nil {
		return err
	}
	return start(dir, "apt-get", append(options, "source", "--download-only", "quickjs="+debian)...)
}

// mirrorOf returns the Debian mirror of this machine.
func mirrorOf() (string, error) {
	out, err := exec.Command("apt-get", "indextargets", "--format", "$(ORIGIN) $(REPO_URI)", "Created-By: Packages").Output()
	if err != nil {
		return "", fmt.Errorf("apt-get indextargets: %w", err)
	}
	for line := range strings.Lines(string(out)) {
		origin, uri, _ := strings.Cut(strings.TrimSpace(line), " ")
		if origin == "Debian" && !strings.Contains(uri, "security") {
			return uri, nil
		}
	}
	return "", errors.New("find Debian's mirror: apt-get knows none; run apt-get update first")
}

// start runs a program in dir; the error has its output.
func start(dir, program string, args ...string) error {
	cmd := exec.Command(program, args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", program, err, out)
	}
	return nil
}
