package checkpoint

import "github.com/sentinel-runtime/sentinel/internal/fairqueue"

// Waiting returns how many operations on a workspace wait, for an agent or, with "", for persons.
func (s *Service) Waiting(workspace, by string) int {
	return s.lock(s.repositoryOf(workspace)).Waiting(fairqueue.Of(by))
}
