package host

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// keyAge is how long a key is bound to its request. Behind it, the key may be used again.
const keyAge = 30 * 24 * time.Hour

// keysOfAgent is how many keys of an agent, or of all models, are kept. Those of persons are not counted.
const keysOfAgent = 10_000

// usedKeys is the collection of keys that callers used. The dot keeps data/* out of it.
const usedKeys = "command.keys"

// usedKey is a document of the collection. Its id is a digest of principal, command and key.
type usedKey struct {
	Params map[string]string `json:"params"`          // digests
	Owner  string            `json:"owner,omitempty"` // the agent or models that it counts for
}

// keyCounts is the collection of the numbers of keys by owner.
const keyCounts = "command.keyCounts"

type keyCount struct {
	Keys int `json:"keys"`
}

// byUse has the keys in the order of their first use.
var byUse = &runtime.DocumentIndex{Collection: usedKeys, Name: "use", Version: 1, Values: func(d sentinels.Document) [][]any {
	return [][]any{{d.CreatedAt}}
}}

// byOwner has the keys of each agent, and of models, in the order of their first use.
var byOwner = &runtime.DocumentIndex{Collection: usedKeys, Name: "owner", Version: 1, Values: func(d sentinels.Document) [][]any {
	var u usedKey
	if json.Unmarshal(d.Data, &u) != nil || u.Owner == "" {
		return nil
	}
	return [][]any{{u.Owner, d.CreatedAt}}
}}

// keyring is the store as the memory of keys.
type keyring Host

var _ command.Keyring = (*keyring)(nil)

// Use implements [command.Keyring]. For a command that writes in the store it writes in the
// transaction of the command; for others it is durable before they begin.
func (k *keyring) Use(ctx context.Context, call *command.Call, key string, params map[string]string) (func(error), error) {
	sum := sha256.Sum256([]byte(string(call.By) + "\x00" + call.As + "\x00" + call.Command + "\x00" + key))
	u := keyUse{id: hex.EncodeToString(sum[:]), owner: call.Share(), most: keysOfAgent, command: call.Command, key: key, params: params}
	if own, ok := call.Records.(records); ok {
		_, err := useKey(ctx, own.DocumentTx, time.Now(), u)
		return func(error) {}, err
	}
	fresh := false
	err := k.rt.Documents().Update(ctx, func(tx *runtime.DocumentTx) (err error) {
		fresh, err = useKey(ctx, tx, time.Now(), u)
		return err
	})
	return func(err error) {
		if fresh && refused(err) {
			(*Host)(k).forgetKey(context.WithoutCancel(ctx), u.id)
		}
	}, err
}

// refused reports whether a call with this error certainly did nothing that its repetition
// would have to find.
func refused(err error) bool {
	switch abi.CodeOf(err) {
	case abi.BadFields, abi.Denied, abi.NotFound, abi.Conflict, abi.Limit:
		return true
	}
	return false
}

func (h *Host) forgetKey(ctx context.Context, id string) {
	err := h.rt.Documents().Update(ctx, func(tx *runtime.DocumentTx) error {
		doc, err := tx.Get(ctx, usedKeys, id)
		if err != nil {
			return err
		}
		return dropKey(ctx, tx, doc)
	})
	if err != nil && abi.CodeOf(err) != abi.NotFound {
		h.opt.Logger.Warn("the idempotency key of a refused request stays bound to it", "error", err)
	}
}

// A keyUse is the use of a key by a call.
type keyUse struct {
	id, command, key string
	owner            string // the agent or models that it counts for, "" for a person
	most             int    // keys of an owner
	params           map[string]string
}

