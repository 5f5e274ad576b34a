// Package gitexec runs git without letting a repository name programs to run.
//
// Git runs programs that the configuration of a repository names: hooks, filters,
// pagers, helpers. The [Settings] take those away that a setting can
// take away; a caller that works in a repository of another user looks for the rest.
// Of the environment of the host git gets only what is listed.
package gitexec

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sentinel-runtime/sentinel/host/internal/pipes"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// Literal makes a pathspec that matches one path: brackets and stars in it match
// themselves. --literal-pathspecs would do the same for all, and leave no way to
// exclude a path.
const Literal = ":(literal)"

const (
	MaxOut = 4 << 20  // bytes of output that are read; the rest is thrown away
	maxErr = 32 << 10 // the same of messages
	// patience is how long a git may take to end once its context has.
	patience = 1500 * time.Millisecond
)

// A Runner starts git. It may be used by several goroutines.
type Runner struct {
	Program string                  // path of git; see [LookPath]
	MaxOut  int                     // bytes of output that are read, default 4 MiB
	Out     io.Writer               // gets the output in place of [Answer.Out]; default none
	Hold    func(bytes int64) error // counts the bytes of the output that are held; its error ends git. Default none
	Env     []string                // further variables, NAME=VALUE: for what must not be among the arguments, which all users see
}

// LookPath finds git in the absolute folders of PATH, so that no file of a
// workspace is taken for it.
func LookPath() string {
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		if !filepath.IsAbs(dir) {
			continue
		}
		if full, err := exec.LookPath(filepath.Join(dir, "git")); err == nil {
			return full
		}
	}
	return ""
}

// NoRepository is a variable for a git that needs none: the settings of a repository around its folder
// do not count, by which requests and credentials may go to another server.
const NoRepository = "GIT_DIR=" + os.DevNull

// passed are the variables of the host that git gets: what it needs to find
// the person's configuration and agent. GIT_DIR and its like stay behind.
var passed = []string{
	"HOME", "XDG_CONFIG_HOME", "USER", "LOGNAME", "TMPDIR", "SSH_AUTH_SOCK", "SSH_AGENT_PID",
	"GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM", "GIT_ATTR_NOSYSTEM",
	"GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL",
	"HTTPS_PROXY", "https_proxy", "NO_PROXY", "no_proxy", "SSL_CERT_FILE", "SSL_CERT_DIR",
	"SystemRoot", "USERPROFILE", "APPDATA", "LOCALAPPDATA", "TEMP", "TMP", "ComSpec", "PATHEXT",
}

// environment is built again for each git: nothing of the host's own but what is
// listed, messages in English because [causes] reads them, no questions asked.
func environment(sshCommand string) []string {
	var path []string
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		if filepath.IsAbs(dir) {
			path = append(path, dir)
		}
	}
	if sshCommand == "" {
		sshCommand = "ssh -oBatchMode=yes"
	}
	env := []string{
		"PATH=" + strings.Join(path, string(os.PathListSeparator)), "LC_ALL=C", "GIT_TERMINAL_PROMPT=0",
		"GIT_ASKPASS=false", "SSH_ASKPASS=false", "GIT_EDITOR=false", "GIT_SEQUENCE_EDITOR=false", "GIT_PAGER=cat", "PAGER=cat",
		"GIT_SSH_COMMAND=" + sshCommand, "GIT_ALLOW_PROTOCOL=file:https:ssh", "GIT_NO_LAZY_FETCH=1", "GIT_OPTIONAL_LOCKS=0",
		"GIT_NO_REPLACE_OBJECTS=1", "GIT_MERGE_AUTOEDIT=no", "GIT_PROTOCOL_FROM_USER=1",
	}
	for _, name := range passed {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	return env
}

// An Answer is what one git gave.
type Answer struct {
	Out, Err string
	Code     int
	Cut      bool // Out is not whole
}

// Exec runs git in dir, with sshCommand instead of ssh if it is not empty. A nonzero exit code is not an error; a git that did not exit by itself is.
// A git that runs for a second is ended with the error denied if a file that it reads in dir is a pipe.
func (g *Runner) Exec(ctx context.Context, dir, sshCommand, stdin string, args ...string) (Answer, error) {
	return g.ExecFrom(ctx, dir, sshCommand, strings.NewReader(stdin), args...)
}

// ExecFrom is [Runner.Exec] with an input that is not in memory. An error of stdin ends the
// input of git, which then fails or not; the caller knows it.
func (g *Runner) ExecFrom(ctx context.Context, dir, sshCommand string, stdin io.Reader, args ...string) (Answer, error) {
	full := []string{"--no-pager", "--no-replace-objects"}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	blocked := make(chan error, 1)
	defer watchPipes(ctx, dir, blocked, cancel)()
	cmd := exec.CommandContext(ctx, g.Program, slices.Concat(full, arguments(), args)...)
	cmd.Dir, cmd.Env, cmd.Stdin = dir, append(environment(sshCommand), g.Env...), stdin
	out, messages := &capped{max: cmp.Or(g.MaxOut, MaxOut), hold: g.Hold}, &capped{max: maxErr}
	streams := []io.Writer{out, messages}
	if g.Out != nil {
		streams[0] = g.Out
	}
	cmd.WaitDelay = patience + time.Second/2 // for the goroutine that writes stdin
	done := bindLifetime(cmd)
	end := begin()
	err, copied := run(cmd, streams)
	end()
	done()
	a := Answer{Out: out.String(), Err: messages.String(), Cut: out.over}
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil && len(blocked) > 0:
		return a, <-blocked
	case ctx.Err() != nil:
		return a, fmt.Errorf("git %s: %w", args[0], ctx.Err())
	case copied != nil:
		return a, fmt.Errorf("git %s: %w", args[0], copied)
	case errors.As(err, &exit):
		a.Code = exit.ExitCode()
	case err != nil && !errors.Is(err, exec.ErrWaitDelay):
		return a, fmt.Errorf("git %s: %w", args[0], err)
	}
	return a, nil
}

