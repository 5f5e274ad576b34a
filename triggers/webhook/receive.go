package webhook

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
	"github.com/sentinel-runtime/sentinel/triggers"
)

// maxKey bounds an idempotency key and what else names an event, in bytes.
const maxKey = 512

// keyHeaders are where callers put the id of a delivery, in the order in which
// they are looked for.
var keyHeaders = []string{"Idempotency-Key", "webhook-id", "X-GitHub-Delivery"}

// badRequest is what a caller gets whose secret is right and whose request is
// not. It may be shown to the caller and repeats nothing of the body.
func badRequest(format string, args ...any) error {
	return abi.New(abi.BadFields, fmt.Sprintf(format, args...))
}

// Receive checks a request and returns what it fires: one event, or those of a
// batch. Nothing of the body is looked at before the caller has proved itself, so
// that strangers reach no decoder.
func (a *armed) Receive(r triggers.Request) ([]triggers.Fire, error) {
	if !slices.Contains(a.opt.Methods, r.Method) {
		return nil, badRequest("method %.10q is not accepted; there is %s", r.Method, strings.Join(a.opt.Methods, ", "))
	}
	if len(r.Body) > triggers.MaxBody {
		return nil, abi.New(abi.Limit, fmt.Sprintf("the body has %d bytes, more than %d", len(r.Body), triggers.MaxBody))
	}
	signed, err := a.authenticate(r)
	if err != nil {
		return nil, err
	}
	key, err := a.key(r, signed)
	if err != nil {
		return nil, err
	}
	// The content type says which form it is; binary mode says so in a header and
	// leaves the type to the data, so it is asked last.
	media, err := mediaOf(r)
	if err != nil {
		return nil, err
	}
	switch {
	case media.is(mediaBatch):
		list, err := decodeBatch(r.Body)
		if err != nil {
			return nil, err
		}
		fires := make([]triggers.Fire, len(list))
		for i, e := range list {
			fires[i] = a.cloudFire(e, "") // a key of the request would make them one
		}
		return fires, nil
	case media.is(mediaEvent):
		e, err := decodeEvent(r.Body)
		if err != nil {
			return nil, err
		}
		return []triggers.Fire{a.cloudFire(e, key)}, nil
	case strings.HasPrefix(media.name, "application/cloudevents"):
		// Taken as plain content it would look as if it had been understood.
		return nil, badRequest("CloudEvents in the format %q are not understood; there is JSON", media.name)
	case isBinary(r):
		e, err := readBinary(r, media)
		if err != nil {
			return nil, err
		}
		return []triggers.Fire{a.cloudFire(e, key)}, nil
	}
	fire, err := a.plain(r, media, key)
	if err != nil {
		return nil, err
	}
	return []triggers.Fire{fire}, nil
}

// key is the caller's name for the delivery, "" if it gave none. An id that was
// signed goes before headers that were not: who replays a request cannot change
// it.
func (a *armed) key(r triggers.Request, signed string) (string, error) {
	look := keyHeaders
	switch {
	case signed != "":
		look = []string{"webhook-id"}
	case a.opt.IdempotencyHeader != "":
		look = []string{a.opt.IdempotencyHeader}
	}
	for _, name := range look {
		value, err := header(r, name)
		if err != nil {
			return "", err
		}
		if len(value) > maxKey {
			return "", badRequest("header %s has %d bytes, more than %d", name, len(value), maxKey)
		}
		if value != "" {
			return strings.ToLower(name) + ":" + value, nil
		}
	}
	return "", nil
}

// plain makes the event of a request that is no CloudEvent.
func (a *armed) plain(r triggers.Request, media media, key string) (triggers.Fire, error) {
	name, err := a.name(r)
	if err != nil {
		return triggers.Fire{}, err
	}
	data, err := content(r.Body, media)
	if err != nil {
		return triggers.Fire{}, err
	}
	// Nobody signs a query, so it counts only where nothing is signed.
	if signed := a.opt.Auth == AuthHMAC || a.opt.Auth == AuthStandard; data == nil && !signed && len(r.Query) > 0 {
		data = object(r.Query)
	}
	// The id is as good as the key: without one there is nothing that two
	// deliveries of the same could have in common.
	now := a.env.Now().UTC()
	source := "/webhooks/" + string(a.env.Sentinel)
	id := rand.Text()
	if key != "" { // a repeated delivery is the same event
		digest := sha256.Sum256([]byte(source + "\x00" + key))
		id = hex.EncodeToString(digest[:16])
	}
	return triggers.Fire{
		Key: key, At: now, Event: &sentinels.Event{ID: id, Name: name, Source: source, Time: now, Data: data},
	}, nil
}

// name is what the event is called: as the author says, and what a header of the
// service adds.
func (a *armed) name(r triggers.Request) (string, error) {
	if a.opt.EventHeader == "" {
		return a.opt.Event, nil
	}
	// The value becomes one segment, so that a caller cannot give the event a name
	// that other patterns wait for.
	value, err := header(r, a.opt.EventHeader)
	if err != nil || value == "" {
		return a.opt.Event, err
	}
	name := a.opt.Event + ":" + value
	if len(value) > maxKey || strings.ContainsAny(value, "*: \t") || !sentinels.ValidPattern(name) {
		return "", badRequest("header %s is no name of an event", a.opt.EventHeader)
	}
	return name, nil
}

// cloudFire makes the fire of a CloudEvent, which brings its own identity.
func (a *armed) cloudFire(e cloudEvent, key string) triggers.Fire {
	// Ids are unique within their source; the length keeps the two apart.
	if key == "" {
		key = fmt.Sprintf("cloudevent:%d:%s%s", len(e.source), e.source, e.id)
	}
	name := e.kind
	if !a.opt.eventIsDefault {
		name = a.opt.Event
	}
	now := a.env.Now().UTC()
	if e.time.IsZero() {
		e.time = now
	}
	return triggers.Fire{
		Key: key, At: now, Event: &sentinels.Event{ID: e.id, Name: name, Source: e.source, Subject: e.subject, Time: e.time, Data: e.data},
	}
}

// object makes an object of a form or a query: a text where a name stands once,
// a list where it stands more often. Which it is, the caller decides.
func object(values map[string][]string) json.RawMessage {
	o := make(map[string]any, len(values))
	for name, list := range values {
		if len(list) == 1 {
			o[name] = list[0]
		} else {
			o[name] = list
		}
	}
	return mustJSON(o)
}

// mustJSON encodes what is made of strings, lists and objects, which cannot
// fail.
func mustJSON(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Errorf("encode event data: %w", err))
	}
	return b
}
