package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

// ErrNoOwner is returned by [Owner] when no process answers for a state folder.
var ErrNoOwner = errors.New("no process answers for the store")

// maxInfo bounds the response of [Owner], in bytes: the ids of its runs are most of it.
const maxInfo = 16 << 20

// dialTimeout bounds a connection attempt, and [Owner]. An
// owner that is alive answers both at once.
const dialTimeout = 2 * time.Second

// Transport returns a transport that connects to the control socket in the
// folder state, whichever host a request names.
func Transport(state string) *http.Transport {
	return &http.Transport{
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
	}
}

// Owner describes the process that has the store in the folder state open. It returns
// [ErrNoOwner] if no process answers, also when a dead process left its socket file
// behind.
func Owner(ctx context.Context, state string) (Info, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	info, err := owner(ctx, state)
	if err != nil {
		return Info{}, fmt.Errorf("%w in %q: %w", ErrNoOwner, state, err)
	}
	return info, nil
}

func owner(ctx context.Context, state string) (info Info, err error) {
	transport := Transport(state)
	defer transport.CloseIdleConnections()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://sentinel/v1/owner", nil)
	if err != nil {
		return info, err
	}
	res, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		return info, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return info, fmt.Errorf("status %s", res.Status)
	}
	return info, json.NewDecoder(io.LimitReader(res.Body, maxInfo)).Decode(&info)
}