// run executes a command and copies its output to streams. copied is an error of that, err one of
// the command.
func run(cmd *exec.Cmd, streams []io.Writer) (err, copied error) {
	var readers, writers []*os.File
	defer func() { closeAll(readers) }()
	for range streams {
		r, w, err := os.Pipe()
		if err != nil {
			closeAll(writers)
			return err, nil
		}
		readers, writers = append(readers, r), append(writers, w)
	}
	cmd.Stdout, cmd.Stderr = writers[0], writers[1]
	err = cmd.Start()
	closeAll(writers)
	if err != nil {
		return err, nil
	}
	var copies sync.WaitGroup
	errs := make([]error, len(streams))
	for i, r := range readers {
		copies.Go(func() {
			errs[i] = pipes.Copy(r, func(p []byte) error {
				_, err := streams[i].Write(p)
				return err
			})
			if errs[i] != nil {
				_ = r.Close() // git does not wait for a reader
			}
		})
	}
	err = cmd.Wait()
	for _, r := range readers {
		pipes.End(r, patience)
	}
	copies.Wait()
	return err, errors.Join(errs...)
}

func closeAll(files []*os.File) {
	for _, f := range files {
		_ = f.Close()
	}
}

// Service is the value of --upload-pack for a repository on this machine: a git without the programs
// that the repository names. kind is upload-pack, settings are further ones. See [Runner.ReceivePack].
func (g *Runner) Service(kind string, settings ...string) string {
	words := append([]string{g.Program}, arguments()...)
	for _, o := range settings {
		words = append(words, "-c", o)
	}
	for i, w := range words {
		words[i] = Quote(w)
	}
	return strings.Join(append(words, kind), " ")
}

// ReceivePack is the value of --receive-pack for repositories at absolute paths on this machine, as
// [Runner.Service] is. The hooks that their own settings name are off. settings are further ones.
func (g *Runner) ReceivePack(ctx context.Context, paths []string, settings ...string) (string, error) {
	for _, path := range paths {
		for _, suffix := range []string{"/.git", "", ".git/.git", ".git"} { // where receive-pack looks
			if _, err := os.Lstat(path + suffix); errors.Is(err, os.ErrNotExist) {
				continue
			}
			hooks, err := g.hooks(ctx, path+suffix)
			if err != nil {
				return "", err
			}
			for _, name := range hooks {
				if strings.Contains(name, "=") { // the name of a setting ends there
					return "", &abi.Error{Code: abi.Denied, Permanent: true, Message: fmt.Sprintf("git: repository %s has the setting %s.command, which names a program to run", path, name), Hint: "remove the setting"}
				}
				settings = append(settings, name+".enabled=false")
			}
		}
	}
	return g.Service("receive-pack", settings...), nil
}

// hooks returns the hooks that the settings of a git directory name, as hook.NAME.
func (g *Runner) hooks(ctx context.Context, dir string) (names []string, err error) {
	plain := &Runner{Program: g.Program} // the variables are of another repository
	a, err := plain.Exec(ctx, string(filepath.Separator), "", "", append([]string{"--git-dir=" + dir}, ListConfig...)...)
	if err != nil {
		return nil, err
	}
	if a.Cut {
		return nil, Fatal("config", a)
	}
	for e := range Config(a.Out) {
		if e.OfRepository() && hookKey.MatchString(e.Key) {
			names = append(names, e.Name[:strings.LastIndexByte(e.Name, '.')])
		}
	}
	return slices.Compact(names), nil
}

// capped keeps the first max bytes and takes the rest without keeping it.
type capped struct {
	bytes.Buffer
	max  int
	hold func(bytes int64) error // nil: the bytes are not counted
	over bool
}

// Write does not fail at max, so that git is not stopped by a full buffer.
func (c *capped) Write(p []byte) (int, error) {
	if c.hold != nil {
		if err := c.hold(int64(min(c.max, c.Len()+len(p)))); err != nil {
			return 0, err
		}
	}
	if room := c.max - c.Len(); len(p) > room {
		c.over = true
		c.Buffer.Write(p[:max(room, 0)])
	} else {
		c.Buffer.Write(p)
	}
	return len(p), nil
}

// WithoutIndex returns a patch without the lines that name the contents of its files before and after. They are hashes
// of all of a file: where the patch is shown without a secret, they would confirm each guess of it.
func WithoutIndex(patch string) string {
	var out strings.Builder
	for line := range strings.Lines(patch) { // those of files begin with a blank or a sign
		if !strings.HasPrefix(line, "index ") {
			out.WriteString(line)
		}
	}
	return out.String()
}
