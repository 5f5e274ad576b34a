package sdktest

import (
	"encoding/base64"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/sentinel-runtime/sentinel/sdk"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// Folder adds a fake folder with these files; name is that in the plugin's manifest, and
// writes of the step change files. File names are paths with slashes; there are no empty
// folders. Answers of [Host.OK] and [Host.Fail] are used first. After the first call of
// Folder, other folders are denied, as those without a grant.
func (h *Host) Folder(word string, files map[string]string) *Host {
	if h.script.folders == nil {
		h.script.folders = map[string]map[string]string{}
	}
	h.script.folders[word] = files
	return h
}

// file answers sentinel_file.
func (s *Script) file(request []byte) string {
	r, err := sdk.Parse(string(request))
	if err != nil {
		return failed(abi.BadFields, "sentinel_file: "+err.Error())
	}
	files, granted := s.folders[r.Get("folder").StringOr("")]
	path := r.Get("path").StringOr("")
	content, there := files[path]
	switch op := r.Get("op").StringOr(""); {
	case !granted:
		return failed(abi.Denied, "folder "+sdk.Quote(r.Get("folder").StringOr(""))+": is not granted")
	case path != "" && !clean(path):
		return failed(abi.Denied, "sentinel_file "+sdk.Quote(path)+": outside the folder")
	case op == "read" && !there:
		return failed(abi.NotFound, "open "+sdk.Quote(path)+": no such file")
	case op == "read":
		return okay(piece(content, int(r.Get("offset").IntOr(0)), int(r.Get("length").IntOr(maxPiece))))
	case op == "write":
		text := r.Get("text").StringOr("")
		if r.Get("encoding").StringOr("") == "base64" {
			b, err := base64.StdEncoding.DecodeString(text)
			if err != nil {
				return failed(abi.BadFields, "sentinel_file text: not base64")
			}
			text = string(b)
		}
		files[path] = text
		return okay(sdk.Object(sdk.F("size", sdk.Int(int64(len(text))))))
	case op == "remove":
		delete(files, path)
		return okay(sdk.Object())
	case op == "stat":
		return okay(stat(files, path))
	case op == "list":
		return okay(list(files, path, int(r.Get("offset").IntOr(0))))
	default:
		return failed(abi.BadFields, "sentinel_file op: "+sdk.Quote(op)+" is none of read, write, list, stat and remove")
	}
}

// The limits of one answer, clause A6.16.
const (
	maxPiece = 160 << 10
	maxList  = 1000
)

// modified is the time of all files: a step must not depend on it.
const modified = "2026-01-01T00:00:00Z"

func clean(path string) bool {
	for part := range strings.SplitSeq(path, "/") {
		if part == "" || part == "." || part == ".." {
			return false
		}
	}
	return true
}

func piece(content string, offset, length int) sdk.Value {
	rest := content[min(offset, len(content)):]
	part := sdk.Cut(rest, min(length, maxPiece))
	if part == "" {
		part = rest[:min(length, len(rest))] // not even one complete character
	}
	v := sdk.Object(sdk.F("text", sdk.String(part)))
	if !utf8.ValidString(part) {
		part = rest[:min(length, maxPiece, len(rest))]
		v = sdk.Object(sdk.F("text", sdk.String(base64.StdEncoding.EncodeToString([]byte(part)))), sdk.F("encoding", sdk.String("base64")))
	}
	return v.With("size", sdk.Int(int64(len(content)))).With("truncated", sdk.Bool(len(part) < len(rest)))
}

func stat(files map[string]string, path string) sdk.Value {
	content, there := files[path]
	dir := !there && (path == "" || len(children(files, path)) > 0)
	if !there && !dir {
		return sdk.Object(sdk.F("exists", sdk.Bool(false)))
	}
	return sdk.Object(sdk.F("exists", sdk.Bool(true)), sdk.F("dir", sdk.Bool(dir)), sdk.F("size", sdk.Int(int64(len(content)))), sdk.F("modified", sdk.String(modified)))
}

func list(files map[string]string, path string, offset int) sdk.Value {
	below := children(files, path)
	names := slices.Sorted(maps.Keys(below))
	names = names[min(offset, len(names)):]
	entries := make([]sdk.Value, 0, len(names))
	for _, name := range names[:min(maxList, len(names))] {
		entries = append(entries, sdk.Object(
			sdk.F("name", sdk.String(name)), sdk.F("dir", sdk.Bool(below[name] < 0)), sdk.F("size", sdk.Int(max(below[name], 0))), sdk.F("modified", sdk.String(modified)),
		))
	}
	return sdk.Object(sdk.F("entries", sdk.List(entries...)), sdk.F("truncated", sdk.Bool(len(names) > maxList)))
}

// children returns the sizes of the entries of a path, -1 for folders.
func children(files map[string]string, path string) map[string]int64 {
	below := map[string]int64{}
	for name, content := range files {
		if path != "" {
			var ok bool
			if name, ok = strings.CutPrefix(name, path+"/"); !ok {
				continue
			}
		}
		if first, _, deeper := strings.Cut(name, "/"); deeper {
			below[first] = -1
		} else {
			below[first] = int64(len(content))
		}
	}
	return below
}

func okay(v sdk.Value) string { return sdk.Object(sdk.F("ok", v)).String() }

func failed(code abi.Code, message string) string {
	return sdk.Object(sdk.F("error", sdk.ErrorValue(&sdk.Error{Code: code, Message: message, Permanent: true}))).String()
}
