package ticket

import (
	"context"
	"encoding/json"

	"github.com/sentinel-runtime/sentinel/host/command"
	tickets "github.com/sentinel-runtime/sentinel/host/ticket"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// maxRows bounds the rows of one call, which are one transaction.
const maxRows = 500

type importIn struct {
	Rows  []json.RawMessage `json:"rows,omitempty" jsonschema:"rows of tickets: columns by name; at most 500 rows in a call"`
	Files []json.RawMessage `json:"files,omitempty" jsonschema:"rows of changed files: ticket_id, file_path, change_type"`
}

type importOut struct {
	Imported []tickets.Imported `json:"imported" jsonschema:"in the order of the rows, then of the files"`
	Refused  []refused          `json:"refused" jsonschema:"rows that were not imported"`
}

type refused struct {
	Row    int    `json:"row" jsonschema:"its number in the list, from 0"`
	File   bool   `json:"file,omitempty" jsonschema:"in the list of files"`
	Reason string `json:"reason"`
}

func (f family) importRows(ctx context.Context, call *command.Call, in importIn) (importOut, error) {
	out := importOut{Imported: []tickets.Imported{}, Refused: []refused{}}
	tx, err := begin(call)
	if err == nil {
		err = people(call)
	}
	if err == nil && len(in.Rows)+len(in.Files) > maxRows {
		err = &abi.Error{Code: abi.BadFields, Permanent: true, Field: "rows", Message: "rows: at most 500 in a call"}
	}
	if err != nil {
		return out, err
	}
	keep := func(n int, file bool, one tickets.Imported, err error) error {
		switch abi.CodeOf(err) {
		case "":
			out.Imported = append(out.Imported, one)
		case abi.BadFields, abi.Conflict, abi.NotFound:
			out.Refused = append(out.Refused, refused{n, file, err.Error()})
		default:
			return err
		}
		return nil
	}
	for n, row := range in.Rows {
		one, err := f.s.Import(ctx, tx, call.Who(), person(call), row)
		if err := keep(n, false, one, err); err != nil {
			return out, err
		}
	}
	for n, row := range in.Files {
		one, err := f.s.ImportFile(ctx, tx, row)
		if err := keep(n, true, one, err); err != nil {
			return out, err
		}
	}
	return out, nil
}
