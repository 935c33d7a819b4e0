package inspect

import (
	"encoding/binary"
	"fmt"
	"strings"

	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"antipode/geo"
	"antipode/stamp/change"
	"antipode/stamp/seglog"
	"antipode/stamp/state"
)

// Segment is a file of the log.
type Segment struct {
	Type    string `json:"type"`
	Segment uint64 `json:"segment"`
	// Use is active, chain, spare, or unlinked: below a break, so that nobody knows.
	Use       string `json:"use"`
	Bytes     int64  `json:"bytes"`
	Continues uint64 `json:"continues,omitempty"`
	// End is behind the last intact frame, Mark the offset below which all was fsynced.
	End     int64 `json:"end"`
	Mark    int64 `json:"mark"`
	Records int   `json:"records"`
}

// Text implements Row.
func (s Segment) Text() string {
	if s.Use == string(seglog.UseSpare) {
		return fmt.Sprintf("segment %08d  spare     %d bytes", s.Segment, s.Bytes)
	}
	return fmt.Sprintf("segment %08d  %-8s  %d bytes, used to %d, mark at %d, %d records, continues %d",
		s.Segment, s.Use, s.Bytes, s.End, s.Mark, s.Records, s.Continues)
}

// LogRecord is one record of the log.
type LogRecord struct {
	Type   string      `json:"type"`
	Range  geo.RangeID `json:"range"`
	Record string      `json:"record"`
	Index  uint64      `json:"index,omitempty"`
	Term   uint64      `json:"term,omitempty"`
	// Vote and Commit of a hard state; Trimmed and Last of a state.
	Vote    uint64 `json:"vote,omitempty"`
	Commit  uint64 `json:"commit,omitempty"`
	Trimmed uint64 `json:"trimmed,omitempty"`
	Last    uint64 `json:"last,omitempty"`
	Segment uint64 `json:"segment"`
	Offset  int64  `json:"offset"`
	// Durable means that an fsync is known to have covered it.
	Durable bool `json:"durable"`
	Bytes   int  `json:"bytes,omitempty"`
	// Group is what an entry changes, Members what it changes of the configuration. An
	// entry with neither is that of a new leader.
	Group   *Group `json:"group,omitempty"`
	Members string `json:"members,omitempty"`
}

// Text implements Row.
func (r LogRecord) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "r%d  %-10s  index %-8d term %-4d", r.Range, r.Record, r.Index, r.Term)
	switch {
	case r.Record == string(seglog.RecordHardState):
		b.Reset()
		fmt.Fprintf(&b, "r%d  %-10s  term %d, vote %d, commit %d", r.Range, r.Record, r.Term, r.Vote, r.Commit)
	case r.Record == string(seglog.RecordState):
		b.Reset()
		fmt.Fprintf(&b, "r%d  %-10s  term %d, vote %d, commit %d, trimmed to %d, last %d", r.Range, r.Record, r.Term, r.Vote, r.Commit, r.Trimmed, r.Last)
	case r.Members != "":
		b.WriteString("  " + r.Members)
	case r.Group != nil:
		fmt.Fprintf(&b, "  group %s after %s, %d bytes", r.Group.ID, r.Group.Pred, r.Bytes)
	case r.Record == string(seglog.RecordEntry) || r.Record == string(seglog.RecordCopy):
		b.WriteString("  a new leader's")
	}
	if !r.Durable {
		b.WriteString("  (above the mark)")
	}
	if r.Group != nil {
		for _, p := range r.Group.Parts {
			b.WriteString("\n      " + p.Text())
		}
	}
	return b.String()
}

// LogRange is what the log as a whole says of a range.
type LogRange struct {
	Type   string      `json:"type"`
	Range  geo.RangeID `json:"range"`
	First  uint64      `json:"first"`
	Last   uint64      `json:"last"`
	Term   uint64      `json:"term"`
	Vote   uint64      `json:"vote"`
	Commit uint64      `json:"commit"`
	Bytes  uint64      `json:"bytes"`
}

// Text implements Row.
func (r LogRange) Text() string {
	return fmt.Sprintf("range %d  entries %d to %d, term %d, vote %d, commit %d, %d bytes", r.Range, r.First, r.Last, r.Term, r.Vote, r.Commit, r.Bytes)
}

