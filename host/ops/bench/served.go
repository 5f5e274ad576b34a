package bench

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"github.com/sentinel-runtime/sentinel/host"
	"github.com/sentinel-runtime/sentinel/host/api"
	"github.com/sentinel-runtime/sentinel/host/client"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// patience is how long a server may take for what these rows ask of it, before
// the measurement is given up: a machine may be busy with other things.
const patience = 2 * time.Minute

// connections are what a client keeps open at most. One for each request would
// measure how they are opened.
const connections = 64

// A served is a child process that serves a folder of its own.
type served struct {
	*client.Client
	cmd   *exec.Cmd
	http  *http.Client
	root  string // the project's folder
	url   string
	token string
	took  time.Duration // from the start of the process until it said that it serves
	said  *lastWords
	lines chan logged   // those that a caller waits for
	ended chan struct{} // closed when the process has ended
}

// A logged is a line of the process's log.
type logged struct {
	Msg, URL string
	Resumed  int
}

// project makes a folder that can be served, with guests compiled before: that
// is what every process but the very first finds.
func (b *bench) project() (root string, err error) {
	if root, err = b.folder(); err != nil {
		return "", err
	}
	compiled, err := b.compiled()
	if err != nil {
		return "", err
	}
	cache := filepath.Join(root, "cache", "sentinel", "plugins")
	if err := os.MkdirAll(cache, 0o700); err != nil {
		return "", err
	}
	if err := os.CopyFS(cache, os.DirFS(compiled)); err != nil {
		return "", err
	}
	return root, os.MkdirAll(filepath.Join(root, host.DirName, "sentinels"), 0o755)
}

// compiled returns a folder with compiled guests as the binary keeps it.
func (b *bench) compiled() (string, error) {
	if b.warm == "" {
		dir, err := b.folder()
		if err != nil {
			return "", err
		}
		if err := b.runHello(dir); err != nil {
			return "", err
		}
		b.warm = filepath.Join(dir, "cache", "sentinel", "plugins")
	}
	return b.warm, nil
}

// put writes a definition into the watched folder, in one piece as editors do.
func put(root, name, text string) error {
	file := filepath.Join(root, host.DirName, "sentinels", name+".json")
	if err := os.WriteFile(file+".new", []byte(text), 0o600); err != nil {
		return err
	}
	return os.Rename(file+".new", file)
}

// serveEmpty is serve for a project that has nothing in it.
func (b *bench) serveEmpty() (*served, error) {
	root, err := b.project()
	if err != nil {
		return nil, err
	}
	return b.serve(root)
}

// serve starts a process that serves the project and returns when that says that
// everything is up. The caller kills it.
func (b *bench) serve(root string) (s *served, err error) {
	s = &served{root: root, said: new(lastWords), lines: make(chan logged, 4), ended: make(chan struct{})}
	s.cmd = exec.CommandContext(b.ctx, b.binary(), "serve", filepath.Join(root, host.DirName),
		"--listen", "127.0.0.1:0", "--log-format", "json", "--workspace", root)
	s.cmd.Dir = root
	s.cmd.Env = environ(root)
	out, in, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	s.cmd.Stderr = in
	began := time.Now()
	err = s.cmd.Start()
	_ = in.Close() // the child has its own
	if err != nil {
		_ = out.Close()
		return nil, err
	}
	go func() { // ends with the process, whose end of the pipe is the last
		defer close(s.ended)
		s.listen(out)
		_ = out.Close()
		_ = s.cmd.Wait() // it was killed, or its last words say why
	}()
	defer func() {
		if err != nil {
			s.kill()
		}
	}()
	line, err := s.hear(b.ctx)
	if err != nil {
		return nil, err
	}
	s.url, s.took = line.URL, time.Since(began)
	if s.token, err = api.Token(filepath.Join(root, host.DirName, "state")); err != nil {
		return nil, err
	}
	s.http = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: connections}}
	s.Client, err = client.New(client.Options{URL: s.url, Token: s.token, HTTP: s.http})
	return s, err
}

// listen reads what the process logs, until it ends.
func (s *served) listen(out io.Reader) {
	for in := bufio.NewScanner(out); in.Scan(); {
		s.said.add(in.Bytes())
		var line logged
		if json.Unmarshal(in.Bytes(), &line) == nil && (line.Msg == "serving" || line.Resumed > 0) {
			select {
			case s.lines <- line:
			default: // no receiver waits for it
			}
		}
	}
}

// hear returns the next line that matters: that the process serves, then how many
// runs it resumes, if there are any.
func (s *served) hear(ctx context.Context) (logged, error) {
	select {
	case line := <-s.lines:
		return line, nil
	case <-s.ended:
		return logged{}, fmt.Errorf("the process ended: %s", s.said)
	case <-time.After(patience):
		return logged{}, fmt.Errorf("the process said nothing of it after %s: %s", patience, s.said)
	case <-ctx.Done():
		return logged{}, context.Cause(ctx)
	}
}

// kill ends the process as a crash does, and returns when it has ended.
func (s *served) kill() {
	_ = s.cmd.Process.Kill() // it may have ended by itself
	<-s.ended
	if s.http != nil {
		s.http.CloseIdleConnections()
	}
}

func (s *served) pid() int { return s.cmd.Process.Pid }

// startAll starts n runs of a sentinel, many at once.
func (s *served) startAll(ctx context.Context, id sentinels.ID, n int) ([]sentinels.RunID, error) {
	runs := make([]sentinels.RunID, n)
	errs := make([]error, connections/4)
	next := make(chan int)
	var wg sync.WaitGroup
	for w := range errs {
		wg.Go(func() {
			for i := range next {
				if errs[w] != nil {
					continue // the others are let through, or they would stay in the channel
				}
				runs[i], errs[w] = s.Start(ctx, id, client.StartOptions{})
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	wg.Wait()
	return runs, errors.Join(errs...)
}

// figures reads the metrics of the process, summed over their labels.
func (s *served) figures(ctx context.Context) (map[string]float64, error) {
	body, err := s.get(ctx, "/metrics")
	if err != nil {
		return nil, err
	}
	out := map[string]float64{}
	for line := range bytes.Lines(body) {
		var value float64
		at := bytes.LastIndexByte(line, ' ')
		if at < 0 || line[0] == '#' {
			continue
		}
		if _, err := fmt.Sscan(string(line[at:]), &value); err != nil {
			return nil, fmt.Errorf("read metrics: %q: %w", line, err)
		}
		series := string(line[:at])
		out[series] += value
		if name, _, labelled := bytes.Cut(line[:at], []byte("{")); labelled {
			out[string(name)] += value
		}
	}
	return out, nil
}

// get reads a resource, whole, as any HTTP client would.
func (s *served) get(ctx context.Context, path string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+path, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+s.token)
	res, err := s.http.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("GET %s: %s: %s", path, res.Status, bytes.TrimSpace(body))
	}
	return body, err
}

// until asks again and again until ok holds. It looks seldom enough not to be
// part of what is measured.
func until(ctx context.Context, what string, every time.Duration, ok func() (bool, error)) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); ; {
		if yes, err := ok(); yes || err != nil {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%s: not after %s", what, patience)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// lastWords are the newest lines of a log, for errors.
type lastWords struct {
	mu    sync.Mutex
	lines [][]byte
}

func (l *lastWords) add(line []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, bytes.Clone(line))
	l.lines = l.lines[max(0, len(l.lines)-5):]
}

func (l *lastWords) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return string(bytes.Join(l.lines, []byte("\n")))
}
