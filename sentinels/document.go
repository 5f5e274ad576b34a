package sentinels

import (
	"encoding/json"
	"time"
)

// A Document is one JSON value in a collection of the store. Revision counts
// its writes, from 1.
type Document struct {
	Collection string          `json:"collection"`
	ID         string          `json:"id"`
	Revision   uint64          `json:"revision"`
	CreatedAt  time.Time       `json:"createdAt"`
	UpdatedAt  time.Time       `json:"updatedAt"`
	Data       json.RawMessage `json:"data"`
}

// AnyRevision as an expected revision matches every revision, also none.
const AnyRevision = ^uint64(0)
