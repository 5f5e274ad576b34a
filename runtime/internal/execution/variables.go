package execution

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/sentinel-runtime/sentinel/runtime/internal/history"
	"github.com/sentinel-runtime/sentinel/runtime/internal/values"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// Variables returns the variables that a run has set so far, redacted: those of a live run
// as its steps see them now, else those that its journal or its result has.
func (ex *Executor) Variables(id sentinels.RunID) (map[string]json.RawMessage, error) {
	variables, err := ex.variables(id)
	for name, v := range variables {
		variables[name] = ex.svc.Redact.JSON(v)
	}
	return variables, err
}

func (ex *Executor) variables(id sentinels.RunID) (map[string]json.RawMessage, error) {
	if r := ex.live(id); r != nil {
		sc := r.runScope()
		return onlyNamed(sc.Variables(), sc.Order()), nil
	}
	info, err := ex.Status(id)
	if err != nil {
		return nil, err
	}
	if info.Status.Final() {
		res, err := ex.StoredResult(info)
		return res.Variables, err
	}
	st, err := history.Fold(ex.opt.Store, id, info.Snapshot, nil)
	if err != nil {
		return nil, err
	}
	if err := ex.svc.Values.LoadState(st); err != nil {
		return nil, err
	}
	return onlyNamed(values.Contents(st.Scope.Variables), st.Scope.Order), nil
}

// onlyNamed removes the variables whose names are not listed, such as inherited ones.
func onlyNamed(variables map[string]json.RawMessage, names []string) map[string]json.RawMessage {
	maps.DeleteFunc(variables, func(name string, _ json.RawMessage) bool { return !slices.Contains(names, name) })
	return variables
}