// Log reports the log: the records of each segment, oldest first, the segment behind
// them; then, where the log is whole, what it says of each range. Records that were
// replaced or trimmed later are among them. It returns how many places are damaged.
func Log(n Node, o Options, emit Emit) (damaged int, err error) {
	r := &report{emit: emit}
	dir := n.fs.PathJoin(n.Dir, "log")
	segment := func(s seglog.Segment) error { return r.segment(n, s) }
	ranges := map[geo.RangeID]bool{}
	record := func(rec seglog.Record) error {
		ranges[rec.Range] = true
		if o.Summary || o.Range != 0 && rec.Range != o.Range {
			return nil
		}
		return r.logRecord(n, rec, o.From)
	}
	if err := seglog.Inspect(n.fs, dir, segment, record); err != nil {
		return r.damaged, fmt.Errorf("read the log %s: %w", dir, err)
	}
	log, err := seglog.Open(dir, state.Options{FS: n.fs, ReadOnly: true})
	if err != nil {
		// A refusal of the log as a whole is damage too, even if no byte was altered.
		err = r.damage(Damage{Store: "log", Detail: "a start would set the log aside: " + err.Error()})
		return r.damaged, err
	}
	defer func() { err = joinClose(err, log) }()
	for id := geo.RangeID(0); len(ranges) > 0; id++ {
		if !ranges[id] {
			continue
		}
		delete(ranges, id)
		if o.Range != 0 && id != o.Range {
			continue
		}
		row, err := logRange(log, id)
		if err == nil {
			err = emit(row)
		}
		if err != nil {
			return r.damaged, err
		}
	}
	return r.damaged, nil
}

func logRange(log state.Log, id geo.RangeID) (row LogRange, err error) {
	g, err := log.Range(id, nil)
	if err != nil {
		return row, err
	}
	row = LogRange{Type: "log-range", Range: id, Bytes: g.Bytes()}
	if row.First, err = g.FirstIndex(); err != nil {
		return row, err
	}
	if row.Last, err = g.LastIndex(); err != nil {
		return row, err
	}
	hs, _, err := g.InitialState()
	row.Term, row.Vote, row.Commit = hs.GetTerm(), hs.GetVote(), hs.GetCommit()
	return row, err
}

func (r *report) segment(n Node, s seglog.Segment) error {
	name := n.fs.PathBase(s.Path)
	if s.HeaderDamaged {
		if err := r.damage(Damage{Store: "log", File: name, To: 4096, Detail: "the header of the segment is damaged"}); err != nil {
			return err
		}
	}
	for _, d := range s.Damage {
		if err := r.damage(Damage{Store: "log", File: name, From: d.From, To: d.To, Detail: "not intact, though it was fsynced"}); err != nil {
			return err
		}
	}
	if s.Use == seglog.UseUnlinked {
		if err := r.damage(Damage{Store: "log", File: name, Detail: "a damaged segment above it hides whether it is still a part of the log"}); err != nil {
			return err
		}
	}
	return r.emit(Segment{
		Type: "segment", Segment: s.Number, Use: string(s.Use), Bytes: s.Bytes, Continues: s.Continues, End: s.End, Mark: s.Durable, Records: s.Records,
	})
}

func (r *report) logRecord(n Node, rec seglog.Record, from uint64) error {
	row := LogRecord{
		Type: "record", Range: rec.Range, Record: string(rec.Kind), Index: rec.Index, Term: rec.Term, Segment: rec.Segment,
		Offset: rec.Offset, Durable: rec.Durable, Bytes: len(rec.Data),
	}
	switch rec.Kind {
	case seglog.RecordHardState, seglog.RecordState:
		row.Term, row.Vote, row.Commit = rec.HardState.Term, rec.HardState.Vote, rec.HardState.Commit
		row.Trimmed, row.Last = rec.Truncated.Index, rec.Last
	case seglog.RecordEntry, seglog.RecordCopy, seglog.RecordTrim, seglog.RecordReset:
		if row.Index < from {
			return nil
		}
		if err := row.decode(rec); err != nil {
			// Its CRC in the log is right: it was wrong when it was written.
			return r.damage(Damage{
				Store: "log", File: fmt.Sprintf("%08d.seg", rec.Segment), From: rec.Offset, To: rec.Offset + int64(len(rec.Data)),
				Detail: fmt.Sprintf("entry %d of range %d does not decode: %v", rec.Index, rec.Range, err),
			})
		}
	}
	return r.emit(row)
}

// decode adds what an entry says.
func (r *LogRecord) decode(rec seglog.Record) error {
	switch {
	case len(rec.Data) == 0:
		return nil
	case rec.EntryType == pb.EntryConfChangeV2:
		cc := &pb.ConfChangeV2{}
		if err := proto.Unmarshal(rec.Data, cc); err != nil {
			return err
		}
		var words []string
		for _, c := range cc.GetChanges() {
			w := fmt.Sprintf("%s replica %d", strings.TrimPrefix(c.GetType().String(), "ConfChange"), c.GetNodeId())
			if len(cc.GetContext()) == 8 {
				w += fmt.Sprintf(" on node %d", binary.LittleEndian.Uint64(cc.GetContext()))
			}
			words = append(words, w)
		}
		r.Members = strings.Join(words, ", ")
		return nil
	}
	g, err := change.ParseGroup(rec.Data)
	if err != nil {
		return err
	}
	r.Group = &Group{ID: groupID(g.ID), Pred: groupID(g.Pred)}
	return g.Parts(func(kind change.PartKind, body []byte) error {
		p, err := describePart(kind, body)
		r.Group.Parts = append(r.Group.Parts, p)
		return err
	})
}
