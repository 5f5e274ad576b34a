package step

import (
	"bytes"
	"encoding/json"
	"sync"

	"github.com/sentinel-runtime/sentinel/runtime/external"
	"github.com/sentinel-runtime/sentinel/sentinels/reference"
)

// shapes caches the decoded schemas of command parameters, because decoding takes
// longer than resolving the parameters.
//
// # Concurrency
//
// Safe for concurrent use. It has at most one entry for each command name.
type shapes struct {
	mu     sync.Mutex
	byName map[string]commandShape
}

type commandShape struct {
	schema json.RawMessage
	shape  *reference.Shape
}

// of returns the shape of a command's parameters, nil for one that takes any.
// A schema that changed, as a reconnected tool server's may, is read again.
func (s *shapes) of(info external.CommandInfo) (*reference.Shape, error) {
	if len(info.Input) == 0 {
		return nil, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	known, ok := s.byName[info.Name]
	if ok && bytes.Equal(known.schema, info.Input) { // one comparison of pointers where nothing changed
		return known.shape, nil
	}
	shape, err := reference.NewShape(info.Input)
	if err != nil {
		return nil, err
	}
	if s.byName == nil {
		s.byName = map[string]commandShape{}
	}
	s.byName[info.Name] = commandShape{info.Input, shape}
	return shape, nil
}