// useKey binds a key to its parameters, or compares them with those it is bound to. Each new
// key removes up to two that are too old, so that their number stays in proportion, and of an owner with
// too many the oldest.
func useKey(ctx context.Context, tx *runtime.DocumentTx, now time.Time, u keyUse) (fresh bool, err error) {
	doc, err := tx.Get(ctx, usedKeys, u.id)
	switch {
	case err == nil && now.Sub(doc.CreatedAt) <= keyAge:
		var before usedKey
		if err := json.Unmarshal(doc.Data, &before); err != nil {
			return false, fmt.Errorf("read the use of an idempotency key: %w", err)
		}
		return false, before.compare(u.command, u.key, u.params, doc.CreatedAt)
	case err == nil:
		err = dropKey(ctx, tx, doc)
	case abi.CodeOf(err) == abi.NotFound:
		err = nil
	}
	if err != nil {
		return false, err
	}
	if err := dropKeys(ctx, tx, byUse, runtime.DocumentRange{To: []any{now.Add(-keyAge)}, Limit: 2}); err != nil {
		return false, err
	}
	if u.owner != "" {
		kept, err := countKeys(ctx, tx, u.owner, 1)
		if err == nil && kept > u.most {
			err = dropKeys(ctx, tx, byOwner, runtime.DocumentRange{Equal: []any{u.owner}, Limit: kept - u.most})
		}
		if err != nil {
			return false, err
		}
	}
	text, err := json.Marshal(usedKey{u.params, u.owner})
	if err != nil {
		return false, err
	}
	_, err = tx.Put(ctx, usedKeys, u.id, text, 0)
	return true, err
}

// dropKeys removes the first keys of a range.
func dropKeys(ctx context.Context, tx *runtime.DocumentTx, x *runtime.DocumentIndex, r runtime.DocumentRange) error {
	var old []sentinels.Document
	err := tx.ScanIndex(ctx, x, r, func(_ string, d sentinels.Document) bool {
		old = append(old, d)
		return true
	})
	for _, d := range old {
		if err == nil {
			err = dropKey(ctx, tx, d)
		}
	}
	return err
}

// dropKey removes a key, also from the number of its owner.
func dropKey(ctx context.Context, tx *runtime.DocumentTx, d sentinels.Document) error {
	var u usedKey
	if err := json.Unmarshal(d.Data, &u); err != nil {
		return fmt.Errorf("read the use of an idempotency key: %w", err)
	}
	if u.Owner != "" {
		if _, err := countKeys(ctx, tx, u.Owner, -1); err != nil {
			return err
		}
	}
	return tx.Delete(ctx, usedKeys, d.ID, sentinels.AnyRevision)
}

// countKeys adds to the number of keys of an owner, and returns it.
func countKeys(ctx context.Context, tx *runtime.DocumentTx, owner string, more int) (int, error) {
	var n keyCount
	doc, err := tx.Get(ctx, keyCounts, owner)
	switch {
	case err == nil:
		err = json.Unmarshal(doc.Data, &n)
	case abi.CodeOf(err) == abi.NotFound:
		err = nil
	}
	if err != nil {
		return 0, fmt.Errorf("count the idempotency keys of %s: %w", owner, err)
	}
	n.Keys += more
	text, err := json.Marshal(n)
	if err == nil {
		_, err = tx.Put(ctx, keyCounts, owner, text, sentinels.AnyRevision)
	}
	return n.Keys, err
}

// compare returns the error of a key that was used for another request.
func (u usedKey) compare(name, key string, params map[string]string, at time.Time) error {
	all := maps.Clone(u.Params)
	maps.Copy(all, params)
	var differ []string
	for _, p := range slices.Sorted(maps.Keys(all)) {
		if u.Params[p] != params[p] {
			differ = append(differ, p)
		}
	}
	if len(differ) == 0 {
		return nil
	}
	return &abi.Error{
		Code: abi.Conflict, Permanent: true,
		Message: fmt.Sprintf("call %q: idempotency key %q was used on %s for a %s with another value of %s",
			name, key, at.UTC().Format(time.RFC3339), name, strings.Join(differ, ", ")),
		Hint: "choose another key for another request, or repeat the first request unchanged to get its result",
	}
}
