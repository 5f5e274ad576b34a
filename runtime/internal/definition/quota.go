package definition

import (
	"cmp"
	"context"
	"fmt"

	"github.com/sentinel-runtime/sentinel/internal/fairqueue"
	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/runtime/revision"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// allOwners is how many times as many bytes as one agent may have all agents and models have together.
const allOwners = 4

// models is the owner of revisions that a model has made.
const models = "models"

// ownerOf returns for whom the bytes of a revision count, empty for a revision of a person.
func ownerOf(r *revision.Stored) string {
	if r.Within == nil {
		return ""
	}
	return cmp.Or(r.Agent(), models)
}

// authorOf returns the owner of what an author adds, empty for a person. A person who edits what an agent
// made is not refused for what this agent has.
func authorOf(opt revision.SaveOptions) string {
	if opt.Within == nil {
		return ""
	}
	return cmp.Or(makerOf(opt), models)
}

// charge returns the error limit if owner, or all owners together, would have more bytes of
// revisions after puts than the store allows, unless they would then have fewer. The revisions
// of the store are counted each time: only agents and models wait for that. leave is called when
// the puts are done.
func (s *Store) charge(ctx context.Context, op string, id sentinels.ID, owner string, puts []store.Put) (leave func(), err error) {
	if owner == "" || s.opt.AgentBytes == 0 {
		return func() {}, nil
	}
	leave, err = s.admission.Enter(ctx, fairqueue.Of(owner))
	if err != nil {
		return nil, err
	}
	own, all, err := s.usage(owner)
	if err != nil {
		leave()
		return nil, err
	}
	var added int64 // all that is added counts for this owner
	for _, p := range puts {
		if IsHead(p.Key) {
			continue
		}
		if !p.Delete {
			added += int64(len(p.Key) + len(p.Value))
			continue
		}
		old, _, err := s.opt.Store.Get(Bucket, p.Key)
		if err != nil {
			leave()
			return nil, err
		}
		added -= int64(len(p.Key) + len(old))
	}
	who, have, most := owner, own+added, s.opt.AgentBytes
	if have <= most {
		who, have, most = "all agents and models", all+added, allOwners*s.opt.AgentBytes
	}
	if have <= most || added <= 0 {
		return leave, nil
	}
	leave()
	return nil, &abi.Error{
		Code: abi.Limit, Permanent: true,
		Message: fmt.Sprintf("%s definition %q: the kept revisions of definitions that %s made have %d KiB with this one, at most %d KiB (limits.agentBytes)", op, id, who, have>>10, most>>10),
		Hint:    "make the definition smaller, or have a person raise limits.agentBytes",
	}
}

// usage returns the bytes of the revisions of an owner, and of all owners.
func (s *Store) usage(owner string) (own, all int64, err error) {
	var bad error
	err = s.opt.Store.Scan(Bucket, nil, nil, false, func(key, value []byte) bool {
		if IsHead(key) {
			return true
		}
		r, _, err := split(value)
		if err != nil {
			bad = fmt.Errorf("read revision %q: %w", key, err)
			return false
		}
		switch ownerOf(&r) {
		case "":
			return true
		case owner:
			own += int64(len(key) + len(value))
		}
		all += int64(len(key) + len(value))
		return true
	})
	return own, all, cmp.Or(err, bad)
}
