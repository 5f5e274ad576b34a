package validation

import (
	"fmt"
	"slices"

	"github.com/sentinel-runtime/sentinel/sentinels"
)

// Withheld is a variable of the host that steps do not get, with the mend.
type Withheld struct{ Name, Hint string }

// Environment returns the secrets that a definition names and that owner cannot use on this host,
// and warnings of variables that its shell lines use, that are set here and that steps do not get.
func (c Checker) Environment(owner sentinels.ID, d *sentinels.Definition, types *sentinels.TypeSet) (found sentinels.Problems) {
	if c.Secret != nil {
		d.EachSecret(types, func(path, name string) {
			if p := c.Secret(owner, name); p != nil {
				p.Path = path
				found = append(found, *p)
			}
		})
	}
	if c.Withheld == nil {
		return found
	}
	uses := d.ShellUses(types)
	var names []string
	for _, use := range uses {
		names = append(names, use.Name)
	}
	withheld := c.Withheld(d, names)
	for _, use := range uses {
		if i := slices.IndexFunc(withheld, func(w Withheld) bool { return w.Name == use.Name }); i >= 0 {
			found = append(found, sentinels.Problem{
				Path: use.Path, Kind: sentinels.KindWarning, Hint: withheld[i].Hint, Message: fmt.Sprintf("$%s is set here, but steps do not get it", use.Name),
			})
		}
	}
	return found
}
