package validation

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
	"github.com/sentinel-runtime/sentinel/sentinels/reference"
	"github.com/sentinel-runtime/sentinel/sentinels/strictjson"
)

// watchStep is the step type with rules of its own; commands of this family take rules too.
const (
	watchStep   = "watch"
	shellFamily = "code/shell/"
)

// rules checks the output classifiers that rules for lines of output name.
func (v *check) rules(path string, s *sentinels.Step) {
	if v.Classifier == nil {
		return
	}
	if s.Type == watchStep {
		v.classifiers(path+".rules", s.Fields["rules"])
	}
	var name string
	var params map[string]json.RawMessage
	if json.Unmarshal(s.Fields["command"], &name) == nil && strings.HasPrefix(name, shellFamily) && json.Unmarshal(s.Fields["params"], &params) == nil {
		v.classifiers(path+".params.rules", params["rules"])
	}
}

func (v *check) classifiers(path string, raw json.RawMessage) {
	var rules []struct {
		Classifier string `json:"classifier"`
	}
	if strictjson.DecodeOpen(raw, &rules, strictjson.Unlimited()) != nil {
		return // the schema reports it
	}
	for i, r := range rules {
		if r.Classifier == "" || reference.Contains(r.Classifier) {
			continue
		}
		if e := abi.As(v.Classifier(r.Classifier)); e != nil {
			v.add(fmt.Sprintf("%s[%d].classifier", path, i), sentinels.KindUnknown, e.Hint, "%s", e.Message)
		}
	}
}
