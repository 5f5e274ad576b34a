package client

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"time"

	"github.com/sentinel-runtime/sentinel/sentinels"
)

// A Sentinel is a line of the list of sentinels.
type Sentinel struct {
	ID                sentinels.ID     `json:"sentinelId"`
	Name              string           `json:"name"`
	Description       string           `json:"description,omitempty"`
	Revision          int              `json:"revision"`
	Steps             int              `json:"steps"`
	Loop              string           `json:"loop"`
	Tags              []string         `json:"tags,omitempty"`
	CreatedBy         string           `json:"createdBy,omitempty"`
	Status            sentinels.Status `json:"status"` // of the newest run; idle without one that is on
	RunCount          int              `json:"runCount"`
	LastRunAt         time.Time        `json:"lastRunAt,omitzero"`
	AverageDurationMs int64            `json:"averageDurationMs,omitempty"`
	Problem           string           `json:"problem,omitempty"` // why it cannot be started
}

// A Revision is one state of a definition. Definition is empty where only its
// place in the list is known.
type Revision struct {
	SentinelID sentinels.ID    `json:"sentinelId"`
	Name       string          `json:"name,omitempty"`
	Revision   int             `json:"revision"`
	Hash       string          `json:"hash,omitempty"`
	Definition json.RawMessage `json:"definition,omitempty"`
}

// Sentinels lists what is defined.
func (c *Client) Sentinels(ctx context.Context) ([]Sentinel, error) {
	var all []Sentinel
	query := url.Values{}
	for {
		var page struct {
			Sentinels []Sentinel
			Next      string
		}
		if err := c.do(ctx, request{path: []string{"v1", "sentinels"}, query: query}, &page); err != nil {
			return nil, err
		}
		all = append(all, page.Sentinels...)
		if page.Next == "" {
			return all, nil
		}
		query.Set("after", page.Next)
	}
}

// Create defines a sentinel. One with its id is the error conflict.
func (c *Client) Create(ctx context.Context, definition json.RawMessage) (Revision, error) {
	var out Revision
	err := c.do(ctx, request{method: http.MethodPost, path: []string{"v1", "sentinels"}, body: definition}, &out)
	return out, err
}

// Sentinel returns the newest definition of a sentinel.
func (c *Client) Sentinel(ctx context.Context, id sentinels.ID) (Revision, error) {
	var out Revision
	err := c.do(ctx, request{path: []string{"v1", "sentinels", string(id)}}, &out)
	return out, err
}

// Update replaces a definition. revision is the one the edit was made on, and
// another one by now is the error conflict; 0 overwrites whatever is there.
func (c *Client) Update(ctx context.Context, id sentinels.ID, revision int, definition json.RawMessage) (Revision, error) {
	var out Revision
	err := c.do(ctx, request{method: http.MethodPut, path: []string{"v1", "sentinels", string(id)}, body: definition, revision: &revision}, &out)
	return out, err
}

// Delete deletes a definition as of a revision, or as it is with 0. Its runs go
// on.
func (c *Client) Delete(ctx context.Context, id sentinels.ID, revision int) error {
	return c.do(ctx, request{method: http.MethodDelete, path: []string{"v1", "sentinels", string(id)}, revision: &revision}, nil)
}

// UpdateStep changes parameters of the step at an address; those not named
// stay. revision is as for [Client.Update].
func (c *Client) UpdateStep(ctx context.Context, id sentinels.ID, address string, revision int, params json.RawMessage) (Revision, error) {
	var out Revision
	err := c.do(ctx, request{
		method: http.MethodPatch, path: []string{"v1", "sentinels", string(id), "steps", address}, body: params, revision: &revision,
	}, &out)
	return out, err
}
