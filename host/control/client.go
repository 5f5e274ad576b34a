package control

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"path/filepath"
	"time"

	"github.com/sentinel-runtime/sentinel/host/internal/httpproblem"
	"github.com/sentinel-runtime/sentinel/internal/regularfile"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// ErrNoOwner is returned by [Owner] when no process answers for a state folder.
var ErrNoOwner = errors.New("no process answers for the store")

// maxInfo bounds the response of [Owner], in bytes: the ids of its runs are most of it.
const maxInfo = 16 << 20

// dialTimeout bounds a connection attempt, and [Owner]. An
// owner that is alive answers both at once.
const dialTimeout = 2 * time.Second

// A RoundTripper sends requests to a control socket, with the token of its state folder.
//
// # Concurrency
//
// Safe for concurrent use.
type RoundTripper struct {
	*http.Transport
	state string
}

// Transport returns a transport that connects to the control socket in the
// folder state, whichever host a request names. It reads the token of the folder for
// each request, because it may be replaced at any time.
func Transport(state string) *RoundTripper {
	return &RoundTripper{state: state, Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			address, release, err := socketAddress(state)
			if err != nil {
				return nil, err
			}
			defer release()
			d := net.Dialer{Timeout: dialTimeout}
			return d.DialContext(ctx, "unix", address)
		},
		MaxIdleConnsPerHost: 2,
		IdleConnTimeout:     time.Minute,
	}}
}

// RoundTrip implements [http.RoundTripper].
func (t *RoundTripper) RoundTrip(r *http.Request) (*http.Response, error) {
	name := filepath.Join(t.state, tokenName)
	token, err := regularfile.Read(name, 4<<10)
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // without a file the answer is that of the owner
		if r.Body != nil {
			defer r.Body.Close()
		}
		conn, dialErr := t.DialContext(r.Context(), "", "")
		if dialErr != nil {
			return nil, dialErr // no process listens, so no token is needed
		}
		return nil, errors.Join(&abi.Error{Code: abi.Denied, Permanent: true,
			Message: fmt.Sprintf("the process that has the store wants the token of the state folder, which cannot be read: %v", err),
			Hint:    fmt.Sprintf("run this as the user of that process; if that is who you are, make the file readable to you alone: chmod 600 %q", name)}, conn.Close())
	}
	if err == nil {
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "Bearer "+string(bytes.TrimSpace(token)))
	}
	return t.Transport.RoundTrip(r)
}

// tokenName is the file of the token in the state folder, that of package api.
const tokenName = "token"

// Owner describes the process that has the store in the folder state open. It returns
// [ErrNoOwner] if no process answers, also when a dead process left its socket file
// behind. That a process answers and refuses the caller is an *[abi.Error].
func Owner(ctx context.Context, state string) (Info, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	info, err := owner(ctx, state)
	switch {
	case abi.As(err) != nil:
		return Info{}, err
	case err != nil:
		return Info{}, fmt.Errorf("%w in %q: %w", ErrNoOwner, state, err)
	}
	return info, nil
}

func owner(ctx context.Context, state string) (info Info, err error) {
	transport := Transport(state)
	defer transport.CloseIdleConnections()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://sentinel"+OwnerPath, nil)
	if err != nil {
		return info, err
	}
	res, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		return info, err
	}
	defer res.Body.Close()
	if res.StatusCode == http.StatusUnauthorized {
		text, err := io.ReadAll(io.LimitReader(res.Body, maxInfo))
		return info, errors.Join(httpproblem.Read("the process that has the store", res.StatusCode, res.Header.Get("Content-Type"), text), err)
	}
	if res.StatusCode != http.StatusOK {
		return info, fmt.Errorf("status %s", res.Status)
	}
	return info, json.NewDecoder(io.LimitReader(res.Body, maxInfo)).Decode(&info)
}
