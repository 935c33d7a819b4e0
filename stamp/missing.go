package stamp

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"time"

	"antipode/geo"
	"antipode/stamp/extent"
	"antipode/stamp/kv"
	"antipode/stamp/node"
)

// missingChunksMethod asks a node which of some chunks, given as their refs, it lacks. The answer has one byte for
// each: 1 for a chunk that it lacks, else 0.
const missingChunksMethod = "stamp.missingChunks"

// missingChunksTimeout bounds the question to the nodes. It is short: putting the chunks again is always right.
const missingChunksTimeout = time.Second

// refBytes is the size of a ref in a question to a node: id, length and CRC.
const refBytes = 16 + 4 + 4

// MissingChunks reports, for each of the chunks, whether PutChunk would have to write it. A chunk is not missing if it
// is durable on every node of the blob range that answers, on two at least; a node that does not answer, or has no room,
// is passed over, as PutChunk does, and kv.ErrBusy means that the others are too few. Each node that is asked keeps the
// chunk for this round of its collection and the next (R9), since the caller is about to name it. If the change that
// names it comes later than that, it is found out then what is here, as for every change.
func (s *Stamp) MissingChunks(ctx context.Context, refs []extent.Ref) ([]bool, error) {
	ctx, cancel := context.WithTimeout(ctx, missingChunksTimeout)
	defer cancel()
	nodes := s.Placed(s.chunkRange())
	lacked, errs := make([][]bool, len(nodes)), make([]error, len(nodes))
	var asking sync.WaitGroup
	for i, id := range nodes {
		asking.Go(func() { lacked[i], errs[i] = s.lackedAt(ctx, id, refs) })
	}
	asking.Wait()
	missing, answered := make([]bool, len(refs)), 0
	for i, lacks := range lacked {
		if errs[i] != nil {
			continue
		}
		answered++
		for i, lacks := range lacks {
			missing[i] = missing[i] || lacks
		}
	}
	if answered < s.copiesMin() {
		return nil, fmt.Errorf("%w: %w", kv.ErrBusy, errors.Join(errs...))
	}
	return missing, nil
}

// lackedAt asks a node, which may run here, which chunks it lacks.
func (s *Stamp) lackedAt(ctx context.Context, id geo.NodeID, refs []extent.Ref) ([]bool, error) {
	if n := s.Node(id); n != nil {
		return lackedBy(n, refs)
	}
	calls, ok := s.o.Transport.(node.CallTransport)
	if !ok {
		return nil, node.ErrUnreachable
	}
	answer, err := calls.Call(ctx, s.self(), id, missingChunksMethod, appendRefs(nil, refs))
	if err != nil {
		return nil, err
	}
	return parseLacked(answer, len(refs))
}

// lackedBy is asked before the room is looked at: a node without room keeps what it has all the same.
func lackedBy(n *node.Node, refs []extent.Ref) ([]bool, error) {
	lacks, err := n.Extents().Lacks(refs)
	if err == nil && n.Room().Full() {
		return nil, kv.ErrBusy
	}
	return lacks, err
}

// answerMissingChunks answers missingChunksMethod at a node.
func (s *Stamp) answerMissingChunks(id geo.NodeID) node.CallHandler {
	return func(_ context.Context, body []byte) ([]byte, error) {
		n := s.Node(id)
		if n == nil {
			return nil, node.ErrUnreachable
		}
		refs, err := parseRefs(body)
		if err != nil {
			return nil, err
		}
		lacks, err := lackedBy(n, refs)
		if err != nil {
			return nil, err
		}
		answer := make([]byte, len(lacks))
		for i, lacks := range lacks {
			if lacks {
				answer[i] = 1
			}
		}
		return answer, nil
	}
}

func appendRefs(b []byte, refs []extent.Ref) []byte {
	for _, r := range refs {
		b = append(b, r.ID[:]...)
		b = binary.BigEndian.AppendUint32(b, r.Length)
		b = binary.BigEndian.AppendUint32(b, r.CRC)
	}
	return b
}

func parseRefs(b []byte) ([]extent.Ref, error) {
	if len(b)%refBytes != 0 {
		return nil, fmt.Errorf("refs of chunks have %d bytes", len(b))
	}
	refs := make([]extent.Ref, 0, len(b)/refBytes)
	for ; len(b) > 0; b = b[refBytes:] {
		r := extent.Ref{Length: binary.BigEndian.Uint32(b[16:]), CRC: binary.BigEndian.Uint32(b[20:])}
		copy(r.ID[:], b)
		refs = append(refs, r)
	}
	return refs, nil
}

func parseLacked(b []byte, want int) ([]bool, error) {
	if len(b) != want {
		return nil, fmt.Errorf("answer about %d chunks in place of %d", len(b), want)
	}
	lacks := make([]bool, want)
	for i, v := range b {
		if v > 1 {
			return nil, fmt.Errorf("answer %d about a chunk", v)
		}
		lacks[i] = v == 1
	}
	return lacks, nil
}
