package app

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/sentinel-runtime/sentinel/host/cli/output"
	"github.com/sentinel-runtime/sentinel/host/internal/termtext"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// wholeID is the length of a run's id.
const wholeID = 36

// runPart returns the run that a part of an id matches, "" if none does. Tables show the
// last eight characters, but any part is accepted.
func (a *App) runPart(ctx context.Context, s *Session, part string) (sentinels.RunID, error) {
	if part == "" {
		return "", &UsageError{"the run id is empty", ""}
	}
	part = strings.ToLower(part)
	if len(part) == wholeID {
		if info, err := s.RunInfo(ctx, sentinels.RunID(part)); err == nil {
			return info.ID, nil
		}
	}
	var fits []sentinels.RunID
	exact := false
	err := s.EachRun(ctx, map[string]any{}, func(r runtime.RunInfo) bool {
		if exact = string(r.ID) == part; exact {
			fits = []sentinels.RunID{r.ID}
		} else if strings.Contains(string(r.ID), part) {
			fits = append(fits, r.ID)
		}
		return !exact
	})
	if err != nil {
		return "", err
	}
	// Runs differ in the ends of their ids, so a match of an end has priority.
	if len(fits) > 1 {
		var ends []sentinels.RunID
		for _, id := range fits {
			if strings.HasSuffix(string(id), part) {
				ends = append(ends, id)
			}
		}
		if len(ends) == 1 {
			fits = ends
		}
	}
	switch len(fits) {
	case 0:
		return "", nil
	case 1:
		return fits[0], nil
	}
	shown := make([]string, 0, 5)
	for _, id := range fits[:min(5, len(fits))] {
		shown = append(shown, string(id))
	}
	return "", &UsageError{fmt.Sprintf("%q matches %d runs", part, len(fits)), "give more of one id: " + strings.Join(shown, ", ")}
}

// FindRun returns the run that RUN or NAME means: by a part of its id, or the newest run
// of a sentinel; with over also one that has ended.
func (a *App) FindRun(ctx context.Context, s *Session, word string, over bool) (runtime.RunInfo, error) {
	all, err := s.List(ctx, map[string]any{"sentinelId": word, "limit": 1000})
	if err != nil {
		return runtime.RunInfo{}, err
	}
	if len(all.Sentinels) > 0 || len(all.Runs) > 0 {
		if err := a.notBoth(ctx, s, word); err != nil {
			return runtime.RunInfo{}, err
		}
	}
	for _, r := range all.Runs { // the newest first
		if over || !r.Status.Final() {
			return r, nil
		}
	}
	if all.Next != "" {
		open, err := s.Unfinished(ctx)
		if err != nil {
			return runtime.RunInfo{}, err
		}
		if i := slices.IndexFunc(open, func(r runtime.RunInfo) bool { return string(r.Sentinel) == word }); i >= 0 {
			return open[i], nil
		}
	}
	var id sentinels.RunID
	if len(all.Sentinels) == 0 && len(all.Runs) == 0 { // no sentinel has this name
		var err error
		if id, err = a.runPart(ctx, s, word); err != nil {
			return runtime.RunInfo{}, err
		}
	}
	if id == "" {
		hint := fmt.Sprintf("`sentinel list%s` shows runs and sentinels", a.SameStore())
		switch {
		case len(all.Runs) > 0:
			return runtime.RunInfo{}, NotFound(hint, "sentinel %q has no active run", word)
		case len(all.Sentinels) > 0:
			return runtime.RunInfo{}, NotFound(hint, "sentinel %q has no run", word)
		}
		if err := a.Unstored(s, word); err != nil {
			return runtime.RunInfo{}, err
		}
		return runtime.RunInfo{}, NotFound(hint, "no run and no sentinel matches %q", word)
	}
	return s.RunInfo(ctx, id)
}

// shortID is the length of a run's id in tables: its last characters.
const shortID = 8

// notBoth returns an error if a word that is the id of a sentinel is also the id of a run as tables show
// it: a sentinel can be named so that a person who means the run gets the sentinel.
func (a *App) notBoth(ctx context.Context, s *Session, word string) error {
	if len(word) != shortID || strings.Trim(word, "0123456789abcdef") != "" {
		return nil
	}
	id, err := a.runPart(ctx, s, word)
	if err != nil || id == "" {
		return err
	}
	return &UsageError{fmt.Sprintf("%q is the id of a sentinel and of the run %s", word, id), "give the whole id of the run, or rename the sentinel: its file has the id"}
}

