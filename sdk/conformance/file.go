package main

import (
	"encoding/base64"
	"unicode/utf8"

	"github.com/sentinel-runtime/sentinel/sdk"
)

// file executes the operation in args.
func file(c *sdk.Context, args sdk.Value) (sdk.Value, error) {
	folder, path := c.Folder(text(args, "folder")), text(args, "path")
	switch text(args, "op") {
	case "read":
		p, err := folder.ReadAt(path, args.Get("offset").IntOr(0), args.Get("length").IntOr(0))
		content, encoding := string(p.Data), ""
		if !utf8.Valid(p.Data) {
			content, encoding = base64.StdEncoding.EncodeToString(p.Data), "base64"
		}
		return sdk.Object(sdk.F("text", sdk.String(content)), sdk.F("encoding", sdk.Text(encoding)), sdk.F("size", sdk.Int(p.Size)), sdk.F("truncated", sdk.Bool(p.Truncated))), err
	case "write":
		data := []byte(text(args, "text"))
		if text(args, "encoding") == "base64" {
			var err error
			if data, err = base64.StdEncoding.DecodeString(string(data)); err != nil {
				return sdk.Value{}, err
			}
		}
		// The method does not return the size, which is that of the argument.
		return sdk.Object(sdk.F("size", sdk.Int(int64(len(data))))), folder.Write(path, data)
	case "list":
		entries, more, err := folder.ListFrom(path, args.Get("offset").IntOr(0))
		items := make([]sdk.Value, len(entries))
		for i, e := range entries {
			items[i] = entry(e).With("name", sdk.String(e.Name))
		}
		return sdk.Object(sdk.F("entries", sdk.List(items...)), sdk.F("truncated", sdk.Bool(more))), err
	case "stat":
		e, exists, err := folder.Stat(path)
		return entry(e).With("exists", sdk.Bool(exists)), err
	case "remove":
		return sdk.Object(), folder.Remove(path)
	}
	return sdk.Value{}, sdk.BadField("args.op", "want read, write, list, stat or remove")
}

func entry(e sdk.Entry) sdk.Value {
	return sdk.Object(sdk.F("dir", sdk.Bool(e.Dir)), sdk.F("size", sdk.Int(e.Size)), sdk.F("modified", sdk.Text(e.Modified)))
}
