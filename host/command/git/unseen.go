package git

import (
	"context"

	"github.com/sentinel-runtime/sentinel/host/internal/gitsource"
)

// unseen returns those of names, relative to the top of the work tree, that the caller does not see, see [gitsource.Unseen].
func (r *repository) unseen(ctx context.Context, names []string, sides ...string) ([]string, error) {
	if r.hides == nil {
		return nil, nil
	}
	return gitsource.Unseen{Name: r.hides, Content: r.sealed, Git: r.git, Operation: r.operation}.Of(ctx, names, sides...)
}
