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

// charge returns the error limit if owner, or all owners together, would have more definitions or more bytes of
// revisions after puts than the store allows, unless they would then have fewer. The revisions
// of the store are counted each time: only agents and models wait for that. leave is called when
// the puts are done.
func (s *Store) charge(ctx context.Context, op string, id sentinels.ID, owner string, puts []store.Put) (leave func(), err error) {
	if owner == "" || s.opt.AgentBytes == 0 && s.opt.AgentDefinitions == 0 {
		return func() {}, nil
	}
	leave, err = s.admission.Enter(ctx, fairqueue.Of(owner))
	if err != nil {
		return nil, err
	}
	have, err := s.usage(owner)
	if err == nil {
		err = s.chargeCount(op, id, owner, have, puts)
	}
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
	who, bytes, most := owner, have.own.bytes+added, s.opt.AgentBytes
	if bytes <= most {
		who, bytes, most = everyOwner, have.all.bytes+added, allOwners*s.opt.AgentBytes
	}
	if s.opt.AgentBytes == 0 || bytes <= most || added <= 0 {
		return leave, nil
	}
	leave()
	return nil, &abi.Error{
		Code: abi.Limit, Permanent: true,
		Message: fmt.Sprintf("%s definition %q: the kept revisions of definitions that %s made have %d KiB with this one, at most %d KiB (limits.agentBytes)", op, id, who, bytes>>10, most>>10),
		Hint:    "make the definition smaller, or have a person raise limits.agentBytes",
	}
}

// chargeCount returns the error limit if owner, or all owners together, would have more
// definitions after puts than the store allows, and more than before.
func (s *Store) chargeCount(op string, id sentinels.ID, owner string, have usage, puts []store.Put) error {
	added := 0
	for _, p := range puts {
		if !IsHead(p.Key) || p.Delete {
			continue
		}
		next, err := Read(p.Value)
		if err != nil {
			return err
		}
		if next.Deleted {
			continue
		}
		old, found, err := s.opt.Store.Get(Bucket, p.Key)
		if err != nil {
			return err
		}
		if found {
			head, err := Read(old)
			if err != nil {
				return err
			}
			found = !head.Deleted
		}
		if !found {
			added++
		}
	}
	if added == 0 || s.opt.AgentDefinitions == 0 {
		return nil
	}
	who, n, most := owner, have.own.definitions+added, s.opt.AgentDefinitions
	if n <= most {
		who, n, most = everyOwner, have.all.definitions+added, allOwners*s.opt.AgentDefinitions
	}
	if n <= most {
		return nil
	}
	return &abi.Error{
		Code: abi.Limit, Permanent: true,
		Message: fmt.Sprintf("%s definition %q: %s would have %d definitions, at most %d (limits.agentDefinitions)", op, id, who, n, most),
		Hint:    "delete some that are not needed any more (sentinel/list shows them, sentinel/delete), or have a person raise limits.agentDefinitions",
	}
}

// everyOwner is how messages call all owners together.
const everyOwner = "all agents and models"

// usage is what an owner has, and what all owners have.
type usage struct {
	own, all struct {
		bytes       int64 // of kept revisions
		definitions int   // that are not deleted, by the author of their newest revision
	}
}

// usage counts what is in the store.
func (s *Store) usage(owner string) (u usage, err error) {
	var bad error
	err = s.opt.Store.Scan(Bucket, nil, nil, false, func(key, value []byte) bool {
		r, _, err := split(value)
		if err != nil {
			bad = fmt.Errorf("read revision %q: %w", key, err)
			return false
		}
		by := ownerOf(&r)
		switch head := IsHead(key); {
		case by == "":
		case head && r.Deleted:
		case head:
			u.all.definitions++
			if by == owner {
				u.own.definitions++
			}
		default:
			u.all.bytes += int64(len(key) + len(value))
			if by == owner {
				u.own.bytes += int64(len(key) + len(value))
			}
		}
		return true
	})
	return u, cmp.Or(err, bad)
}
