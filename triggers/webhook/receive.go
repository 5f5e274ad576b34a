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

// maxKey limits idempotency keys and event attributes, in bytes.
const maxKey = 512

// keyHeaders are the headers with the id of a delivery, by precedence.
var keyHeaders = []string{"Idempotency-Key", "webhook-id", "X-GitHub-Delivery"}

// badRequest returns the error for a bad request of an authenticated sender. It is
// shown to the sender and contains nothing of the body.
func badRequest(format string, args ...any) error {
	return abi.New(abi.BadFields, fmt.Sprintf(format, args...))
}

// Receive checks a request and returns its firings: one, or one for each event of
// a batch. It authenticates first, so an unauthenticated sender reaches no decoder
// and learns nothing of the trigger's options.
func (a *armed) Receive(r triggers.Request) ([]triggers.Firing, error) {
	if len(r.Body) > triggers.MaxBody {
		return nil, abi.New(abi.Limit, fmt.Sprintf("body has %d bytes, more than %d", len(r.Body), triggers.MaxBody))
	}
	p, err := a.authenticate(r)
	if err != nil {
		return nil, err
	}
	if !slices.Contains(a.opt.Methods, r.Method) {
		return nil, badRequest("method %.10q is not accepted; want %s", r.Method, strings.Join(a.opt.Methods, ", "))
	}
	if isPing(r) {
		return nil, nil
	}
	key, err := a.key(r, p.id)
	if err != nil {
		return nil, err
	}
	if r.Body, err = decodeContent(r); err != nil {
		return nil, err
	}
	fires, err := a.fires(r, key)
	if p.replay != "" && a.opt.replayFor > 0 {
		for i := range fires { // an event of a batch is identified by its index
			fires[i].Replay, fires[i].ReplayFor = fmt.Sprintf("hmac-sha256:%s:%d", p.replay, i), a.opt.replayFor
		}
	}
	return fires, err
}

// isPing reports whether an authenticated request is the one that GitHub sends when a webhook is set
// up: it reports no event.
func isPing(r triggers.Request) bool {
	name, err := header(r, "X-GitHub-Event")
	return err == nil && name == "ping"
}

// fires reads the events of an authenticated request. key is the idempotency key
// of the request, "" without one.
func (a *armed) fires(r triggers.Request, key string) ([]triggers.Firing, error) {
	// The content type identifies batch and structured mode. In binary mode it is
	// that of the data, so headers identify this mode, and are checked last.
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
		fires := make([]triggers.Firing, len(list))
		for i, e := range list {
			fires[i] = a.cloudFire(e, "") // each event needs its own key
		}
		return fires, nil
	case media.is(mediaEvent):
		e, err := decodeEvent(r.Body)
		if err != nil {
			return nil, err
		}
		return []triggers.Firing{a.cloudFire(e, key)}, nil
	case strings.HasPrefix(media.name, "application/cloudevents"):
		// Another format must not be accepted as plain content.
		return nil, badRequest("unsupported CloudEvents format %q: want JSON", media.name)
	case isBinary(r):
		e, err := readBinary(r, media)
		if err != nil {
			return nil, err
		}
		return []triggers.Firing{a.cloudFire(e, key)}, nil
	}
	fire, err := a.plain(r, media, key)
	if err != nil {
		return nil, err
	}
	return []triggers.Firing{fire}, nil
}

// key returns the idempotency key of a request, "" without one. A signed id takes
// precedence over unsigned headers, because a replayed request cannot change it.
func (a *armed) key(r triggers.Request, signedID string) (string, error) {
	headers := keyHeaders
	switch {
	case signedID != "":
		headers = []string{"webhook-id"}
	case a.opt.IdempotencyHeader != "":
		headers = []string{a.opt.IdempotencyHeader}
	}
	for _, name := range headers {
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

// plain returns the firing of a request that is not a CloudEvent.
func (a *armed) plain(r triggers.Request, media media, key string) (triggers.Firing, error) {
	name, err := a.name(r)
	if err != nil {
		return triggers.Firing{}, err
	}
	data, err := content(r.Body, media)
	if err != nil {
		return triggers.Firing{}, err
	}
	// No signature covers the query, so it is data only without a signature.
	if signed := a.opt.Auth == AuthHMAC || a.opt.Auth == AuthStandard; data == nil && !signed && len(r.Query) > 0 {
		data = object(r.Query)
	}
	// The event id is derived from the key. Without a key, repeated deliveries
	// cannot be recognized, so the id is random.
	now := a.env.Now().UTC()
	source := "/webhooks/" + string(a.env.Sentinel)
	id := rand.Text()
	if key != "" {
		digest := sha256.Sum256([]byte(source + "\x00" + key))
		id = hex.EncodeToString(digest[:16])
	}
	return triggers.Firing{
		Key: key, At: now, Event: &sentinels.Event{ID: id, Name: name, Source: source, Time: now, Data: data},
	}, nil
}

// name returns the name of the event: option event, and the value of option
// eventHeader.
func (a *armed) name(r triggers.Request) (string, error) {
	if a.opt.EventHeader == "" {
		return a.opt.Event, nil
	}
	// The value is one segment of the name, so that a sender cannot choose a name
	// that unrelated patterns match.
	value, err := header(r, a.opt.EventHeader)
	if err != nil || value == "" {
		return a.opt.Event, err
	}
	name := a.opt.Event + ":" + value
	if len(value) > maxKey || strings.ContainsAny(value, "*: \t") || !sentinels.ValidPattern(name) {
		return "", badRequest("invalid event name in header %s", a.opt.EventHeader)
	}
	return name, nil
}

// cloudFire returns the firing of a CloudEvent. Its source and id are the key if
// key is "".
func (a *armed) cloudFire(e cloudEvent, key string) triggers.Firing {
	// The length prefix makes the concatenation unambiguous.
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
	return triggers.Firing{
		Key: key, At: now, Event: &sentinels.Event{ID: e.id, Name: name, Source: e.source, Subject: e.subject, Time: e.time, Data: e.data},
	}
}

// object returns a form or query as a JSON object. A name given once has a string,
// a repeated name a list.
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

// mustJSON encodes strings, lists and objects of them, which cannot fail.
func mustJSON(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Errorf("encode event data: %w", err))
	}
	return b
}
