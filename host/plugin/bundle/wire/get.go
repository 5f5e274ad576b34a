package wire

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// Get reads what an address has, at most so many bytes. A thing that is not there
// is an error with code not_found; that a server fails is not the same.
func Get(ctx context.Context, client *http.Client, at *url.URL, most int64) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return nil, fmt.Errorf("get %s: %w", Shown(at), Explain(err))
	}
	resp, err := client.Do(r)
	if err != nil {
		return nil, fmt.Errorf("get %s: %w", Shown(at), Explain(err))
	}
	defer resp.Body.Close()
	if err := fault(resp); err != nil {
		return nil, fmt.Errorf("get %s: %w", Shown(at), err)
	}
	tooLarge := abi.New(abi.Limit, fmt.Sprintf("get %s: more than %d bytes", Shown(at), most))
	if resp.ContentLength > most {
		return nil, tooLarge
	}
	// The length that the server reports may be wrong or missing.
	b, err := io.ReadAll(io.LimitReader(resp.Body, most+1))
	if err != nil {
		return nil, fmt.Errorf("get %s: %w", Shown(at), Explain(err))
	}
	if int64(len(b)) > most {
		return nil, tooLarge
	}
	return b, nil
}

// fault is the error of a status, nil for a complete response. Only 404 and 410
// mean that something does not exist: a storage service that answers 403 may hide
// what it has, and a signature that is hidden is not one that does not exist.
func fault(resp *http.Response) error {
	switch {
	case resp.StatusCode == http.StatusOK:
		return nil
	case resp.StatusCode == http.StatusNotFound, resp.StatusCode == http.StatusGone:
		return abi.New(abi.NotFound, "the server has no such file")
	case resp.StatusCode == http.StatusUnauthorized, resp.StatusCode == http.StatusForbidden:
		return abi.New(abi.Denied, "the server answers "+resp.Status)
	case resp.StatusCode == http.StatusTooManyRequests, resp.StatusCode >= 500:
		return abi.New(abi.Unavailable, "the server answers "+resp.Status)
	}
	return abi.New(abi.BadFields, "the server answers "+resp.Status)
}