// RunInfo returns the summary of a run.
func (s *Session) RunInfo(ctx context.Context, id sentinels.RunID) (runtime.RunInfo, error) {
	var out struct{ State runtime.RunInfo }
	err := s.Call(ctx, "sentinel/status", map[string]any{"run": id, "brief": true}, &out)
	return out.State, err
}

// FindTarget returns the whole id of what NAME|RUN means: a stored sentinel, or else
// a run by any part of its id. A sentinel has priority, as in the commands.
// A deleted sentinel is not found: verbs that restore one or show its revisions use the
// name as it is.
func (a *App) FindTarget(ctx context.Context, s *Session, word string) (string, error) {
	var all Listed
	if err := s.Call(ctx, "sentinel/list", map[string]any{"sentinelId": word, "only": "sentinels"}, &all); err != nil {
		return "", err
	}
	if len(all.Sentinels) > 0 {
		return word, a.notBoth(ctx, s, word)
	}
	id, err := a.runPart(ctx, s, word)
	switch {
	case err != nil:
		return "", err
	case id != "":
		return string(id), nil
	}
	if err := a.Unstored(s, word); err != nil {
		return "", err
	}
	return "", a.NoSentinel(word, &abi.Error{Code: abi.NotFound})
}

// Unstored returns what to do about a sentinel that is not stored and that a file in the project's
// folders has, by its name; nil if none has it.
func (a *App) Unstored(s *Session, name string) error {
	if s.ByURL || !isName(name) {
		return nil
	}
	src, err := a.trusted(a.inFolders(name))
	if err != nil || src == nil {
		return err
	}
	file := output.Quote(src.File)
	hint := fmt.Sprintf("`sentinel run%s %s` executes it, `sentinel load%s %s` only stores it", a.SameStore(), output.Quote(name), a.SameStore(), file)
	if s.Serves() {
		hint = fmt.Sprintf("`sentinel validate %s` shows why the server has not stored it", file)
	}
	return NotFound(hint, "sentinel %q is not stored: it is only in %s", name, src.File)
}

// CallStored calls a command with a sentinel by its name, which may be that of a deleted one.
func (a *App) CallStored(ctx context.Context, s *Session, name, command string, params map[string]any, out any) error {
	params["sentinelId"] = name
	err := s.Call(ctx, command, params, out)
	if abi.CodeOf(err) == abi.NotFound && !a.Stored(ctx, s, name) {
		if unstored := a.Unstored(s, name); unstored != nil {
			return unstored
		}
	}
	return err
}

// Stored reports whether a sentinel is stored.
func (a *App) Stored(ctx context.Context, s *Session, name string) bool {
	var all Listed
	err := s.Call(ctx, "sentinel/list", map[string]any{"sentinelId": name, "only": "sentinels"}, &all)
	return err == nil && len(all.Sentinels) > 0
}

// TriggersPaused reports whether a trigger of a stored sentinel is paused.
func (a *App) TriggersPaused(ctx context.Context, s *Session, name string) bool {
	var all Listed
	err := s.Call(ctx, "sentinel/list", map[string]any{"sentinelId": name, "only": "sentinels"}, &all)
	return err == nil && slices.ContainsFunc(all.Sentinels, func(l ListedSentinel) bool {
		return slices.ContainsFunc(l.Triggers, func(t listedTrigger) bool { return t.Paused })
	})
}

// ShowChanged prints the state of a run, or of triggers, after a verb changed it.
func (a *App) ShowChanged(r runtime.RunInfo) error {
	if a.Flags.Output != output.FormatTable {
		return a.WriteJSON(r)
	}
	if r.ID == "" { // no run, but the triggers of the sentinel
		return a.Out.Printf("%s  %s  %s\n", output.Status(a.PaintOut, r.Status), r.Sentinel, cmp.Or(r.Reason, "its triggers fire"))
	}
	line := termtext.Sprintf("%s  %s  run %s", output.Status(a.PaintOut, r.Status), r.Sentinel, r.ID)
	if r.Status == sentinels.StatusQueued && len(r.Queued) > 0 {
		line += "  " + output.Escape(r.Queued[0].Reason)
	}
	return a.Out.Printf("%s\n", line)
}
