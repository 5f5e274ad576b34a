package memory

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// Limits of one memory.
const (
	maxText = 64 << 10
	maxKey  = 200
	maxTags = 20
)

type storeIn struct {
	Text       string   `json:"text" jsonschema:"what to remember, at most 64 KiB"`
	Key        string   `json:"key,omitempty" jsonschema:"name of the memory; one with the same key is replaced"`
	Tags       []string `json:"tags,omitempty" jsonschema:"words to find it by"`
	SentinelID string   `json:"sentinelId,omitempty" jsonschema:"whose memory it is; the caller's sentinel if not given"`
}

type storeOut struct {
	ID      string `json:"id" jsonschema:"id of the document in the collection memory"`
	Created bool   `json:"created" jsonschema:"false if it replaces one, or an earlier attempt of this call has stored it"`
}

// store replaces the memory with the same key. Without a key, each call makes one; a later
// attempt of the same call finds it.
func store(ctx context.Context, call *command.Call, in storeIn) (out storeOut, err error) {
	if err := in.check(call.Command); err != nil {
		return out, err
	}
	owner, err := ownerOf(call, in.SentinelID)
	if err != nil {
		return out, err
	}
	if owner == "" {
		return out, &abi.Error{Code: abi.BadFields, Permanent: true, Field: "sentinelId", Message: call.Command + ": sentinelId is missing", Hint: "give the sentinel that is to remember it"}
	}
	if err := records(call); err != nil {
		return out, err
	}
	tags := slices.Clone(in.Tags)
	slices.Sort(tags)
	m := memory{owner, in.Key, in.Text, slices.Compact(tags), call.Who()}
	out.ID = idOf(owner, in.Key, call.Key)
	old, err := call.Records.Get(ctx, Collection, out.ID)
	switch {
	case abi.CodeOf(err) == abi.NotFound:
		out.Created = true
	case err != nil:
		return out, err
	default:
		var before memory
		if err := json.Unmarshal(old.Data, &before); err != nil {
			before = memory{} // a document that data/create made
		}
		if same := m; reflect.DeepEqual(before, same.by(before.By)) {
			return out, nil
		}
		if outsider(call) && !before.byAgent() {
			return out, &abi.Error{Code: abi.Denied, Permanent: true, Field: "key",
				Message: fmt.Sprintf("%s: the memory %.80q of sentinel %q is by %s: an agent does not replace it", call.Command, in.Key, owner, cmp.Or(before.By, "a person")),
				Hint:    "store it with another key"}
		}
	}
	text, err := json.Marshal(m)
	if err != nil {
		return out, err
	}
	_, err = call.Records.Put(ctx, Collection, out.ID, text, sentinels.AnyRevision)
	return out, err
}

// by returns the memory as another author would have stored it.
func (m memory) by(author string) memory {
	m.By = author
	return m
}

// outsider reports whether an agent calls, or a definition of its own. A definition of a person that an agent started
// stores what the person wrote in it.
func outsider(call *command.Call) bool {
	return call.By == command.ByAgent || call.Within != nil && call.ForAgent()
}

func (in storeIn) check(op string) error {
	bad := func(field, format string, args ...any) error {
		return &abi.Error{Code: abi.BadFields, Permanent: true, Field: field, Message: op + ": " + field + ": " + fmt.Sprintf(format, args...)}
	}
	switch {
	case strings.TrimSpace(in.Text) == "":
		return bad("text", "is empty")
	case len(in.Text) > maxText:
		return bad("text", "has %d bytes, want at most %d", len(in.Text), maxText)
	case len(in.Key) > maxKey:
		return bad("key", "has %d bytes, want at most %d", len(in.Key), maxKey)
	case len(in.Tags) > maxTags:
		return bad("tags", "are %d, want at most %d", len(in.Tags), maxTags)
	}
	for _, tag := range in.Tags {
		if tag == "" || len(tag) > maxKey {
			return bad("tags", "%.80q: want 1 to %d bytes", tag, maxKey)
		}
	}
	return nil
}

// idOf returns the id of a memory: from its key, or without one from the key of the call,
// which is the same for every attempt.
func idOf(owner, key, callKey string) string {
	switch {
	case key != "":
		return "m-" + digest("key\x00"+owner+"\x00"+key)
	case callKey != "":
		return "m-" + digest("call\x00"+callKey)
	}
	return "m-" + strings.ToLower(rand.Text())
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:13])
}
