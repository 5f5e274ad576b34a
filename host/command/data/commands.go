package data

import (
	"context"
	"encoding/json"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// Options say what the collections are beside plain documents.
type Options struct {
	// Definitions serve the collection "sentinels". Default nil: it is empty.
	Definitions Definitions
	// Separate are collections of which models and agents see parts only, by the commands that
	// the hint names. Persons use them here too.
	Separate map[string]string
	// Owned are the collections that other commands keep, each with a hint at
	// those commands ("ticket": "use ticket/update"). They can be read here but
	// not written, so that the rules of their owner hold. Default none.
	Owned map[string]string
}

// Definitions are the sentinels a host knows, as documents: ID is the slug,
// Revision that of the definition, Data the definition with its uniqueId. Both
// methods are safe for concurrent use.
type Definitions interface {
	// Definition returns the one whose slug or id this is, or not_found.
	Definition(ctx context.Context, id string) (sentinels.Document, error)
	// Definitions returns all of them.
	Definitions(ctx context.Context) ([]sentinels.Document, error)
}

// Limits of one document and of one answer, in bytes of JSON.
const (
	maxDocument = 1 << 20
	maxPage     = 4 << 20
)

// family is what the commands share. It holds no state: whatever is kept is in
// the records of the call.
type family struct{ opt Options }

// Commands returns the family data/*.
func Commands(opt Options) []command.Command {
	f := family{opt}
	read := command.Options{Effect: command.Reads, Idempotent: true, InStore: true}
	return []command.Command{
		command.New("data/create", "Create a document in a collection.",
			command.Options{Effect: command.Changes, Idempotent: true, InStore: true}, f.create),
		command.New("data/read", "Read one document, by its id or as the only match of a filter.", read, f.read),
		// Not idempotent: another caller may have changed the document between two
		// attempts, and a merge would then undo that change.
		command.New("data/update", "Change fields of a document, or replace it.",
			command.Options{Effect: command.Changes, InStore: true}, f.update),
		command.New("data/delete", "Delete a document.",
			command.Options{Effect: command.Changes, Idempotent: true, InStore: true}, f.delete),
		command.New("data/list", "List the documents of a collection, page by page.", read, f.list),
	}
}

// one is the result of the commands that answer with a document.
type one struct {
	Document sentinels.Document `json:"document"`
}

// separate refuses collections of which the caller sees parts only by other commands.
func (f family) separate(call *command.Call, collection string) error {
	hint, is := f.opt.Separate[collection]
	if !is || !call.Held() {
		return nil
	}
	return &abi.Error{Code: abi.Denied, Permanent: true, Field: "collection", Hint: hint,
		Message: call.Command + ": models and agents use the collection \"" + collection + "\" by its own commands only"}
}

// writable refuses collections that this family only shows: a write past their
// owner would skip its checks, such as the states a ticket may take.
func (f family) writable(call *command.Call, collection string) error {
	if err := f.separate(call, collection); err != nil {
		return err
	}
	hint, owned := f.opt.Owned[collection]
	if collection == definitions {
		hint, owned = "use the sentinel commands", true
	}
	if owned {
		return &abi.Error{
			Code: abi.Denied, Permanent: true, Field: "collection", Hint: hint,
			Message: call.Command + ": collection \"" + collection + "\" can only be read here",
		}
	}
	return records(call)
}

// records refuses a call that came without the store: a fault of the host.
func records(call *command.Call) error {
	if call.Records == nil {
		return abi.New(abi.Internal, call.Command+": the call has no records")
	}
	return nil
}

// encode writes an object and holds it to the size limit. Keys are sorted, so
// equal data is equal text.
func encode(call *command.Call, data map[string]json.RawMessage) (json.RawMessage, error) {
	text, err := json.Marshal(data)
	if err != nil {
		return nil, &abi.Error{Code: abi.BadFields, Permanent: true, Field: "data", Message: call.Command + ": " + err.Error()}
	}
	if len(text) > maxDocument {
		return nil, &abi.Error{
			Code: abi.Limit, Permanent: true, Field: "data",
			Message: call.Command + ": document is larger than 1 MiB", Hint: "write it to a file and keep its path here",
		}
	}
	return text, nil
}
